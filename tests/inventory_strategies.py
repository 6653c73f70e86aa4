"""Hypothesis strategies for what there is to allocate: nodes, pools, devices, counters, and what is in use already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from hypothesis import strategies as st

from dralloc.objects.names import DeviceID, PoolID
from dralloc.problem import (
    NO_GROUPS,
    Capacity,
    Counter,
    CounterID,
    CounterIndex,
    Device,
    DeviceIndex,
    Node,
    NodeIndex,
    PoolAccess,
    PoolState,
    Scalar,
    SlotIndex,
    Usage,
)

__all__ = ["ATTRIBUTES", "Inventory", "inventories", "rarely"]

POOLS = (
    PoolID("gpu.example.com", "pool-0"),
    PoolID("gpu.example.com", "pool-1"),
    PoolID("nic.example.com", "pool-0"),
)
ATTRIBUTES = ("example.com/numa", "example.com/root")
CAPACITIES = ("memory", "bandwidth")


def _values(*integers: int) -> frozenset[Scalar]:
    return frozenset(("int", integer) for integer in integers)


VALUES = [
    _values(0),
    _values(0),
    _values(1),
    _values(1),
    _values(0, 1),
    _values(1, 2),
    _values(),
    None,
]
"""What a device can carry under an attribute: scalars, lists, something that cannot be compared, nothing."""

GROUPS = [
    frozenset({NO_GROUPS}),
    frozenset({"a"}),
    frozenset({"b"}),
    frozenset({"a", "b"}),
]
"""Compatibility groups of a device on its pool's counter set."""


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


def rarely() -> st.SearchStrategy[bool]:
    """True once in eight times."""
    return st.integers(0, 7).map(lambda integer: integer == 7)


@st.composite
def _devices(
    draw: st.DrawFn,
    identity: tuple[DeviceID, SlotIndex, int],
    counters: range,
    nodes: int | None,
) -> Device:
    """A device with that name, slot and group.

    ``counters`` are those it may consume, ``nodes`` is how many there are if the device names its own.
    """
    name, slot, group = identity
    names = draw(
        st.sampled_from([CAPACITIES[:1], CAPACITIES[:1], CAPACITIES, ()])
    )
    totals = [
        Capacity(name, draw(st.integers(1, 4)), not draw(rarely()))
        for name in names
    ]
    values = {
        attribute: draw(st.sampled_from(VALUES)) for attribute in ATTRIBUTES
    }
    return Device(
        id=name,
        slot=slot,
        group=group,
        shareable=draw(st.booleans()),
        capacity={capacity.name: capacity for capacity in totals},
        consumes=tuple(
            (CounterIndex(counter), draw(st.integers(1, 2)))
            for counter in counters
            if draw(st.booleans())
        ),
        attributes={
            attribute: known
            for attribute, known in values.items()
            if known is not None
        },
        nodes=None
        if nodes is None
        else draw(st.frozensets(st.integers(0, nodes - 1).map(NodeIndex))),
        binds_to_node=draw(rarely()),
    )


@st.composite
def _editions(
    draw: st.DrawFn,
    pool: PoolID,
    slots: range,
    nodes: int,
    first: tuple[int, int],
) -> list[Edition]:
    """A pool, rarely in two generations; ``first`` are the next free indices of groups and counters."""
    group, offset = first
    reach = draw(
        st.sampled_from(
            [
                *({node} for node in range(nodes)),
                *[set(range(nodes))] * nodes,
                {0, nodes - 1},
            ]
        ).map(frozenset)
    )
    own_nodes = nodes if draw(rarely()) else None
    counters = tuple(
        Counter(
            CounterID(*pool, "set", f"counter-{index}"), total, total, group
        )
        for index, total in enumerate(
            draw(st.lists(st.integers(1, 4), max_size=2))
        )
    )
    span = range(offset, offset + len(counters))
    devices = tuple(
        draw(
            _devices(
                (DeviceID(*pool, f"device-{index}"), SlotIndex(slot), group),
                span,
                own_nodes,
            )
        )
        for index, slot in enumerate(slots)
    )
    if draw(rarely()) and counters:
        devices = tuple(
            replace(
                device, compatibility=((group, draw(st.sampled_from(GROUPS))),)
            )
            for device in devices
        )
    old = Edition(pool, reach, devices, counters)
    if len(reach) < 2 or draw(st.integers(0, 2)) < 2:
        return [old]
    return _updated(old, draw(st.sampled_from(sorted(reach))))


