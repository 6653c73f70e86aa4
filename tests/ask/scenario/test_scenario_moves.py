"""Draining and defragmenting against what `allocate` says of the changed objects."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from changed_objects import (
    homes_of,
    of_equal_rank,
    only,
    pending_again,
    pinned,
    settled_on,
)
from dralloc.ask.allocate import allocate
from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif import defragment, drain
from dralloc.ask.whatif.defragment import Itinerary
from dralloc.ask.whatif.moves import Action, cluster_migration
from dralloc.check import violations
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.api.base import changed
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import CheckError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, DemandIndex
from dralloc.problem.solution import Placement, Solution
from examples import INDEPENDENT, examples
from scenario_strategies import bound_pod, crowded_clusters, tainted_node
from settled import held, started
from small_strategies import grouped_pods
from wire import (
    DRIVER,
    Json,
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

EXAMPLES = examples(40)
THOROUGH = settings(
    max_examples=EXAMPLES,
    backend=INDEPENDENT,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def two_nodes(*objects: Json, cpu: str = "8") -> Cluster:
    slices = [
        resource_slice(gpus(2), name=name, pool=name, nodeName=name)
        for name in "ab"
    ]
    return cluster(
        device_class(),
        tainted_node("a"),
        tainted_node("b", cpu),
        slices,
        list(objects),
    )


def test_a_pod_that_tolerates_the_taint_of_gpu_nodes_leaves_a_node() -> None:
    answer = drain(
        two_nodes(held("x", "a", "gpu-0"), bound_pod("p", "x", nodeName="a")),
        "a",
    )
    assert answer.possible
    assert not answer.unmodelled


def test_moves_of_pods_that_tolerate_the_taint_of_gpu_nodes_make_room() -> None:
    running = [
        bound_pod("p", "x", nodeName="a"),
        bound_pod("q", "y", nodeName="b"),
    ]
    wanted = [claim("w", request(count=2)), bound_pod("w", "w")]
    answer = defragment(
        two_nodes(
            held("x", "a", "gpu-0"), held("y", "b", "gpu-0"), *running, *wanted
        ),
        1,
    )
    assert [key.name for key in answer.admitted] == ["w"]
    assert answer.moves == 1


def test_no_pod_moves_to_a_node_without_cpu() -> None:
    answer = drain(
        two_nodes(
            held("x", "a", "gpu-0"),
            bound_pod("p", "x", cpu="2", nodeName="a"),
            cpu="1",
        ),
        "a",
    )
    assert not answer.possible
    assert answer.conflict is not None
    assert "Insufficient cpu" in [
        member.title for member in answer.conflict.members
    ]


def test_a_pod_that_tolerates_everything_does_not_stay_on_the_node() -> None:
    anything = [{"operator": "Exists"}]
    answer = drain(
        two_nodes(
            held("x", "a", "gpu-0"),
            bound_pod("p", "x", nodeName="a", tolerations=anything),
        ),
        "a",
    )
    assert [
        move.to_node for step in answer.itinerary.steps for move in step.claims
    ] == ["b"]


def test_who_has_no_room_beside_itself_restarts() -> None:
    """Two pods change places on nodes that have CPU for one of them each."""
    zoned = [tainted_node(name, "1", zone=name) for name in "ab"]
    slices = [
        resource_slice(
            gpus(1 + (name == "a")), name=name, pool=name, nodeName=name
        )
        for name in "ab"
    ]
    running = [held("x", "a", "gpu-0"), bound_pod("p", "x", nodeName="a")]
    wanted = [
        claim("w", request()),
        bound_pod("w", "w", nodeSelector={"zone": "a"}),
    ]
    answer = defragment(
        cluster(device_class(), zoned, slices, running, wanted), 1
    )
    assert [key.name for key in answer.admitted] == ["w"]
    assert [step.action for step in answer.itinerary.steps] == [
        Action.MOVE,
        Action.ADMIT,
    ]


def test_what_the_objects_forbid_is_withheld_whatever_the_compiler_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The compiler overlooks that a pod may only be in one zone."""

    def careless(
        whole: Cluster, *choices: Any, **words: Any
    ) -> CompiledCluster:
        pods = [
            changed(pod, spec=changed(pod.spec, node_selector={}))
            for pod in whole.pods
        ]
        return compile_cluster(
            replace(whole, pods=tuple(pods)), *choices, **words
        )

    monkeypatch.setattr(cluster_migration, "compile_cluster", careless)
    zoned = bound_pod("p", "x", nodeName="a", nodeSelector={"zone": "y"})
    running = two_nodes(held("x", "a", "gpu-0"), zoned)
    with pytest.raises(CheckError, match="pod default/p"):
        drain(running, "a")
    waiting = [claim("w", request(count=2)), bound_pod("w", "w")]
    second = [held("y", "b", "gpu-0"), bound_pod("q", "y", nodeName="b")]
    full = two_nodes(held("x", "a", "gpu-0"), zoned, *second, *waiting)
    with pytest.raises(CheckError, match="pod default/p"):
        defragment(full, 1)


