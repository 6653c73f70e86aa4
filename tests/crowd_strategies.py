"""Hypothesis strategies for crowds: few kinds of pods and of nodes, each many times, and some of it in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from hypothesis import strategies as st

from dralloc.objects.names import (
    ClaimKey,
    CounterID,
    DeviceID,
    PoolID,
    RequestName,
)
from dralloc.objects.user_rules import Budget
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Capacity,
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    Counter,
    CounterIndex,
    Demand,
    Device,
    DeviceIndex,
    Node,
    NodeIndex,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    Scalar,
    SlotIndex,
    Usage,
    indices,
)
from dralloc.problem.inter_pod import Domains, OneDomain, Role
from dralloc.problem.node_claims import (
    NodeStock,
    node_resource,
    with_node_claims,
)
from inventory_strategies import rarely

__all__ = [
    "CHARGES",
    "Builder",
    "KeyedEligibility",
    "as_problem",
    "crowds",
    "in_domains",
    "pod_of",
]

LOOKS = ("plain", "other", "part", "whole", "shared")


@dataclass(frozen=True)
class KeyedEligibility:
    """An `Eligibility` by kind and key: what a device takes to serve it; what is not listed does not match."""

    kinds: Sequence[str]
    keys: Sequence[str]
    charges: Mapping[tuple[str, str], Charge]

    def selects(self, alternative: int, device: DeviceIndex) -> bool:
        return (self.kinds[alternative], self.keys[device]) in self.charges

    def admits(self, alternative: int, device: DeviceIndex) -> bool:
        return self.selects(alternative, device)

    def charge(self, alternative: int, device: DeviceIndex) -> Charge | None:
        return self.charges.get((self.kinds[alternative], self.keys[device]))

    def request_key(self, alternative: int) -> str:
        return self.kinds[alternative]

    def device_key(self, device: DeviceIndex) -> str:
        return self.keys[device]


@dataclass
class Builder:
    """Devices and what they draw on, as they come."""

    devices: list[Device] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    held: set[SlotIndex] = field(default_factory=set)
    consumed: dict[SlotIndex, dict[str, int]] = field(default_factory=dict)

    def counter(self, pool: str, total: int) -> CounterIndex:
        self.counters.append(
            Counter(
                CounterID("driver", pool, "set", f"{len(self.counters)}"),
                total,
                total,
                0,
            )
        )
        return CounterIndex(len(self.counters) - 1)

    def device(
        self,
        pool: str,
        key: str,
        attributes: Mapping[str, frozenset[Scalar]],
        consumes: tuple[tuple[CounterIndex, int], ...] = (),
        memory: int | None = None,
        *,
        shareable: bool = False,
    ) -> DeviceIndex:
        index = DeviceIndex(len(self.devices))
        capacity = (
            {} if memory is None else {"memory": Capacity("memory", memory)}
        )
        name = DeviceID("driver", pool, f"device-{index}")
        self.devices.append(
            Device(
                name,
                SlotIndex(index),
                0,
                shareable or memory is not None,
                capacity,
                consumes,
                attributes,
                None,
            )
        )
        self.keys.append(key)
        return index

    def hold(self, device: SlotIndex) -> None:
        """An allocated claim has the device, or a share of it, if its counters allow."""
        free = {
            counter: self.counters[counter].free - amount
            for counter, amount in self.devices[device].consumes
        }
        if all(remaining >= 0 for remaining in free.values()):
            if self.devices[device].shareable:
                self.consumed[device] = {}
            else:
                self.held.add(device)
            for counter, remaining in free.items():
                known = self.counters[counter]
                self.counters[counter] = Counter(
                    known.id, known.total, remaining, known.group
                )


NUMBERS = (1, 1, 1, 2)
"""How many devices are asked for."""

Unit = tuple[str, int, int]
"""What a part of a node is, a number that says how much of it there is, and its value of the attribute."""


@st.composite
def _node_kinds(draw: st.DrawFn) -> list[Unit]:
    kinds = st.sampled_from(
        ["plain", "plain", "other", "gpu", "gpu", "open", "shared"]
    )
    return draw(
        st.lists(
            st.tuples(kinds, st.integers(1, 3), st.integers(0, 1)),
            min_size=1,
            max_size=4,
        )
    )


def _enter(
    builder: Builder, pool: str, unit: Unit, own: int
) -> list[DeviceIndex]:
    """Publish a unit; its values under ``root`` are those of one node only, under ``numa`` those of all nodes."""
    what, size, value = unit
    attributes: dict[str, frozenset[Scalar]] = {
        "root": frozenset({("int", 2 * own + value)}),
        "numa": frozenset({("int", value)}),
    }
    # The parts of an open one can be shared, and have no capacities that would limit that.
    if what in {"gpu", "open"}:
        total = size + 1
        counters = [builder.counter(pool, total), builder.counter(pool, 2)]
        parts = [
            builder.device(
                pool,
                "part",
                attributes,
                ((counters[0], 1 + index % 2), (counters[1], 1)),
                shareable=what == "open",
            )
            for index in range(size)
        ]
        return [
            *parts,
            builder.device(pool, "whole", attributes, ((counters[0], total),)),
        ]
    if what == "shared":
        return [builder.device(pool, "shared", attributes, memory=size + 2)]
    return [builder.device(pool, what, attributes) for _ in range(size)]


@st.composite
def _requests(
    draw: st.DrawFn, device_counts: Sequence[int | None]
) -> list[tuple[str, int | None]]:
    """The kind and the number of devices of each alternative."""
    kinds = st.sampled_from(
        ["any", "any", "plain", "part", "part", "whole", "small", "large"]
    )
    entry = st.tuples(kinds, st.sampled_from(device_counts))
    most = draw(st.sampled_from([1, 2, 3]))
    return draw(
        st.lists(
            entry, min_size=1, max_size=most, unique_by=lambda pair: pair[0]
        )
    )


CHARGES = {
    ("plain", "plain"): Charge(),
    ("any", "plain"): Charge(),
    ("any", "other"): Charge(),
    ("part", "part"): Charge(),
    ("whole", "whole"): Charge(),
    ("any", "whole"): Charge(),
    ("small", "shared"): Charge((("memory", 1),)),
    ("large", "shared"): Charge((("memory", 2),)),
    ("large", "other"): Charge(),
}


@st.composite
def _pods(
    draw: st.DrawFn,
    nodes: int,
    kinds: list[str],
    device_counts: Sequence[int | None] = NUMBERS,
) -> list[Demand]:
    """Equal pods."""
    requests = [
        draw(_requests(device_counts))
        for _ in range(draw(st.sampled_from([1, 1, 1, 2])))
    ]
    attribute = st.sampled_from(["root", "numa"])
    derived = st.just(()) | attribute.map(
        lambda name: ((RequestName("r0"), name),)
    )
    rule = st.builds(
        Constraint,
        st.sampled_from(ConstraintKind),
        attribute,
        st.just(frozenset()),
        derived,
    )
    constraints = tuple(
        draw(st.lists(rule, max_size=draw(st.sampled_from([0, 0, 1]))))
    )
    weight = draw(st.integers(0, 3))
    bound = (
        tuple(
            draw(st.permutations([NodeIndex(i) for i in range(nodes)]))[
                : draw(st.integers(1, nodes))
            ]
        )
        if draw(rarely())
        else None
    )
    pod_count = draw(st.integers(1, 4))
    return [
        pod_of(requests, constraints, weight, bound, kinds)
        for _ in range(pod_count)
    ]


def pod_of(
    requests: Sequence[Sequence[tuple[str, int | None]]],
    constraints: tuple[Constraint, ...],
    weight: int,
    nodes: tuple[NodeIndex, ...] | None,
    kinds: list[str],
) -> Demand:
    built = []
    for request_index, entries in enumerate(requests):
        alternatives = []
        for rank, (kind, devices) in enumerate(entries):
            name = RequestName(
                f"r{request_index}", "abc"[rank] if len(entries) > 1 else ""
            )
            alternatives.append(
                Alternative(AlternativeIndex(len(kinds)), name, rank, devices)
            )
            kinds.append(kind)
        built.append(Request(f"r{request_index}", tuple(alternatives)))
    key = ClaimKey("default", f"pod-{len(kinds)}")
    return Demand(
        key,
        (Claim(key, str(key), tuple(built), constraints),),
        weight,
        weight,
        nodes,
    )


@st.composite
def _sharing(
    draw: st.DrawFn, groups: list[list[Demand]], kinds: list[str]
) -> list[list[Demand]]:
    """So many pods after each other share a claim, beside their own or in its place."""
    pods = [pod for group in groups for pod in group]
    made: list[list[Demand]] = []
    while pods:
        users = draw(st.sampled_from((2, 3, 4, 1)))
        [claim] = draw(_pods(1, kinds))[0].claims
        own = draw(st.booleans())
        made.append(
            [
                replace(pod, claims=(claim, *pod.claims) if own else (claim,))
                for pod in pods[:users]
            ]
        )
        pods = pods[users:]
    return made


@st.composite
def _daemons(
    draw: st.DrawFn, group: list[Demand], nodes: int, kinds: list[str]
) -> list[Demand]:
    """The pods in turn bound to one node after the other, or with admin access beside their claim or in its place.

    In some groups a claim of the first pod can never be allocated.
    """
    bound, looks, only, doomed = (draw(st.booleans()) for _ in range(4))
    kind, device_count = (
        draw(st.sampled_from(["any", "part", "small"])),
        draw(st.sampled_from([1, 2, None])),
    )
    daemons = []
    for pod_index, pod in enumerate(group):
        claims = pod.claims
        if looks:
            [claim] = pod_of(
                [[(kind, device_count)]], (), 1, None, kinds
            ).claims
            [request] = claim.requests
            alternatives = tuple(
                replace(alternative, admin=True)
                for alternative in request.alternatives
            )
            watching = replace(
                claim, requests=(replace(request, alternatives=alternatives),)
            )
            claims = (watching,) if only else (*claims, watching)
        if doomed and pod_index == 0:
            claims = (replace(claims[0], defect="drawn so"), *claims[1:])
        daemons.append(
            replace(
                pod,
                claims=claims,
                nodes=(NodeIndex(pod_index % nodes),) if bound else pod.nodes,
            )
        )
    return daemons


@st.composite
def _with_limits(draw: st.DrawFn, problem: Problem) -> Problem:
    """The problem in which most pods take one or two places on their node, of which there are few."""
    name = node_resource("pods")
    stocks = [
        NodeStock({name: draw(st.integers(0, 4))}, {}) for _ in problem.nodes
    ]
    asking = [
        demand for demand in indices(problem.demands) if not draw(rarely())
    ]
    return with_node_claims(
        problem,
        stocks,
        {demand: {name: draw(st.integers(1, 2))} for demand in asking},
    )


@st.composite
def _overdrawn(draw: st.DrawFn, problem: Problem) -> Problem:
    """The problem in which each pool is a group of its own, and some have a counter of which too much is in use."""
    pools = [pool.id.pool for node in problem.nodes for pool in node.pools]
    groups = {pool: group for group, pool in enumerate(pools)}
    counters = [
        replace(counter, group=groups[counter.id.pool])
        for counter in problem.counters
    ]
    counters += [
        Counter(CounterID("driver", pool, "set", "overdrawn"), 1, -1, group)
        for pool, group in groups.items()
        if draw(st.booleans())
    ]
    devices = tuple(
        replace(device, group=groups[device.id.pool])
        for device in problem.devices
    )
    return replace(problem, devices=devices, counters=tuple(counters))


@st.composite
def _in_gangs(
    draw: st.DrawFn, groups: list[list[Demand]]
) -> list[list[Demand]]:
    """Of each group of equal pods, so many for each gang as long as there are any; the rest stays alone."""
    shares = [draw(st.integers(0, 2)) for _ in groups]
    quorum = draw(st.sampled_from((None, None, 0, 1, 2, 3)))
    return [
        [
            replace(pod, gang=f"gang-{pod_index // share}", quorum=quorum)
            if share
            else pod
            for pod_index, pod in enumerate(group)
        ]
        for group, share in zip(groups, shares, strict=True)
    ]


@st.composite
def _in_namespaces(
    draw: st.DrawFn, groups: list[list[Demand]]
) -> list[list[Demand]]:
    """The pods in turn in one of two namespaces, but for groups that are in one."""
    stays = [draw(st.booleans()) for _ in groups]
    return [
        [
            _moved(pod, "red" if stay or pod_index % 2 else "blue")
            for pod_index, pod in enumerate(group)
        ]
        for stay, group in zip(stays, groups, strict=True)
    ]


def _moved(pod: Demand, namespace: str) -> Demand:
    claims = tuple(
        replace(claim, key=claim.key._replace(namespace=namespace))
        for claim in pod.claims
    )
    return replace(
        pod, key=pod.key._replace(namespace=namespace), claims=claims
    )


@st.composite
def _budgets(draw: st.DrawFn) -> tuple[Budget, ...]:
    """What two namespaces may use of a capacity that shared devices have."""
    fair = draw(st.booleans())
    return tuple(
        Budget(
            namespace,
            "memory",
            draw(st.integers(0, 2)),
            12,
            None if fair else draw(st.integers(0, 6)),
            fair,
        )
        for namespace in ("red", "blue")
    )


@st.composite
def crowds(
    draw: st.DrawFn,
    *,
    gangs: bool = False,
    budgets: bool = False,
    sharing: bool = False,
    domains: bool = False,
    every: bool = False,
    daemons: bool = False,
    overdrawn: bool = False,
) -> Problem:
    """Draw few kinds of pods and nodes, each several times.

    Parameters
    ----------
    gangs
        Whether some pods are placed only together.
    budgets
        Whether there are namespaces with caps, or that share fairly.
    sharing
        Whether pods share claims.
    domains
        Whether gangs are in one domain of a topology each.
    every
        Whether some ask for all devices.
    daemons
        Whether some are bound to one node each or have admin access, and nodes have places for few pods.
    overdrawn
        Whether some nodes have an overdrawn counter, on which no published device draws.
    """
    builder, pools = Builder(), []
    node_kinds = draw(st.lists(_node_kinds(), min_size=1, max_size=2))
    node_numbers = count()
    for units in node_kinds:
        for _ in range(draw(st.integers(1, 3))):
            own = next(node_numbers)
            pools.append(
                [
                    device
                    for unit in units
                    for device in _enter(builder, f"pool-{own}", unit, own)
                ]
            )
    for device, view in enumerate(builder.devices):
        if draw(rarely()):
            if view.capacity:
                builder.consumed[SlotIndex(device)] = {
                    "memory": draw(st.integers(1, 2))
                }
            else:
                builder.hold(SlotIndex(device))
    kinds: list[str] = []
    device_counts = (1, 1, 2, None) if every else NUMBERS
    groups = [
        draw(_pods(len(pools), kinds, device_counts))
        for _ in range(draw(st.integers(1, 3)))
    ]
    groups = draw(_sharing(groups, kinds)) if sharing else groups
    groups = (
        [draw(_daemons(group, len(pools), kinds)) for group in groups]
        if daemons
        else groups
    )
    groups = draw(_in_gangs(groups)) if gangs else groups
    groups = draw(_in_namespaces(groups)) if budgets else groups
    demands = [pod for group in groups for pod in group]
    demands = draw(in_domains(demands, len(pools))) if domains else demands
    problem = as_problem(draw(st.permutations(demands)), pools, builder, kinds)
    problem = draw(_with_limits(problem)) if daemons else problem
    problem = draw(_overdrawn(problem)) if overdrawn else problem
    return replace(problem, budgets=draw(_budgets())) if budgets else problem


def as_problem(
    demands: Sequence[Demand],
    pools: Sequence[Sequence[DeviceIndex]],
    builder: Builder,
    kinds: list[str],
) -> Problem:
    """Demands, whose alternatives have these kinds, and nodes with a pool each."""
    return Problem(
        tuple(demands),
        tuple(
            Node(
                f"node-{index}",
                (
                    PoolAccess(
                        PoolID("driver", f"pool-{index}"),
                        PoolState.USABLE,
                        tuple(devices),
                    ),
                ),
            )
            for index, devices in enumerate(pools)
        ),
        tuple(builder.devices),
        tuple(builder.counters),
        Usage(
            frozenset(builder.held),
            dict.fromkeys(builder.consumed, 1),
            builder.consumed,
        ),
        KeyedEligibility(kinds, builder.keys, CHARGES),
    )


@st.composite
def in_domains(
    draw: st.DrawFn, demands: Sequence[Demand], nodes: int
) -> list[Demand]:
    """Each gang in one domain of a topology, or anywhere; now and then one demand differs."""
    topologies: list[Domains] = [
        {
            f"node-{node}": draw(st.sampled_from("abc"))
            for node in range(nodes)
            if not draw(rarely())
        }
        for _ in range(draw(st.sampled_from([1, 1, 2])))
    ]
    roles: dict[str, tuple[Role, ...]] = {"": ()}
    answer = []
    for demand in demands:
        if demand.gang not in roles:
            chosen = draw(st.sampled_from([None, *topologies, *topologies]))
            roles[demand.gang] = (
                ()
                if chosen is None
                else (Role(OneDomain(chosen), carries=True, counts=True),)
            )
        answer.append(replace(demand, roles=roles[demand.gang]))
    if draw(rarely()):
        answer[-1] = replace(answer[-1], roles=answer[0].roles)
    return answer
