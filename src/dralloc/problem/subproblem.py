"""Problems made out of a problem: a part of it, copies of its nodes, and the claims that are still open.

`cut` cuts a part out under new numbers, and `Subproblem` leads back. The part answers as the whole would, as long as
nobody outside of it takes anything: with the chosen devices come the other versions of them while a pool is updated
(they are charged together), the counters that can stand in their way, what is in use of all that, and what is in use
outside of it on the same counter sets (KEP-5963).
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
    Set,
)
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, assert_never, cast

from networkx.utils import UnionFind

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey, DeviceID, PoolID
from dralloc.problem.indices import (
    AlternativeIndex,
    CounterIndex,
    DeviceIndex,
    IndexT,
    NodeIndex,
    SlotIndex,
    grouped,
    indices,
    numbered,
)
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import Eligibility, Problem, Renumbered, renumbered
from dralloc.problem.requests import (
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    Scope,
)
from dralloc.problem.supply import (
    Counter,
    Device,
    Node,
    PoolAccess,
    Scalar,
    Usage,
)

__all__ = [
    "ONLY_NODE",
    "InUse",
    "PartInUse",
    "Subproblem",
    "cut",
    "cut_alone",
    "held_values",
    "open_claims",
    "places",
    "replicate",
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
    nodes: Sequence[NodeIndex]
    devices: Sequence[DeviceIndex]
    counters: Sequence[CounterIndex]


class InUse(Protocol):
    """What is in use of a problem, as `dralloc.problem.ledger.Ledger` knows it."""

    @property
    def free(self) -> _Amounts:
        """By counter, what is left."""

    def usage_of(self, slots: Set[SlotIndex], /) -> Usage:
        """Return the usage of these slots."""


class _Amounts(Protocol):
    def __getitem__(self, counter: CounterIndex, /) -> int: ...


@dataclass(frozen=True, slots=True)
class PartInUse:
    """What is in use of a part of a problem: of a ledger, what a cut needs, so that it can be made elsewhere.

    Parameters
    ----------
    free
        By counter of the part, what is left.
    usage
        That of all slots of the part.
    """

    free: Mapping[CounterIndex, int]
    usage: Usage

    @classmethod
    def of(
        cls,
        source: Problem,
        nodes: Collection[NodeIndex],
        ledger: Ledger,
        withheld: Set[SlotIndex] = frozenset(),
    ) -> PartInUse:
        """Note what is in use of these nodes, and of all that comes with them.

        Parameters
        ----------
        withheld
            Devices that nobody in the part may have anything of, or anything more: they count as held.
        """
        devices = _devices_of(source, nodes)
        counters = _counters_of(source, devices)
        slots = {source.devices[device].slot for device in devices}
        usage = ledger.usage_of(slots)
        return cls(
            {counter: ledger.free[counter] for counter in counters},
            replace(usage, held=usage.held | (slots & withheld)),
        )

    def usage_of(self, _slots: Set[SlotIndex], /) -> Usage:
        """Return the usage of the slots, which are all of the part."""
        return self.usage


def cut(  # noqa: PLR0913 - what is kept, by sort
    source: Problem,
    nodes: Sequence[NodeIndex],
    *,
    devices: Sequence[DeviceIndex] | None = None,
    counters: Iterable[CounterIndex] | None = None,
    demands: Iterable[Demand] = (),
    eligibility: Eligibility | None = None,
    ledger: InUse | None = None,
) -> Subproblem:
    """Cut some nodes out of a problem.

    Parameters
    ----------
    nodes
        In the order that they get.
    devices
        Those that are kept, in the order that they get; if None, all that these nodes are offered, but for those that
        none of them reaches. Must be closed under `with_versions`.
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
        devices = _devices_of(source, nodes)
    # Also counters that none of the devices consumes: one that is overdrawn closes the devices of its group.
    if counters is None:
        counters = _counters_of(source, devices)
    counters = tuple(counters)
    node_at, device_at, counter_at = (
        places(nodes),
        places(devices),
        places(counters),
    )
    problem = replace(
        source,
        demands=tuple(demands),
        nodes=tuple(_node(source.nodes[node], device_at) for node in nodes),
        devices=tuple(
            _device(source.devices[device], node_at, counter_at)
            for device in devices
        ),
        counters=tuple(
            _counter(source.counters[counter], counter, ledger)
            for counter in counters
        ),
        usage=(ledger or source).usage_of(
            {source.devices[device].slot for device in devices}
        ),
        eligibility=eligibility
        or Renumbered(source.eligibility, devices, counter_at),
    )
    return Subproblem(problem, nodes, devices, counters)


def _devices_of(
    source: Problem, nodes: Collection[NodeIndex]
) -> tuple[DeviceIndex, ...]:
    """Return all devices that some nodes are offered, and that one of them reaches."""
    chosen = frozenset(nodes)
    offered = dict.fromkeys(
        device for node in nodes for device in source.nodes[node].devices()
    )
    # What a device takes of the only node that reaches it (KEP-5517) is not there without that node.
    reached = [
        device
        for device in offered
        if (reaching := source.devices[device].nodes) is None
        or not chosen.isdisjoint(reaching)
    ]
    return with_versions(source, reached)


