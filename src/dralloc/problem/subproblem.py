"""Problems made out of a problem: a part of it, and the claims that are still open.

`subproblem` cuts a part out under new numbers and leads back. It answers as the whole would, as long as nobody outside
of it takes anything: with the chosen devices come the other versions of them while a pool is updated (they are charged
together), the counters that can stand in their way, what is in use of all that, and what is in use outside of it on
the same counter sets (KEP-5963).
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from typing import assert_never

from networkx.utils import UnionFind

from dralloc.objects.names import ClaimKey
from dralloc.problem.grouping import grouped
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import Eligibility, Problem, Renumbered, renumbered
from dralloc.problem.requests import Claim, Constraint, ConstraintKind, Demand, Scope
from dralloc.problem.supply import Counter, Device, Node, Scalar

__all__ = [
    "Subproblem",
    "cut",
    "cut_alone",
    "held_values",
    "open_claims",
    "places",
    "separated",
    "with_versions",
]


@dataclass(frozen=True)
class Subproblem:
    """A part of a problem.

    Parameters
    ----------
    problem
        The part.
    nodes, devices, counters
        By index in the part, the index in the whole.
    """

    problem: Problem
    nodes: Sequence[int]
    devices: Sequence[int]
    counters: Sequence[int]


def cut(  # noqa: PLR0913 - what is kept, by sort
    whole: Problem,
    nodes: Sequence[int],
    *,
    devices: Sequence[int] | None = None,
    counters: Iterable[int] | None = None,
    demands: Iterable[Demand] = (),
    eligibility: Eligibility | None = None,
    ledger: Ledger | None = None,
) -> Subproblem:
    """Cut some nodes out of a problem.

    Parameters
    ----------
    nodes
        In the order that they get.
    devices
        Those that are kept, in the order that they get; all that these nodes are offered if None. Must be closed under
        `with_versions`.
    counters
        Those that are kept, in the order that they get; if None, all of the devices' groups, and all of pods.
    demands
        What the part asks for, with its nodes as the part numbers them.
    eligibility
        Who may serve whom, in the part's numbers; if None, what the whole says.
    ledger
        What is in use; if None, the usage of the whole.
    """
    if devices is None:
        offered = dict.fromkeys(
            device for node in nodes for device in whole.nodes[node].devices()
        )
        devices = with_versions(whole, offered)
    if counters is None:
        groups = dict.fromkeys(whole.devices[device].group for device in devices)
        of_devices = [
            counter for group in groups for counter in whole.counters_of.get(group, ())
        ]
        counters = sorted((*of_devices, *whole.pod_counters))
    kept = tuple(counters)
    node_at, device_at, counter_at = map(places, (nodes, devices, kept))
    problem = replace(
        whole,
        demands=tuple(demands),
        nodes=tuple(_node(whole.nodes[node], device_at) for node in nodes),
        devices=tuple(
            _device(whole.devices[device], node_at, counter_at) for device in devices
        ),
        counters=tuple(
            _counter(whole.counters[counter], counter, ledger) for counter in kept
        ),
        usage=(ledger or whole).usage_of(
            {whole.devices[device].slot for device in devices}
        ),
        eligibility=eligibility or Renumbered(whole.eligibility, devices, counter_at),
    )
    return Subproblem(problem, nodes, devices, kept)


def places(numbers: Iterable[int]) -> dict[int, int]:
    """By number of the whole, the number in a part that keeps these."""
    return {number: place for place, number in enumerate(numbers)}


def with_versions(whole: Problem, devices: Iterable[int]) -> tuple[int, ...]:
    """The devices, then what else generations of their pools publish of them."""
    known = dict.fromkeys(devices)
    if whole.several_versions:
        slots = dict.fromkeys(whole.devices[device].slot for device in known)
        known.update(
            dict.fromkeys(version for slot in slots for version in whole.versions[slot])
        )
    return tuple(known)


def separated(
    problem: Problem,
    devices: Collection[int],
    by_request: Callable[[int], Iterable[int]] = lambda _: (),
) -> list[list[int]]:
    """Devices in groups that never interfere, because they have no resource in common.

    Parameters
    ----------
    by_request
        The counters that allocations of a device can charge by request.
    """
    forest: UnionFind[Hashable] = UnionFind()
    for device in devices:
        counters = (("counter", counter) for counter in by_request(device))
        forest.union(device, *problem.devices[device].resources, *counters)
    return list(grouped((forest[device], device) for device in devices).values())


def cut_alone(
    whole: Problem, demands: Iterable[Demand], node: int
) -> tuple[Problem, list[Demand]]:
    """One node cut out alone, and the demands as they are there: without rules about nodes, or with nowhere to go."""
    here = [
        replace(one, nodes=None if one.nodes is None or node in one.nodes else ())
        for one in demands
    ]
    return cut(whole, [node]).problem, here


def _counter(counter: Counter, number: int, ledger: Ledger | None) -> Counter:
    if ledger is None or ledger.free[number] == counter.free:
        return counter
    return replace(counter, free=ledger.free[number])


def _device(
    device: Device, node_at: Mapping[int, int], counter_at: Mapping[int, int]
) -> Device:
    if not device.consumes and device.nodes is None:
        return device
    nodes = (
        None
        if device.nodes is None
        else frozenset(node_at[node] for node in device.nodes if node in node_at)
    )
    return replace(
        device, consumes=renumbered(device.consumes, counter_at), nodes=nodes
    )


def _node(node: Node, device_at: Mapping[int, int]) -> Node:
    pools = (
        replace(
            pool,
            devices=tuple([device_at[one] for one in pool.devices if one in device_at]),
        )
        for pool in node.pools
    )
    return Node(node.name, tuple(pools))


# ----------------------------------------------------------------------------
# The claims of a demand that are still open, when other claims under the same
# constraints have devices already.

Granted = Mapping[ClaimKey, tuple[int, Sequence[tuple[int, int, int]]]]
"""The node from which each claim got something, and what: request, alternative and device, all by index."""

_Values = frozenset[Scalar]


def open_claims(
    problem: Problem,
    demand: Demand,
    granted: Granted,
    placed: Mapping[Scope, Mapping[ClaimKey, Demand]],
) -> list[Claim]:
    """The claims that nobody got yet, or can get; what others got counts as held in the scopes of their constraints.

    Where that contradicts a constraint by itself, the answer is one claim with a defect that says so.

    Parameters
    ----------
    placed
        For scopes of groups, the demands that are placed, by key.
    """
    # A defect stays whatever others got: it may be the pod's alone, beside a claim that it shares.
    found = [
        claim for claim in demand.claims if claim.key not in granted or claim.defect
    ]
    if not problem.has_scopes:
        return found
    scopes: dict[Scope, Scope] = {}
    for constraint in (one for claim in demand.claims for one in claim.constraints):
        scope = constraint.scope
        if scope and scope not in scopes:
            mates = (demand, *(placed.get(scope, {}).values() if scope.group else ()))
            got = _granted(
                problem,
                scope,
                {claim.key: claim for mate in mates for claim in mate.claims},
                granted,
            )
            held = held_values(constraint.kind, (*scope.held, *got))
            if held is None:
                what = f"{constraint.kind.value} {constraint.attribute} over several claims"
                defect = f"{demand.key}: {what}: devices that are allocated already violate it"
                return [
                    replace(
                        demand.claims[0], requests=(), constraints=(), defect=defect
                    )
                ]
            scopes[scope] = scope._replace(held=held)

    def moved(one: Constraint) -> Constraint:
        return replace(one, scope=scopes[one.scope]) if one.scope else one

    return [
        replace(claim, constraints=tuple(map(moved, claim.constraints)))
        for claim in found
    ]


def held_values(
    kind: ConstraintKind, devices: Iterable[_Values | None]
) -> tuple[_Values, ...] | None:
    """What devices mean for further ones (see `Scope.held`); None if they contradict each other.

    Parameters
    ----------
    devices
        The values of each; None if it lacks the attribute.
    """
    every = list(devices)
    known = [values for values in every if values is not None]
    if len(known) < len(every):
        return None
    match kind:
        case ConstraintKind.MATCH:
            if not known:
                return ()
            common = frozenset[Scalar].intersection(*known)
            # One device alone agrees with itself, also without comparable value.
            return (common,) if common or len(known) == 1 else None
        case ConstraintKind.DISTINCT:
            # At most one device may be without comparable value; it counts as a value of its own.
            value_count = sum(max(1, len(values)) for values in known)
            distinct_count = len(frozenset[Scalar]().union(*known))
            distinct_count += frozenset() in known
            if value_count > distinct_count:
                return None
            return tuple(sorted(known, key=sorted))
        case _:
            assert_never(kind)


def _granted(
    problem: Problem, scope: Scope, claims: Mapping[ClaimKey, Claim], granted: Granted
) -> Iterator[_Values | None]:
    for key, claim in claims.items():
        for constraint in claim.constraints if key in granted else ():
            if constraint.scope == scope:
                for request, choice, device in granted[key][1]:
                    name = claim.requests[request].alternatives[choice].name
                    if constraint.covers(name):
                        yield problem.devices[device].attributes.get(
                            constraint.compared(name)
                        )
