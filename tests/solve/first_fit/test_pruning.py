"""First fit with pruning answers as without, and does not get lost where nothing fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowd_strategies import crowds
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.cluster import Cluster
from dralloc.problem import Demand, DemandIndex, Problem
from dralloc.problem.inter_pod import OneDomain, Role
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit import first_fit
from examples import examples
from mixed_strategies import mixed_clusters
from rack_strategies import racks
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

ROOT = "gpu.example.com/root"
MEMORY = {"memory": {"value": "10Gi"}}


def both(problem: Problem) -> tuple[Solution, Solution]:
    return first_fit(problem), first_fit(problem, pruning=False)


def errors(solution: Solution) -> dict[int, tuple[type, str]]:
    return {
        demand: (type(error), str(error))
        for demand, error in solution.errors.items()
    }


@settings(max_examples=examples(500), deadline=None)
@given(problems().flatmap(repeated))
def test_same_answers_and_errors(problem: Problem) -> None:
    quick, plain = both(problem)
    assert quick.placements == plain.placements
    assert errors(quick) == errors(plain)


@settings(max_examples=examples(250), deadline=None)
@given(problems(max_demands=2, max_devices=8))
def test_same_answers_and_errors_if_every_search_is_pruned_from_its_start(
    problem: Problem,
) -> None:
    quick, plain = (
        first_fit(problem, dead_ends=0),
        first_fit(problem, pruning=False),
    )
    assert quick.placements == plain.placements
    assert errors(quick) == errors(plain)


@settings(
    max_examples=examples(500),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(racks(most_groups=8) | crowds(gangs=True, domains=True, sharing=True))
def test_same_answers_where_gangs_choose_a_domain(problem: Problem) -> None:
    quick, plain = both(problem)
    assert quick.placements == plain.placements
    assert errors(quick) == errors(plain)


@st.composite
def domains_with_versions(draw: st.DrawFn) -> Problem:
    """Nodes, each a domain, that see versions of one shared device, and equal gangs and pods that want some of it."""
    builder = ProblemBuilder(nodes=draw(st.integers(2, 3)))
    nodes = range(len(builder.own))
    for node_index in nodes:
        # Where the counter is too small, only a share of another version opens this one.
        counter = builder.counter(draw(st.sampled_from([1, 2])))
        builder.device(
            node_index,
            draw(st.sampled_from([{}, {counter: 2}])),
            {"memory": draw(st.sampled_from([1, 4]))},
            slot=0,
        )
    domains = {f"node-{node_index}": f"d{node_index}" for node_index in nodes}
    asked = AlternativeSpec(capacity={"memory": 1})
    size = draw(st.sampled_from([1, 2, 2]))
    roles: dict[str, tuple[Role, ...]] = {"": ()}
    for turn in range(draw(st.integers(3, 4))):
        gang = draw(st.sampled_from(["", f"gang-{turn}"]))
        for _ in range(size if gang else 1):
            builder.pod(builder.claim(asked), gang=gang)
        if gang:
            rule = OneDomain(domains)
            roles[gang] = (Role(rule, carries=True, counts=True),)
    problem = builder.problem()
    demands = [
        replace(demand, roles=roles[demand.gang]) for demand in problem.demands
    ]
    return replace(problem, demands=tuple(demands))


@settings(max_examples=examples(4000), deadline=None)
@given(domains_with_versions())
def test_same_answers_where_domains_see_versions_of_a_device(
    problem: Problem,
) -> None:
    quick, plain = both(problem)
    assert quick.placements == plain.placements
    assert errors(quick) == errors(plain)


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_clusters())
def test_same_answers_where_everything_is_mixed(cluster: Cluster) -> None:
    quick, plain = both(compile_cluster(cluster).whole)
    assert quick.placements == plain.placements
    assert errors(quick) == errors(plain)


def compiled(*objects: Json | Sequence[Json]) -> Problem:
    return compile_cluster(cluster(device_class(), node(), *objects)).problem


def with_counters(size: int, available: str, sets: int = 1) -> list[Json]:
    """Devices of 10Gi, dealt out to counter sets with that much memory each."""
    published = [
        counters(f"set-{set_index}", memory=available)
        for set_index in range(sets)
    ]
    parts = [
        device(
            f"d{i}", consumesCounters=consumes(f"set-{i % sets}", memory="10Gi")
        )
        for i in range(size)
    ]
    return [
        resource_slice(name="counters", count=2, sharedCounters=published),
        resource_slice(parts, name="parts", count=2),
    ]


def rooted(size: int, roots: int) -> Json:
    return resource_slice(
        [
            device(f"d{index}", {"index": index, "root": index % roots})
            for index in range(size)
        ]
    )


def below(limit: int) -> str:
    return f"device.attributes['gpu.example.com'].index < {limit}"


def impossible(n: int) -> dict[str, tuple[list[Json], Json]]:
    """Slices and a claim that they cannot serve, by name; the work of a plain search grows exponentially with n."""
    match, distinct = [{"matchAttribute": ROOT}], [{"distinctAttribute": ROOT}]
    singles = [request(f"r{index}") for index in range(n)]
    halves = [request("a", count=n // 2), request("b", count=n // 2)]
    small = [
        request(f"r{index}", capacity={"requests": {"memory": "6Gi"}})
        for index in range(n)
    ]
    shareable = [
        device(f"d{index}", capacity=MEMORY, allowMultipleAllocations=True)
        for index in range(n - 1)
    ]
    limited = [
        request("a", below(n), count=n // 2),
        request("b", below(n - 1), count=n // 2),
    ]
    return {
        "one device too few": (
            [rooted(n - 1, 1)],
            claim("c", *singles, constraints=match),
        ),
        "too few in the union of two requests": (
            [rooted(n - 1, n)],
            claim("c", *limited),
        ),
        "too few of each value": (
            [rooted(2 * n - 2, 2)],
            claim("c", *halves, constraints=match),
        ),
        "too few values": (
            [rooted(2 * n, n - 1)],
            claim("c", *singles, constraints=distinct),
        ),
        "one counter too small": (
            with_counters(n, f"{10 * (n // 2) - 1}Gi"),
            claim("c", request(count=n // 2)),
        ),
        "counter sets too small": (
            with_counters(n, "25Gi", n // 3),
            claim("c", request(count=2 * (n // 3) + 1)),
        ),
        "capacities too small": (
            [resource_slice(shareable)],
            claim("c", *small),
        ),
    }


@pytest.mark.parametrize("name", impossible(6))
def test_what_cannot_be_is_seen_in_few_steps(name: str) -> None:
    slices, wanted = impossible(30)[name]
    solution = first_fit(compiled(slices, wanted))
    assert not solution.placements
    assert solution.steps < 1000


@pytest.mark.parametrize("name", impossible(6))
def test_plain_search_finds_nothing_either(name: str) -> None:
    quick, plain = both(compiled(*impossible(6)[name]))
    assert quick.placements == plain.placements == ()


def test_backtracking_leaves_out_the_large_device() -> None:
    """The case PartitionableBacktracking of upstream's scheduler_perf."""
    amounts = ["20Gi"] + ["10Gi"] * 7
    parts = [
        device(f"d{i}", consumesCounters=consumes("set", memory=amount))
        for i, amount in enumerate(amounts)
    ]
    slices = [
        resource_slice(
            name="s0", count=2, sharedCounters=[counters("set", memory="70Gi")]
        ),
        resource_slice(parts, name="s1", count=2),
    ]
    quick, plain = both(compiled(slices, claim("c", request(count=7))))
    assert [grant.device for grant in quick.placements[0].grants[0]] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]
    assert quick.placements == plain.placements