def _counters_of(
    source: Problem, devices: Iterable[DeviceIndex]
) -> list[CounterIndex]:
    """Return the counters of the devices' groups, and those of pods."""
    groups = dict.fromkeys(source.devices[device].group for device in devices)
    of_devices = [
        counter
        for group in groups
        for counter in source.counters_of.get(group, ())
    ]
    return sorted((*of_devices, *source.pod_counters))


def places(numbers: Iterable[IndexT]) -> dict[IndexT, IndexT]:
    """Return, by index in the whole, the index in a part that keeps these."""
    place_of = {
        whole_index: part_index
        for part_index, whole_index in enumerate(numbers)
    }
    return cast("dict[IndexT, IndexT]", place_of)


def with_versions(
    problem: Problem, devices: Iterable[DeviceIndex]
) -> tuple[DeviceIndex, ...]:
    """The devices, then what else generations of their pools publish of them."""
    versions = dict.fromkeys(devices)
    if problem.several_versions:
        slots = dict.fromkeys(
            problem.devices[device].slot for device in versions
        )
        versions.update(
            dict.fromkeys(
                version for slot in slots for version in problem.versions[slot]
            )
        )
    return tuple(versions)


def separated(
    problem: Problem,
    devices: Collection[DeviceIndex],
    by_request: Callable[[DeviceIndex], Iterable[int]] = lambda _: (),
) -> list[list[DeviceIndex]]:
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
    return list(
        grouped((forest[device], device) for device in devices).values()
    )


ONLY_NODE: Final = NodeIndex(0)
"""The node of a part with one node."""


def cut_alone(
    problem: Problem, demands: Iterable[Demand], node: NodeIndex
) -> tuple[Problem, list[Demand]]:
    """Cut one node out alone; the demands there are without rules about nodes, or have nowhere to go."""
    local_demands = []
    for demand in demands:
        is_allowed = demand.nodes is None or node in demand.nodes
        local_demands.append(replace(demand, nodes=None if is_allowed else ()))
    return cut(problem, [node]).problem, local_demands


def _counter(
    counter: Counter, counter_index: CounterIndex, ledger: InUse | None
) -> Counter:
    if ledger is None or ledger.free[counter_index] == counter.free:
        return counter
    return replace(counter, free=ledger.free[counter_index])


def _device(
    device: Device,
    node_at: Mapping[NodeIndex, NodeIndex],
    counter_at: Mapping[CounterIndex, CounterIndex],
) -> Device:
    if not device.consumes and device.nodes is None:
        return device
    nodes = (
        None
        if device.nodes is None
        else frozenset(
            node_at[node] for node in device.nodes if node in node_at
        )
    )
    return replace(
        device, consumes=renumbered(device.consumes, counter_at), nodes=nodes
    )


def _node(node: Node, device_at: Mapping[DeviceIndex, DeviceIndex]) -> Node:
    pools = []
    for pool in node.pools:
        devices = [
            device_at[device] for device in pool.devices if device in device_at
        ]
        pools.append(replace(pool, devices=tuple(devices)))
    return Node(node.name, tuple(pools))


# ----------------------------------------------------------------------------
# The claims of a demand that are still open, when other claims under the same
# constraints have devices already.

Granted = Mapping[ClaimKey, tuple[int, Sequence[tuple[int, int, DeviceIndex]]]]
"""The node from which each claim got something, and what: request, alternative and device, all by index."""

_Values = frozenset[Scalar]


def open_claims(
    problem: Problem,
    demand: Demand,
    granted: Granted,
    placed: Mapping[Scope, Mapping[ClaimKey, Demand]],
) -> list[Claim]:
    """The claims that are still to be granted, or can be; earlier grants count as held in their constraints' scopes.

    Where that contradicts a constraint by itself, the answer is one claim with a defect that says so.

    Parameters
    ----------
    placed
        For scopes of groups, the demands that are placed, by key.
    """
    # A defect stays whatever others got: it may be the pod's alone, beside a claim that it shares.
    unserved = [
        claim
        for claim in demand.claims
        if claim.key not in granted or claim.defect
    ]
    if not problem.has_scopes:
        return unserved
    scopes: dict[Scope, Scope] = {}
    for constraint in _constraints(demand):
        scope = constraint.scope
        if scope and scope not in scopes:
            members = [demand]
            if scope.group:
                members += placed.get(scope, {}).values()
            claims = {
                claim.key: claim
                for member in members
                for claim in member.claims
            }
            granted_values = _granted(problem, scope, claims, granted)
            held = held_values(constraint.kind, (*scope.held, *granted_values))
            if held is None:
                rule = f"{constraint.kind.value} {constraint.attribute} over several claims"
                defect = f"{demand.key}: {rule}: devices that are allocated already violate it"
                return [
                    replace(
                        demand.claims[0],
                        requests=(),
                        constraints=(),
                        defect=defect,
                        # The first claim may stand for the node, of which this one wants nothing.
                        is_synthetic=False,
                    )
                ]
            scopes[scope] = scope._replace(held=held)

    def narrowed(constraint: Constraint) -> Constraint:
        if constraint.scope is None:
            return constraint
        return replace(constraint, scope=scopes[constraint.scope])

    return [
        replace(claim, constraints=tuple(map(narrowed, claim.constraints)))
        for claim in unserved
    ]