def test_who_ran_moves_though_others_of_its_gang_wait() -> None:
    """Pods of a gang are placed all or none when they come, which is over for those that run."""
    running = [
        bound_pod("p", "x", nodeName="a"),
        bound_pod("q", "y", nodeName="b"),
    ]
    hopeless = bound_pod("h", "h", nodeSelector={"zone": "nowhere"})
    for member in (running[0], hopeless):
        member["metadata"]["labels"] = {"job": "j"}
    waiting = [
        hopeless,
        claim("h", request()),
        bound_pod("w", "w"),
        claim("w", request(count=2)),
    ]
    holding = [held("x", "a", "gpu-0"), held("y", "b", "gpu-0")]
    answer = defragment(two_nodes(*holding, *running, *waiting), 1, gang="job")
    assert [key.name for key in answer.admitted] == ["w"]


def test_of_a_group_in_several_domains_nobody_moves_who_leaves_some_behind() -> (
    None
):
    """One runs on a without devices and two on b, of which a has room for one."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"basic": {}},
            "schedulingConstraints": {
                "topology": [{"key": "kubernetes.io/hostname"}]
            },
        },
    }
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
    slices = [
        resource_slice(gpus(count), name=name, pool=name, nodeName=name)
        for name, count in {"a": 1, "b": 2}.items()
    ]
    running = [
        bound_pod("p", nodeName="a", **member),
        held("x", "b", "gpu-0"),
        bound_pod("q", "x", nodeName="b", **member),
        held("y", "b", "gpu-1"),
        bound_pod("r", "y", nodeName="b", **member),
    ]
    nodes = [tainted_node(name, "8") for name in "ab"]
    whole = cluster(device_class(), nodes, slices, group, running)
    drained = drain(whole, "b")
    assert not drained.possible
    assert list(drained.itinerary.steps) == []


@pytest.mark.parametrize("policy", [{"gang": {"minCount": 2}}, {"basic": {}}])
def test_nobody_comes_to_a_group_whose_pods_run_in_several_domains(
    policy: Json,
) -> None:
    """Not even where the only one that may move is not looked at; who moves to the other one may."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {
            "schedulingPolicy": policy,
            "schedulingConstraints": {
                "topology": [{"key": "kubernetes.io/hostname"}]
            },
        },
    }
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
    running = [
        bound_pod("p", nodeName="a", **member),
        held("x", "b", "gpu-0"),
        bound_pod("q", "x", nodeName="b", **member),
    ]
    waiting = [claim("w", request()), bound_pod("w", "w", **member)]
    assert not defragment(two_nodes(group, *running, *waiting), 0).admitted
    assert drain(two_nodes(group, *running), "b").possible