def test_equal_pods_go_on_where_the_last_one_landed() -> None:
    slices = [
        resource_slice(
            gpus(2),
            name=f"s{node_index}",
            pool=f"p{node_index}",
            nodeName=f"node-{node_index}",
        )
        for node_index in range(3)
    ]
    claims = [claim(f"c{claim_index}", request()) for claim_index in range(7)]
    nodes = [node(f"node-{node_index}") for node_index in (1, 2)]
    quick, plain = both(compiled(nodes, slices, claims))
    assert [placement.node for placement in quick.placements] == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]
    assert quick.placements == plain.placements


SHARED_MEMORY = {"memory": {"value": "4", "requestPolicy": {"default": "1"}}}


def being_updated(of_counters: Sequence[Json]) -> list[Json]:
    """A pool of which node-1 sees the next generation, without counters: one device, which can be shared."""
    shared = slotted("gpu-0", shared=True, slots=False)
    return [
        resource_slice(
            name="counters",
            count=2,
            sharedCounters=[counters("set", slots="1")],
        ),
        resource_slice(of_counters, name="devices", count=2),
        resource_slice([shared], name="next", generation=2, nodeName="node-1"),
    ]


def on_node(index: int, name: str, wanted: str, count: int = 1) -> list[Json]:
    """A pod for one node, with a claim for devices."""
    return [
        claim(name, request("r", wanted, count=count)),
        pod(name, name, nodeSelector={"number": str(index)}),
    ]


