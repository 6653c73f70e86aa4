"""The hub: what is to be placed and what there is to place it on, as plain frozen data.

A `Problem` is compiled from a cluster once and read by both solvers, by the checker and by the writer. It holds no
YAML, no API objects and no CEL. Amounts are integers in nanos (see `dralloc.quantity`), so nothing is ever rounded; a
solver that needs small numbers divides by a common factor of its own.

Things are referred to by their index in the problem's tuples. Which device may serve which alternative is asked through
`Eligibility`, because the answer is lazy: first fit must not evaluate a selector for a device that its search does not
reach (KEP-4381 leaves this to the allocator; upstream evaluates on the way).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Final, Protocol

from dralloc.brief import Brief
from dralloc.budget import Budget
from dralloc.errors import AllocationError
from dralloc.features import ALL_FEATURES, Features
from dralloc.names import ClaimKey, CounterID, DeviceID, PoolID, RequestName
from dralloc.quantity import Quantity
from dralloc.record import record

__all__ = [
    "MAX_RESULTS",
    "NO_GROUPS",
    "Alternative",
    "Capacity",
    "Charge",
    "Claim",
    "Constraint",
    "ConstraintKind",
    "Counter",
    "CounterID",
    "Demand",
    "Device",
    "Eligibility",
    "Node",
    "PoolAccess",
    "PoolState",
    "Problem",
    "Request",
    "Scalar",
    "Usage",
    "counter_draws",
]

MAX_RESULTS: Final = 32
"""Most devices that one claim can get (``AllocationResultsMaxSize`` of resource.k8s.io)."""

NO_GROUPS: Final = ""
"""Stands for the compatibility group of devices that declare none."""

Scalar = tuple[str, bool | int | str]
"""One attribute value with the name of its type, so that ``True``, ``1`` and ``"1"`` stay different."""


@record
class Counter:
    """A shared counter as one set of slices publishes it.

    Parameters
    ----------
    id
        Its name. While a pool is being updated, two generations can publish a counter of the same name.
    total
        The published value, in nanos.
    free
        What allocated claims leave of it, in nanos; negative if they hold more than there is.
    group
        Index of the group of slices that publishes it. As long as one counter of a group is overdrawn, no device
        that consumes counters of the group can be allocated (upstream behaviour).
    """

    id: CounterID
    total: int
    free: int
    group: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """A capacity of a device. ``consumable`` is false for a capacity that allocations never use up."""

    name: str
    total: int
    consumable: bool = True


@record
class Device:
    """A device as one slice publishes it.

    Parameters
    ----------
    id
        Driver, pool and device name.
    slot
        Index of the physical device: the versions of one device in two generations of a pool share it.
    group
        Index of the group of slices that the device belongs to (see `Counter`).
    shareable
        Whether it allows multiple allocations (KEP-5075).
    capacity
        Its capacities by name.
    consumes
        Index of each counter that it consumes while it is in use, with the fixed amount in nanos (KEP-4815).
    attributes
        Values by qualified name, of the attributes that some constraint names: one for a scalar, any number for a
        list. Absent if the device lacks the attribute; empty if its type cannot be compared, in which case it agrees
        with no other device (and is different from comparable ones).
    nodes
        Indices of the nodes that reach it, where that is said per device; None if its slice says it.
    binds_to_node
        Whether, once allocated, only the node that it was allocated for can use it.
    compatibility
        For each counter set on which any device declares compatibility groups, and that this one draws on: the set's
        index, and this device's groups there. What is in use on a set must have a group in common (KEP-5963). Devices
        without groups are compatible among themselves: they are in the group `NO_GROUPS`.
    """

    id: DeviceID
    slot: int
    group: int
    shareable: bool
    capacity: Mapping[str, Capacity]
    consumes: tuple[tuple[int, int], ...]
    attributes: Mapping[str, frozenset[Scalar]]
    nodes: frozenset[int] | None
    binds_to_node: bool = False
    compatibility: tuple[tuple[int, frozenset[str]], ...] = ()


class PoolState(Enum):
    """Whether a pool can be used from a node."""

    USABLE = "usable"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class PoolAccess:
    """A pool as one node sees it: the devices to search, in order. Unusable pools have none."""

    id: PoolID
    state: PoolState
    devices: tuple[int, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its pools in search order."""

    name: str
    pools: tuple[PoolAccess, ...]

    def devices(self) -> Iterator[int]:
        """Every device that the slices offer to this node, in search order."""
        for pool in self.pools:
            yield from pool.devices

    def pools_in(self, state: PoolState) -> Iterator[PoolAccess]:
        """The pools in that state, in search order."""
        return (pool for pool in self.pools if pool.state is state)


