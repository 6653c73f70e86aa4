"""What the checker says about allocations that are there, or that are about to be."""

from __future__ import annotations

from dralloc.live.apply import Question
from dralloc.live.apply.units import units_of
from dralloc.objects.choices import Mode
from dralloc.objects.load import load_documents
from live.apply.runs import small_cluster
from wire import (
    Json,
    allocated,
    device_class,
    gpus,
    node,
    pod,
    resource_slice,
)

QUESTION = Question(Mode.FIRST_FIT)


def verdict(*more: Json, without: str = "") -> list[str]:
    """What is wrong with the plan for the small cluster, once it has changed."""
    units, _ = units_of(
        QUESTION.plan(load_documents(with_uids(small_cluster())))
    )
    now = [
        api_object
        for api_object in with_uids(small_cluster())
        if api_object["metadata"]["name"] != without
    ]
    return QUESTION.broken_rules(load_documents([*now, *more]), units)


def with_uids(objects: list[Json]) -> list[Json]:
    for api_object in objects:
        api_object["metadata"]["uid"] = f"uid-{api_object['metadata']['name']}"
        api_object.get("spec", {}).pop("schedulingGates", None)
    return objects


def test_what_the_scheduler_allocates_by_itself_is_no_fault() -> None:
    """It makes and allocates the claim for an extended resource when the pod is released."""
    kind = device_class()
    kind["spec"]["extendedResourceName"] = "example.com/gpu"
    home = {
        **node("node-0"),
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    requests = {"example.com/gpu": "1"}
    container = {"name": "c", "resources": {"requests": requests}}
    waiting = pod("late", containers=[container])
    slices = resource_slice(gpus(1), nodeName="node-0")
    whole = load_documents(with_uids([kind, home, slices, waiting]))
    units, _ = units_of(QUESTION.plan(whole))
    assert [unit.is_late for unit in units] == [True]
    assert QUESTION.broken_rules(whole, units) == []
    assert QUESTION.broken_by_pods(whole, units) == []


def test_what_was_planned_fits() -> None:
    assert verdict() == []


def test_a_device_that_somebody_else_has_by_now() -> None:
    (line,) = verdict(allocated("rival", {"device": "gpu-0"}))
    assert line.endswith("held by an allocated claim")


def test_a_claim_that_is_gone() -> None:
    assert verdict(without="a") == ["claim default/a: is gone"]


def test_a_pod_that_is_gone() -> None:
    (line,) = verdict(without="slice-0")
    assert (
        line == "device gpu.example.com/pool-0/gpu-0: is not published any more"
    )


def test_a_node_that_is_tainted_by_now() -> None:
    units, _ = units_of(
        QUESTION.plan(load_documents(with_uids(small_cluster())))
    )
    now = with_uids(small_cluster())
    assert QUESTION.broken_by_pods(load_documents(now), units) == []
    for document in now:
        if document["kind"] == "Node":
            taint = {"key": "drained", "effect": "NoSchedule"}
            document.setdefault("spec", {})["taints"] = [taint]
    (line,) = QUESTION.broken_by_pods(load_documents(now), units)
    assert "does not tolerate a taint of node" in line
