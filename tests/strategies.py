"""Hypothesis strategies: whatever the tests draw at random is drawn here.

`problems` draws small problems in which every feature can meet every other, and in which things are scarce: few
attribute values, tight capacities, counters that not all devices can have at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

from hypothesis import strategies as st

from dralloc.errors import AllocationError, FatalError
from dralloc.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem import (
    Alternative,
    Capacity,
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    Counter,
    CounterID,
    Demand,
    Device,
    Node,
    PoolAccess,
    PoolState,
    Problem,
    Request,
    Scalar,
    Usage,
)
from dralloc.quantity import Quantity

__all__ = ["ATTRIBUTES", "Inventory", "TableEligibility", "demand_lists", "eligibilities", "inventories", "problems"]

POOLS = (
    PoolID("gpu.example.com", "pool-0"),
    PoolID("gpu.example.com", "pool-1"),
    PoolID("nic.example.com", "pool-0"),
)
ATTRIBUTES = ("example.com/numa", "example.com/root")
CAPACITIES = ("memory", "bandwidth")
DRIVEN = "power"
"""Name under which requests ask for a counter's amount (KEP-5941)."""


def _values(*numbers: int) -> frozenset[Scalar]:
    return frozenset(("int", number) for number in numbers)


VALUES = [_values(0), _values(0), _values(1), _values(1), _values(0, 1), _values(1, 2), _values(), None]
"""What a device can carry under an attribute: scalars, lists, something that cannot be compared, nothing."""


@dataclass(frozen=True)
class TableEligibility:
    """An `Eligibility` that is known beforehand, by (alternative, device); what is not listed is unproblematic."""

    selected: Mapping[tuple[int, int], bool | AllocationError] = field(default_factory=dict)
    refused: frozenset[tuple[int, int]] = frozenset()
    charges: Mapping[tuple[int, int], Charge | None] = field(default_factory=dict)

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        return self.selected.get((alternative, device), True)

    def admits(self, alternative: int, device: int) -> bool:
        return (alternative, device) not in self.refused

    def charge(self, alternative: int, device: int) -> Charge | None:
        return self.charges.get((alternative, device), Charge())


class Inventory(NamedTuple):
    """What there is to allocate. ``driven``: the counter that requests for a device charge, by device (KEP-5941)."""

    nodes: tuple[Node, ...]
    devices: tuple[Device, ...]
    counters: tuple[Counter, ...]
    usage: Usage
    driven: Mapping[int, int]


class Edition(NamedTuple):
    """One generation of a pool, with the nodes that see it. Its counters are still unused."""

    pool: PoolID
    seen_by: frozenset[int]
    devices: tuple[Device, ...]
    counters: tuple[Counter, ...]


def _rarely() -> st.SearchStrategy[bool]:
    return st.integers(0, 7).map(lambda number: number == 7)


@st.composite
def _devices(draw: st.DrawFn, place: tuple[DeviceID, int, int], counters: range, nodes: int | None) -> Device:
    """A device with that name, slot and group.

    ``counters`` are those it may consume, ``nodes`` is how many there are if the device names its own.
    """
    name, slot, group = place
    names = draw(st.sampled_from([CAPACITIES[:1], CAPACITIES[:1], CAPACITIES, ()]))
    totals = [Capacity(name, draw(st.integers(1, 4)), not draw(_rarely())) for name in names]
    values = {attribute: draw(st.sampled_from(VALUES)) for attribute in ATTRIBUTES}
    return Device(
        id=name,
        slot=slot,
        group=group,
        shareable=draw(st.booleans()),
        capacity={capacity.name: capacity for capacity in totals},
        consumes=tuple((counter, draw(st.integers(1, 2))) for counter in counters if draw(st.booleans())),
        attributes={attribute: known for attribute, known in values.items() if known is not None},
        nodes=None if nodes is None else draw(st.frozensets(st.integers(0, nodes - 1))),
    )


@st.composite
def _editions(draw: st.DrawFn, pool: PoolID, slots: range, nodes: int, first: tuple[int, int]) -> list[Edition]:
    """A pool, rarely in two generations; ``first`` are the next free indices of groups and counters."""
    group, offset = first
    reach = draw(
        st.sampled_from([*({node} for node in range(nodes)), set(range(nodes)), {0, nodes - 1}]).map(frozenset)
    )
    own_nodes = nodes if draw(_rarely()) else None
    counters = tuple(
        Counter(CounterID(*pool, "set", f"counter-{index}"), total, total, group)
        for index, total in enumerate(draw(st.lists(st.integers(1, 4), max_size=2)))
    )
    span = range(offset, offset + len(counters))
    devices = tuple(
        draw(_devices((DeviceID(*pool, f"device-{index}"), slot, group), span, own_nodes))
        for index, slot in enumerate(slots)
    )
    old = Edition(pool, reach, devices, counters)
    if len(reach) < 2 or draw(st.integers(0, 2)) < 2:
        return [old]
    return _updated(old, draw(st.sampled_from(sorted(reach))))


