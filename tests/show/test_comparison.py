"""What a comparison says of two answers is true of these two, in tables, JSON, pages and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from pandas.testing import assert_frame_equal

import dralloc
from cluster_strategies import clusters
from conftest import ROOT
from dralloc.objects.choices import Mode
from dralloc.objects.errors import DrallocError
from dralloc.objects.report import Table
from dralloc.show.page.render import placements_table, render
from dralloc.show.plan import Plan
from dralloc.show.plot import gained
from examples import examples
from wire import (
    Json,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

EVERY_MODE = "scheduler,first-fit,optimal"


@cache
def compared(modes: str) -> dralloc.Comparison:
    """Two nodes of eight H100: kube-scheduler leaves out others than first fit does."""
    return dralloc.compare(
        dralloc.load(ROOT / "models" / "h100-mig"), modes=modes
    )


def placed(plan: Plan) -> list[str]:
    return [
        str(plan.demands[placement.demand].key)
        for placement in plan.solution.placements
    ]


def tables(comparison: dralloc.Comparison) -> dict[str, list[str]]:
    """The demands that each table of the report names, by title."""
    return {
        part.title: [row[0] for row in part.rows]
        for part in comparison.parts()
        if isinstance(part, Table)
    }


def test_only_is_said_where_two_answers_are_compared() -> None:
    both = tables(compared("first-fit,optimal"))
    assert [title for title in both if title.startswith("Only")] == [
        "Only the optimum places",
        "Only first fit places",
    ]
    every = compared(EVERY_MODE)
    assert every.scheduler
    of_scheduler = f"kube-scheduler (seed {every.scheduler.median_seed})"
    assert [title for title in tables(every) if "places" in title] == [
        f"The optimum places, {of_scheduler} does not",
        f"{of_scheduler} places, the optimum does not",
        "The optimum places, first fit does not",
        "First fit places, the optimum does not",
        "None of them places",
    ]


def test_all_who_share_a_claim_are_in_the_tables() -> None:
    """Its devices are granted once; the others use them, too."""
    pods = [
        pod(name, claim_name)
        for name, claim_name in (("p0", "both"), ("p1", "one"), ("p2", "one"))
    ]
    wanted = [claim("both", request(count=2)), claim("one", request())]
    slices = resource_slice(gpus(2))
    comparison = dralloc.compare(
        cluster(device_class(), node(), slices, wanted, pods)
    )
    names = ["default/p1", "default/p2"]
    assert list(map(str, comparison.only_optimal)) == names
    assert tables(comparison)["Only the optimum places"] == names
    [placements] = [
        part
        for part in comparison.optimal.parts()
        if isinstance(part, Table) and part.title == "Placed"
    ]
    assert list(placements.rows) == [
        ("default/p1", "node-0", "one", "gpu", "gpu.example.com/pool-0/gpu-0"),
        ("default/p2", "node-0", "one", "gpu", "gpu.example.com/pool-0/gpu-0"),
    ]
    [row, another_row] = placements_table(comparison.optimal, "").rows
    assert [row[0], another_row[0]] == names


def test_the_gain_is_shown_against_the_scheduler() -> None:
    every = compared(EVERY_MODE)
    assert every.scheduler
    missed = {str(demand.key) for demand in every.scheduler.median.unplaced}
    assert missed
    assert {str(key) for key in every.gain.demands} == missed & set(
        placed(every.optimal)
    )
    assert every.gain.not_by is Mode.SCHEDULER
    assert every.gain.heading in render(every)
    assert gained(every).get_title(loc="left") == every.gain.heading


def test_the_seed_that_is_named_gives_the_answer_that_is_shown() -> None:
    every = compared(EVERY_MODE)
    assert every.scheduler
    again = dralloc.allocate(
        every.optimal.compiled.cluster,
        "scheduler",
        seed=every.scheduler.median_seed,
    )
    assert placed(again) == placed(every.scheduler.median)


def _true_lists(
    comparison: dralloc.Comparison,
) -> Iterator[tuple[Mode, Mode, list[str]]]:
    """What one answer places and another does not, from the placements alone."""
    plans = comparison.answers.values()
    for plan, other in product(plans, plans):
        there = set(placed(other))
        yield (
            plan.rules,
            other.rules,
            [name for name in placed(plan) if name not in there],
        )


@given(clusters())
@settings(max_examples=examples(40))
def test_each_list_is_true_of_the_two_answers_that_it_names(
    objects: list[Json],
) -> None:
    comparison = dralloc.compare(cluster(*objects), modes=EVERY_MODE, seeds=2)
    truth = {
        (mode, other): sorted(names)
        for mode, other, names in _true_lists(comparison)
    }
    document = comparison.to_dict()
    told = {
        (row["placedBy"], row["notBy"]): sorted(row["demands"])
        for row in document["differences"]
    }
    assert told == {pair: truth[pair] for pair in told}
    assert len(told) == 4
    assert (
        sorted(document["onlyOptimal"]) == truth[Mode.OPTIMAL, Mode.FIRST_FIT]
    )
    assert (
        sorted(document["onlyFirstFit"]) == truth[Mode.FIRST_FIT, Mode.OPTIMAL]
    )
    somewhere = {
        name for plan in comparison.answers.values() for name in placed(plan)
    }
    everybody = {str(demand.key) for demand in comparison.optimal.demands}
    assert set(document["neither"]) == everybody - somewhere
    shown = tables(comparison)
    for difference in comparison.differences:
        assert set(shown[difference.title]) == set(
            truth[Mode(difference.placed_by), Mode(difference.not_by)]
        )


def test_a_frame_has_the_rows_of_each_answer() -> None:
    comparison = dralloc.compare(dralloc.example())
    frame = comparison.to_frame()
    assert list(frame.columns[:3]) == ["mode", "demand", "claim"]
    for plan in (comparison.first_fit, comparison.optimal):
        rows = frame[frame["mode"] == str(plan.mode)].drop(columns="mode")
        rows = rows.reset_index(drop=True)
        assert_frame_equal(rows, plan.to_frame(), check_dtype=False)


def test_any_answers_can_be_compared() -> None:
    """Policies by name, and of one's own; against the last of them where the optimum was not asked."""

    def fullest(
        _pod: dralloc.WaitingPod, nodes: Sequence[dralloc.OfferedNode]
    ) -> dralloc.OfferedNode:
        return nodes[-1]

    cluster_ = dralloc.load(ROOT / "models" / "gpu-nic")
    comparison = dralloc.compare(
        cluster_, modes=["best-fit", fullest, "first-fit"]
    )
    assert list(comparison.answers) == ["first fit", "best-fit", "fullest"]
    assert comparison.best.mode == "fullest"
    assert comparison.headline.startswith("24 pods: first fit places ")
    assert {difference.title for difference in comparison.differences} == {
        "Fullest places, first fit does not",
        "First fit places, fullest does not",
        "Fullest places, best-fit does not",
        "Best-fit places, fullest does not",
    }
    with pytest.raises(DrallocError, match="the optimum was not compared"):
        _ = comparison.optimal
    document = comparison.to_dict()
    assert document["optimal"] is None
    assert [policy["mode"] for policy in document["policies"]] == [
        "best-fit",
        "fullest",
    ]
    page = render(comparison)
    assert "None of these answers proves anything." in page
    assert "Devices under best-fit" in page
    assert gained(comparison).get_title(loc="left") == comparison.gain.heading


