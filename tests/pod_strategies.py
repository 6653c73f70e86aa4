"""Hypothesis strategies of what binds pods to nodes beside devices: resources of nodes, and rules between pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from dralloc.objects.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.objects.quantity import NANOS, Quantity
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Capacity,
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    DemandIndex,
    Device,
    DeviceIndex,
    Node,
    NodeFootprint,
    NodeIndex,
    ParentGroup,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    SlotIndex,
    Usage,
    indices,
    numbered,
)
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)
from dralloc.problem.node_claims import (
    NodeStock,
    node_resource,
    resource_of,
    with_node_claims,
)
from dralloc.problem.node_footprints import PodUse, with_footprints
from inventory_strategies import rarely
from strategies import TableEligibility

__all__ = ["BoundPods", "bound_pods"]

RESOURCES = (node_resource("cpu"), node_resource("memory"))
DOMAINS = ("east", "west", "north")
RARELY = rarely()


@dataclass(frozen=True)
class BoundPods:
    """Pods that ask for devices, and what binds them beside these.

    ``devices``: the problem of the devices, whose demands have roles. ``asked``, ``uses``: by demand.
    """

    devices: Problem
    stocks: Sequence[NodeStock]
    asked: Mapping[DemandIndex, Mapping[str, int]]
    uses: Mapping[int, PodUse]

    @property
    def whole(self) -> Problem:
        taken = {
            part.resource
            for device in self.devices.devices
            for part in device.footprint
        }
        kept = frozenset(map(node_resource, taken))
        whole = with_node_claims(self.devices, self.stocks, self.asked, kept)
        return with_footprints(whole, self.uses) if kept else whole


@st.composite
def bound_pods(
    draw: st.DrawFn,
    max_pods: int = 4,
    max_rules: int = 2,
    footprints: st.SearchStrategy[bool] = RARELY,
) -> BoundPods:
    """Draw up to four nodes with a few devices each, pods for them, resources that are scarce, and some rules.

    Parameters
    ----------
    footprints
        Whether devices take something of their nodes, too.
    """
    nodes = [f"node-{index}" for index in range(draw(st.integers(1, 4)))]
    rules = draw(st.lists(_rules(nodes), max_size=max_rules))
    size = draw(st.integers(1, max_pods))
    demands = [
        draw(_demands(demand_index, len(nodes))) for demand_index in range(size)
    ]
    # A pod has one list of terms of affinity.
    near = [draw(st.sampled_from(rules)) if rules else None for _ in demands]
    demands = [
        replace(demand, roles=tuple(_role(draw, rule, mine) for rule in rules))
        for demand, mine in zip(demands, near, strict=True)
    ]
    demands = [
        replace(
            demand,
            roles=tuple(
                role for role in demand.roles if role.carries or role.counts
            ),
        )
        for demand in demands
    ]
    if draw(rarely()):
        demands = draw(_with_parents(demands, nodes))
    if draw(st.integers(0, 3)) == 0:
        running = draw(st.frozensets(st.integers(0, size - 1)))
        demands = [
            demand.running if demand_index in running else demand
            for demand_index, demand in enumerate(demands)
        ]
    devices = _problem(nodes, [draw(_roots()) for _ in nodes], demands)
    return BoundPods(
        devices=draw(_taking(devices)) if draw(footprints) else devices,
        stocks=[draw(_stocks()) for _ in nodes],
        asked={
            demand_index: draw(_amounts(3))
            for demand_index in map(DemandIndex, range(size))
            if not draw(rarely())
        },
        uses={
            demand_index: draw(_uses(demand))
            for demand_index, demand in enumerate(demands)
            if not draw(rarely())
        },
    )


def _amounts(most: int) -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(
        st.sampled_from(RESOURCES), st.integers(0, most).map(NANOS.__mul__)
    )


def _uses(demand: Demand) -> st.SearchStrategy[PodUse]:
    """A few containers for each claim, and rarely requests of the pod as a whole."""
    caps = rarely().flatmap(lambda some: _amounts(3) if some else st.just({}))
    containers = st.fixed_dictionaries(
        {claim.key: st.integers(0, 2) for claim in demand.claims}
    )
    return st.builds(
        PodUse,
        containers,
        caps.map(
            lambda amounts: {
                resource_of(name): cap for name, cap in amounts.items()
            }
        ),
    )


@st.composite
def _taking(draw: st.DrawFn, problem: Problem) -> Problem:
    """The problem with devices that take something of their nodes; some of them are shared by amounts of a capacity."""
    part = st.builds(
        NodeFootprint,
        st.sampled_from([resource_of(name) for name in RESOURCES]),
        st.sampled_from(["", "", "", "cores"]),
        *[st.sampled_from([0, 0, 1, 2]).map(NANOS.__mul__)] * 3,
    )
    parts = st.lists(
        part, max_size=2, unique_by=lambda footprint: footprint.resource
    ).map(tuple)
    devices = [
        replace(device, footprint=draw(parts)) for device in problem.devices
    ]
    shared = {
        device_index
        for device_index in range(len(devices))
        if draw(st.integers(0, 2)) == 0
    }
    cores = {"cores": Capacity("cores", 3 * NANOS)}
    devices = [
        replace(device, shareable=True, capacity=cores)
        if device_index in shared
        else device
        for device_index, device in enumerate(devices)
    ]
    amounts = {
        alternative.index: draw(st.integers(1, 3)) * NANOS
        for demand in problem.demands
        for alternative in demand.alternatives()
    }
    charges: dict[tuple[int, int], Charge] = {
        (alternative, device_index): Charge(
            (("cores", amount),), (), (("cores", Quantity(amount)),)
        )
        for alternative, amount in amounts.items()
        for device_index in shared
    }
    taking = replace(
        problem,
        devices=tuple(devices),
        eligibility=TableEligibility(charges=charges),
    )
    return _in_one_pool(taking) if draw(st.booleans()) else taking


def _in_one_pool(problem: Problem) -> Problem:
    """The problem in which all nodes are offered all devices, each of which says its only node itself."""
    devices = list(problem.devices)
    for node_index, node in numbered(problem.nodes):
        for index in node.devices():
            name = f"{node.name}-{devices[index].id.device}"
            devices[index] = replace(
                devices[index],
                id=DeviceID("gpu", "all", name),
                nodes=frozenset((node_index,)),
            )
    pool = PoolAccess(
        PoolID("gpu", "all"), PoolState.USABLE, tuple(indices(devices))
    )
    return replace(
        problem,
        devices=tuple(devices),
        nodes=tuple(Node(node.name, (pool,)) for node in problem.nodes),
    )


@st.composite
def _with_parents(
    draw: st.DrawFn, demands: Sequence[Demand], nodes: Sequence[str]
) -> list[Demand]:
    """The demands in up to three gangs below one or two groups of groups, some of which are in one domain."""

    def rule() -> OneDomain | None:
        return (
            OneDomain(
                {node: draw(st.sampled_from(DOMAINS[:2])) for node in nodes}
            )
            if draw(rarely())
            else None
        )

    settled = st.frozensets(st.sampled_from(("gang-0", "gang-1")), max_size=1)
    root = ParentGroup(
        "root",
        draw(st.integers(0, 2)),
        draw(settled) if draw(rarely()) else frozenset(),
        None,
        rule(),
    )
    lower = ParentGroup(
        "lower", draw(st.integers(0, 2)), frozenset(), root, rule()
    )
    parents = [draw(st.sampled_from((root, root, lower))) for _ in range(3)]
    quorums = [draw(st.sampled_from((None, 1, 2))) for _ in parents]
    members = []
    for demand in demands:
        gang_index = draw(st.integers(0, 2))
        group = parents[gang_index]
        above = (
            Role(ancestor.rule, carries=True, counts=True)
            for ancestor in group.upwards()
            if ancestor.rule
        )
        roles = (
            *(
                role
                for role in demand.roles
                if not isinstance(role.rule, OneDomain)
            ),
            *above,
        )
        members.append(
            replace(
                demand,
                gang=f"gang-{gang_index}",
                quorum=quorums[gang_index],
                parent=group,
                roles=roles,
            )
        )
    return members


def _role(
    draw: st.DrawFn, rule: InterPodRule, near: InterPodRule | None
) -> Role:
    carries = draw(st.booleans()) and (
        not isinstance(rule, Affinity) or rule is near
    )
    return Role(rule, carries, draw(st.booleans()))


@st.composite
def _rules(draw: st.DrawFn, nodes: Sequence[str]) -> InterPodRule:
    def domains() -> dict[str, str]:
        return {
            node: draw(st.sampled_from(DOMAINS))
            for node in nodes
            if not draw(rarely())
        }

    def some() -> frozenset[str]:
        return (
            draw(st.frozensets(st.sampled_from(DOMAINS), max_size=1))
            if draw(rarely())
            else frozenset()
        )

    match draw(st.sampled_from(("apart", "near", "spread", "one"))):
        case "apart":
            return AntiAffinity(domains(), some(), some())
        case "near":
            several = draw(st.sampled_from((1, 1, 2)))
            return Affinity(
                tuple(domains() for _ in range(several)),
                tuple(some() for _ in range(several)),
            )
        case "one":
            return OneDomain(domains())
        case _:
            counted = dict.fromkeys(some(), draw(st.integers(1, 2)))
            return Spread(
                domains(),
                counted,
                draw(st.integers(1, 2)),
                draw(st.sampled_from((1, 1, 2, 3))),
            )


@st.composite
def _demands(draw: st.DrawFn, demand_index: int, nodes: int) -> Demand:
    name = ClaimKey("default", f"claim-{demand_index}")
    claim = draw(st.sampled_from((_one, _list, _bound_pair, _derived_pair)))(
        name, demand_index, draw(st.sampled_from(ConstraintKind))
    )
    return Demand(
        key=ClaimKey("default", f"pod-{demand_index}"),
        claims=(claim,),
        weight=draw(st.integers(0, 3)),
        nodes=tuple(
            draw(st.sets(st.integers(0, nodes - 1).map(NodeIndex), min_size=1))
        )
        if draw(rarely())
        else None,
        gang=draw(st.sampled_from(("", "", "", "gang"))),
        quorum=2,
    )


def _one(name: ClaimKey, demand_index: int, _: ConstraintKind) -> Claim:
    return Claim(
        name,
        "",
        (
            Request(
                "gpu",
                (
                    Alternative(
                        AlternativeIndex(10 * demand_index),
                        RequestName("gpu"),
                        0,
                        1,
                    ),
                ),
            ),
        ),
    )


def _list(name: ClaimKey, demand_index: int, _: ConstraintKind) -> Claim:
    entries = (
        Alternative(
            AlternativeIndex(10 * demand_index + rank),
            RequestName("gpu", "ab"[rank]),
            rank,
            1 + rank,
        )
        for rank in range(2)
    )
    return Claim(name, "", (Request("gpu", tuple(entries)),))


def _bound_pair(
    name: ClaimKey, demand_index: int, kind: ConstraintKind
) -> Claim:
    """Two devices with the same value of an attribute, or with different ones."""
    return _pair(name, demand_index, Constraint(kind, "root"))


def _derived_pair(
    name: ClaimKey, demand_index: int, kind: ConstraintKind
) -> Claim:
    """The same, where one of them derives the attribute (KEP-6080)."""
    return _pair(
        name,
        demand_index,
        Constraint(kind, "root", derived=((RequestName("b"), "leaf"),)),
    )


def _pair(name: ClaimKey, demand_index: int, constraint: Constraint) -> Claim:
    requests = (
        Request(
            request_name,
            (
                Alternative(
                    AlternativeIndex(10 * demand_index + position),
                    RequestName(request_name),
                    0,
                    1,
                ),
            ),
        )
        for position, request_name in enumerate("ab")
    )
    return Claim(name, "", tuple(requests), (constraint,))


def _problem(
    nodes: Sequence[str],
    roots: Sequence[Sequence[str]],
    demands: Sequence[Demand],
) -> Problem:
    homes = [
        (node, position)
        for node, node_roots in enumerate(roots)
        for position in range(len(node_roots))
    ]
    return Problem(
        demands=tuple(demands),
        nodes=tuple(
            Node(
                name,
                (
                    PoolAccess(
                        PoolID("gpu", name),
                        PoolState.USABLE,
                        _of(homes, node),
                    ),
                ),
            )
            for node, name in enumerate(nodes)
        ),
        devices=tuple(
            Device(
                DeviceID("gpu", nodes[node], f"gpu-{position}"),
                SlotIndex(slot),
                0,
                False,
                {},
                (),
                {
                    name: frozenset({("string", value)})
                    for name, value in zip(
                        ("root", "leaf"), roots[node][position], strict=True
                    )
                },
                None,
            )
            for slot, (node, position) in enumerate(homes)
        ),
        counters=(),
        usage=Usage(frozenset(), {}, {}),
        eligibility=TableEligibility(),
    )


def _roots() -> st.SearchStrategy[list[str]]:
    """The devices of a node, by the values of their two attributes."""
    return st.lists(
        st.sampled_from(("xx", "xy", "yx", "yy")), min_size=1, max_size=3
    )


def _of(homes: Sequence[tuple[int, int]], node: int) -> tuple[DeviceIndex, ...]:
    return tuple(
        DeviceIndex(device)
        for device, (home, _) in enumerate(homes)
        if home == node
    )


@st.composite
def _stocks(draw: st.DrawFn) -> NodeStock:
    """A node that says what it has, or one that limits nothing."""
    if draw(rarely()):
        return NodeStock({}, {})
    used = (
        {
            ClaimKey("default", "running"): {
                RESOURCES[0]: draw(st.integers(0, 2)) * NANOS
            }
        }
        if draw(rarely())
        else {}
    )
    return NodeStock(
        {name: draw(st.integers(0, 5)) * NANOS for name in RESOURCES}, used
    )
