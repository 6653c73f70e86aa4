"""What strands capacity, cause by cause, on clusters that fit on a page."""

from __future__ import annotations

import pytest

from dralloc.ask.stranded import Cause, Row, Stranding, stranded
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.quantity import NANOS, parse_quantity
from dralloc.solve.optimum import stopping
from wire import (
    DRIVER,
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

MODEL = f"device.attributes['{DRIVER}'].model"
TAINT = {"key": "broken", "value": "fan", "effect": "NoSchedule"}


def one_node(*objects: Json | list[Json], devices: list[Json]) -> Cluster:
    return cluster(node(), device_class(), resource_slice(devices), *objects)


def row(stranding: Stranding, measure: str = "devices") -> Row:
    (only,) = (
        pool_row for pool_row in stranding.pools if pool_row.measure == measure
    )
    return only


def parts(
    stranding: Stranding, measure: str = "devices"
) -> tuple[int, dict[Cause, int]]:
    """What is usable and what is stranded, in whole units."""
    pool_row = row(stranding, measure)
    return pool_row.usable // NANOS, {
        cause: nanos // NANOS for cause, nanos in pool_row.causes.items()
    }


def test_all_of_it_is_of_use() -> None:
    stranding = stranded(one_node(claim("any", request()), devices=gpus(2)))
    assert parts(stranding) == (2, {})


def test_with_too_little_time_nothing_is_called_stranded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stopping, "_LATE", 0.0)
    whole = one_node(claim("any", request()), devices=gpus(2))
    with pytest.raises(DrallocError, match="too short to find out what is"):
        stranded(whole, time_limit=1e-6)
    assert parts(stranded(whole, time_limit=60)) == (2, {})


def test_what_is_held_is_not_free() -> None:
    held = allocated("held", {"device": "gpu-0"})
    stranding = stranded(
        one_node(held, claim("any", request()), devices=gpus(2))
    )
    assert (row(stranding).total // NANOS, *parts(stranding)) == (2, 1, {})


def test_nobody_selects_it() -> None:
    devices = [device("gpu-0", {"model": "a"}), device("gpu-1", {"model": "b"})]
    stranding = stranded(
        one_node(claim("a", request("gpu", f"{MODEL} == 'a'")), devices=devices)
    )
    assert parts(stranding) == (1, {Cause.UNWANTED: 1})


def test_a_taint() -> None:
    devices = [*gpus(1), device("gpu-9", {"index": 9}, taints=[TAINT])]
    stranding = stranded(one_node(claim("any", request()), devices=devices))
    assert parts(stranding) == (1, {Cause.TAINT: 1})


def test_a_cordoned_node() -> None:
    cordoned = {**node("node-1"), "spec": {"unschedulable": True}}
    far = resource_slice(gpus(2), name="far", pool="far", nodeName="node-1")
    stranding = stranded(
        one_node(cordoned, far, claim("any", request()), devices=gpus(1))
    )
    assert [(row.pool, dict(row.causes)) for row in stranding.pools] == [
        ("far", {Cause.NODE: 2 * NANOS}),
        ("pool-0", {}),
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"zone": "a"}},
        # The other node has one CPU.
        {
            "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "2"}}}
            ]
        },
    ],
)
def test_rules_of_pods(spec: Json) -> None:
    """Claims of pods are of use only where the pods may be; the claim alone may be anywhere."""
    near, far = (
        {
            **node(name, zone=zone),
            "status": {"allocatable": {"cpu": cpus, "pods": "9"}},
        }
        for name, zone, cpus in (("node-0", "a", "4"), ("node-1", "b", "1"))
    )
    there = resource_slice(gpus(2), name="far", pool="far", nodeName="node-1")
    objects = [
        near,
        far,
        device_class(),
        resource_slice(gpus(1)),
        there,
        claim("any", request()),
    ]
    answer = stranded(cluster(*objects, pod("user", "any", **spec)))
    assert [(row.pool, dict(row.causes)) for row in answer.pools] == [
        ("far", {Cause.POD: 2 * NANOS}),
        ("pool-0", {}),
    ]
    assert not any(row.causes for row in stranded(cluster(*objects)).pools)


