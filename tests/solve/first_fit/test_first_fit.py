"""First fit, rule by rule. The recorded cases (tests/lint/conformance) are the reference; these name the rules."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.errors import FatalError, NodeError
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.problem import indices
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.first_fit.batch import place_all
from dralloc.solve.first_fit.quick_run import QuickRun
from wire import (
    Json,
    allocated,
    claim,
    cluster,
    consumes,
    counters,
    device,
    device_class,
    first_available,
    gpus,
    node,
    pod,
    request,
    resource_slice,
    sub,
)


def run(
    *objects: Json | list[Json], features: Features = ALL_FEATURES
) -> tuple[CompiledCluster, Solution]:
    compiled = compile_cluster(
        cluster(device_class(), *objects), features=features
    )
    return compiled, first_fit(compiled.problem)


def placed(
    *objects: Json | list[Json], features: Features = ALL_FEATURES
) -> dict[str, list[str]]:
    """For each placed claim what it got, as ``node: request=device``."""
    compiled, solution = run(*objects, features=features)
    problem = compiled.problem
    descriptions = {}
    for placement in solution.placements:
        for owner, grants in zip(
            problem.demands[placement.demand].claims,
            placement.grants,
            strict=True,
        ):
            descriptions[owner.key.name] = [
                f"{problem.nodes[placement.node].name}: "
                f"{owner.requests[grant.request].alternatives[grant.alternative].name}={problem.devices[grant.device].id.device}"
                for grant in grants
            ]
    return descriptions


def error(*objects: Json | list[Json]) -> Exception | None:
    _, solution = run(*objects)
    return solution.errors.get(0)


def test_a_claim_that_asks_for_nothing_is_granted_nothing() -> None:
    """Such a claim beside one that asks once: both are answered, in their order."""
    objects = [
        node(),
        resource_slice(gpus(1)),
        claim("none"),
        claim("one", request()),
        pod("p", "none", "one"),
    ]
    assert placed(*objects) == {"none": [], "one": ["node-0: gpu=gpu-0"]}


def test_devices_are_taken_as_listed() -> None:
    got = placed(
        node(),
        resource_slice(gpus(3)),
        claim("a", request(count=2)),
        claim("b", request()),
    )
    assert got == {
        "a": ["node-0: gpu=gpu-0", "node-0: gpu=gpu-1"],
        "b": ["node-0: gpu=gpu-2"],
    }


def test_the_first_node_that_holds_the_whole_demand_wins() -> None:
    slices = [
        resource_slice(gpus(1), name="s0", pool="a", nodeName="node-0"),
        resource_slice(gpus(2), name="s1", pool="b", nodeName="node-1"),
    ]
    claims = [claim("a", request()), claim("b", request()), pod("p", "a", "b")]
    got = placed(node("node-0"), node("node-1"), slices, claims)
    assert got == {"a": ["node-1: gpu=gpu-0"], "b": ["node-1: gpu=gpu-1"]}


def test_higher_priority_goes_first_then_older_then_input_order() -> None:
    claims = [claim(name, request()) for name in ("late", "early", "urgent")]
    pods = [
        pod("late", "late"),
        pod("early", "early"),
        pod("urgent", "urgent", priority=10),
    ]
    pods[0]["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    pods[1]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    pods[2]["metadata"]["creationTimestamp"] = "2026-01-03T00:00:00Z"
    got = placed(node(), resource_slice(gpus(2)), claims, pods)
    assert list(got) == ["urgent", "early"]


def test_a_claim_without_requests_is_no_obstacle() -> None:
    claims = [claim("empty"), claim("a", request())]
    got = placed(
        node(), resource_slice(gpus(1)), claims, pod("user", "empty", "a")
    )
    assert got == {"empty": [], "a": ["node-0: gpu=gpu-0"]}


def test_an_earlier_choice_is_taken_back_when_the_rest_does_not_fit() -> None:
    small = "device.attributes['gpu.example.com'].index == 0"
    got = placed(
        node(),
        resource_slice(gpus(2)),
        claim("a", request("any"), request("zero", small)),
    )
    assert got == {"a": ["node-0: any=gpu-1", "node-0: zero=gpu-0"]}


def test_combinations_not_permutations() -> None:
    _, solution = run(
        node(),
        resource_slice(gpus(4)),
        claim("a", request("three", count=3), request("two", count=2)),
    )
    assert not solution.placements
    # Each of the four combinations of three devices leaves one, which is then tried for the second request.
    assert solution.steps < 40


def test_selectors_of_class_and_request_must_hold() -> None:
    fast = device_class(
        "fast", "device.attributes['gpu.example.com'].index > 0"
    )
    wanted = request(
        "gpu",
        "device.attributes['gpu.example.com'].index < 2",
        device_class="fast",
    )
    assert placed(
        node(), fast, resource_slice(gpus(3)), claim("a", wanted)
    ) == {"a": ["node-0: gpu=gpu-1"]}


def test_a_failing_selector_is_fatal_once_the_search_reaches_it() -> None:
    broken = request("gpu", "device.attributes['gpu.example.com'].missing == 1")
    failure = error(node(), resource_slice(gpus(1)), claim("a", broken))
    assert isinstance(failure, FatalError)
    assert str(failure).startswith(
        "claim default/a: selector #0 on device gpu.example.com/pool-0/gpu-0: CEL runtime error: no such key: missing"
    )


def test_a_selector_behind_the_first_fit_is_never_evaluated() -> None:
    picky = request("gpu", "device.attributes['gpu.example.com'].special")
    devices = [device("good", {"special": True}), device("bad")]
    assert placed(node(), resource_slice(devices), claim("a", picky)) == {
        "a": ["node-0: gpu=good"]
    }


def test_a_selector_is_not_evaluated_for_a_device_in_use() -> None:
    picky = request("gpu", "device.attributes['gpu.example.com'].special")
    devices = [device("bad"), device("good", {"special": True})]
    got = placed(
        node(),
        resource_slice(devices),
        allocated("user", {"device": "bad"}),
        claim("a", picky),
    )
    assert got == {"a": ["node-0: gpu=good"]}


def test_all_evaluates_every_device_first() -> None:
    picky = request(
        "gpu",
        "device.attributes['gpu.example.com'].special",
        allocationMode="All",
    )
    devices = [device("good", {"special": True}), device("bad")]
    assert isinstance(
        error(node(), resource_slice(devices), claim("a", picky)), FatalError
    )


def test_all_takes_every_matching_device_or_none() -> None:
    everything = claim("a", request(allocationMode="All"))
    assert placed(node(), resource_slice(gpus(2)), everything) == {
        "a": ["node-0: gpu=gpu-0", "node-0: gpu=gpu-1"]
    }
    assert (
        placed(
            node(),
            resource_slice(gpus(2)),
            allocated("user", {"device": "gpu-1"}),
            everything,
        )
        == {}
    )
    assert placed(node(), everything) == {}


@pytest.mark.parametrize(
    ("slices", "state"),
    [
        ([resource_slice(gpus(1), count=2)], "being updated"),
        ([resource_slice([device("x"), device("x")])], "invalid"),
    ],
)
def test_all_needs_every_pool(slices: list[Json], state: str) -> None:
    failure = error(node(), slices, claim("a", request(allocationMode="All")))
    assert isinstance(failure, FatalError)
    assert (
        f"asks for all devices, but resource pool gpu.example.com/pool-0 is currently {state}"
        in str(failure)
    )


def test_an_invalid_pool_is_reported_only_if_nothing_else_fits() -> None:
    broken = resource_slice(
        [device("x"), device("x")], name="s0", pool="broken"
    )
    failure = error(node(), broken, claim("a", request()))
    assert isinstance(failure, NodeError)
    assert str(failure) == "invalid resource pools were encountered"
    assert placed(
        node(), broken, resource_slice(gpus(1)), claim("a", request())
    ) == {"a": ["node-0: gpu=gpu-0"]}


def test_an_error_of_one_node_leaves_the_others() -> None:
    broken = resource_slice(
        [device("x"), device("x")], name="s0", pool="broken", nodeName="node-0"
    )
    fine = resource_slice(gpus(1), name="s1", nodeName="node-1")
    compiled, solution = run(
        node("node-0"), node("node-1"), broken, fine, claim("a", request())
    )
    assert [
        compiled.problem.nodes[placement.node].name
        for placement in solution.placements
    ] == ["node-1"]
    assert solution.errors == {}


def test_at_most_32_devices_per_claim() -> None:
    slices = resource_slice(gpus(40))
    assert len(placed(node(), slices, claim("a", request(count=32)))["a"]) == 32
    failure = error(node(), slices, claim("a", request(count=33)))
    assert (
        str(failure)
        == "claim default/a: number of requested devices 33 exceeds the claim limit of 32"
    )


def test_an_alternative_with_too_many_devices_is_passed_over() -> None:
    alternatives = first_available(
        "list", sub("many", count=30), sub("few", count=2)
    )
    got = placed(
        node(),
        resource_slice(gpus(40)),
        claim("a", request("ten", count=10), alternatives),
    )
    assert got["a"][-1] == "node-0: list/few=gpu-11"


def test_alternatives_are_tried_in_order() -> None:
    alternatives = first_available("list", sub("two", count=2), sub("one"))
    assert placed(node(), resource_slice(gpus(2)), claim("a", alternatives))[
        "a"
    ] == [
        "node-0: list/two=gpu-0",
        "node-0: list/two=gpu-1",
    ]
    assert placed(
        node(), resource_slice(gpus(1)), claim("a", alternatives)
    ) == {"a": ["node-0: list/one=gpu-0"]}


def test_an_alternative_of_the_first_node_beats_a_better_one_elsewhere() -> (
    None
):
    slices = [
        resource_slice(gpus(1), name="s0", pool="a", nodeName="node-0"),
        resource_slice(gpus(2), name="s1", pool="b", nodeName="node-1"),
    ]
    wanted = claim(
        "a", first_available("list", sub("two", count=2), sub("one"))
    )
    assert placed(node("node-0"), node("node-1"), slices, wanted) == {
        "a": ["node-0: list/one=gpu-0"]
    }


def racks(*names: str | list[str]) -> list[Json]:
    return [
        device(f"gpu-{index}", {"rack": name})
        for index, name in enumerate(names)
    ]


RACK = "gpu.example.com/rack"


@pytest.mark.parametrize(
    ("devices", "constraint", "expected"),
    [
        (racks("a", "b", "b"), {"matchAttribute": RACK}, ["gpu-1", "gpu-2"]),
        (racks("a", "a", "b"), {"distinctAttribute": RACK}, ["gpu-0", "gpu-2"]),
        (
            racks(["a"], ["b", "c"], ["a", "b"]),
            {"matchAttribute": RACK},
            ["gpu-0", "gpu-2"],
        ),
        (
            racks(["a", "b"], ["b", "c"], ["d"]),
            {"distinctAttribute": RACK},
            ["gpu-0", "gpu-2"],
        ),
        (racks("a", ["b", "a"]), {"matchAttribute": RACK}, ["gpu-0", "gpu-1"]),
        (
            [device("x"), *racks("a", "a")],
            {"matchAttribute": RACK},
            ["gpu-0", "gpu-1"],
        ),
        ([device("x"), device("y")], {"distinctAttribute": RACK}, None),
        (
            racks("a", "b"),
            {"matchAttribute": RACK, "requests": ["other"]},
            ["gpu-0", "gpu-1"],
        ),
    ],
)
def test_constraints(
    devices: list[Json], constraint: Json, expected: list[str] | None
) -> None:
    got = placed(
        node(),
        resource_slice(devices),
        claim("a", request(count=2), constraints=[constraint]),
    )
    names = (
        None
        if expected is None
        else [f"node-0: gpu={name}" for name in expected]
    )
    assert got.get("a") == names


def test_taking_back_restores_what_was_common() -> None:
    devices = racks(["a", "b"], ["b", "c"], ["a"])
    third = "device.attributes['gpu.example.com'].rack == ['a']"
    wanted = claim(
        "a",
        request(count=2),
        request("last", third),
        constraints=[{"matchAttribute": RACK}],
    )
    assert placed(node(), resource_slice(devices), wanted) == {}
    wanted = claim(
        "a",
        request("one"),
        request("last", third),
        constraints=[{"matchAttribute": RACK}],
    )
    assert placed(node(), resource_slice(devices), wanted) == {
        "a": ["node-0: one=gpu-0", "node-0: last=gpu-2"]
    }


def test_a_constraint_can_name_one_subrequest() -> None:
    both = first_available("list", sub("pair", count=2), sub("any", count=2))
    wanted = claim(
        "a",
        both,
        constraints=[{"matchAttribute": RACK, "requests": ["list/pair"]}],
    )
    assert (
        placed(node(), resource_slice(racks("a", "b")), wanted)["a"][0]
        == "node-0: list/any=gpu-0"
    )
    wanted = claim(
        "a", both, constraints=[{"matchAttribute": RACK, "requests": ["list"]}]
    )
    assert placed(node(), resource_slice(racks("a", "b")), wanted) == {}


def test_all_with_a_violated_constraint_is_fatal() -> None:
    wanted = claim(
        "a",
        request(allocationMode="All"),
        constraints=[{"matchAttribute": RACK}],
    )
    failure = error(node(), resource_slice(racks("a", "b")), wanted)
    assert str(failure) == (
        "claim default/a, request gpu: cannot add device gpu.example.com/pool-0/gpu-1 "
        "because a claim constraint would not be satisfied"
    )


def test_counters_are_shared_by_the_devices_of_a_pool() -> None:
    slices = [
        resource_slice(
            name="s0", count=2, sharedCounters=[counters("set", memory="40Gi")]
        ),
        resource_slice(
            [
                device(
                    f"part-{i}", consumesCounters=consumes("set", memory="15Gi")
                )
                for i in range(3)
            ],
            name="s1",
            count=2,
        ),
    ]
    assert len(placed(node(), slices, claim("a", request(count=2)))) == 1
    assert placed(node(), slices, claim("a", request(count=3))) == {}
    assert placed(
        node(), slices, claim("a", request(count=2)), claim("b", request())
    ).keys() == {"a"}


def test_one_overdrawn_counter_blocks_every_consumer_of_the_pool() -> None:
    slices = [
        resource_slice(
            name="s0",
            count=2,
            sharedCounters=[
                counters("one", memory="1"),
                counters("two", memory="9"),
            ],
        ),
        resource_slice(
            [
                device("big", consumesCounters=consumes("one", memory="5")),
                device("fine", consumesCounters=consumes("two", memory="5")),
            ],
            name="s1",
            count=2,
        ),
    ]
    assert placed(node(), slices, claim("a", request())) == {
        "a": ["node-0: gpu=fine"]
    }
    assert (
        placed(
            node(),
            slices,
            allocated("user", {"device": "big"}),
            claim("a", request()),
        )
        == {}
    )


SHARED = device(
    "gpu-0",
    capacity={"memory": {"value": "80Gi"}},
    allowMultipleAllocations=True,
)


def memory(amount: str) -> Json:
    return {"requests": {"memory": amount}}


def test_shares_of_one_device() -> None:
    claims = [
        claim(name, request(capacity=memory("30Gi")))
        for name in ("a", "b", "c")
    ]
    assert placed(node(), resource_slice([SHARED]), claims).keys() == {"a", "b"}


def test_without_a_request_the_whole_capacity_is_consumed() -> None:
    assert placed(
        node(),
        resource_slice([SHARED]),
        claim("a", request()),
        claim("b", request()),
    ).keys() == {"a"}


def test_one_request_never_takes_the_same_device_twice_but_two_do() -> None:
    assert (
        placed(
            node(),
            resource_slice([SHARED]),
            claim("a", request(count=2, capacity=memory("1Gi"))),
        )
        == {}
    )
    twice = claim(
        "a",
        request("x", capacity=memory("1Gi")),
        request("y", capacity=memory("1Gi")),
    )
    assert placed(node(), resource_slice([SHARED]), twice) == {
        "a": ["node-0: x=gpu-0", "node-0: y=gpu-0"]
    }


def test_a_requested_capacity_that_the_device_lacks() -> None:
    wanted = claim("a", request(capacity={"requests": {"cores": "1"}}))
    assert placed(node(), resource_slice([SHARED]), wanted) == {}


def test_on_a_dedicated_device_a_capacity_request_is_a_filter() -> None:
    devices = [
        device(f"gpu-{size}", capacity={"memory": {"value": f"{size}Gi"}})
        for size in (10, 40)
    ]
    wanted = claim("a", request(capacity=memory("20Gi")))
    assert placed(node(), resource_slice(devices), wanted) == {
        "a": ["node-0: gpu=gpu-40"]
    }


def test_admin_access_ignores_usage_and_counters() -> None:
    slices = [
        resource_slice(
            name="s0", count=2, sharedCounters=[counters("set", memory="1")]
        ),
        resource_slice(
            [device("gpu-0", consumesCounters=consumes("set", memory="1"))],
            name="s1",
            count=2,
        ),
    ]
    admin = claim("a", request(adminAccess=True))
    got = placed(node(), slices, allocated("user", {"device": "gpu-0"}), admin)
    assert got == {"a": ["node-0: gpu=gpu-0"]}


def test_admin_access_never_takes_a_device_twice_in_one_claim() -> None:
    admin = claim(
        "a", request("x", adminAccess=True), request("y", adminAccess=True)
    )
    assert placed(node(), resource_slice(gpus(1)), admin) == {}


def test_admin_access_and_the_other_claims_of_the_pod() -> None:
    admin, plain = (
        claim("admin", request(adminAccess=True)),
        claim("plain", request()),
    )
    slices = resource_slice(gpus(1))
    assert (
        placed(node(), slices, admin, plain, pod("p", "admin", "plain")) == {}
    )
    assert (
        len(placed(node(), slices, admin, plain, pod("p", "plain", "admin")))
        == 2
    )
    assert (
        len(
            placed(
                node(),
                slices,
                admin,
                plain,
                pod("p", "admin"),
                pod("q", "plain"),
            )
        )
        == 2
    )


def test_admin_access_to_a_shared_device_consumes_capacity_within_its_pod_only() -> (
    None
):
    slices = resource_slice([SHARED])
    admin = claim("admin", request(adminAccess=True, capacity=memory("60Gi")))
    plain = claim("plain", request(capacity=memory("60Gi")))
    assert (
        placed(node(), slices, admin, plain, pod("p", "admin", "plain")) == {}
    )
    assert (
        len(
            placed(
                node(),
                slices,
                admin,
                plain,
                pod("p", "admin"),
                pod("q", "plain"),
            )
        )
        == 2
    )


@pytest.mark.parametrize(
    ("taint", "tolerations", "fits"),
    [
        ({"key": "sick", "effect": "NoSchedule"}, [], False),
        ({"key": "sick", "effect": "NoExecute"}, [], False),
        ({"key": "sick", "effect": "None"}, [], True),
        (
            {"key": "sick", "effect": "NoSchedule"},
            [{"key": "sick", "operator": "Exists"}],
            True,
        ),
        (
            {"key": "sick", "effect": "NoSchedule"},
            [{"operator": "Exists"}],
            True,
        ),
        (
            {"key": "sick", "value": "very", "effect": "NoSchedule"},
            [{"key": "sick", "operator": "Equal", "value": "very"}],
            True,
        ),
        (
            {"key": "sick", "value": "very", "effect": "NoSchedule"},
            [{"key": "sick", "value": "bit"}],
            False,
        ),
        (
            {"key": "sick", "effect": "NoSchedule"},
            [{"key": "sick", "operator": "Exists", "effect": "NoExecute"}],
            False,
        ),
    ],
)
def test_taints(taint: Json, tolerations: list[Json], *, fits: bool) -> None:
    tainted = resource_slice([device("gpu-0", taints=[taint])])
    assert (
        bool(
            placed(
                node(), tainted, claim("a", request(tolerations=tolerations))
            )
        )
        is fits
    )


def test_a_pod_stays_where_its_node_selector_and_allocated_claims_allow() -> (
    None
):
    slices = [
        resource_slice(
            gpus(2),
            name=f"s{node_index}",
            pool=f"p{node_index}",
            nodeName=f"node-{node_index}",
        )
        for node_index in range(3)
    ]
    nodes = [
        node("node-0"),
        node("node-1", disk="ssd"),
        node("node-2", disk="ssd"),
    ]
    got = placed(
        nodes,
        slices,
        claim("a", request()),
        pod("p", "a", nodeSelector={"disk": "ssd"}),
    )
    assert got == {"a": ["node-1: gpu=gpu-0"]}
    held = allocated("held", {"device": "gpu-1", "pool": "p2"})
    only = {
        "matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["node-2"]}
        ]
    }
    held["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [only]}
    assert placed(
        nodes, slices, held, claim("a", request()), pod("p", "held", "a")
    ) == {"a": ["node-2: gpu=gpu-0"]}


def test_cordoned_nodes_get_nothing() -> None:
    cordoned = {**node("node-0"), "spec": {"unschedulable": True}}
    assert (
        placed(cordoned, resource_slice(gpus(1)), claim("a", request())) == {}
    )


def test_a_claim_shared_by_pods_is_allocated_once_and_holds_them_together() -> (
    None
):
    slices = [
        resource_slice(
            gpus(2),
            name=f"s{node_index}",
            pool=f"p{node_index}",
            nodeName=f"node-{node_index}",
        )
        for node_index in range(2)
    ]
    claims = [claim("shared", request()), claim("own", request())]
    pods = [
        pod("p", "shared", nodeSelector={"disk": "ssd"}),
        pod("q", "shared", "own"),
    ]
    compiled, solution = run(
        node("node-0"), node("node-1", disk="ssd"), slices, claims, pods
    )
    assert [
        compiled.problem.nodes[placement.node].name
        for placement in solution.placements
    ] == [
        "node-1",
        "node-1",
    ]
    assert [
        [len(grants) for grants in placement.grants]
        for placement in solution.placements
    ] == [
        [1],
        [0, 1],
    ]


def test_a_shared_claim_on_a_network_device_leaves_the_other_pod_free() -> None:
    slices = [
        resource_slice([device("net")], name="net", pool="net", allNodes=True),
        resource_slice(gpus(1), name="s1", pool="p1", nodeName="node-1"),
    ]
    anywhere = "device.attributes.size() == 0"
    local = "'gpu.example.com' in device.attributes"
    claims = [
        claim("shared", request("net", anywhere)),
        claim("own", request("gpu", local)),
    ]
    compiled, solution = run(
        node("node-0"),
        node("node-1"),
        slices,
        claims,
        pod("p", "shared"),
        pod("q", "shared", "own"),
    )
    assert [
        compiled.problem.nodes[placement.node].name
        for placement in solution.placements
    ] == [
        "node-0",
        "node-1",
    ]


def test_what_makes_a_claim_impossible_is_a_fatal_error() -> None:
    cases: list[tuple[Json, dict[str, Any], str]] = [
        (
            claim("a", request(count=-1)),
            {},
            "request gpu: count -1 is not greater than zero",
        ),
        (
            claim("a", request(device_class="none")),
            {},
            "could not retrieve device class none",
        ),
        (
            claim("a", request(adminAccess=True)),
            {"AdminAccess": False},
            "admin access is requested, but",
        ),
        (
            claim("a", first_available("x", sub("y"))),
            {"PrioritizedList": False},
            "has subrequests, but",
        ),
        (
            claim("a", request(capacity=memory("1"))),
            {"ConsumableCapacity": False},
            "has capacity requests, but",
        ),
        (
            claim("a", request(), constraints=[{}]),
            {},
            "constraint #0: empty constraint",
        ),
    ]
    for wanted, switches, message in cases:
        _, solution = run(
            node(),
            resource_slice(gpus(1)),
            wanted,
            features=ALL_FEATURES.switched(switches),
        )
        assert message in str(solution.errors[0])
        assert isinstance(solution.errors[0], FatalError)


def test_an_error_in_the_middle_leaves_nothing_taken() -> None:
    broken = claim(
        "a",
        request("fine"),
        request("gpu", "device.attributes['gpu.example.com'].missing == 1"),
    )
    got = placed(
        node(), resource_slice(gpus(2)), broken, claim("b", request(count=2))
    )
    assert got == {"b": ["node-0: gpu=gpu-0", "node-0: gpu=gpu-1"]}


def test_a_pod_whose_claim_is_missing_cannot_be_placed() -> None:
    _, solution = run(node(), resource_slice(gpus(1)), pod("p", "nowhere"))
    assert 'ResourceClaim "nowhere" not found' in str(solution.errors[0])


def test_nothing_is_left_for_the_garbage_collector() -> None:
    """The search for the optimum runs first fit on many parts of a problem, with collection off."""
    claims = [claim(name, request()) for name in ("a", "b")]
    compiled, _ = run(node(), resource_slice(gpus(1)), claims)
    problem = replace(compiled.problem)
    gc.collect()
    gc.disable()
    try:
        place_all(QuickRun(problem), problem, indices(problem.demands), {})
        memory = weakref.ref(problem)
        del problem
        assert memory() is None
    finally:
        gc.enable()
