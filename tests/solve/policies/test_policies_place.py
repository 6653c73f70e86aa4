"""Policies keep every rule, and their shortcuts do not change what they choose."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowd_strategies import crowds
from dralloc.check import violations
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.errors import DrallocError
from dralloc.problem import DemandIndex, PoolState, Problem, indices
from dralloc.problem.solution import Placement, Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.policies import POLICIES, place
from dralloc.solve.policies.scored_run import ScoredRun
from dralloc.solve.policies.scores import (
    Scoring,
    least_fragmentation,
    least_left,
)
from examples import examples
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder
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

EXAMPLES = examples(60)
"""How many problems are drawn for each property."""

names = st.sampled_from(list(POLICIES))


class Forgetful(ScoredRun):
    """Starts afresh with every demand: no score, state or offer is kept."""

    def place(self, demand_index: DemandIndex) -> None:
        self._begin()
        super().place(demand_index)

    def adopt(self, placement: Placement) -> None:
        """Take what the placement of another run took."""
        claims = self._problem.demands[placement.demand].claims
        for claim_index, (owner, grants) in enumerate(
            zip(claims, placement.grants, strict=True)
        ):
            for position, choice, index in grants:
                alternative = owner.requests[position].alternatives[choice]
                charge = self._problem.eligibility.charge(
                    alternative.index, index
                )
                assert charge is not None
                self._ledger.take(index, alternative, claim_index, charge)
        self._ledger.settle()


@settings(max_examples=EXAMPLES)
@given(problems().flatmap(repeated), names)
def test_answers_keep_the_rules(problem: Problem, policy: str) -> None:
    assert violations(problem, place(problem, policy)) == []


@settings(max_examples=EXAMPLES)
@given(problems().flatmap(repeated))
def test_first_fit_is_first_fit(problem: Problem) -> None:
    assert (
        place(problem, "first-fit").placements == first_fit(problem).placements
    )


@settings(max_examples=EXAMPLES)
@given(
    crowds() | problems().flatmap(repeated),
    st.sampled_from([least_left, least_fragmentation]),
)
def test_what_is_remembered_does_not_change_the_choice(
    problem: Problem, scoring: Scoring
) -> None:
    runs = ScoredRun(problem, scoring), Forgetful(problem, scoring)
    for run in runs:
        for demand in indices(problem.demands):
            run.place(demand)
    assert runs[0].placements == runs[1].placements
    assert {demand: str(error) for demand, error in runs[0].errors.items()} == {
        demand: str(error) for demand, error in runs[1].errors.items()
    }


@settings(max_examples=EXAMPLES)
@given(crowds(), names)
def test_nobody_is_left_out_who_fits(problem: Problem, policy: str) -> None:
    """A crowd has no gangs and nobody who wants all devices: what does not fit at its turn never will."""
    answer = place(problem, policy)
    placed = {placement.demand for placement in answer.placements}
    later = Forgetful(problem, least_left)
    for placement in answer.placements:
        later.adopt(placement)
    for demand in set(indices(problem.demands)) - placed:
        later.place(demand)
    assert later.placements == []


def small(*objects: Json | list[Json]) -> Problem:
    return compile_cluster(cluster(device_class(), *objects)).problem


def devices_of(problem: Problem, answer: Solution) -> dict[str, str]:
    """The device of each placed demand with one claim for one device, with its node."""
    return {
        problem.demands[placement.demand].key.name: (
            f"{problem.nodes[placement.node].name}/{problem.devices[placement.grants[0][0].device].id.device}"
        )
        for placement in answer.placements
    }


def nodes_with_gpus(*gpu_counts: int) -> list[Json]:
    objects: list[Json] = []
    for index, gpu_count in enumerate(gpu_counts):
        name = f"node-{index}"
        objects += [
            node(name),
            resource_slice(
                gpus(gpu_count), name=name, pool=name, nodeName=name
            ),
        ]
    return objects


def test_best_fit_takes_the_node_with_the_least_left() -> None:
    problem = small(
        nodes_with_gpus(3, 1, 2), [claim(f"c{n}", request()) for n in range(3)]
    )
    assert devices_of(problem, place(problem, "best-fit")) == {
        "c0": "node-1/gpu-0",
        "c1": "node-2/gpu-0",
        "c2": "node-2/gpu-1",
    }


def shared(*sizes: str) -> list[Json]:
    """Devices that can be shared, of these sizes, on one node."""
    devices = [
        device(
            f"gpu-{n}",
            {"index": n},
            capacity={"memory": {"value": size}},
            allowMultipleAllocations=True,
        )
        for n, size in enumerate(sizes)
    ]
    return [node(), resource_slice(devices)]


def share(name: str, size: str) -> Json:
    return claim(name, request(capacity={"requests": {"memory": size}}))


def test_best_fit_takes_the_device_with_the_least_left() -> None:
    problem = small(
        shared("8Gi", "8Gi"),
        share("large", "6Gi"),
        share("small", "3Gi"),
        share("tiny", "2Gi"),
    )
    assert (
        devices_of(problem, place(problem, "best-fit"))["tiny"]
        == "node-0/gpu-0"
    )
    assert (
        devices_of(problem, place(problem, "first-fit"))["tiny"]
        == "node-0/gpu-0"
    )
    reverse = small(
        shared("8Gi", "8Gi"),
        share("small", "3Gi"),
        share("large", "6Gi"),
        share("tiny", "2Gi"),
    )
    assert (
        devices_of(reverse, place(reverse, "best-fit"))["tiny"]
        == "node-0/gpu-1"
    )
    assert (
        devices_of(reverse, place(reverse, "first-fit"))["tiny"]
        == "node-0/gpu-0"
    )


def test_larger_demands_come_first_inside_a_priority() -> None:
    claims = [
        claim("one", request(count=1)),
        claim("two", request(count=2)),
        claim("urgent", request(count=1)),
    ]
    problem = small(
        nodes_with_gpus(3),
        claims,
        pod("a", "one"),
        pod("b", "two"),
        pod("c", "urgent", priority=7),
    )
    assert devices_of(problem, place(problem, "first-fit")) == {
        "a": "node-0/gpu-1",
        "c": "node-0/gpu-0",
    }
    assert devices_of(problem, place(problem, "priority-ordered")) == {
        "b": "node-0/gpu-1",
        "c": "node-0/gpu-0",
    }


def test_all_devices_are_those_that_a_node_reaches() -> None:
    """Of a pool of two hosts, "all" is one device, or two: so who asks for two is larger, and comes first."""
    devices = [
        device(f"d{index}", nodeName=name) for index, name in enumerate("abb")
    ]
    problem = small(
        [node("b"), node("a")],
        resource_slice(devices, perDeviceNodeSelection=True),
        claim("all", request(allocationMode="All")),
        claim("two", request(count=2)),
    )
    answer = place(problem, "priority-ordered")
    assert devices_of(problem, answer) == {"two": "b/d1", "all": "a/d0"}


def test_density_prefers_weight_over_size() -> None:
    claims = [
        claim("two", request(count=2)),
        claim("one", request()),
        claim("other", request()),
    ]
    problem = small(
        nodes_with_gpus(2),
        claims,
        pod("a", "two", priority=7),
        pod("b", "one"),
        pod("c", "other"),
    )
    assert devices_of(problem, place(problem, "density")).keys() == {"a"}
    even = small(
        nodes_with_gpus(2),
        claims,
        pod("a", "two"),
        pod("b", "one"),
        pod("c", "other"),
    )
    assert devices_of(even, place(even, "density")).keys() == {"b", "c"}


def test_fgd_keeps_whole_devices_for_those_who_need_them() -> None:
    """Two devices of 8Gi on two nodes each; half of the demands want whole devices."""
    devices = [
        device(
            f"gpu-{n}",
            {"index": n},
            capacity={"memory": {"value": "8Gi"}},
            allowMultipleAllocations=True,
        )
        for n in range(2)
    ]
    nodes = [
        part
        for name in ("node-0", "node-1")
        for part in (
            node(name),
            resource_slice(devices, name=name, pool=name, nodeName=name),
        )
    ]
    asked = [
        share("a", "4Gi"),
        claim("b", request(count=2)),
        share("c", "4Gi"),
        claim("d", request(count=1)),
    ]
    problem = small(nodes, asked)
    answer = place(problem, "fgd")
    assert len(answer.placements) == 4
    granted = devices_of(problem, answer)
    assert granted["a"] == granted["c"]


def test_a_failing_selector_rules_out_the_device_only() -> None:
    failing = "device.attributes['gpu.example.com'].speed > 1"
    devices = [device("broken", {"index": 0}), device("fine", {"speed": 2})]
    problem = small(
        node(), resource_slice(devices), claim("c", request("gpu", failing))
    )
    assert devices_of(problem, place(problem, "first-fit")) == {}
    assert devices_of(problem, place(problem, "best-fit")) == {
        "c": "node-0/fine"
    }


@pytest.mark.parametrize("policy", ["best-fit", "fgd", "density"])
@pytest.mark.parametrize("state", [PoolState.INVALID, PoolState.INCOMPLETE])
def test_why_a_node_ended_with_an_error_is_kept(
    policy: str, state: PoolState
) -> None:
    """As by first fit, where the error of one node only says so."""
    builder = ProblemBuilder()
    builder.states[0] = state
    builder.device(node=None)
    builder.pod(builder.claim(AlternativeSpec(count=None)))
    builder.pod(builder.claim(AlternativeSpec(count=2)))
    problem = builder.problem()
    answer, expected = place(problem, policy), first_fit(problem)
    assert answer.placements == expected.placements == ()
    assert {demand: str(error) for demand, error in answer.errors.items()} == {
        demand: str(error) for demand, error in expected.errors.items()
    }


def test_an_unknown_policy_is_named() -> None:
    problem = small(nodes_with_gpus(1))
    with pytest.raises(
        DrallocError,
        match=r"no policy 'worst-fit'; known policies: first-fit, priority-ordered",
    ):
        place(problem, "worst-fit")


@pytest.mark.parametrize("policy", ["best-fit", "fgd"])
def test_nodes_that_differ_in_compatibility_groups_only_are_told_apart(
    policy: str,
) -> None:
    """On the first node the two partitions exclude each other, on the second they do not (KEP-5963)."""
    nodes: list[Json] = []
    for name, groups in (("apart", ("x", "y")), ("together", ("x", "x"))):
        [use] = consumes("gpu", memory="10")
        partitions = [
            device(
                f"part-{index}",
                consumesCounters=[{**use, "compatibilityGroups": [group]}],
            )
            for index, group in enumerate(groups)
        ]
        published: Json = {"pool": name, "nodeName": name, "count": 2}
        nodes += [
            node(name),
            resource_slice(
                name=f"{name}-counters",
                sharedCounters=[counters("gpu", memory="40")],
                **published,
            ),
            resource_slice(partitions, name=name, **published),
        ]
    problem = small(nodes, claim("both", request(count=2)))
    [placement] = place(problem, policy).placements
    assert problem.nodes[placement.node].name == "together"


@pytest.mark.parametrize("policy", ["best-fit", "fgd"])
def test_what_is_in_use_elsewhere_on_a_counter_set_excludes_devices_here(
    policy: str,
) -> None:
    """The first pod has a device of each set on another node; only the second set is compatible with what is left."""
    nodes: list[Json] = [node("elsewhere"), node("apart"), node("together")]
    partitions = []
    for home, counter_set, group in (
        ("elsewhere", "gpu-0", "y"),
        ("elsewhere", "gpu-1", "x"),
        ("apart", "gpu-0", "x"),
        ("together", "gpu-1", "x"),
    ):
        [use] = consumes(counter_set, memory="10")
        partitions.append(
            device(
                f"{home}-{counter_set}",
                nodeName=home,
                consumesCounters=[{**use, "compatibilityGroups": [group]}],
            )
        )
    sets = [counters(name, memory="40") for name in ("gpu-0", "gpu-1")]
    slices = [
        resource_slice(
            partitions, name="devices", count=2, perDeviceNodeSelection=True
        ),
        resource_slice(name="sets", count=2, sharedCounters=sets),
    ]
    asked = [claim("first", request(count=2)), claim("second", request())]
    problem = small(nodes, slices, asked)
    placements = place(problem, policy).placements
    assert [problem.nodes[placement.node].name for placement in placements] == [
        "elsewhere",
        "together",
    ]


def test_what_is_taken_of_a_node_concerns_this_node_alone() -> None:
    """Also of its CPU: no other node is looked at again when a pod comes."""
    objects: list[Json] = [device_class(), claim("gpu", request())]
    for node_index in range(5):
        host = node(f"n{node_index}")
        host["status"] = {"allocatable": {"cpu": "2", "pods": "10"}}
        published = resource_slice(
            gpus(2),
            name=f"n{node_index}",
            pool=f"n{node_index}",
            nodeName=f"n{node_index}",
        )
        objects += [host, published]
    container = {"name": "c", "resources": {"requests": {"cpu": "1500m"}}}
    for pod_index in range(2):
        objects.append(claim(f"gpu-{pod_index}", request()))
        objects.append(
            pod(f"pod-{pod_index}", f"gpu-{pod_index}", containers=[container])
        )
    problem = compile_cluster(cluster(objects)).whole
    assert any(demand.claims[0].is_synthetic for demand in problem.demands)
    run = ScoredRun(problem, least_left)
    looks = len(run._census.arrivals)
    for demand_index in indices(problem.demands):
        run.place(demand_index)
    assert len(run.placements) == 3
    assert len(run._census.arrivals) == looks + 3
