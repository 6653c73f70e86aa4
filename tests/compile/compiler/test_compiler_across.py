"""Constraints over several claims, as users write them."""

from __future__ import annotations

from typing import Any

import pytest

import dralloc
from dralloc.objects.errors import DrallocError
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device,
    device_class,
    node,
    pod,
    request,
    resource_slice,
)

RAIL = "fabric.example.com/rail"
SIDE = "fabric.example.com/side"
SAME = {"dralloc.dev/across": f"matchAttribute={RAIL}"}
GANG: Json = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def group(annotations: Json, policy: Json = GANG) -> Json:
    metadata = {
        "name": "group",
        "namespace": "default",
        "annotations": annotations,
    }
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": policy,
    }


def annotated(pod: Json, annotations: Json) -> Json:
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def rails(*rails: int, **spec: Any) -> list[Json]:
    """A node with a device on each of these rails."""
    devices = [
        device(f"gpu-{index}", {RAIL: rail}) for index, rail in enumerate(rails)
    ]
    return [node(), device_class(), resource_slice(devices, **spec)]


def pair(*others: Json, annotations: Json | None = None) -> list[Json]:
    """A pod with two claims for one device each."""
    return [
        claim("a", request()),
        claim("b", request()),
        annotated(pod("p", "a", "b"), annotations or {}),
        *others,
    ]


def members(**spec: Any) -> list[Json]:
    """Two pods of the group with a claim each."""
    group = {"podGroupName": "group"}
    pods = [
        pod("p", "a", schedulingGroup=group, **spec),
        pod("q", "b", schedulingGroup=group, **spec),
    ]
    return [claim("a", request()), claim("b", request()), *pods]


def placed(*objects: Any, mode: Any = "first-fit", **choices: Any) -> list[str]:
    """The devices that claims get."""
    plan = dralloc.allocate(cluster(*objects), mode=mode, **choices)
    return sorted(
        result.device
        for allocation in plan.allocations.values()
        for result in allocation.devices.results
    )


MODES = pytest.mark.parametrize("mode", ["first-fit", "scheduler", "optimal"])


@MODES
def test_the_claims_of_a_pod_agree(mode: str) -> None:
    objects = rails(0, 1, 1)
    assert placed(objects, pair(annotations=SAME), mode=mode) == [
        "gpu-1",
        "gpu-2",
    ]


@MODES
def test_so_they_do_for_an_option(mode: str) -> None:
    across = [f"pod:matchAttribute={RAIL}"]
    assert placed(rails(0, 1, 1), pair(), mode=mode, across=across) == [
        "gpu-1",
        "gpu-2",
    ]


@MODES
def test_the_claims_of_a_pod_differ(mode: str) -> None:
    annotations = {"dralloc.dev/across": f"distinctAttribute={RAIL}"}
    assert placed(rails(1, 1, 0), pair(annotations=annotations), mode=mode) == [
        "gpu-0",
        "gpu-2",
    ]


def test_only_requests_that_are_named_are_covered() -> None:
    annotations = {"dralloc.dev/across": f"matchAttribute={RAIL}:nic"}
    assert placed(rails(0, 1), pair(annotations=annotations)) == [
        "gpu-0",
        "gpu-1",
    ]


@pytest.mark.parametrize("policy", [GANG, {"schedulingPolicy": {"basic": {}}}])
def test_all_pods_of_a_group_agree(policy: Json) -> None:
    objects = [*rails(0, 1, 1), group(SAME, policy), *members()]
    assert placed(objects, mode="optimal") == ["gpu-1", "gpu-2"]


def test_first_fit_lets_the_first_pod_of_a_group_decide() -> None:
    assert placed(rails(0, 1, 1), group(SAME), members()) == []
    assert placed(rails(1, 0, 1), group(SAME), members()) == ["gpu-0", "gpu-2"]


def test_an_option_is_about_every_group() -> None:
    across = [f"gang:matchAttribute={RAIL}"]
    assert placed(rails(0, 1, 1), group({}), members(), across=across) == []
    labelled = [annotated(manifest, {}) for manifest in members()]
    for manifest in labelled:
        manifest["metadata"]["labels"] = {"job": "x"}
    devices = placed(
        rails(0, 1, 1), labelled, gang="job", across=across, mode="optimal"
    )
    assert devices == ["gpu-1", "gpu-2"]


@MODES
def test_what_is_allocated_counts(mode: str) -> None:
    """A member that runs is on rail 0."""
    running = [
        allocated("r", {"device": "gpu-1"}),
        pod(
            "r",
            "r",
            nodeName="node-0",
            schedulingGroup={"podGroupName": "group"},
        ),
    ]
    devices = placed(
        rails(1, 0, 0),
        group(SAME, {"schedulingPolicy": {"basic": {}}}),
        running,
        members(),
        mode=mode,
    )
    assert devices == ["gpu-2"]