def test_who_is_placed_without_devices_is_in_the_tables() -> None:
    """Room on the node is all that the pods need: only one finds it, and not the same with each answer."""
    container = {
        "name": "main",
        "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "c"}]},
    }
    tight = cluster(
        {**node(), "status": {"allocatable": {"cpu": "1", "pods": "9"}}},
        claim("c"),
        *(pod(name, "c", containers=[container]) for name in "xyz"),
    )
    comparison = dralloc.compare(tight, modes=EVERY_MODE)
    for plan in comparison.plans:
        (key,) = placed(plan)
        (shown,) = (
            part
            for part in plan.parts()
            if isinstance(part, Table) and part.title == "Placed"
        )
        assert [row[:3] for row in shown.rows] == [(key, "node-0", "c")]
        rows = placements_table(plan, "").rows
        assert [(row[0], row[1], row[5]) for row in rows] == [
            (key, "node-0", "now")
        ]
    for difference, table in zip(
        comparison.differences, comparison.gains_and_losses(), strict=True
    ):
        named = [row[0] for row in table.rows]
        assert named == list(map(str, difference.demands))


@pytest.mark.parametrize(
    "name", ["optimal", "optimum", "first fit", "scheduler", "kube-scheduler"]
)
def test_a_policy_is_not_called_as_another_answer(name: str) -> None:
    class Named:
        def __init__(self) -> None:
            self.name = name

        def order(self, pods: Sequence[object]) -> Sequence[object]:
            return pods

        def __call__(self, _pod: object, nodes: Sequence[object]) -> object:
            return nodes[0]

    with pytest.raises(DrallocError, match=f"a policy is called {name}, as"):
        dralloc.compare(dralloc.example(), modes=["best-fit", Named()])  # type: ignore[list-item] # it needs no types


def test_the_optimum_beside_kube_scheduler_alone() -> None:
    comparison = compared("scheduler,optimal")
    assert list(comparison.answers) == ["scheduler", "optimum"]
    assert ", the optimum 48 (proven optimal)" in comparison.headline
    assert comparison.to_dict()["firstFit"] is None
    assert not comparison.only_optimal
    assert comparison.gain.title == "Only the optimum places"
    assert "First fit" not in str(comparison)
