"""Policies of users: what they are told is true, what they choose is done, and no rule is broken by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dralloc
from dralloc.check import violations
from dralloc.objects.choices import PolicyName
from dralloc.objects.errors import DrallocError
from dralloc.problem import Problem
from dralloc.solve.first_fit import first_fit
from dralloc.solve.policies import OfferedNode, WaitingPod, place
from examples import examples
from small_strategies import grouped_pods, limited_pods
from strategies import problems, repeated
from wire import (
    Json,
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

FAMILY = settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def first(pod: WaitingPod, nodes: Sequence[OfferedNode]) -> OfferedNode:
    assert [node.number for node in nodes] == sorted(
        node.number for node in nodes
    )
    assert pod.devices >= 0
    return nodes[0]


def emptiest(_: WaitingPod, nodes: Sequence[OfferedNode]) -> OfferedNode:
    return max(nodes, key=lambda node: node.free_devices())


class Whim:
    """Chooses at random, and now and then nothing; in an order of its own."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def order(self, pods: Sequence[WaitingPod]) -> Iterable[WaitingPod]:
        return self._random.sample(pods, len(pods))

    def __call__(
        self, _: WaitingPod, nodes: Sequence[OfferedNode]
    ) -> OfferedNode | None:
        return (
            self._random.choice([*nodes, None])
            if self._random.random() < 0.5
            else self._random.choice(nodes)
        )


@FAMILY
@given(problems().flatmap(repeated))
def test_the_first_node_is_first_fit(problem: Problem) -> None:
    assert place(problem, first).placements == first_fit(problem).placements


@FAMILY
@given(problems().flatmap(repeated), st.integers(0, 99))
def test_whatever_is_chosen_keeps_the_rules(
    problem: Problem, seed: int
) -> None:
    assert violations(problem, place(problem, Whim(seed))) == []


@FAMILY
@given(grouped_pods() | limited_pods(), st.integers(0, 99))
def test_pods_keep_the_rules_of_everything_that_binds_them(
    objects: list[Json], seed: int
) -> None:
    """Asked of the whole way, with the checker that reads objects: gangs, CPU, memory, spread, ..."""
    plan = dralloc.allocate(cluster(objects), mode=Whim(seed))
    assert plan.mode == "Whim"
    assert len(plan.unplaced) + len(plan.solution.placements) == len(
        plan.demands
    )


@FAMILY
@given(grouped_pods() | limited_pods())
def test_named_policies_keep_them_too(objects: list[Json]) -> None:
    for name in ("best-fit", "fgd", "density", "priority-ordered"):
        assert dralloc.allocate(
            cluster(objects), mode=name
        ).headline.startswith(name)


@pytest.mark.parametrize("name", ["best-fit", "fgd", "density"])
def test_what_devices_take_of_nodes_counts_with_a_score(
    name: PolicyName,
) -> None:
    """The pod's own limit is 1 CPU, and its device takes 1.5 (KEP-5517)."""
    takes_cpu = {
        "mapping": {"deviceMultiplier": "500m"},
        "overhead": {"perPod": "1"},
    }
    slices = resource_slice(
        gpus(1, nodeAllocatableResources={"cpu": takes_cpu})
    )
    limited = pod("p", "x", resources={"requests": {"cpu": "1"}})
    roomy = pod("q", "y", resources={"requests": {"cpu": "2"}})
    objects = [device_class(), node("node-0"), slices]
    for waiting, placed in ((limited, 0), (roomy, 1)):
        name_of_claim = waiting["spec"]["resourceClaims"][0][
            "resourceClaimName"
        ]
        plan = dralloc.allocate(
            cluster([*objects, claim(name_of_claim, request()), waiting]),
            mode=name,
        )
        assert len(plan.solution.placements) == placed


@FAMILY
@given(problems().flatmap(repeated))
def test_the_devices_of_an_offer_are_what_the_pod_gets(
    problem: Problem,
) -> None:
    offered: dict[int, set[object]] = {}

    def last(pod: WaitingPod, nodes: Sequence[OfferedNode]) -> OfferedNode:
        offered[pod.number] = {
            str(device_id) for device_id in nodes[-1].devices
        }
        return nodes[-1]

    for placement in place(problem, last).placements:
        got = {
            str(problem.devices[grant.device].id)
            for grants in placement.grants
            for grant in grants
        }
        assert got == offered[placement.demand]


def _two_nodes() -> list[Json]:
    objects: list[Json] = [device_class()]
    for name, gpu_count in (("small", 1), ("large", 3)):
        objects += [
            node(name),
            resource_slice(
                gpus(gpu_count), name=name, pool=name, nodeName=name
            ),
        ]
    return [*objects, *(claim(f"c{index}", request()) for index in range(3))]


def test_a_function_chooses() -> None:
    plan = dralloc.allocate(cluster(_two_nodes()), mode=emptiest)
    assert [placed.node for placed in plan.placed] == [
        "large",
        "large",
        "small",
    ]
    assert repr(plan) == "<Plan: emptiest: 3 of 3 placed, nothing proven>"
    assert plan.to_dict()["mode"] == "emptiest"