def _constraints(demand: Demand) -> Iterator[Constraint]:
    for claim in demand.claims:
        yield from claim.constraints


def held_values(
    kind: ConstraintKind, devices: Iterable[_Values | None]
) -> tuple[_Values, ...] | None:
    """Return what the values on granted devices leave to further ones (see `Scope.held`); None if they conflict.

    Parameters
    ----------
    devices
        The values of each; None if it lacks the attribute.
    """
    value_sets: list[_Values] = []
    for values in devices:
        if values is None:
            return None
        value_sets.append(values)
    match kind:
        case ConstraintKind.MATCH:
            if not value_sets:
                return ()
            common = frozenset[Scalar].intersection(*value_sets)
            # One device alone agrees with itself, also without comparable value.
            return (common,) if common or len(value_sets) == 1 else None
        case ConstraintKind.DISTINCT:
            # At most one device may be without comparable value; it counts as a value of its own.
            value_count = sum(max(1, len(values)) for values in value_sets)
            distinct_count = len(frozenset[Scalar]().union(*value_sets))
            distinct_count += frozenset() in value_sets
            if value_count > distinct_count:
                return None
            return tuple(sorted(value_sets, key=sorted))
        case _:
            assert_never(kind)


def _granted(
    problem: Problem,
    scope: Scope,
    claims: Mapping[ClaimKey, Claim],
    granted: Granted,
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


# ----------------------------------------------------------------------------
# Nodes that are not there yet: copies of some nodes of a problem.


def replicate(parts: Sequence[Problem]) -> Problem:
    """Return one problem made of parts with one node each; a part may occur several times.

    Parameters
    ----------
    parts
        Cut out of one problem (see `dralloc.problem.subproblem`); nothing of them is in use.

    Returns
    -------
    A problem without demands. Its nodes are those of the parts in order, each with pools of its own; their devices
    follow one another as in the parts.
    """
    copies = _Copies()
    for part in parts:
        copies.add(part)
    return Problem(
        demands=(),
        nodes=tuple(copies.nodes),
        devices=tuple(copies.devices),
        counters=tuple(copies.counters),
        usage=Usage(frozenset(), {}, {}),
        eligibility=copies,
        features=parts[0].features,
    )


@dataclass
class _Copies:
    """The copies so far, and the eligibility of them all: each part answers for its own devices."""

    nodes: list[Node] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    origins: list[tuple[Renumbered, DeviceIndex]] = field(default_factory=list)
    """By device: who answers for it, and its index there."""
    numbers: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """Slots, groups and counter sets: what each of a copy is called here."""

    def add(self, part: Problem) -> None:
        """Add the node of a part under new names."""
        # What the part numbers from 0 on comes after everything that is there already.
        copy, devices, counters = (
            len(self.nodes),
            len(self.devices),
            len(self.counters),
        )
        moved = {
            counter_index: CounterIndex(counters + counter_index)
            for counter_index in indices(part.counters)
        }
        offers = Renumbered(part.eligibility, indices(part.devices), moved)
        for index, device in numbered(part.devices):
            self.devices.append(self._device(device, copy, counters))
            self.origins.append((offers, index))
        for counter in part.counters:
            name = counter.id._replace(pool=_again(counter.id.pool, copy))
            self.counters.append(
                Counter(
                    name,
                    counter.total,
                    counter.free,
                    self._number("group", copy, counter.group),
                )
            )
        [node] = part.nodes
        pools = []
        for pool in node.pools:
            pool_id = PoolID(pool.id.driver, _again(pool.id.pool, copy))
            shifted = tuple(
                DeviceIndex(devices + device) for device in pool.devices
            )
            pools.append(PoolAccess(pool_id, pool.state, shifted, pool.reason))
        self.nodes.append(Node(_again(node.name, copy), tuple(pools)))

    def _device(self, device: Device, copy: int, counters: int) -> Device:
        return device.renumbered(
            lambda sort, index: self._number(sort, copy, index),
            lambda counter: CounterIndex(counters + counter),
            id=DeviceID(
                device.id.driver, _again(device.id.pool, copy), device.id.device
            ),
        )

    def _number(self, sort: str, copy: int, index: int) -> int:
        return self.numbers.setdefault((sort, copy, index), len(self.numbers))

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        offers, index = self.origins[device]
        return offers.selects(alternative, index)

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        offers, index = self.origins[device]
        return offers.admits(alternative, index)

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        offers, index = self.origins[device]
        return offers.charge(alternative, index)

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        # All parts are cut out of one problem, so any of them answers for alternatives.
        return self.origins[0][0].request_key(alternative)

    def device_key(self, device: DeviceIndex) -> Hashable:
        offers, index = self.origins[device]
        return offers.device_key(index)


def _again(name: str, copy: int) -> str:
    return f"{name} (copy {copy + 1})"
