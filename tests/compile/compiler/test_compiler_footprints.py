"""What devices take of CPU and memory of their node counts in every mode (KEP-5517)."""

from __future__ import annotations

from typing import Any, Final

import pytest

import dralloc
import wire
from dralloc import Mode
from dralloc.ask.whatif.mix_entries import MixEntry, Source
from dralloc.objects.errors import InputError
from dralloc.objects.features import ALL_FEATURES
from scheduling_wire import node, pod
from wire import Json

SMALL: Final = {"cpu": "4", "memory": "8Gi", "pods": "10"}
CORES: Final = {"cpu": {"mapping": {"deviceMultiplier": "2"}}}
SHARED: Final[Json] = {
    "allowMultipleAllocations": True,
    "capacity": {
        "cores": {
            "value": "8",
            "requestPolicy": {"default": "1", "validRange": {"min": "1"}},
        }
    },
    "nodeAllocatableResources": {
        "cpu": {
            "mapping": {"capacityKey": "cores", "capacityMultiplier": "500m"}
        }
    },
}


def devices(
    resources: Json | None = None, count: int = 4, **fields: Any
) -> list[Json]:
    """A node with devices that take something of it."""
    more = {"nodeAllocatableResources": resources} if resources else {}
    return [
        node("a", SMALL),
        wire.device_class(),
        wire.resource_slice(
            wire.gpus(count, **more, **fields),
            name="s",
            pool="a",
            nodeName="a",
        ),
    ]


def using(
    name: str,
    *containers: Json,
    claim: str = "",
    also: str = "",
    whole: Json | None = None,
) -> Json:
    """A pod with a claim of its name, by default with one container that refers to it."""
    claims = {"gpu": claim or name, **({"also": also} if also else {})}
    entries = [
        {"name": entry, "resourceClaimName": claim_name}
        for entry, claim_name in claims.items()
    ]
    spec: Json = {"containers": list(containers) or [container("1")]}
    if whole:
        spec["resources"] = {"requests": whole}
    return pod(name, resourceClaims=entries, **spec)


def container(cpu: str = "", *, refers: bool = True) -> Json:
    claims = [{"name": "gpu"}] if refers else []
    return {
        "name": f"c{cpu}{refers}",
        "resources": {
            "requests": {"cpu": cpu} if cpu else {},
            "claims": claims,
        },
    }


def placed(
    mode: Mode, *objects: Json | list[Json], **choices: Any
) -> list[str]:
    solution = (
        plan := dralloc.allocate(wire.cluster(*objects), mode, **choices)
    ).solution
    return [
        plan.compiled.problem.demands[placement.demand].key.name
        for placement in solution.placements
    ]


def claims(*names: str, **fields: Any) -> list[Json]:
    return [wire.claim(name, wire.request(**fields)) for name in names]


@pytest.mark.parametrize("mode", Mode)
def test_what_devices_stand_for_is_taken_of_the_node_beside_what_pods_request(
    mode: Mode,
) -> None:
    pods = [*claims("p", "q"), using("p"), using("q")]
    assert placed(mode, devices(CORES), pods) == ["p"]
    assert placed(mode, devices(), pods) == ["p", "q"]
    off = ALL_FEATURES.switched({"DRANodeAllocatableResources": False})
    assert placed(mode, devices(CORES), pods, features=off) == ["p", "q"]


@pytest.mark.parametrize("mode", [Mode.FIRST_FIT, Mode.OPTIMAL])
def test_what_is_ignored_of_pods_is_ignored_of_devices(mode: Mode) -> None:
    pods = [*claims("p", "q"), using("p"), using("q")]
    assert placed(mode, devices(CORES), pods, ignore=["cpu"]) == ["p", "q"]


@pytest.mark.parametrize("mode", [Mode.FIRST_FIT, Mode.OPTIMAL])
@pytest.mark.parametrize("listed", [SMALL, None])
def test_where_nothing_else_binds_pods_what_is_ignored_of_devices_is_gone(
    mode: Mode, listed: Json | None
) -> None:
    _, *given = devices(CORES)
    home = node("a", listed) if listed else wire.node("a")
    pods = [*claims("p"), using("p", container(), whole={"cpu": "1"})]
    assert placed(mode, home, given, pods, ignore=["cpu"]) == ["p"]
    also_memory = {**CORES, "memory": {"mapping": {"deviceMultiplier": "1Gi"}}}
    _, *given = devices(also_memory)
    assert placed(mode, home, given, pods, ignore=["cpu"]) == ["p"]