def test_who_takes_none_says_so() -> None:
    plan = dralloc.allocate(
        cluster(_two_nodes()),
        mode=lambda pod, nodes: None if pod.key.name == "c1" else nodes[0],
    )
    assert [str(demand.key) for demand in plan.unplaced] == ["default/c1"]
    assert (
        plan.unplaced[0].reason
        == "<lambda> takes no node, of 1 that could hold it"
    )


def test_a_node_that_was_not_offered_is_refused() -> None:
    kept: list[OfferedNode] = []

    def stale(_: WaitingPod, nodes: Sequence[OfferedNode]) -> OfferedNode:
        kept.extend(nodes)
        return kept[0]

    with pytest.raises(
        DrallocError,
        match=r"policy stale: <OfferedNode small: .*> is none of the nodes",
    ):
        dralloc.allocate(cluster(_two_nodes()), mode=stale)


def test_an_order_that_forgets_is_refused() -> None:
    class Forgetful:
        name = "forgetful"

        def order(self, pods: Sequence[WaitingPod]) -> Sequence[WaitingPod]:
            return pods[1:]

        def __call__(
            self, _: WaitingPod, nodes: Sequence[OfferedNode]
        ) -> OfferedNode:
            return nodes[0]

    with pytest.raises(
        DrallocError,
        match="policy forgetful: order: each of the 3 pods has to be there once",
    ):
        dralloc.allocate(cluster(_two_nodes()), mode=Forgetful())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "must be the pods in some order, not None"),
        ([0, 1, 2], "0 is none of the pods that are to be placed"),
    ],
)
def test_an_order_of_something_else_is_refused(
    answer: object, message: str
) -> None:
    class Absent:
        name = "absent"

        def order(self, _: Sequence[WaitingPod]) -> object:
            return answer

        def __call__(
            self, _: WaitingPod, nodes: Sequence[OfferedNode]
        ) -> OfferedNode:
            return nodes[0]

    with pytest.raises(DrallocError, match=f"policy absent: order: {message}"):
        dralloc.allocate(cluster(_two_nodes()), mode=Absent())


def test_offers_tell_amounts() -> None:
    """One GPU of 80Gi as two partitions that draw on its memory, and a node with four cores."""
    sets = [counters("gpu-0", memory="80Gi")]
    parts = [
        device(
            f"part-{n}",
            {"index": n},
            consumesCounters=consumes("gpu-0", memory="50Gi"),
        )
        for n in range(2)
    ]
    cores = {
        "resources": {"requests": {"cpu": "1500m"}},
        "name": "main",
        "image": "i",
    }
    objects = [
        device_class(),
        node("a") | {"status": {"allocatable": {"cpu": "4", "pods": "10"}}},
        resource_slice(parts, name="parts", nodeName="a", count=2),
        resource_slice(name="sets", count=2, nodeName="a", sharedCounters=sets),
        claim("c", request()),
        claim("d", request()),
        pod("p", "c", containers=[cores]),
        pod("q", "d", containers=[cores]),
    ]
    told: list[tuple[object, ...]] = []

    def note(pod: WaitingPod, nodes: Sequence[OfferedNode]) -> OfferedNode:
        [only] = nodes
        memory = only.free("memory") / 2**30, only.total("memory") / 2**30
        told.append(
            (
                str(pod.key),
                pod.devices,
                only.free_devices(),
                *memory,
                only.free("cpu"),
                only.total("cpu"),
            )
        )
        assert (
            only.total_devices(),
            only.total_devices("gpu.example.com"),
            only.total_devices("other"),
        ) == (2, 2, 0)
        assert only.pods == ()
        return only

    assert (
        len(dralloc.allocate(cluster(objects), mode=note).solution.placements)
        == 1
    )
    assert told == [("default/p", 1, 2, 80, 80, 4, 4)]


def test_offers_tell_what_earlier_pods_took() -> None:
    told: list[tuple[object, ...]] = []

    def note(_: WaitingPod, nodes: Sequence[OfferedNode]) -> OfferedNode:
        told.append((nodes[-1].free_devices(), *map(str, nodes[-1].pods)))
        return nodes[-1]

    dralloc.allocate(cluster(_two_nodes()), mode=note)
    assert told == [(3,), (2, "default/c0"), (1, "default/c0", "default/c1")]


def test_offers_tell_of_a_common_pool_what_the_node_reaches() -> None:
    """One pool has partitions of GPUs in two hosts, each of which reaches its own."""
    parts = [
        device(
            f"part-{index}",
            nodeName=name,
            consumesCounters=consumes(f"gpu-{name}", memory="10"),
        )
        for index, name in enumerate("abb")
    ]
    sets = [counters(f"gpu-{name}", memory="40") for name in "ab"]
    objects = [
        device_class(),
        node("a"),
        node("b"),
        resource_slice(
            parts, name="parts", count=2, perDeviceNodeSelection=True
        ),
        resource_slice(name="sets", count=2, sharedCounters=sets),
        claim("c", request()),
    ]
    told: dict[str, tuple[object, ...]] = {}

    def note(_: WaitingPod, nodes: Sequence[OfferedNode]) -> OfferedNode:
        for offer in nodes:
            told[offer.name] = (
                offer.total_devices(),
                offer.free_devices(),
                offer.total("memory"),
                offer.free("memory"),
            )
        return nodes[0]

    dralloc.allocate(cluster(objects), mode=note)
    assert told == {"a": (1, 1, 40, 40), "b": (2, 2, 40, 40)}