def test_attributes_do_not_agree() -> None:
    devices = [
        device(f"gpu-{index}", {"numa": numa})
        for index, numa in enumerate([0, 0, 1])
    ]
    pair = claim(
        "pair",
        request(count=2),
        constraints=[{"matchAttribute": f"{DRIVER}/numa"}],
    )
    assert parts(stranded(one_node(pair, devices=devices))) == (
        2,
        {Cause.ALIGNMENT: 1},
    )


def test_too_few_devices_on_a_node() -> None:
    assert parts(
        stranded(one_node(claim("three", request(count=3)), devices=gpus(2)))
    ) == (0, {Cause.SIZE: 2})


def test_a_share_policy_rounds_up() -> None:
    policy = {"default": "4Gi", "validRange": {"min": "4Gi", "step": "4Gi"}}
    shared = gpus(
        1,
        allowMultipleAllocations=True,
        capacity={"memory": {"value": "10Gi", "requestPolicy": policy}},
    )
    stranding = stranded(
        one_node(
            claim("three", request(capacity={"requests": {"memory": "3Gi"}})),
            devices=shared,
        )
    )
    pool_row = row(stranding, "capacity memory")
    assert (pool_row.usable, dict(pool_row.causes)) == (
        gibi(8),
        {Cause.POLICY: gibi(1), Cause.SIZE: gibi(1)},
    )


def gibi(amount: int) -> int:
    return parse_quantity(f"{amount}Gi").nanos


def mig(*held: str) -> list[Json]:
    """A GPU with four memory slices, its partitions of one and of two slices, and a claim for each that is held."""
    memory_slices = {f"1g-{start}": [start] for start in range(4)} | {
        f"2g-{start}": [start, start + 1] for start in (0, 2)
    }
    devices = [
        device(
            name,
            {"model": name[:2]},
            consumesCounters=consumes(
                "gpu",
                **{f"slice-{memory_slice}": "1" for memory_slice in placed},
            ),
        )
        for name, placed in memory_slices.items()
    ]
    return [
        node(),
        device_class(),
        resource_slice(
            name="counters",
            count=2,
            sharedCounters=[
                counters(
                    "gpu",
                    **{
                        f"slice-{memory_slice}": "1"
                        for memory_slice in range(4)
                    },
                )
            ],
        ),
        resource_slice(devices, count=2),
        *(allocated(f"holds-{name}", {"device": name}) for name in held),
    ]


def test_places_are_taken() -> None:
    stranding = stranded(
        cluster(mig("1g-2"), claim("two", request("gpu", f"{MODEL} == '2g'")))
    )
    assert parts(stranding, "counter slice-*") == (2, {Cause.GEOMETRY: 1})


def test_a_smaller_partition_would_use_the_place() -> None:
    mix = [
        claim("two", request("gpu", f"{MODEL} == '2g'")),
        claim("one", request("gpu", f"{MODEL} == '1g'")),
    ]
    assert parts(stranded(cluster(mig("1g-2"), mix)), "counter slice-*") == (
        3,
        {},
    )


def test_another_counter_is_short() -> None:
    partitions = [
        device(
            f"gpu-{n}",
            consumesCounters=consumes("card", memory="10", engines="1"),
        )
        for n in range(3)
    ]
    stranding = stranded(
        cluster(
            node(),
            device_class(),
            resource_slice(
                name="counters",
                count=2,
                sharedCounters=[counters("card", memory="35", engines="1")],
            ),
            resource_slice(partitions, count=2),
            allocated("held", {"device": "gpu-0"}),
            claim("any", request()),
        )
    )
    assert parts(stranding, "counter memory") == (
        0,
        {Cause.COUNTER: 20, Cause.SIZE: 5},
    )