def _updated(old: Edition, node: int) -> list[Edition]:
    """The pool while it is updated: the node sees the next generation, with less capacity and without counters.

    Slices with counters matter to every node, so as soon as a generation has some, nobody is offered an older one.
    """
    devices = tuple(
        replace(
            device,
            group=device.group + 1,
            capacity={
                name: replace(known, total=max(1, known.total - 1))
                for name, known in device.capacity.items()
            },
            consumes=(),
            compatibility=(),
        )
        for device in old.devices
    )
    return [
        old._replace(seen_by=old.seen_by - {node}),
        Edition(old.pool, frozenset({node}), devices, ()),
    ]


@st.composite
def _access(draw: st.DrawFn, editions: Sequence[Edition], node: int) -> Node:
    """The pools as one node sees them; now and then one is incomplete or invalid."""
    pools, start = [], 0
    for edition in editions:
        indices = tuple(
            map(DeviceIndex, range(start, start + len(edition.devices)))
        )
        start += len(indices)
        if node not in edition.seen_by:
            continue
        state = draw(
            st.sampled_from(
                [PoolState.USABLE] * 10
                + [PoolState.INCOMPLETE, PoolState.INVALID]
            )
        )
        usable = state is PoolState.USABLE
        pools.append(
            PoolAccess(
                edition.pool,
                state,
                indices if usable else (),
                "" if usable else "drawn so",
            )
        )
    return Node(f"node-{node}", tuple(pools))


@st.composite
def _usages(draw: st.DrawFn, devices: Sequence[Device]) -> Usage:
    held: set[SlotIndex] = set()
    shares: dict[SlotIndex, int] = {}
    consumed: dict[SlotIndex, dict[str, int]] = {}
    least: dict[tuple[int, str], int] = {}
    for device in devices:
        for known in device.capacity.values():
            key = device.slot, known.name
            least[key] = min(known.total, least.get(key, known.total))
    for slot, shareable in {
        device.slot: device.shareable for device in devices
    }.items():
        if not draw(rarely()):
            continue
        if not shareable:
            held.add(slot)
            continue
        shares[slot] = draw(st.integers(1, 2))
        consumed[slot] = {
            name: draw(st.integers(0, total))
            for (of, name), total in least.items()
            if of == slot
        }
    return Usage(frozenset(held), shares, consumed)


def _in_use(device: Device, usage: Usage) -> bool:
    return device.slot in usage.held or device.slot in usage.shares


@st.composite
def inventories(draw: st.DrawFn, max_devices: int = 6) -> Inventory:
    """Draw one to three nodes, their pools, and what is in use already."""
    nodes = draw(st.sampled_from([1, 2, 2, 3]))
    editions: list[Edition] = []
    for pool in POOLS[: draw(st.integers(1, len(POOLS)))]:
        room = max_devices - sum(len(edition.devices) for edition in editions)
        if room == 0:
            break
        size = draw(st.integers(1, min(room, 3)))
        slots = len(
            {device.slot for edition in editions for device in edition.devices}
        )
        first = (
            SlotIndex(len(editions)),
            sum(len(edition.counters) for edition in editions),
        )
        drawn: list[Edition] = draw(
            _editions(pool, range(slots, slots + size), nodes, first)
        )
        editions += drawn if len(drawn) * size <= room else drawn[:1]
    devices = tuple(
        device for edition in editions for device in edition.devices
    )
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
def _driven(
    draw: st.DrawFn, devices: Sequence[Device], counters: Sequence[Counter]
) -> dict[int, int]:
    """Which devices charge a counter of their group by request."""
    chosen = {}
    for index, device in enumerate(devices):
        own = [
            counter_index
            for counter_index, counter in enumerate(counters)
            if counter.group == device.group
        ]
        charged = draw(rarely())
        if own and charged:
            chosen[index] = draw(st.sampled_from(own))
    return chosen


@st.composite
def _left(
    draw: st.DrawFn,
    counters: Sequence[Counter],
    devices: Sequence[Device],
    usage: Usage,
    driven: Mapping[int, int],
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
    return tuple(
        replace(counter, free=free_amount)
        for counter, free_amount in zip(counters, free, strict=True)
    )