@dataclass(frozen=True, slots=True)
class Alternative:
    """What one ``exactly`` or one entry of ``firstAvailable`` asks for (KEP-4816).

    Parameters
    ----------
    index
        Its place among all alternatives of the problem: the key of `Eligibility`.
    name
        ``request`` or ``request/sub``.
    rank
        0 for ``exactly`` and for the first entry of ``firstAvailable``, then 1, 2, ...
    count
        How many devices; None for allocation mode ``All``.
    admin
        Whether it asks for admin access.
    defect
        Why it can never be allocated (unknown class, feature off, ...): upstream's fatal error; empty if there is none.
    """

    index: int
    name: RequestName
    rank: int
    count: int | None
    admin: bool = False
    defect: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a claim: exactly one of its alternatives is to be served."""

    name: str
    alternatives: tuple[Alternative, ...]


class ConstraintKind(Enum):
    """What a constraint asks of the attribute's values on the devices that it covers."""

    MATCH = "matchAttribute"
    DISTINCT = "distinctAttribute"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint over the devices of one claim.

    ``requests`` names the requests and subrequests that it covers; empty covers all.
    """

    kind: ConstraintKind
    attribute: str
    requests: frozenset[str] = frozenset()

    def covers(self, name: RequestName) -> bool:
        """Whether devices for that request (or subrequest) are subject to the constraint (KEP-4816)."""
        return not self.requests or name.request in self.requests or str(name) in self.requests


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim without allocation. ``defect`` is a fatal error of the claim as a whole, found after its requests."""

    key: ClaimKey
    uid: str
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...] = ()
    defect: str = ""