@pytest.mark.parametrize("mode", Mode)
def test_kubernetes_1_36_spells_it_otherwise(mode: Mode) -> None:
    old = devices(
        nodeAllocatableResourceMappings={"cpu": {"allocationMultiplier": "2"}}
    )
    assert placed(mode, old, claims("p", "q"), using("p"), using("q")) == ["p"]


@pytest.mark.parametrize("mode", Mode)
def test_what_is_consumed_of_a_capacity_is_taken_with_its_multiplier(
    mode: Mode,
) -> None:
    def asking(cores: str) -> list[str]:
        amounts = {"requests": {"cores": cores}}
        return placed(
            mode,
            devices(count=1, **SHARED),
            claims("p", "q", capacity=amounts),
            using("p"),
            using("q"),
        )

    assert asking("2") == ["p", "q"]
    assert asking("3") == ["p"]


@pytest.mark.parametrize("mode", Mode)
def test_a_device_that_follows_a_capacity_of_which_nothing_is_consumed_cannot_be_used(
    mode: Mode,
) -> None:
    alone = {
        key: value
        for key, value in SHARED.items()
        if key != "allowMultipleAllocations"
    }
    assert (
        placed(mode, devices(count=1, **alone), claims("p"), using("p")) == []
    )


@pytest.mark.parametrize("mode", Mode)
def test_overhead_is_for_the_pod_and_for_each_container_that_refers_to_the_claim(
    mode: Mode,
) -> None:
    overhead = {"cpu": {"overhead": {"perPod": "1", "perContainer": "1"}}}

    def with_containers(*cpu: str) -> list[str]:
        return placed(
            mode,
            devices(overhead),
            claims("p"),
            using("p", *map(container, cpu)),
        )

    assert with_containers("1") == ["p"]
    assert with_containers("1", "") == ["p"]
    assert with_containers("1", "1") == []
    assert placed(
        mode,
        devices(overhead),
        claims("p"),
        using("p", container("1"), container("1", refers=False)),
    ) == ["p"]


@pytest.mark.parametrize("mode", Mode)
def test_requests_of_the_pod_as_a_whole_cover_its_devices(mode: Mode) -> None:
    def capped(cpu: str, *names: str) -> list[str]:
        return placed(
            mode,
            devices(CORES),
            claims(*names),
            [using(name, whole={"cpu": cpu}) for name in names],
        )

    assert capped("2500m", "p") == []
    assert capped("3", "p") == ["p"]
    assert capped("4", "p", "q") == ["p"]


@pytest.mark.parametrize("mode", Mode)
def test_first_fit_and_the_scheduler_do_not_look_for_devices_that_take_less(
    mode: Mode,
) -> None:
    large, small = (
        {"cpu": {"mapping": {"deviceMultiplier": multiplier}}}
        for multiplier in ("4", "1")
    )
    unequal = [
        wire.device(name, nodeAllocatableResources=resources)
        for name, resources in (("x", large), ("y", small))
    ]
    objects = [
        node("a", SMALL),
        wire.device_class(),
        wire.resource_slice(unequal, name="s", pool="a", nodeName="a"),
    ]
    assert placed(mode, objects, claims("p"), using("p")) == (
        ["p"] if mode is Mode.OPTIMAL else []
    )


@pytest.mark.parametrize("mode", Mode)
def test_devices_of_bound_pods_take_what_the_scheduler_noted(
    mode: Mode,
) -> None:
    note = {
        "resourceClaimName": "h",
        "containers": ["main"],
        "resources": {"cpu": "1"},
    }
    newer = {
        **note,
        "resources": {},
        "mapping": [{"name": "cpu", "quantity": "500m"}],
    }
    newer["overhead"] = [
        {"name": "cpu", "perPod": "200m", "perContainer": "300m"}
    ]
    for status in (note, newer):
        bound = {
            **pod("h", on="a"),
            "status": {"nodeAllocatableResourceClaimStatuses": [status]},
        }
        assert placed(
            mode, devices(CORES), claims("p"), using("p"), pod("h", on="a")
        ) == ["p"]
        assert placed(
            mode, devices(CORES), claims("p"), using("p", container("1")), bound
        ) == ["p"]
        assert (
            placed(
                mode,
                devices(CORES),
                claims("p"),
                using("p", container("1500m")),
                bound,
            )
            == []
        )