@THOROUGH
@given(grouped_pods(), st.data())
def test_pods_of_groups_move_as_their_objects_allow(
    objects: list[Json], data: st.DataObject
) -> None:
    """Every answer passes the checker of objects; otherwise there would be an error."""
    whole = cluster(objects)
    names = [pod.name for pod in whole.pods]
    waiting = data.draw(st.sets(st.sampled_from(names), max_size=2))
    early = [pod for pod in whole.pods if pod.name not in waiting]
    running = started(whole, replace(whole, pods=tuple(early)))
    users = [pod for pod in running.pods if running.claims_of_pods[pod.key]]
    homes = sorted({pod.spec.node_name for pod in users if pod.spec.node_name})
    assume(homes)
    assert drain(running, homes[0]).claims
    assert defragment(running, 2).moves <= 2


@st.composite
def agreeing_pods(draw: st.DrawFn) -> Cluster:
    """Pods that run whose claims, or those of their group, have to agree, and pods that wait for certain devices."""
    same = {"dralloc.dev/across": f"matchAttribute={DRIVER}/rail"}
    metadata = {"name": "g", "namespace": "default", "annotations": same}
    group: Json = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
    }
    objects: list[Json] = [device_class(), group]
    for name in ("n0", "n1"):
        devices = [
            device(
                f"gpu-{index}",
                {"rail": draw(st.sampled_from("ab")), "index": index},
            )
            for index in range(draw(st.integers(1, 4)))
        ]
        objects += [
            node(name),
            resource_slice(devices, name=name, pool=name, nodeName=name),
        ]
    waiting = draw(st.integers(1, 2))
    for pod_index in range(waiting + 3):
        name = f"p{pod_index}"
        claims = [f"{name}-{claim_index}" for claim_index in range(2)]
        claims = claims[: draw(st.integers(1, 2))]
        member = draw(st.booleans())
        in_group = {"schedulingGroup": {"podGroupName": "g"}} if member else {}
        manifest = pod(name, *claims, **in_group)
        if draw(st.booleans()):
            manifest["metadata"]["annotations"] = same
        wanted = f"device.attributes['{DRIVER}'].index == 0"
        asked = request("gpu", wanted) if pod_index < waiting else request()
        objects += [manifest, *(claim(key, asked) for key in claims)]
    whole = cluster(objects)
    return started(whole, replace(whole, pods=whole.pods[waiting:]))


@settings(THOROUGH, max_examples=examples(150))
@given(agreeing_pods())
def test_constraints_over_several_claims_hold_after_moves(
    whole: Cluster,
) -> None:
    assert not broken_by(whole, drain(whole, "n0").itinerary)
    assert not broken_by(whole, defragment(whole, 2).itinerary)


def broken_by(whole: Cluster, itinerary: Itinerary) -> list[str]:
    """The rules that those who move or come break where they are in the end, if all of them come at once."""
    migration, steps = itinerary.movable.migration, itinerary.outcome.steps
    settled = {
        demand.key: placement
        for step in steps
        for demand, placement in zip(
            step.demands, step.placements, strict=False
        )
    }
    moved = {migration.movers[mover].key for mover in itinerary.outcome.moved}
    scenario = Scenario(whole).release(moved).unbind(settled)
    problem = compile_cluster(scenario.cluster).whole
    demands: list[Demand] = []
    placements: list[Placement] = []
    for demand in problem.demands:
        placement = settled.get(demand.key)
        if placement is not None:
            placements.append(
                replace(placement, demand=DemandIndex(len(demands)))
            )
            demands.append(demand.by_itself(nodes=None))
    assert len(placements) == len(settled)
    return violations(
        replace(problem, demands=tuple(demands)), Solution(tuple(placements))
    )


def nodes_but(whole: Cluster, node: str) -> list[str]:
    return [target.name for target in whole.nodes if target.name != node]


