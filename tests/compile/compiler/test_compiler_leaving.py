"""Claims and pods that are being deleted, and claims with as many users as they can have."""

from __future__ import annotations

import pytest

from dralloc import allocate
from dralloc.compile.compiler import compile_cluster
from dralloc.compile.compiler.demands import MAX_CONSUMERS
from dralloc.objects.choices import Mode
from dralloc.objects.names import ClaimKey
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    device,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

NOW = "2026-01-01T00:00:00Z"


def leaving(manifest: Json) -> Json:
    manifest["metadata"]["deletionTimestamp"] = NOW
    return manifest


def base(*objects: Json | list[Json]) -> list[Json]:
    flat = [node(), device_class(), resource_slice(gpus(4))]
    for part in objects:
        flat += [part] if isinstance(part, dict) else part
    return flat


def test_an_allocated_claim_that_is_being_deleted_still_holds_its_devices() -> (
    None
):
    compiled = compile_cluster(
        cluster(base(leaving(allocated("a", {"device": "gpu-0"}))))
    )
    assert compiled.problem.usage.held == {0}


def test_an_unallocated_claim_that_is_being_deleted_is_no_demand() -> None:
    assert (
        compile_cluster(
            cluster(base(leaving(claim("a", request()))))
        ).problem.demands
        == ()
    )


@pytest.mark.parametrize(
    "claim_object",
    [claim("a", request()), allocated("a", {"device": "gpu-0"})],
    ids=["open", "allocated"],
)
def test_a_pod_cannot_use_a_claim_that_is_being_deleted(
    claim_object: Json,
) -> None:
    compiled = compile_cluster(
        cluster(
            base(
                leaving(claim_object), claim("b", request()), pod("p", "a", "b")
            )
        )
    )
    solution = first_fit(compiled.problem)
    assert solution.placements == ()
    assert 'resourceclaim "a" is being deleted' in str(solution.errors[0])


def test_a_pod_that_is_being_deleted_and_its_own_claims_want_nothing() -> None:
    own = claim("own", request())
    own["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
    ]
    ended = pod("q")
    ended["status"] = {"phase": "Succeeded"}
    other = claim("other", request())
    other["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "q", "controller": True}
    ]
    compiled = compile_cluster(
        cluster(base(own, leaving(pod("p", "own")), other, ended))
    )
    assert compiled.problem.demands == ()


def test_no_claim_is_made_for_a_pod_that_is_being_deleted() -> None:
    entry = {"name": "gpu", "resourceClaimTemplateName": "missing"}
    given = cluster(base(leaving(pod("p", resourceClaims=[entry]))))
    assert given.claims == ()
    assert given.findings == ()


def used_by(pod_count: int) -> Json:
    claim_object = allocated("a", {"device": "gpu-0"})
    claim_object["status"]["reservedFor"] = [
        {"resource": "pods", "name": f"u{n}", "uid": f"{n}"}
        for n in range(pod_count)
    ]
    return claim_object


@pytest.mark.parametrize(
    ("users", "fits"), [(MAX_CONSUMERS - 1, True), (MAX_CONSUMERS, False)]
)
def test_an_allocated_claim_has_room_for_so_many_pods(
    users: int, fits: bool
) -> None:
    compiled = compile_cluster(
        cluster(base(used_by(users), claim("b", request()), pod("p", "a", "b")))
    )
    solution = first_fit(compiled.problem)
    assert bool(solution.placements) is fits
    if not fits:
        message = 'pod default/p: resourceclaim "a" is in use: status.reservedFor has 256 entries of at most 256'
        assert str(solution.errors[0]) == message
        assert solve(compiled.problem, Options()).placements == ()


def test_a_pod_that_has_reserved_a_full_claim_can_use_it() -> None:
    compiled = compile_cluster(
        cluster(
            base(
                used_by(MAX_CONSUMERS),
                claim("b", request()),
                pod("u7", "a", "b"),
            )
        )
    )
    assert len(first_fit(compiled.problem).placements) == 1


def test_of_many_pods_that_share_a_claim_only_the_first_are_placed() -> None:
    pods = [pod(f"p{index}", "a") for index in range(MAX_CONSUMERS + 2)]
    compiled = compile_cluster(cluster(base(claim("a", request()), pods)))
    placed = [
        placement.demand for placement in first_fit(compiled.problem).placements
    ]
    assert placed == list(range(MAX_CONSUMERS))
    assert [str(finding) for finding in compiled.findings] == [
        "test: ResourceClaim default/a: status.reservedFor: "
        "258 pods want it, but only 256 can use it at a time: the others are not placed"
    ]


@pytest.mark.parametrize("mode", Mode)
def test_pods_share_what_room_an_allocated_claim_has(mode: Mode) -> None:
    """One more can use the claim; the second pod has reserved it already."""
    pods = [pod(name, "a", f"own-{name}") for name in ("p", "u7", "q")]
    own = [claim(f"own-{name}", request()) for name in ("p", "u7", "q")]
    whole = cluster(base(used_by(MAX_CONSUMERS - 1), own, pods))
    plan = allocate(whole, mode=mode)
    assert len(plan.allocations) == 2
    assert ClaimKey("default", "own-u7") in plan.allocations
    assert "257 pods want it, but only 256 can use it at a time" in str(
        compile_cluster(whole).findings[-1]
    )


@pytest.mark.parametrize("mode", Mode)
def test_an_allocated_claim_with_a_mapped_device_is_for_one_pod(
    mode: Mode,
) -> None:
    """Its device stands for a CPU of the node."""
    cpu = device(
        "cpu",
        nodeAllocatableResources={
            "cpu": {"mapping": {"deviceMultiplier": "1"}}
        },
    )
    mapped = resource_slice([cpu], name="cpus", pool="cpus")
    held = allocated("a", {"device": "cpu", "pool": "cpus"})
    own = [
        claim(
            f"own-{name}",
            request("gpu", "'index' in device.attributes['gpu.example.com']"),
        )
        for name in ("p", "q")
    ]
    pods = [pod(name, "a", f"own-{name}") for name in ("p", "q")]
    plan = allocate(cluster(base(mapped, held, own, pods)), mode=mode)
    assert len(plan.allocations) == 1
