"""Answers at a prompt, in a notebook and as JSON: short in text, bounded in HTML, nothing of the input is markup."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, Final, NamedTuple

import pytest
from pydantic import Field

import dralloc
from conftest import ROOT
from dralloc.ask.whatif import (
    defragment,
    drain,
    fewest_nodes,
    headroom,
    partition_layout,
    preempt,
)
from dralloc.objects.answer import Amount, Answer, Fields, Nanos
from dralloc.objects.load import read_documents
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import NANOS
from dralloc.problem.solution import Solution
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

_PODS: Final = 60
_MARKUP: Final = "<b>bold</b>&"


def objects(pods: int) -> list[Any]:
    """Two nodes with a GPU for every second pod; one claim is allocated."""
    held = allocated("held", {"pool": "node-0", "device": "gpu-0"})
    wanted: list[Json] = []
    for index in range(pods):
        wanted += [
            claim(f"claim-{index}", request()),
            pod(f"pod-{index}", f"claim-{index}"),
        ]
    slices = [
        resource_slice(gpus(pods // 4), name=name, pool=name, nodeName=name)
        for name in ("node-0", "node-1")
    ]
    return [
        node("node-0"),
        node("node-1"),
        device_class(),
        *slices,
        held,
        *wanted,
    ]


@cache
def source() -> dralloc.Cluster:
    return cluster(*objects(_PODS))


ANSWERS: Final[dict[str, Callable[[], Answer]]] = {
    "cluster": source,
    "plan": lambda: dralloc.allocate(source()),
    "comparison": lambda: dralloc.compare(source()),
    "explanation": lambda: dralloc.explain(source(), pod="default/pod-50"),
    "validation": lambda: dralloc.validate(
        cluster(*objects(_PODS)[:-1], claim("odd", request("Odd!")))
    ),
    "stranding": lambda: dralloc.stranded(source()),
    "headroom": lambda: headroom(source(), "default/claim-0"),
    "fewest nodes": lambda: fewest_nodes(source(), "default/claim-0=20"),
    "drain": lambda: drain(
        dralloc.load(ROOT / "models" / "h100-mig"), "h100-2"
    ),
    "defragmentation": lambda: defragment(cluster(*objects(8)), 1),
    "preemption": lambda: preempt(source(), "default/claim-0"),
    "partition layout": lambda: partition_layout(
        source(), "default/claim-0=20"
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_one_line_at_a_prompt_and_tables_in_a_notebook(
    name: str,
) -> None:
    answer = ANSWERS[name]()
    text = repr(answer)
    assert text.startswith(f"<{type(answer).__name__}: ")
    assert answer.headline in text
    assert "\n" not in text
    html = answer._repr_html_()
    assert "<table>" in html
    assert html.count("<tr>") < 12 * 20
    assert "<script" not in html


@pytest.mark.parametrize("name", ["plan", "comparison"])
def test_a_notebook_shows_pictures_whose_ids_are_its_own(name: str) -> None:
    answer = ANSWERS[name]()
    first, second = answer._repr_html_(), answer._repr_html_()
    assert "<svg" in first
    ids = [
        {part.split('"')[0] for part in html.split(' id="')[1:]}
        for html in (first, second)
    ]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])


def test_long_tables_end_with_how_much_is_left_out() -> None:
    plan = dralloc.allocate(source())
    assert f"and {plan.metrics.placed - 12} more" in plan._repr_html_()


def test_what_holds_a_whole_cluster_is_shown_by_its_size() -> None:
    plan = dralloc.allocate(source())
    many = replace(plan.solution, placements=plan.solution.placements * 1000)
    assert f"placements=<{len(many.placements)}>" in repr(many)
    assert repr(Solution(())) == "Solution(status='FEASIBLE', steps=0)"
    assert repr(source().slices[0]) == "<ResourceSlice node-0>"
    reading = read_documents([node("a")])
    for shown in (
        many,
        plan.compiled,
        plan.compiled.problem,
        plan.compiled.table,
        plan.metrics,
        reading,
    ):
        assert 10 < len(repr(shown)) < 500


def test_a_long_headline_is_cut() -> None:
    answer = replace(
        drain(source(), "node-0"),
        nodes=tuple(f"node-{index}" for index in range(5000)),
    )
    assert len(repr(answer)) < 400


def test_nothing_of_the_input_is_markup_in_a_notebook() -> None:
    hostile = cluster(
        node(_MARKUP),
        device_class(),
        resource_slice(gpus(1)),
        claim(_MARKUP, request()),
    )
    for answer in (dralloc.allocate(hostile), dralloc.validate(hostile)):
        html = answer._repr_html_()
        assert "<b>" not in html
        assert "&lt;b&gt;bold&lt;/b&gt;&amp;" in html


def test_without_matplotlib_a_notebook_shows_the_tables() -> None:
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import dralloc; from dralloc.objects.load import load_text\n"
        "plan = dralloc.allocate(load_text('apiVersion: v1\\nkind: Node\\nmetadata: {name: m}'))\n"
        "print(plan._repr_html_())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert '<p class="bold">optimal: ' in done.stdout
    assert "<svg" not in done.stdout


def test_costs_are_exact_in_the_headline() -> None:
    answer = fewest_nodes(
        source(), "default/claim-0=15", prices={"node-0": Fraction(1, 3)}
    )
    assert answer.headline == "Cost 1/3: proven to be the lowest"


class _Holder(NamedTuple):
    key: ClaimKey
    priority: int
    """The higher, the earlier."""


@dataclass(frozen=True)
class _Use:
    """What is in use of something."""

    name: str
    used: Nanos
    """What nobody else can have."""
    most: Nanos | None
    holders: tuple[_Holder, ...]
    reasons: Mapping[str, int]
    hidden: bool = True

    @property
    def free(self) -> Nanos:
        """What is left."""
        return (self.most or 0) - self.used


class _HolderFields(Fields, of=_Holder):
    """Who has some of it."""


class _UseFields(Fields, of=_Use, shown="name free used most holders reasons"):
    """What is in use of something, in JSON."""

    title: str = Field(validation_alias="name")
    most: Amount | None
    """The cap; null for none."""


def test_documents_have_the_fields_of_answers() -> None:
    holder = _Holder(ClaimKey("default", "claim"), 3)
    use = _Use("memory", NANOS, 2 * NANOS, (holder,), {"full": 1})
    assert _UseFields.model_validate(use).model_dump(
        mode="json", by_alias=True
    ) == {
        "title": "memory",
        "free": 1,
        "used": 1,
        "most": 2,
        "holders": [{"key": "default/claim", "priority": 3}],
        "reasons": {"full": 1},
    }


def test_documents_are_described_as_answers_are() -> None:
    schema = _UseFields.model_json_schema(mode="serialization")
    described = {
        name: form.get("description")
        for name, form in schema["properties"].items()
    }
    assert described == {
        "title": None,
        "free": "What is left.",
        "used": "What nobody else can have.",
        "most": "The cap; null for none.",
        "holders": None,
        "reasons": None,
    }
    [holder] = schema["$defs"].values()
    assert (
        holder["properties"]["priority"]["description"]
        == "The higher, the earlier."
    )


def test_what_has_no_form_is_to_be_stated() -> None:
    @dataclass(frozen=True)
    class Odd:
        value: complex

    with pytest.raises(TypeError, match="complex"):

        class OddFields(Fields, of=Odd):
            """Nothing that JSON knows."""