def test_a_violation_that_is_there_is_told() -> None:
    held = [
        allocated("h", {"device": "gpu-0"}),
        allocated("i", {"device": "gpu-1"}),
    ]
    waiting = annotated(pod("p", "h", "i", "a"), SAME)
    plan = dralloc.allocate(
        cluster(rails(0, 1, 1), held, claim("a", request()), waiting),
        mode="first-fit",
    )
    [reason] = plan.solution.errors.values()
    assert (
        str(reason)
        == f"pod default/p: matchAttribute {RAIL} over the claims of the pod: devices that they hold violate it"
    )


def test_a_claim_that_others_share_counts() -> None:
    """First fit gives the shared claim rail 0 for the first pod, and nothing else is on it for the second."""
    first, second = pod("p", "s"), annotated(pod("q", "s", "b"), SAME)
    objects = [
        *rails(0, 1, 1),
        claim("s", request()),
        claim("b", request()),
        first,
        second,
    ]
    assert placed(objects) == ["gpu-0"]
    assert placed(objects, mode="optimal") == ["gpu-1", "gpu-2"]


def test_derived_attributes_are_compared() -> None:
    derived: Json = {
        "derivedAttributes": [{"name": RAIL, "expression": '"same"'}]
    }
    claims = [
        claim("a", request(**derived)),
        claim("b", request(**derived)),
        annotated(pod("p", "a", "b"), SAME),
    ]
    assert placed(rails(0, 1), claims) == ["gpu-0", "gpu-1"]


@MODES
def test_derived_attributes_of_what_is_allocated_are_compared(
    mode: str,
) -> None:
    """Rails 0 and 2 are on one side, which is what requests derive, and no device publishes."""
    side = "device.attributes['fabric.example.com'].rail % 2"
    derived: Json = {"derivedAttributes": [{"name": SIDE, "expression": side}]}
    status = allocated("a", {"device": "gpu-0"})["status"]
    claims = [
        claim("a", request(**derived), status=status),
        claim("b", request(**derived)),
        annotated(
            pod("p", "a", "b"), {"dralloc.dev/across": f"matchAttribute={SIDE}"}
        ),
    ]
    assert placed(rails(0, 1, 2), claims, mode=mode) == ["gpu-2"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "match=a/b",
        "matchAttribute=rail",
        f"matchAttribute={RAIL}:",
        f"matchAttribute={RAIL};",
    ],
)
def test_another_form_is_an_error(text: str) -> None:
    objects = [*rails(0, 1), *pair(annotations={"dralloc.dev/across": text})]
    with pytest.raises(
        DrallocError,
        match=r'Pod default/p: metadata.annotations\["dralloc.dev/across"\]: ".*" is not',
    ):
        placed(objects)
    with pytest.raises(DrallocError, match="--across"):
        placed(rails(0), pair(), across=[f"pod:{text}"])


def test_an_option_says_what_it_is_about() -> None:
    with pytest.raises(DrallocError, match="expected pod: or gang:"):
        placed(rails(0), pair(), across=[f"matchAttribute={RAIL}"])


def test_the_reason_names_the_constraint() -> None:
    compiled = cluster(rails(0, 1), pair(annotations=SAME))
    text = str(dralloc.explain(compiled, pod="default/p", mode="optimal"))
    assert (
        f"drop constraint over the claims of the pod: matchAttribute {RAIL}"
        in " ".join(text.split())
    )


@MODES
def test_what_a_pod_holds_already_keeps_it_from_a_claim_that_it_shares(
    mode: Any,
) -> None:
    """Its device is on no rail, so nothing agrees with it: also where the other pod got the shared claim before."""
    holding = annotated(pod("p", "held", "a"), SAME)
    first = annotated(pod("q", "a", priority=5), SAME)
    objects = [
        *rails(0),
        claim("a", request()),
        allocated("held", {"device": "loose"}),
        holding,
        first,
    ]
    loose = resource_slice(
        [device("loose")], name="slice-1", pool="pool-1", nodeName="node-0"
    )
    objects[-3]["status"]["allocation"]["devices"]["results"][0]["pool"] = (
        "pool-1"
    )
    plan = dralloc.allocate(cluster(objects, loose), mode=mode)
    assert [key.demand.name for key in plan.placed] == ["q"]


def test_so_it_does_where_the_node_has_limits() -> None:
    """The claim with the contradiction is none of the node, though the first one of such a pod is."""
    limits = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    home = {**node(), "status": limits}
    devices = [device("loose"), device("gpu-0", {RAIL: 0})]
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    pods = [
        pod("p", "s", containers=[container]),
        annotated(pod("q", "s", "b", containers=[container]), SAME),
        pod("r", "c", containers=[container]),
    ]
    claims = [claim(name, request()) for name in ("s", "b", "c")]
    given = home, device_class(), resource_slice(devices), claims, pods
    assert placed(*given) == ["gpu-0", "loose"]
    plan = dralloc.allocate(cluster(*given), mode="first-fit")
    [unplaced] = plan.unplaced
    assert "devices that are allocated already violate it" in unplaced.reason