def _updated(old: Edition, node: int) -> list[Edition]:
    """The pool while it is updated: the node sees the next generation, with less capacity and other counters."""
    shift = len(old.counters)
    devices = tuple(
        replace(
            device,
            group=device.group + 1,
            capacity={name: replace(known, total=max(1, known.total - 1)) for name, known in device.capacity.items()},
            consumes=tuple((counter + shift, amount) for counter, amount in device.consumes),
        )
        for device in old.devices
    )
    counters = tuple(replace(counter, group=counter.group + 1) for counter in old.counters)
    return [old._replace(seen_by=old.seen_by - {node}), Edition(old.pool, frozenset({node}), devices, counters)]


@st.composite
def _access(draw: st.DrawFn, editions: Sequence[Edition], node: int) -> Node:
    """The pools as one node sees them; now and then one is incomplete or invalid."""
    pools, start = [], 0
    for edition in editions:
        indices = tuple(range(start, start + len(edition.devices)))
        start += len(indices)
        if node not in edition.seen_by:
            continue
        state = draw(st.sampled_from([PoolState.USABLE] * 10 + [PoolState.INCOMPLETE, PoolState.INVALID]))
        usable = state is PoolState.USABLE
        pools.append(PoolAccess(edition.pool, state, indices if usable else (), "" if usable else "drawn so"))
    return Node(f"node-{node}", tuple(pools))


@st.composite
def _usages(draw: st.DrawFn, devices: Sequence[Device]) -> Usage:
    held: set[int] = set()
    shares: dict[int, int] = {}
    consumed: dict[int, dict[str, int]] = {}
    least: dict[tuple[int, str], int] = {}
    for device in devices:
        for known in device.capacity.values():
            key = device.slot, known.name
            least[key] = min(known.total, least.get(key, known.total))
    for slot, shareable in {device.slot: device.shareable for device in devices}.items():
        if not draw(_rarely()):
            continue
        if not shareable:
            held.add(slot)
            continue
        shares[slot] = draw(st.integers(1, 2))
        consumed[slot] = {name: draw(st.integers(0, total)) for (of, name), total in least.items() if of == slot}
    return Usage(frozenset(held), shares, consumed)


def _in_use(device: Device, usage: Usage) -> bool:
    return device.slot in usage.held or device.slot in usage.shares


@st.composite
def inventories(draw: st.DrawFn, max_devices: int = 6) -> Inventory:
    """Draw one to three nodes, their pools, and what is in use already."""
    nodes = draw(st.integers(1, 3))
    editions: list[Edition] = []
    for pool in POOLS[: draw(st.integers(1, len(POOLS)))]:
        room = max_devices - sum(len(edition.devices) for edition in editions)
        if room == 0:
            break
        size = draw(st.integers(1, min(room, 3)))
        slots = len({device.slot for edition in editions for device in edition.devices})
        first = len(editions), sum(len(edition.counters) for edition in editions)
        drawn: list[Edition] = draw(_editions(pool, range(slots, slots + size), nodes, first))
        editions += drawn if len(drawn) * size <= room else drawn[:1]
    devices = tuple(device for edition in editions for device in edition.devices)
    counters = [counter for edition in editions for counter in edition.counters]
    usage = draw(_usages(devices))
    driven = draw(_driven(devices, counters))
    return Inventory(
        nodes=tuple(draw(_access(editions, node)) for node in range(nodes)),
        devices=devices,
        counters=draw(_left(counters, devices, usage, driven)),
        usage=usage,
        driven=driven,
    )


@st.composite
def _driven(draw: st.DrawFn, devices: Sequence[Device], counters: Sequence[Counter]) -> dict[int, int]:
    """Which devices charge a counter of their group by request."""
    chosen = {}
    for index, device in enumerate(devices):
        own = [number for number, counter in enumerate(counters) if counter.group == device.group]
        charged = draw(_rarely())
        if own and charged:
            chosen[index] = draw(st.sampled_from(own))
    return chosen


@st.composite
def _left(
    draw: st.DrawFn, counters: Sequence[Counter], devices: Sequence[Device], usage: Usage, driven: Mapping[int, int]
) -> tuple[Counter, ...]:
    """The counters minus what the devices in use consume; that can be more than there is."""
    free = [counter.total for counter in counters]
    for index, device in enumerate(devices):
        if not _in_use(device, usage):
            continue
        for counter, amount in device.consumes:
            free[counter] -= amount
        if index in driven:
            free[driven[index]] -= draw(st.integers(1, 2))
    return tuple(replace(counter, free=left) for counter, left in zip(counters, free, strict=True))


