"""How what is not modelled is told: in the text, in JSON, in notebooks and on the page; nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import dralloc
import wire
from dralloc import Mode
from dralloc.ask.whatif.mix_entries import MixEntry, Source
from dralloc.objects.answer import Documented
from dralloc.objects.errors import InputError
from dralloc.show.page.render import render
from scheduling_wire import node, pod
from wire import Json

GPU: Final[list[Json]] = [
    node("a"),
    wire.device_class(),
    wire.resource_slice(wire.gpus(2), nodeName="a"),
]
PLAIN: Final[list[Json]] = [
    *GPU,
    wire.claim("c", wire.request()),
    wire.pod("p", "c"),
]
DATA: Final[Json] = {
    "volumes": [
        {"name": "v", "emptyDir": {}},
        {"name": "w", "persistentVolumeClaim": {}},
    ]
}
FIELD: Final = "spec.volumes[1].persistentVolumeClaim"
WITH_VOLUME: Final[list[Json]] = [
    *GPU,
    *(
        manifest
        for name in ("c", "d")
        for manifest in (
            wire.claim(name, wire.request()),
            wire.pod(f"p{name}", name, **DATA),
        )
    ),
]


def test_what_is_proven_is_proven_for_the_rules_modelled() -> None:
    plan = dralloc.allocate(wire.cluster(*WITH_VOLUME))
    assert (
        repr(plan)
        == "<Plan: optimal: 2 of 2 placed, proven optimal for the rules modelled>"
    )
    assert (
        f" Pod default/pc  {FIELD}  volumes, which bind pods to nodes that can have them (here and in 1 more)\n"
        in str(plan)
    )
    assert "Not modelled" in plan._repr_html_()
    document = plan.to_dict()
    assert document["status"] == "OPTIMAL"
    assert document["verdict"] == "proven optimal for the rules modelled"
    assert [
        (row["object"], row["field"]) for row in document["unmodelled"]
    ] == [("Pod default/pc", FIELD)]


def test_nothing_is_said_where_everything_is_modelled() -> None:
    plan = dralloc.allocate(wire.cluster(*PLAIN))
    assert (plan.verdict, plan.status_text, plan.unmodelled) == (
        "proven optimal",
        "OPTIMAL",
        (),
    )
    assert "Not modelled" not in str(plan)
    assert plan.to_dict()["unmodelled"] == []


def test_who_proves_nothing_has_nothing_to_restrict() -> None:
    plan = dralloc.allocate(wire.cluster(*WITH_VOLUME), Mode.FIRST_FIT)
    assert (plan.verdict, plan.status_text) == ("nothing proven", "FEASIBLE")
    assert [finding.path for finding in plan.unmodelled] == [FIELD]


def test_a_comparison_and_its_page_say_so_too() -> None:
    comparison = dralloc.compare(wire.cluster(*WITH_VOLUME))
    assert "OPTIMAL for the rules modelled" in str(comparison)
    assert [finding.path for finding in comparison.findings] == [FIELD]
    page = render(comparison)
    assert "The optimum is OPTIMAL for the rules modelled" in page
    assert FIELD in page


def test_a_field_of_a_later_api_is_not_modelled_either() -> None:
    claim = wire.claim("c", {**wire.request(), "quantumState": "both"})
    plan = dralloc.allocate(wire.cluster(*GPU, claim, wire.pod("p", "c")))
    assert plan.verdict == "proven optimal for the rules modelled"
    assert [(finding.path, finding.rule) for finding in plan.unmodelled] == [
        ("spec.devices.requests[0].quantumState", "unknown field")
    ]
    assert plan.findings == ()


def test_pods_that_are_not_to_be_placed_may_say_what_they_like() -> None:
    there = pod("there", on="a", **DATA)
    assert dralloc.allocate(wire.cluster(*PLAIN, there)).unmodelled == ()


def test_pods_that_are_being_resized_hold_more_than_they_ask_for() -> None:
    there = {
        **pod("there", on="a"),
        "status": {
            "conditions": [{"type": "Ready"}, {"type": "PodResizePending"}]
        },
    }
    (finding,) = dralloc.allocate(wire.cluster(*PLAIN, there)).unmodelled
    assert (finding.subject, finding.path) == (
        "Pod default/there",
        "status.conditions[1].type",
    )


def test_what_admission_has_added_needs_no_notice() -> None:
    waiting = wire.pod("p", "c", runtimeClassName="fast")
    admitted = {**waiting, "metadata": {**waiting["metadata"], "uid": "1"}}
    plans = [
        dralloc.allocate(wire.cluster(*PLAIN[:-1], pod_object))
        for pod_object in (waiting, admitted)
    ]
    assert [len(plan.unmodelled) for plan in plans] == [1, 0]


ON_A: Final = {
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]
}
HELD: Final = wire.allocated("held", {"device": "gpu-0"})
HELD["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [ON_A]}
CLUSTER: Final = [
    *WITH_VOLUME,
    node("b"),
    wire.resource_slice(wire.gpus(2), name="b", pool="b", nodeName="b"),
    HELD,
    wire.pod("r", "held", **DATA, nodeName="a"),
]
ASKED: Final = MixEntry.parse("pc", Source.POD)
QUESTIONS: Final[dict[str, Callable[..., Documented]]] = {
    "headroom": lambda cluster, **words: dralloc.headroom(
        cluster, ASKED, **words
    ),
    "fewest nodes": dralloc.fewest_nodes,
    "drain": lambda cluster, **words: dralloc.drain(cluster, "a", **words),
    "defragment": lambda cluster, **words: dralloc.defragment(
        cluster, 1, **words
    ),
    "partition layout": dralloc.partition_layout,
    "preempt": lambda cluster, **words: dralloc.preempt(
        cluster, pod="default/pc", **words
    ),
    "explain": lambda cluster, **words: dralloc.explain(
        cluster, pod="default/pc", **words
    ),
    "explain the optimum": lambda cluster, **words: dralloc.explain(
        cluster, pod="default/pc", mode="optimal", **words
    ),
    "stranded": lambda cluster, **words: dralloc.stranded(
        cluster, [ASKED], **words
    ),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_every_other_question_says_so_too(
    ask: Callable[..., Documented],
) -> None:
    answer = ask(wire.cluster(*CLUSTER))
    assert {row["field"] for row in answer.to_dict()["unmodelled"]} == {FIELD}
    assert answer.headline.endswith(", for the rules modelled")
    assert FIELD in str(answer)
    assert "Not modelled" in answer._repr_html_()
    with pytest.raises(
        InputError, match=r"persistentVolumeClaim: is not modelled"
    ):
        ask(wire.cluster(*CLUSTER), strict=True)


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_no_other_question_says_so_where_everything_is_modelled(
    ask: Callable[..., Documented],
) -> None:
    cluster = wire.cluster(
        *(_without_volumes(manifest) for manifest in CLUSTER)
    )
    answer = ask(cluster)
    assert answer.to_dict()["unmodelled"] == []
    assert "for the rules modelled" not in answer.headline
    assert ask(cluster, strict=True).headline == answer.headline


def _without_volumes(manifest: Json) -> Json:
    return {
        **manifest,
        "spec": {
            key: value
            for key, value in manifest["spec"].items()
            if key != "volumes"
        },
    }


EVERYBODY: Final[Json] = {"labelSelector": {}}
SPREAD: Final = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    **EVERYBODY,
}
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _beside(rule: str, key: str) -> Json:
    return {"affinity": {rule: {REQUIRED: [{"topologyKey": key, **EVERYBODY}]}}}


OF_NODES: Final[dict[str, tuple[Json, str]]] = {
    "CPU": ({"containers": [{"resources": {"requests": {"cpu": "5"}}}]}, "cpu"),
    "ports": (
        {"containers": [{"ports": [{"hostPort": 80, "containerPort": 80}]}]},
        "ports",
    ),
    "anti-affinity by node": (
        _beside("podAntiAffinity", "kubernetes.io/hostname"),
        "affinity",
    ),
}
"""What pods may say of a node, with the name of the rule. No node is in a zone."""

OF_ZONES: Final[dict[str, tuple[Json, str]]] = {
    "spread": ({"topologySpreadConstraints": [SPREAD]}, "spread"),
    "affinity": (_beside("podAffinity", "zone"), "affinity"),
}
BINDING: Final = OF_NODES | OF_ZONES


def _bound(says: Json) -> dralloc.Cluster:
    """Two nodes with a pod each, and pods that are pending; all say the same."""
    return wire.cluster(
        *(
            _saying(manifest, says)
            for manifest in (*CLUSTER, pod("there", on="b"))
        )
    )


WHOLE_QUESTIONS: Final = QUESTIONS.keys() - {"partition layout", "fewest nodes"}


@pytest.mark.parametrize("binding", BINDING)
@pytest.mark.parametrize("name", sorted(WHOLE_QUESTIONS))
def test_what_else_binds_pods_counts_and_needs_no_notice(
    name: str, binding: str
) -> None:
    _assert_it_counts(name, *BINDING[binding])


@pytest.mark.parametrize("binding", OF_NODES)
def test_the_fewest_nodes_count_what_pods_take_of_nodes(binding: str) -> None:
    _assert_it_counts("fewest nodes", *OF_NODES[binding])


def _assert_it_counts(name: str, says: Json, rule: str) -> None:
    """Nothing is left out, and the answer is another one than without the rule."""
    cluster, ask = _bound(says), QUESTIONS[name]
    answer = ask(cluster, strict=True)
    assert answer.to_dict()["unmodelled"] == []
    unbound = ask(_bound({}), strict=True).headline
    assert answer.headline != unbound
    assert ask(cluster, strict=True, ignore=[rule]).headline == unbound


@pytest.mark.parametrize("binding", OF_ZONES)
def test_the_fewest_nodes_say_which_rules_between_pods_they_leave_out(
    binding: str,
) -> None:
    says, rule = OF_ZONES[binding]
    _assert_it_is_left_out(
        "fewest nodes",
        says,
        rule,
        f"these rules for other pods do not count here: {rule}",
    )


@pytest.mark.parametrize("binding", BINDING)
def test_answers_about_devices_alone_say_that_pods_ask_for_more(
    binding: str,
) -> None:
    _assert_it_is_left_out(
        "partition layout", *BINDING[binding], "only devices count here"
    )


def _assert_it_is_left_out(
    name: str, says: Json, rule: str, notice: str
) -> None:
    """The answer is the one without the rule, and says so."""
    cluster, ask = _bound(says), QUESTIONS[name]
    answer = ask(cluster)
    notices = [row["what"] for row in answer.to_dict()["unmodelled"]]
    assert [what.startswith(notice) for what in notices] == [True]
    unbound = ask(_bound({}), strict=True).headline
    assert answer.headline == f"{unbound}, for the rules modelled"
    with pytest.raises(InputError, match=notice):
        ask(cluster, strict=True)
    ignoring = ask(cluster, strict=True, ignore=[rule])
    assert ignoring.to_dict()["unmodelled"] == []
    assert ignoring.headline == unbound


def test_layouts_serve_pods_on_nodes_that_list_what_they_have() -> None:
    layout = dralloc.partition_layout(_bound({}))
    assert (layout.headline, layout.left_out) == (
        "fixed layouts serve 2, partitions on demand 2",
        (),
    )


def _saying(manifest: Json, says: Any) -> Json:
    plain = _without_volumes(manifest)
    return (
        {**plain, "spec": {**plain["spec"], **says}}
        if manifest["kind"] == "Pod"
        else plain
    )