def test_compatibility_groups_clash() -> None:
    def grouped(name: str, group: str) -> Json:
        (use,) = consumes("card", memory="10")
        return device(
            name,
            {"model": group},
            consumesCounters=[{**use, "compatibilityGroups": [group]}],
        )

    stranding = stranded(
        cluster(
            node(),
            device_class(),
            resource_slice(
                name="counters",
                count=2,
                sharedCounters=[counters("card", memory="20")],
            ),
            resource_slice(
                [grouped("mig-0", "mig"), grouped("vgpu-0", "vgpu")], count=2
            ),
            allocated("held", {"device": "mig-0"}),
            claim("other", request("gpu", f"{MODEL} == 'vgpu'")),
        )
    )
    assert parts(stranding, "counter memory") == (0, {Cause.GROUPS: 10})


def test_kinds_of_nodes_are_summed_up() -> None:
    slices = [
        resource_slice(gpus(2), name=name, pool=name, nodeName=name)
        for name in ("n-0", "n-1")
    ]
    stranding = stranded(
        cluster(
            node("n-0"),
            node("n-1"),
            device_class(),
            slices,
            claim("three", request(count=3)),
        )
    )
    (both,) = stranding.node_kinds
    assert (both.node_kind, both.pool, both.free, both.stranded) == (
        "like n-0",
        "",
        4 * NANOS,
        4 * NANOS,
    )


def test_the_mix_can_be_named() -> None:
    given = one_node(
        claim("one", request()),
        claim("three", request(count=3)),
        devices=gpus(2),
    )
    assert row(stranded(given, ["default/three=4"])).stranded == 2 * NANOS
    assert stranded(given, ["default/three=4"]).mix == {"default/three": 4}
    assert stranded(given).mix == {"default/one": 1, "default/three": 1}


def test_nothing_to_make_a_mix_of() -> None:
    with pytest.raises(DrallocError, match="no claim and no template"):
        stranded(one_node(devices=gpus(2)))


# The measure of Weng et al., worked out by hand.


def shares(*wishes: Json) -> Cluster:
    """Two GPUs of 100 with 60 and 30 of it free."""
    shared = gpus(
        2, allowMultipleAllocations=True, capacity={"compute": {"value": "100"}}
    )
    held = [
        allocated(
            f"held-{n}",
            {
                "device": f"gpu-{n}",
                "shareID": f"s{n}",
                "consumedCapacity": {"compute": used},
            },
        )
        for n, used in enumerate(["40", "70"])
    ]
    return one_node(held, list(wishes), devices=shared)


def compute(name: str, amount: str, count: int = 1) -> Json:
    return claim(
        name, request(capacity={"requests": {"compute": amount}}, count=count)
    )


def test_fragmentation_is_what_cannot_serve_a_claim() -> None:
    # 50 does not fit on the second GPU, so its 30 count as fragmented for three of four claims.
    stranding = stranded(
        shares(compute("half", "50"), compute("fifth", "20")),
        ["default/half=3", "default/fifth"],
    )
    assert row(stranding, "capacity compute").fragmented == 3 * 30 * NANOS
    assert "25.0%" in str(stranding)


def test_fragmentation_is_everything_where_a_claim_does_not_run() -> None:
    stranding = stranded(
        shares(compute("half", "50"), compute("many", "10", count=3))
    )
    assert row(stranding, "capacity compute").fragmented == (30 + 90) * NANOS


def test_the_usual_mix_is_what_allocate_places() -> None:
    offered = {
        **device_class(),
        "spec": {"extendedResourceName": "example.com/gpu"},
    }
    containers = [
        {"name": "c", "resources": {"limits": {"example.com/gpu": "1"}}}
    ]
    stranding = stranded(
        cluster(
            node(),
            offered,
            resource_slice(gpus(1)),
            claim("later", request(count=8)),
            pod("gated", "later", schedulingGates=[{"name": "wait"}]),
            pod("plain", containers=containers),
        )
    )
    assert list(stranding.mix.values()) == [1]
    assert next(iter(stranding.mix)).startswith(
        "default/plain-extended-resources-"
    )
    assert not stranding.pools[0].stranded