@dataclass(frozen=True, slots=True)
class Demand:
    """Claims that must be allocated together on one node: those of a pod, or one that no pod uses.

    Parameters
    ----------
    key
        The pod, or the claim if no pod uses it.
    claims
        The claims to allocate, in order. A claim that several pods use is in the demand of each of them: who is placed
        first allocates it, the others have to go where its devices can be reached.
    priority
        The pod's priority; 0 for a claim without pod.
    weight
        What placing it is worth beside other demands: a positive integer.
    nodes
        Indices of the nodes it may go to, in search order; None for all.
    gang
        Name of the gang; the demands of one gang are placed all or none. Empty for none.
    """

    key: ClaimKey
    claims: tuple[Claim, ...]
    priority: int = 0
    weight: int = 1
    nodes: tuple[int, ...] | None = None
    gang: str = ""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one allocation of a device to an alternative takes, beside the device's fixed counters.

    Parameters
    ----------
    capacity
        Amount in nanos per capacity of a shareable device (KEP-5075); empty on a dedicated device.
    counters
        Counters charged by request, with amounts in nanos (KEP-5941).
    recorded
        The amounts as ``consumedCapacity`` of the result, from which usage can be rebuilt.
    """

    capacity: tuple[tuple[str, int], ...] = ()
    counters: tuple[tuple[int, int], ...] = ()
    recorded: tuple[tuple[str, Quantity], ...] = ()


def counter_draws(device: Device, charge: Charge, *, opening: bool) -> Iterable[tuple[int, int]]:
    """How much one allocation of a device draws on each counter, by index and in nanos.

    Parameters
    ----------
    charge
        What the alternative takes by request (KEP-5941).
    opening
        Whether it brings the device into use, which draws the fixed amounts (KEP-4815). A counter can be drawn on both
        ways; the amounts add up.
    """
    fixed = device.consumes if opening else ()
    if not charge.counters:
        return fixed
    drawn = dict(fixed)
    for index, amount in charge.counters:
        drawn[index] = drawn.get(index, 0) + amount
    return drawn.items()


class Eligibility(Protocol):
    """Which device may serve which alternative, whatever else is in use. Answers are worked out when asked, once."""

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        """Whether class and request selectors accept the device; a CEL failure is the error that upstream raises."""

    def admits(self, alternative: int, device: int) -> bool:
        """Whether the device lets the alternative in: its taints are tolerated, and no feature that it needs is off."""

    def charge(self, alternative: int, device: int) -> Charge | None:
        """What an allocation takes; None if the device lacks a requested capacity or a request policy forbids it."""

    def kind(self, alternative: int) -> Hashable:
        """Alternatives of one kind get the same answers for every device, but for who is named in an error."""

    def look(self, device: int) -> Hashable:
        """Devices of one look get the same answers for every alternative, but for who is named in an error."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What allocated claims hold, by the device's slot.

    ``held``: devices that one claim has for itself. ``shares``: number of allocations of shareable devices.
    ``consumed``: amounts by capacity name on shareable devices, in nanos.
    ``compatibility``: by index of a counter set in use, the groups that all devices there have in common (KEP-5963).
    """

    held: frozenset[int]
    shares: Mapping[int, int]
    consumed: Mapping[int, Mapping[str, int]]
    compatibility: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def of(self, slots: Set[int]) -> Usage:
        """What is held of these slots."""
        return Usage(
            self.held & slots,
            {slot: self.shares[slot] for slot in self.shares.keys() & slots},
            {slot: self.consumed[slot] for slot in self.consumed.keys() & slots},
            self.compatibility,
        )


@dataclass(frozen=True, repr=False)
class Problem(Brief):
    """Everything both solvers need to know.

    Demands and nodes are in the order of first fit, which does not look at budgets.
    """

    demands: tuple[Demand, ...]
    nodes: tuple[Node, ...]
    devices: tuple[Device, ...]
    counters: tuple[Counter, ...]
    usage: Usage
    eligibility: Eligibility
    features: Features = ALL_FEATURES
    budgets: tuple[Budget, ...] = ()

    def candidate_nodes(self, demand: Demand) -> tuple[int, ...]:
        """Indices of the nodes that the demand may go to, in search order."""
        return self.all_nodes if demand.nodes is None else demand.nodes

    @cached_property
    def all_nodes(self) -> tuple[int, ...]:
        """Indices of all nodes."""
        return tuple(range(len(self.nodes)))

    def on_node(self, device: int, node: int) -> bool:
        """Whether a device that the slices offer to the node is reachable from it by its own node selection."""
        nodes = self.devices[device].nodes
        return nodes is None or node in nodes

    def usable_from(self, device: int, home: int, node: int) -> bool:
        """Whether an allocated device can be used from a node: its home always, others if they reach the device."""
        return node == home or node in self.reaching(device)

    def reaching(self, device: int) -> frozenset[int]:
        """Indices of the nodes that can use the device when it is allocated, whatever its home is."""
        known = self._reaching
        if device not in known:
            nodes: Iterable[int] = ()
            if not self.devices[device].binds_to_node:
                accesses = self._accesses[self.devices[device].id.pool_id]
                nodes = (node for devices, seeing in accesses if device in devices for node in seeing)
            known[device] = frozenset(node for node in nodes if self.on_node(device, node))
        return known[device]

    @cached_property
    def _reaching(self) -> dict[int, frozenset[int]]:
        return {}

    @cached_property
    def _accesses(self) -> Mapping[PoolID, Sequence[tuple[tuple[int, ...], list[int]]]]:
        """For each pool the devices that it offers, with the nodes that it offers them to."""
        found: dict[PoolID, dict[int, tuple[tuple[int, ...], list[int]]]] = defaultdict(dict)
        for number, node in enumerate(self.nodes):
            for pool in node.pools:
                # Nodes that see the same have the same object.
                found[pool.id].setdefault(id(pool.devices), (pool.devices, []))[1].append(number)
        return defaultdict(tuple, {pool: tuple(each.values()) for pool, each in found.items()})

    @cached_property
    def several_versions(self) -> frozenset[int]:
        """The slots with more than one device behind them: those of pools that are being updated."""
        if len({device.slot for device in self.devices}) == len(self.devices):
            return frozenset()
        return frozenset(slot for slot, indices in self.versions.items() if len(indices) > 1)

    @cached_property
    def has_compatibility_groups(self) -> bool:
        """Whether what may be in use together depends on compatibility groups anywhere."""
        return any(device.compatibility for device in self.devices)

    @cached_property
    def versions(self) -> Mapping[int, tuple[int, ...]]:
        """The devices behind each slot: more than one while a pool is being updated."""
        slots: dict[int, list[int]] = {}
        for index, device in enumerate(self.devices):
            slots.setdefault(device.slot, []).append(index)
        return {slot: tuple(indices) for slot, indices in slots.items()}
