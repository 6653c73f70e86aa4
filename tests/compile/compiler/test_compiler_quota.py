"""ResourceQuota for claims."""

from __future__ import annotations

from typing import Any

import pytest

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.problem.indices import DemandIndex
from dralloc.solve.first_fit import first_fit
from wire import (
    Json,
    claim,
    cluster,
    device_class,
    first_available,
    gpus,
    node,
    pod,
    request,
    resource_slice,
    sub,
)

COUNT = "count/resourceclaims.resource.k8s.io"
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"


def quota(
    name: str = "quota",
    namespace: str = "default",
    scopes: tuple[str, ...] = (),
    **hard: str,
) -> Json:
    """A quota; ``count``, ``devices`` and ``nics`` stand for the names of resources."""
    names = {
        "count": COUNT,
        "devices": DEVICES,
        "nics": "nic.deviceclass.resource.k8s.io/devices",
    }
    limits = {names.get(key, key): value for key, value in hard.items()}
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata,
        "spec": {"hard": limits, "scopes": list(scopes)},
    }


def template(*requests: Json) -> Json:
    spec = {"spec": claim("", *requests)["spec"]}
    metadata = {"name": "template", "namespace": "default"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": spec,
    }


def pods(count: int) -> list[Json]:
    entry = {"name": "gpu", "resourceClaimTemplateName": "template"}
    return [
        pod(f"p{index}", resourceClaims=[dict(entry)]) for index in range(count)
    ]


def compiled(*objects: Any) -> CompiledCluster:
    return compile_cluster(
        cluster(node(), device_class(), resource_slice(gpus(8)), *objects)
    )


def placed(given: CompiledCluster) -> int:
    return len(first_fit(given.problem).placements)


def test_claims_for_pods_are_made_as_long_as_the_quota_lasts() -> None:
    given = compiled(template(request()), pods(3), quota(devices="2"))
    assert placed(given) == 2
    (error,) = first_fit(given.problem).errors.values()
    name = given.problem.demands[DemandIndex(2)].claims[0].key
    message = f"claim {name}: exceeded quota: quota, requested: {DEVICES}=1, used: {DEVICES}=2, limited: {DEVICES}=2"
    assert str(error) == message
    assert [str(finding) for finding in given.findings] == [
        f"test: ResourceQuota default/quota: spec.hard: {message}"
    ]


def test_given_claims_come_first_and_are_never_refused() -> None:
    given = compiled(
        template(request()),
        pods(1),
        [claim(name, request()) for name in "ab"],
        quota(devices="2"),
    )
    assert placed(given) == 2
    assert [
        demand_claim.defect != ""
        for demand in given.problem.demands
        for demand_claim in demand.claims
    ] == [True, False, False]
    over = compiled(
        [claim(name, request()) for name in "abc"], quota(devices="2")
    )
    assert placed(over) == 3
    assert [str(finding) for finding in over.findings] == [
        f"test: ResourceQuota default/quota: spec.hard[{DEVICES}]: the given claims ask for 3, more than the 2 allowed"
    ]


@pytest.mark.parametrize(
    ("requests", "counted"),
    [
        ([request(count=3)], 3),
        ([request("x", count=2), request("y")], 3),
        ([request(allocationMode="All")], 32),
        (
            [
                first_available(
                    "x",
                    sub("a", count=2),
                    sub("b"),
                    sub("c", count=5, device_class="nic"),
                )
            ],
            2,
        ),
        ([first_available("x", sub("a"), sub("b", allocationMode="All"))], 32),
        ([request(allocationMode="Some")], 0),
    ],
)
def test_how_requests_count(requests: list[Json], counted: int) -> None:
    """KEP-4381: ``All`` as 32; KEP-4816: for each class the most that any alternative asks for."""
    enough = compiled(
        template(*requests),
        pods(1),
        quota(devices=str(counted)),
        device_class("nic"),
    )
    assert enough.problem.demands[DemandIndex(0)].claims[0].defect == ""
    if counted:
        short = compiled(
            template(*requests),
            pods(1),
            quota(devices=str(counted - 1)),
            device_class("nic"),
        )
        assert (
            f"requested: {DEVICES}={counted}, used: {DEVICES}=0"
            in short.problem.demands[DemandIndex(0)].claims[0].defect
        )


def test_every_alternative_must_be_within_its_quota() -> None:
    either = first_available("x", sub("a"), sub("b", device_class="nic"))
    given = compiled(
        template(either),
        pods(1),
        quota(devices="9", nics="0"),
        device_class("nic"),
    )
    assert (
        "nic.deviceclass.resource.k8s.io/devices=1"
        in given.problem.demands[DemandIndex(0)].claims[0].defect
    )


def test_the_number_of_claims_is_limited_too() -> None:
    assert placed(compiled(template(request()), pods(3), quota(count="1"))) == 1


def test_quotas_of_other_namespaces_and_scopes_do_not_matter() -> None:
    others = [
        quota(namespace="other", devices="0"),
        quota("scoped", scopes=("BestEffort",), devices="0"),
    ]
    given = compiled(template(request()), pods(1), others)
    assert placed(given) == 1
    assert given.findings == ()


def test_a_small_claim_may_pass_after_a_large_one() -> None:
    small, large = pods(2)
    small["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "small"
    little = template(request())
    little["metadata"] = {"name": "small", "namespace": "default"}
    given = compiled(
        template(request(count=4)), little, [large, small], quota(devices="3")
    )
    assert [
        given.problem.demands[placement.demand].key.name
        for placement in first_fit(given.problem).placements
    ] == ["p0"]


def test_the_names_of_extended_resources_limit_claims_too() -> None:
    extended = device_class()
    extended["spec"]["extendedResourceName"] = "example.com/gpu"
    for name in (
        "requests.example.com/gpu",
        "requests.deviceclass.resource.kubernetes.io/gpu",
    ):
        limit = quota()
        limit["spec"]["hard"] = {name: "1"}
        objects = [
            extended,
            resource_slice(gpus(4)),
            template(request()),
            *pods(2),
            limit,
        ]
        assert placed(compile_cluster(cluster(node(), objects))) == 1
