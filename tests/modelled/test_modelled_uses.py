"""How what is not modelled is told: in the text, in JSON, in notebooks and on the page; nothing else changes."""

from __future__ import annotations

from typing import Final

import dralloc
import wire
from dralloc import Mode
from dralloc.page.render import render
from scheduling_wire import node, pod
from wire import Json

GPU: Final[list[Json]] = [node("a"), wire.device_class(), wire.resource_slice(wire.gpus(2), nodeName="a")]
PLAIN: Final[list[Json]] = [*GPU, wire.claim("c", wire.request()), wire.pod("p", "c")]
DATA: Final[Json] = {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "persistentVolumeClaim": {}}]}
FIELD: Final = "spec.volumes[1].persistentVolumeClaim"
WITH_VOLUME: Final[list[Json]] = [
    *GPU,
    *(one for name in ("c", "d") for one in (wire.claim(name, wire.request()), wire.pod(f"p{name}", name, **DATA))),
]


def test_what_is_proven_is_proven_for_the_rules_modelled() -> None:
    plan = dralloc.allocate(wire.cluster(*WITH_VOLUME))
    assert repr(plan) == "<Plan: optimal: 2 of 2 placed, proven optimal for the rules modelled>"
    assert f" Pod default/pc  {FIELD}  volumes, which bind pods to nodes that can have them (here and\n" in str(plan)
    assert "Not modelled" in plan._repr_html_()
    document = plan.to_dict()
    assert document["status"] == "OPTIMAL"
    assert document["verdict"] == "proven optimal for the rules modelled"
    assert [(one["object"], one["field"]) for one in document["unmodelled"]] == [("Pod default/pc", FIELD)]


def test_nothing_is_said_where_everything_is_modelled() -> None:
    plan = dralloc.allocate(wire.cluster(*PLAIN))
    assert (plan.verdict, plan.status_text, plan.unmodelled) == ("proven optimal", "OPTIMAL", ())
    assert "Not modelled" not in str(plan)
    assert plan.to_dict()["unmodelled"] == []


def test_who_proves_nothing_has_nothing_to_restrict() -> None:
    plan = dralloc.allocate(wire.cluster(*WITH_VOLUME), Mode.FIRST_FIT)
    assert (plan.verdict, plan.status_text) == ("nothing proven", "FEASIBLE")
    assert [one.path for one in plan.unmodelled] == [FIELD]


def test_a_comparison_and_its_page_say_so_too() -> None:
    comparison = dralloc.compare(wire.cluster(*WITH_VOLUME))
    assert "OPTIMAL for the rules modelled" in str(comparison)
    assert [one.path for one in comparison.findings] == [FIELD]
    page = render(comparison)
    assert "The optimum is OPTIMAL for the rules modelled" in page
    assert FIELD in page


def test_a_field_of_a_later_api_is_not_modelled_either() -> None:
    claim = wire.claim("c", {**wire.request(), "quantumState": "both"})
    plan = dralloc.allocate(wire.cluster(*GPU, claim, wire.pod("p", "c")))
    assert plan.verdict == "proven optimal for the rules modelled"
    assert [(one.path, one.rule) for one in plan.unmodelled] == [
        ("spec.devices.requests[0].quantumState", "unknown field")
    ]
    assert plan.findings == ()


def test_pods_that_are_not_to_be_placed_may_say_what_they_like() -> None:
    there = pod("there", on="a", **DATA)
    assert dralloc.allocate(wire.cluster(*PLAIN, there)).unmodelled == ()


def test_pods_that_are_being_resized_hold_more_than_they_ask_for() -> None:
    there = {**pod("there", on="a"), "status": {"conditions": [{"type": "Ready"}, {"type": "PodResizePending"}]}}
    (found,) = dralloc.allocate(wire.cluster(*PLAIN, there)).unmodelled
    assert (found.subject, found.path) == ("Pod default/there", "status.conditions[1].type")


def test_what_admission_has_added_needs_no_notice() -> None:
    waiting = wire.pod("p", "c", runtimeClassName="fast")
    admitted = {**waiting, "metadata": {**waiting["metadata"], "uid": "1"}}
    plans = [dralloc.allocate(wire.cluster(*PLAIN[:-1], one)) for one in (waiting, admitted)]
    assert [len(plan.unmodelled) for plan in plans] == [1, 0]