def named(*names: str) -> str:
    return f"device.attributes['gpu.example.com'].name in {list(names)}"


def two_nodes(*objects: Json | Sequence[Json]) -> Problem:
    nodes = [node(f"node-{index}", number=str(index)) for index in range(2)]
    return compile_cluster(cluster(device_class(), nodes, *objects)).problem


def slotted(name: str, *, shared: bool = False, slots: bool = True) -> Json:
    sharing = {"allowMultipleAllocations": True, "capacity": SHARED_MEMORY}
    return device(
        name,
        {"name": name},
        **(sharing if shared else {}),
        **({"consumesCounters": consumes("set", slots="1")} if slots else {}),
    )


def test_a_share_that_another_generation_opens_is_found_by_equal_pods() -> None:
    """Who shares a device that is in use asks for no counters, whatever version others have opened it by (upstream)."""
    devices = [
        slotted("gpu-1"),
        slotted("gpu-0", shared=True),
        slotted("gpu-2", slots=False),
        slotted("gpu-3", slots=False),
    ]
    anything = "device.attributes['gpu.example.com'].name != 'gpu-1'"
    problem = two_nodes(
        being_updated(devices),
        on_node(0, "a", named("gpu-1")),
        on_node(0, "b", anything),
        on_node(1, "c", "true"),
        on_node(0, "d", anything),
    )
    quick, plain = both(problem)
    assert quick.placements == plain.placements
    got = [
        problem.devices[placement.grants[0][0].device].id.device
        for placement in quick.placements
    ]
    assert got == ["gpu-1", "gpu-2", "gpu-0", "gpu-0"]


@st.composite
def updates(draw: st.DrawFn) -> Problem:
    """A pool that is being updated, and pods on either of its nodes of which many ask for the same."""
    devices = [
        slotted("gpu-0", shared=True),
        slotted("gpu-1"),
        *(slotted(f"gpu-{index}", slots=False) for index in range(2, 6)),
    ]
    others = [f"gpu-{index}" for index in (0, *range(2, 6))]
    pods = [on_node(0, "first", named("gpu-1"))]
    for index in range(draw(st.integers(3, 6))):
        where, count = draw(st.integers(0, 1)), 1
        # Who asks for something else on the one node does not end the search on the other.
        wanted = "true" if where else named(*others)
        if not where:
            count = draw(st.sampled_from([1, 1, 1, 2]))
        pods.append(on_node(where, f"p{index}", wanted, count))
    return two_nodes(being_updated(draw(st.permutations(devices))), *pods)


@settings(max_examples=examples(500), deadline=None)
@given(updates())
def test_same_answers_while_a_pool_is_updated(problem: Problem) -> None:
    quick, plain = both(problem)
    assert quick.placements == plain.placements
    assert errors(quick) == errors(plain)


def test_what_a_gang_gives_back_is_found_again() -> None:
    slices = resource_slice(gpus(2))
    claims = [claim(name, request()) for name in ("a", "b", "c", "last")]
    problem = compiled(
        slices, claims, [pod(name, name) for name in ("a", "b", "c", "last")]
    )
    gang = tuple(
        replace(demand, gang="gang") for demand in tuple(problem.demands)[:3]
    )
    quick, plain = both(
        replace(problem, demands=(*gang, problem.demands[DemandIndex(3)]))
    )
    assert [placement.demand for placement in quick.placements] == [3]
    assert quick.placements == plain.placements