@st.composite
def _requests(draw: st.DrawFn, name: str, numbers: Iterator[int]) -> Request:
    """``exactly``, or ``firstAvailable`` with up to three entries."""
    entries = draw(st.sampled_from([1, 1, 2, 3]))
    counts = [draw(st.sampled_from([1, 1, 1, 2, 2, 2, 3, None])) for _ in range(entries)]
    return Request(
        name,
        tuple(
            Alternative(
                index=next(numbers),
                name=RequestName(name, "abc"[rank] if entries > 1 else ""),
                rank=rank,
                count=counts[rank],
                admin=entries == 1 and draw(_rarely()),
                defect="drawn so" if draw(_rarely()) and draw(_rarely()) else "",
            )
            for rank in range(entries)
        ),
    )


@st.composite
def _claims(draw: st.DrawFn, name: str, numbers: Iterator[int]) -> Claim:
    requests = tuple(draw(_requests(f"r{index}", numbers)) for index in range(draw(st.integers(1, 2))))
    names = [str(entry.name) for request in requests for entry in request.alternatives]
    covers = st.sampled_from(sorted({*names, *(request.name for request in requests)}))
    covered = st.just(frozenset[str]()) | st.frozensets(covers, max_size=2)
    constraint = st.builds(Constraint, st.sampled_from(ConstraintKind), st.sampled_from(ATTRIBUTES), covered)
    constraints = draw(st.lists(constraint, max_size=2))
    defect = "drawn so" if draw(_rarely()) and draw(_rarely()) else ""
    return Claim(ClaimKey("default", name), f"uid-{name}", requests, tuple(constraints), defect)


@st.composite
def demand_lists(draw: st.DrawFn, nodes: int, max_demands: int = 4) -> tuple[Demand, ...]:
    """Draw pods with one claim or two, some of them bound to certain nodes or to each other."""
    numbers = count()
    return tuple(
        Demand(
            key=ClaimKey("default", f"pod-{index}"),
            claims=tuple(
                draw(_claims(f"claim-{index}-{number}", numbers))
                for number in range(draw(st.sampled_from([1, 1, 1, 2])))
            ),
            priority=(weight := draw(st.integers(1, 3))),
            weight=weight,
            nodes=draw(st.permutations(range(nodes)).map(tuple))[: draw(st.integers(1, nodes))]
            if draw(_rarely())
            else None,
            gang=draw(st.sampled_from(["", "", "", "gang"])),
        )
        for index in range(draw(st.sampled_from(range(1, max_demands + 1))))
    )


@st.composite
def eligibilities(draw: st.DrawFn, demands: Sequence[Demand], inventory: Inventory) -> TableEligibility:
    """Draw what each alternative selects, tolerates and asks for, the same of every device."""
    selected: dict[tuple[int, int], bool | AllocationError] = {}
    refused: set[tuple[int, int]] = set()
    charges: dict[tuple[int, int], Charge | None] = {}
    some = st.frozensets(st.integers(0, len(inventory.devices) - 1), max_size=2)
    for alternative in _alternatives(demands):
        selected |= {(alternative, device): False for device in draw(some)}
        if draw(_rarely()):
            selected |= {(alternative, device): FatalError("drawn so") for device in draw(some)}
            refused |= {(alternative, device) for device in draw(some)}
        asked = draw(st.sampled_from([{}, {}, {}, {"memory": 1}, {"memory": 2}, {"memory": 1, DRIVEN: 2}, {DRIVEN: 2}]))
        for device in range(len(inventory.devices)):
            charge = _charge(inventory.devices[device], inventory.driven.get(device), asked)
            if charge != Charge():
                charges[alternative, device] = charge
    return TableEligibility(selected, frozenset(refused), charges)


def _alternatives(demands: Sequence[Demand]) -> Iterator[int]:
    for demand in demands:
        for claim in demand.claims:
            for request in claim.requests:
                yield from (alternative.index for alternative in request.alternatives)


def _charge(device: Device, driven: int | None, asked: Mapping[str, int]) -> Charge | None:
    """What a request for those amounts takes (KEP-5075): by default everything, never more than there is."""
    if any(
        name != DRIVEN and (name not in device.capacity or amount > device.capacity[name].total)
        for name, amount in asked.items()
    ):
        return None
    taken = {
        name: asked.get(name, capacity.total)
        for name, capacity in device.capacity.items()
        if device.shareable and capacity.consumable
    }
    counters = {} if driven is None else {driven: asked.get(DRIVEN, 1)}
    recorded = taken if driven is None else {**taken, DRIVEN: counters[driven]}
    return Charge(
        capacity=tuple(taken.items()),
        counters=tuple(counters.items()),
        recorded=tuple((name, Quantity(amount)) for name, amount in recorded.items()),
    )


@st.composite
def problems(draw: st.DrawFn, max_demands: int = 4, max_devices: int = 6) -> Problem:
    """Draw a small problem with all features in the mix."""
    inventory = draw(inventories(max_devices))
    demands = draw(demand_lists(len(inventory.nodes), max_demands))
    return Problem(
        demands=demands,
        nodes=inventory.nodes,
        devices=inventory.devices,
        counters=inventory.counters,
        usage=inventory.usage,
        eligibility=draw(eligibilities(demands, inventory)),
    )
