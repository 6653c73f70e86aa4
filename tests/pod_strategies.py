"""Hypothesis strategies of what binds pods to nodes beside devices: resources of nodes, and rules between pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from dralloc.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem import (
    Alternative,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    Device,
    Node,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    Usage,
)
from dralloc.problem.inter_pod import Affinity, AntiAffinity, InterPodRule, OneDomain, Role, Spread
from dralloc.problem.node_claims import NodeStock, with_node_claims
from inventory_strategies import rarely
from strategies import TableEligibility

__all__ = ["BoundPods", "bound_pods"]

RESOURCES = ("cpu", "memory")
DOMAINS = ("east", "west", "north")


@dataclass(frozen=True)
class BoundPods:
    """Pods that ask for devices, and what binds them beside these.

    ``devices``: the problem of the devices, whose demands have roles. ``asked``: by demand.
    """

    devices: Problem
    stocks: Sequence[NodeStock]
    asked: Mapping[int, Mapping[str, int]]

    @property
    def whole(self) -> Problem:
        return with_node_claims(self.devices, self.stocks, self.asked)


@st.composite
def bound_pods(draw: st.DrawFn, max_pods: int = 4, max_rules: int = 2) -> BoundPods:
    """Draw up to four nodes with a few devices each, pods for them, resources that are scarce, and some rules."""
    nodes = [f"node-{number}" for number in range(draw(st.integers(1, 4)))]
    rules = draw(st.lists(_rules(nodes), max_size=max_rules))
    size = draw(st.integers(1, max_pods))
    demands = [draw(_demands(number, len(nodes))) for number in range(size)]
    # A pod has one list of terms of affinity.
    near = [draw(st.sampled_from(rules)) if rules else None for _ in demands]
    demands = [
        replace(demand, roles=tuple(_role(draw, rule, mine) for rule in rules))
        for demand, mine in zip(demands, near, strict=True)
    ]
    demands = [replace(one, roles=tuple(role for role in one.roles if role.carries or role.counts)) for one in demands]
    amounts = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 3))
    return BoundPods(
        devices=_problem(nodes, [draw(_roots()) for _ in nodes], demands),
        stocks=[draw(_stocks()) for _ in nodes],
        asked={number: draw(amounts) for number in range(size) if not draw(rarely())},
    )


def _role(draw: st.DrawFn, rule: InterPodRule, near: InterPodRule | None) -> Role:
    carries = draw(st.booleans()) and (not isinstance(rule, Affinity) or rule is near)
    return Role(rule, carries, draw(st.booleans()))


@st.composite
def _rules(draw: st.DrawFn, nodes: Sequence[str]) -> InterPodRule:
    def domains() -> dict[str, str]:
        return {node: draw(st.sampled_from(DOMAINS)) for node in nodes if not draw(rarely())}

    def some() -> frozenset[str]:
        return draw(st.frozensets(st.sampled_from(DOMAINS), max_size=1)) if draw(rarely()) else frozenset()

    match draw(st.sampled_from(("apart", "near", "spread", "one"))):
        case "apart":
            return AntiAffinity(domains(), some(), some())
        case "near":
            several = draw(st.sampled_from((1, 1, 2)))
            return Affinity(tuple(domains() for _ in range(several)), tuple(some() for _ in range(several)))
        case "one":
            return OneDomain(domains())
        case _:
            counted = dict.fromkeys(some(), draw(st.integers(1, 2)))
            return Spread(domains(), counted, draw(st.integers(1, 2)), draw(st.sampled_from((1, 1, 2, 3))))


@st.composite
def _demands(draw: st.DrawFn, number: int, nodes: int) -> Demand:
    name = ClaimKey("default", f"claim-{number}")
    claim = draw(st.sampled_from((_one, _list, _bound_pair)))(name, number, draw(st.sampled_from(ConstraintKind)))
    return Demand(
        key=ClaimKey("default", f"pod-{number}"),
        claims=(claim,),
        weight=draw(st.integers(1, 3)),
        nodes=tuple(draw(st.sets(st.integers(0, nodes - 1), min_size=1))) if draw(rarely()) else None,
        gang=draw(st.sampled_from(("", "", "", "gang"))),
        quorum=2,
    )


def _one(name: ClaimKey, number: int, _: ConstraintKind) -> Claim:
    return Claim(name, "", (Request("gpu", (Alternative(10 * number, RequestName("gpu"), 0, 1),)),))


def _list(name: ClaimKey, number: int, _: ConstraintKind) -> Claim:
    entries = (Alternative(10 * number + rank, RequestName("gpu", "ab"[rank]), rank, 1 + rank) for rank in range(2))
    return Claim(name, "", (Request("gpu", tuple(entries)),))


def _bound_pair(name: ClaimKey, number: int, kind: ConstraintKind) -> Claim:
    """Two devices with the same value of an attribute, or with different ones."""
    requests = (
        Request(one, (Alternative(10 * number + place, RequestName(one), 0, 1),)) for place, one in enumerate("ab")
    )
    return Claim(name, "", tuple(requests), (Constraint(kind, "root"),))


def _problem(nodes: Sequence[str], roots: Sequence[Sequence[str]], demands: Sequence[Demand]) -> Problem:
    homes = [(node, place) for node, each in enumerate(roots) for place in range(len(each))]
    return Problem(
        demands=tuple(demands),
        nodes=tuple(
            Node(name, (PoolAccess(PoolID("gpu", name), PoolState.USABLE, _of(homes, number)),))
            for number, name in enumerate(nodes)
        ),
        devices=tuple(
            Device(
                DeviceID("gpu", nodes[node], f"gpu-{place}"),
                slot,
                0,
                False,
                {},
                (),
                {"root": frozenset({("string", roots[node][place])})},
                None,
            )
            for slot, (node, place) in enumerate(homes)
        ),
        counters=(),
        usage=Usage(frozenset(), {}, {}),
        eligibility=TableEligibility(),
    )


def _roots() -> st.SearchStrategy[list[str]]:
    """The devices of a node, by the value of their attribute."""
    return st.lists(st.sampled_from("xy"), min_size=1, max_size=3)


def _of(homes: Sequence[tuple[int, int]], node: int) -> tuple[int, ...]:
    return tuple(number for number, (home, _) in enumerate(homes) if home == node)


@st.composite
def _stocks(draw: st.DrawFn) -> NodeStock:
    """A node that says what it has, or one that limits nothing."""
    if draw(rarely()):
        return NodeStock({}, {})
    used = {ClaimKey("default", "running"): {"cpu": draw(st.integers(0, 2))}} if draw(rarely()) else {}
    return NodeStock({name: draw(st.integers(0, 5)) for name in RESOURCES}, used)