def test_a_failing_selector_ends_every_equal_demand_with_its_own_name() -> None:
    broken = request("gpu", "device.attributes['gpu.example.com'].missing == 1")
    quick, plain = both(
        compiled(
            resource_slice(gpus(1)), claim("a", broken), claim("b", broken)
        )
    )
    assert errors(quick) == errors(plain)
    assert [str(error).split(":")[0] for error in quick.errors.values()] == [
        "claim default/a",
        "claim default/b",
    ]


def with_cpu(wanted: Json, cpu: str) -> Json:
    container = {
        "name": "main",
        "resources": {"requests": {"cpu": cpu} if cpu else {}},
    }
    return {**wanted, "spec": {**wanted["spec"], "containers": [container]}}


def test_pods_with_equal_claims_know_the_same_nodes_whatever_they_take_beside_devices() -> (
    None
):
    amounts = {"status": {"allocatable": {"cpu": "4", "pods": "110"}}}
    nodes = [
        {**node(f"node-{node_index}", zone="ab"[node_index // 4]), **amounts}
        for node_index in range(8)
    ]
    slices = [
        # Only on the last node two devices have the same root.
        resource_slice(
            [
                device(f"d{index}", {"root": index if node_index < 7 else 0})
                for index in range(4)
            ],
            name=f"s{node_index}",
            pool=f"p{node_index}",
            nodeName=f"node-{node_index}",
        )
        for node_index in range(8)
    ]
    same_root = [{"matchAttribute": ROOT}]
    cpus = {"any-0": "3", "any-1": "3", "any-2": "3", "any-3": "3"}
    cpus |= {"same-root": "", "same-root-elsewhere": "1", "then-any": ""}
    claims = [
        claim(
            name,
            request(count=2),
            constraints=same_root if "same-root" in name else [],
        )
        for name in cpus
    ]
    pods = [with_cpu(pod(name, name), cpu) for name, cpu in cpus.items()]
    pods[4]["spec"]["nodeSelector"] = {"zone": "b"}
    problem = compile_cluster(
        cluster(device_class(), nodes, slices, claims, pods)
    ).whole
    quick, plain = both(problem)
    assert [placement.node for placement in quick.placements] == [
        0,
        1,
        2,
        3,
        7,
        7,
        0,
    ]
    assert quick.placements == plain.placements


def test_nodes_without_any_device_are_no_obstacle() -> None:
    nodes = [node(f"node-{node_index}") for node_index in range(1, 6)]
    quick, plain = both(compiled(nodes, claim("a", request())))
    assert quick.placements == plain.placements == ()


def test_errors_of_nodes_are_remembered_for_equal_demands() -> None:
    broken = resource_slice([device("x"), device("x")])
    quick, plain = both(
        compiled(broken, claim("a", request()), claim("b", request()))
    )
    assert errors(quick) == errors(plain)
    assert quick.errors.keys() == {0, 1}


def test_nodes_may_be_without_any_device() -> None:
    limited = [
        {**node(name), "status": {"allocatable": {"cpu": "2", "pods": "2"}}}
        for name in "abcd"
    ]
    asking = [
        with_cpu(pod(f"p{pod_index}", f"c{pod_index}"), "1")
        for pod_index in range(4)
    ]
    claims = [claim(f"c{claim_index}", request()) for claim_index in range(4)]
    problem = compile_cluster(
        cluster(limited, device_class(), claims, asking)
    ).whole
    assert (
        first_fit(problem).placements
        == first_fit(problem, pruning=False).placements
        == ()
    )


def test_a_gang_that_is_too_few_says_nothing_about_how_many_fit() -> None:
    """Its one member fits, and is given back for want of others: the gang behind it has room for two all the same."""
    names = ("first", "second", "third")
    problem = compiled(
        resource_slice(gpus(2)),
        [claim(name, request()) for name in names],
        [pod(name, name) for name in names],
    )
    racks_of_nodes = {node.name: "rack" for node in problem.nodes}

    def in_one_rack(gang: str, members: Sequence[Demand]) -> list[Demand]:
        role = Role(OneDomain(racks_of_nodes), carries=True, counts=True)
        return [
            replace(member, gang=gang, quorum=2, roles=(role,))
            for member in members
        ]

    first, *others = problem.demands
    demands = (*in_one_rack("one", [first]), *in_one_rack("two", others))
    quick, plain = both(replace(problem, demands=demands))
    assert [placement.demand for placement in quick.placements] == [1, 2]
    assert quick.placements == plain.placements