@THOROUGH
@given(crowded_clusters())
def test_drains_agree_with_allocate(whole: Cluster) -> None:
    answer = drain(whole, "node-0")
    leaving = [pod.key for pod in whole.pods if pod.spec.node_name == "node-0"]
    assume(leaving)
    homes = homes_of(whole, answer.itinerary)
    assert settled_on(pending_again(whole, homes), homes) is not None
    again = of_equal_rank(only(pending_again(whole, leaving), leaving))
    best = allocate(again, nodes=nodes_but(whole, "node-0"))
    assert (answer.gone, answer.most) == (len(best.solution.placements),) * 2
    assert answer.possible == (len(homes) == len(leaving))


@THOROUGH
@given(crowded_clusters().map(of_equal_rank), st.integers(1, 2))
def test_moves_agree_with_allocate(whole: Cluster, moves: int) -> None:
    answer = defragment(whole, moves)
    homes = homes_of(whole, answer.itinerary)
    waiting = {pod.key for pod in whole.pods if not pod.spec.node_name}
    assert set(answer.admitted) == homes.keys() & waiting
    assert (
        settled_on(pending_again(whole, homes.keys() - waiting), homes)
        is not None
    )
    assert len(answer.before.placements) == len(
        allocate(whole).solution.placements
    )
    running = [pod.key for pod in whole.pods if pod.spec.node_name]
    tries = (
        some
        for size in range(moves + 1)
        for some in combinations(running, size)
    )
    assert len(answer.admitted) == max(
        admitted_after(whole, some) for some in tries
    )


def admitted_after(whole: Cluster, moved: Collection[ClaimKey]) -> int:
    """How many more are placed if these pods move; -1 if one of them has nowhere to go."""
    plan = allocate(first(pending_again(whole, moved), moved))
    placed = {
        plan.demands[placement.demand].key
        for placement in plan.solution.placements
    }
    return len(placed) - len(moved) if placed.issuperset(moved) else -1


def first(whole: Cluster, pods: Collection[ClaimKey]) -> Cluster:
    """The cluster in which these pods come before all others."""
    return replace(
        whole,
        pods=tuple(
            changed(pod, spec=changed(pod.spec, priority=int(pod.key in pods)))
            for pod in whole.pods
        ),
    )


@THOROUGH
@given(crowded_clusters(company=True))
def test_drains_mind_the_company_of_pods(whole: Cluster) -> None:
    answer = drain(whole, "node-0")
    leaving = [pod.key for pod in whole.pods if pod.spec.node_name == "node-0"]
    assume(leaving)
    homes = homes_of(whole, answer.itinerary)
    placed = allocate(
        only(pinned(pending_again(whole, homes), homes), homes)
    ).solution.placements
    assert len(placed) == len(homes)
    tries = (
        some
        for size in range(len(leaving) + 1)
        for some in combinations(leaving, size)
    )
    best = max(len(some) for some in tries if can_go(whole, some, "node-0"))
    assert answer.most >= answer.gone == best


def can_go(whole: Cluster, pods: Collection[ClaimKey], node: str) -> bool:
    """Whether these pods find a place on other nodes while all others stay."""
    again = of_equal_rank(only(pending_again(whole, pods), pods))
    others = [target.name for target in whole.nodes if target.name != node]
    tries = (
        dict(zip(pods, homes, strict=True))
        for homes in product(others, repeat=len(pods))
    )
    return any(
        len(allocate(pinned(again, homes)).solution.placements) == len(pods)
        for homes in tries
    )


@THOROUGH
@given(crowded_clusters(company=True).map(of_equal_rank), st.integers(1, 2))
def test_moves_mind_the_company_of_pods(whole: Cluster, moves: int) -> None:
    answer = defragment(whole, moves)
    homes = homes_of(whole, answer.itinerary)
    placed = allocate(
        only(pinned(pending_again(whole, homes), homes), homes)
    ).solution.placements
    assert len(placed) == len(homes)
    assert len(answer.before.placements) == len(
        allocate(whole).solution.placements
    )
    running = [pod.key for pod in whole.pods if pod.spec.node_name]
    tries = (
        some
        for size in range(moves + 1)
        for some in combinations(running, size)
    )
    assert len(answer.admitted) == max(
        admitted_after(whole, some) for some in tries
    )