@pytest.mark.parametrize("mode", Mode)
def test_devices_that_are_allocated_already_take_something_for_the_pod_that_comes(
    mode: Mode,
) -> None:
    status: Json = {"allocation": {"devices": {"results": [_result("gpu-3")]}}}
    held = wire.claim("h", wire.request(), status=status)

    def asking(cpu: str) -> list[str]:
        return placed(
            mode,
            devices(CORES),
            claims("p"),
            held,
            using("p", container(cpu), also="h"),
        )

    assert asking("100m") == []
    assert asking("0") == ["p"]


@pytest.mark.parametrize("mode", Mode)
def test_a_claim_with_a_device_that_stands_for_cores_is_for_one_pod(
    mode: Mode,
) -> None:
    status: Json = {"allocation": {"devices": {"results": [_result("gpu-3")]}}}
    status["reservedFor"] = [{"resource": "pods", "name": "other", "uid": "1"}]
    asking = [
        *claims("p"),
        wire.claim("h", wire.request(), status=status),
        using("p", also="h"),
    ]
    assert placed(
        mode, devices({"cpu": {"overhead": {"perPod": "1"}}}), asking
    ) == ["p"]
    assert (
        placed(
            mode,
            devices({"cpu": {"mapping": {"deviceMultiplier": "1"}}}),
            asking,
        )
        == []
    )


def _result(device: str) -> Json:
    return {
        "request": "gpu",
        "driver": wire.DRIVER,
        "pool": "a",
        "device": device,
    }


def test_what_is_not_modelled_is_named() -> None:
    shared = wire.cluster(
        devices(CORES), claims("p"), using("p"), using("q", claim="p")
    )
    assert [
        finding.subject
        for finding in dralloc.allocate(shared, "optimal").unmodelled
    ] == ["ResourceClaim default/p"]
    assert dralloc.allocate(shared, "scheduler").unmodelled == ()
    network = wire.resource_slice(
        wire.gpus(1, nodeAllocatableResources=CORES), allNodes=True
    )
    with pytest.raises(InputError, match="several nodes"):
        dralloc.allocate(
            wire.cluster(node("a"), wire.device_class(), network), strict=True
        )
    admin = wire.cluster(
        devices(CORES), claims("p", adminAccess=True), using("p")
    )
    assert [
        finding.path
        for finding in dralloc.allocate(admin, "first-fit").unmodelled
    ] == ["spec.devices.requests"]


def test_explanations_tell_what_the_devices_take() -> None:
    cluster = wire.cluster(
        devices(CORES), claims("p", "q"), using("p"), using("q")
    )
    for mode in ("first-fit", "optimal"):
        assert "Insufficient cpu" in str(
            dralloc.explain(cluster, pod="default/q", mode=mode)
        )
    [reason] = dralloc.explain(cluster, pod="default/q").reasons
    assert [cause.details for cause in reason.causes] == [
        ("3 requested with the devices, 1 left",)
    ]
    capped = dralloc.explain(
        wire.cluster(
            devices(CORES), claims("p"), using("p", whole={"cpu": "2"})
        ),
        pod="default/p",
    )
    assert "pod level request for cpu does not cover the devices" in str(capped)


@pytest.mark.parametrize("mode", Mode)
def test_requests_of_the_pod_as_a_whole_are_the_limit_on_any_node(
    mode: Mode,
) -> None:
    """A device stands for two cores, and the pod asks for one: also where nodes do not say what they have."""
    without = node("a", {})
    unlisted = [without, *devices(CORES)[1:]]
    assert (
        placed(
            mode,
            unlisted,
            claims("p"),
            using("p", container(), whole={"cpu": "1"}),
        )
        == []
    )
    assert placed(
        mode, unlisted, claims("p"), using("p", container(), whole={"cpu": "2"})
    ) == ["p"]
    assert placed(mode, unlisted, claims("p"), using("p")) == ["p"]


@pytest.mark.parametrize(("whole", "expected"), [("4", 4), ("8", 2)])
def test_each_copy_of_a_pod_has_requests_of_its_own(
    whole: str, expected: int
) -> None:
    """Two nodes with eight CPUs: as many pods as by their requests, which cover what their devices take."""
    given: list[Json] = [wire.device_class(), *claims("p")]
    for name in ("a", "b"):
        given += [
            node(name, {"cpu": "8", "pods": "10"}),
            wire.resource_slice(
                wire.gpus(3, nodeAllocatableResources=CORES),
                name=name,
                pool=name,
                nodeName=name,
            ),
        ]
    given.append(using("p", container("1"), whole={"cpu": whole}))
    pod_entry = MixEntry.parse("p", Source.POD)
    answer = dralloc.headroom(wire.cluster(*given), pod_entry)
    assert [count.number for count in answer.alone] == [expected]
