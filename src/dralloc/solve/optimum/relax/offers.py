"""What nodes offer, as linear rows that every answer to the problem keeps, in flat arrays.

Rows: devices that one claim has for itself are as many as there are (KEP-4815, KEP-5075: a dedicated device has one
holder); counters and capacities are drawn on up to what is left of them, by fixed amounts and by request; a node's CPU,
memory and the like are capacities of its synthetic device. Left out are compatibility groups, what a shared device
charges when it is opened, everything but the number of devices that several generations of a pool publish, and limits
on results.

A row holds in whichever order the grants come: each of them is looked at when it comes, and nothing that it was granted
is ever given back.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Final, NamedTuple, cast

from dralloc.problem import (
    Charge,
    CounterIndex,
    Device,
    DeviceIndex,
    NodeIndex,
    Problem,
    indices,
    numbered,
)
from dralloc.problem.indices import grouped
from dralloc.problem.ledger import Ledger, counter_consumption
from dralloc.problem.supply import NODE_DRIVER, Scalar
from dralloc.solve.optimum.classes.numbering import Listed
from dralloc.solve.optimum.relax.amounts import Amounts, Integers, amounts_of
from dralloc.solve.optimum.relax.demand_kinds import (
    ALL_DEVICES,
    DemandKinds,
    Draws,
    Item,
    ItemPart,
    ResourceRow,
)
from dralloc.solve.optimum.relax.limit_rows import LimitRows, limit_rows_of
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "Combination",
    "DeviceAssignment",
    "NodeOffers",
    "PatternClass",
    "TypeSupply",
    "WayIndex",
    "node_offers_of",
]

_MOST_COMBINATIONS: Final = 24
"""Of more ways to choose different values it is not said that they differ."""

_MOST_SHARES: Final = 2**31
"""More than anybody can ask for of a device that is shared without limits."""


class DeviceAssignment(NamedTuple):
    """One way to get a device: what it draws on, and how often it can be had at most.

    ``device``: one of those that are had so; ``charge``: what it is charged with.
    """

    draws: Draws
    limit: int
    device: DeviceIndex
    charge: Charge


class TypeSupply(NamedTuple):
    """The devices of a type on a node, or those of them that carry a value.

    ``role``: equal for supplies of the same kind on several nodes.
    """

    node: NodeIndex
    role: Hashable
    ways: tuple[DeviceAssignment, ...]

    @property
    def device_count(self) -> int:
        """The number of devices to be had at most."""
        return sum(way.limit for way in self.ways)


class Combination(NamedTuple):
    """A way to get an item: so many devices of each of these supplies, and how often it can be had at most."""

    draws: Draws
    limit: int


class WayIndex(NamedTuple):
    """The number of a supply, and that of one of its ways."""

    supply: int
    way: int


class PatternClass(NamedTuple):
    """Equal shared devices, each with one of some patterns at most (`dralloc.solve.optimum.relax.patterns`).

    Parameters
    ----------
    rows
        By place in the patterns, the row that counts who takes this share of any of the devices.
    patterns
        Each says how often every share is taken of a device.
    nodes
        Of each device, its node.
    covered
        The rows of the devices, of which the patterns say what fits.
    """

    rows: tuple[int, ...]
    patterns: Integers
    nodes: tuple[NodeIndex, ...]
    covered: frozenset[int]


@dataclass(slots=True)
class NodeOffers:
    """The offers of all nodes.

    Parameters
    ----------
    nodes
        How many nodes.
    rows
        What is limited.
    supplies
        Of what items are made.
    items
        By node and item: the combinations that make one.
    amounts
        What nodes have beside devices.
    domain_limits
        By limit: its rows.
    shared_devices
        The rows of the capacities of each device that several claims may share.
    pattern_classes
        What limits some rows beside their limits.
    """

    nodes: int
    rows: list[ResourceRow]
    supplies: list[TypeSupply]
    items: dict[tuple[int, int], tuple[Combination, ...]]
    amounts: Amounts
    domain_limits: list[LimitRows]
    shared_devices: Sequence[Sequence[int]]
    pattern_classes: Sequence[PatternClass] = ()

    def ways(self) -> Iterator[tuple[WayIndex, DeviceAssignment]]:
        """All ways of all supplies."""
        for supply_index, supply in enumerate(self.supplies):
            for way_index, way in enumerate(supply.ways):
                yield WayIndex(supply_index, way_index), way

    def with_draws(
        self, draws: Mapping[WayIndex, Sequence[tuple[int, int]]]
    ) -> NodeOffers:
        """Return the same offers, where some ways draw on more rows."""
        supplies = list(self.supplies)
        for (supply_index, way), more_draws in draws.items():
            ways = list(supplies[supply_index].ways)
            all_draws = (*ways[way].draws, *more_draws)
            ways[way] = ways[way]._replace(draws=all_draws)
            supplies[supply_index] = supplies[supply_index]._replace(
                ways=tuple(ways)
            )
        return replace(self, supplies=supplies)


def node_offers_of(
    problem: Problem, demand_kinds: DemandKinds, stop: Stop
) -> NodeOffers:
    """Read what nodes offer to demands."""
    return _OfferReader(problem, demand_kinds, stop).offers()


class _Offered(NamedTuple):
    """The offer of devices with equal keys: types with charges."""

    key: int
    charges: Mapping[int, Charge]


_Values = tuple[frozenset[Scalar] | None, ...]
"""By attribute that is compared, the values of a device."""


@dataclass(slots=True)
class _DeviceClass:
    """Devices of a node that are equal to everybody.

    Parameters
    ----------
    device, view
        One of them.
    everywhere
        What they are called on all nodes that reach them, if several do.
    device_count
        How many there are.
    """

    offered: _Offered
    values: _Values
    device: DeviceIndex
    view: Device
    everywhere: Hashable = None
    device_count: int = 0


class _Stock(NamedTuple):
    """What a node has: by type, devices that could be had; and by key, supplies read so far, None where nothing is."""

    node: NodeIndex
    by_type: Mapping[int, Sequence[_DeviceClass]]
    supplies: dict[Hashable, int | None]


class _OfferReader:
    def __init__(
        self, problem: Problem, demand_kinds: DemandKinds, stop: Stop
    ) -> None:
        self.problem = problem
        self.demand_kinds = demand_kinds
        self.stop = stop
        self.ledger = Ledger(problem)
        self.attributes = sorted(demand_kinds.attributes)
        self.rows: list[ResourceRow] = []
        self.supplies: list[TypeSupply] = []
        self.items: dict[tuple[int, int], tuple[Combination, ...]] = {}
        self._offered: dict[Hashable, _Offered] = {}
        self._contents: Listed[Hashable] = Listed()
        self._row_indices: dict[Hashable, int] = {}
        self._capacity_rows: dict[int, list[int]] = defaultdict(list)
        self._states = self._counter_states()
        self._nodes_of = self._reach()

    def _reach(self) -> Mapping[DeviceIndex, tuple[NodeIndex, ...]]:
        """The nodes that reach each device, of those that several do."""
        times = Tally[int]()
        for node in self.problem.nodes:
            for pool in node.pools:
                times.update(pool.devices)
        shared = {device for device, count in times.items() if count > 1}
        reaching: dict[DeviceIndex, list[NodeIndex]] = defaultdict(list)
        for node_index, node in numbered(self.problem.nodes) if shared else ():
            for device in node.devices():
                if device in shared and self.problem.on_node(
                    device, node_index
                ):
                    reaching[device].append(node_index)
        return {
            device: tuple(nodes)
            for device, nodes in reaching.items()
            if len(nodes) > 1
        }

    def _counter_states(self) -> Mapping[Hashable, int]:
        """By counter set, what is left of its counters: a number that is equal for equal ones."""
        counters: dict[Hashable, list[tuple[str, int]]] = defaultdict(list)
        for counter in self.problem.counters:
            counters[counter.id[:3]].append((counter.id.counter, counter.free))
        states: Listed[Hashable] = Listed()
        return {
            counter_set: states.number(tuple(sorted(free)))
            for counter_set, free in counters.items()
        }

    def offers(self) -> NodeOffers:
        """Return the offers of all nodes."""
        for node in self.stop.each(indices(self.problem.nodes)):
            self._node(node)
        amounts = amounts_of(
            self.problem, self.demand_kinds, self.ledger, self.rows
        )
        domain_limits = limit_rows_of(
            self.problem, self.demand_kinds.domain_limits, self.rows
        )
        return NodeOffers(
            len(self.problem.nodes),
            self.rows,
            self.supplies,
            self.items,
            amounts,
            domain_limits,
            list(self._capacity_rows.values()),
        )

    def _node(self, node: NodeIndex) -> None:
        by_type: dict[int, list[_DeviceClass]] = defaultdict(list)
        for device_class in self._classes(node):
            for type_ in device_class.offered.charges:
                by_type[type_].append(device_class)
        stock = _Stock(node, by_type, {})
        for item_index, item in enumerate(self.demand_kinds.items):
            if all(part.type in by_type for part in item):
                ways = tuple(self._combinations(stock, item))
                if ways:
                    self.items[node, item_index] = ways

    def _classes(self, node: NodeIndex) -> list[_DeviceClass]:
        """The devices that somebody could get on the node."""
        problem, several_versions = self.problem, self.problem.several_versions
        classes: dict[Hashable, _DeviceClass] = {}
        for device in problem.nodes[node].devices():
            view = problem.devices[device]
            if (
                view.id.driver == NODE_DRIVER
                or not self.ledger.is_free(view)
                or not problem.on_node(device, node)
            ):
                continue
            offered = self._offers(device)
            if not offered.charges:
                continue
            values = tuple(
                [view.attributes.get(name) for name in self.attributes]
            )
            nodes = self._nodes_of.get(device)
            key: Hashable = (offered.key, values, view.consumes, nodes)
            if view.shareable or view.slot in several_versions:
                # What others take of such a device counts: it is equal to no other.
                key = (device,)
            if key not in classes:
                everywhere: Hashable = None
                if view.slot in several_versions:
                    everywhere = ("slot", view.slot)
                elif nodes:
                    everywhere = key
                classes[key] = _DeviceClass(
                    offered, values, device, view, everywhere
                )
            classes[key].device_count += 1
        return list(classes.values())

    def _offers(self, device: DeviceIndex) -> _Offered:
        """Return what a device offers to whom, and what that takes."""
        eligibility = self.problem.eligibility
        key = eligibility.device_key(device)
        if key not in self._offered:
            charges: dict[int, Charge] = {}
            for type_, alternative in enumerate(self.demand_kinds.types):
                # Where a selector fails, the search for the best answer leaves the device out.
                selected = eligibility.selects(alternative, device)
                if selected is True and eligibility.admits(alternative, device):
                    charge = eligibility.charge(alternative, device)
                    if charge is not None:
                        charges[type_] = charge
            content = tuple(
                (type_, charge.capacity, charge.counters)
                for type_, charge in charges.items()
            )
            self._offered[key] = _Offered(
                self._contents.number(content), charges
            )
        return self._offered[key]

    # Items.

    def _combinations(self, stock: _Stock, item: Item) -> Iterator[Combination]:
        """The ways to make an item."""
        if not item[0].attribute:
            yield from self._of_type(stock, item[0])
        elif item[0].is_distinct:
            yield from self._distinct(stock, item[0])
        else:
            yield from self._with_common_value(stock, item)

    def _of_type(self, stock: _Stock, part: ItemPart) -> Iterator[Combination]:
        """So many devices of a type, or all."""
        classes, key = stock.by_type[part.type], ("type", part.type)
        supply = self._supply(stock, key, None, classes)
        if supply is None:
            return
        device_count = part.device_count
        if device_count == ALL_DEVICES:
            device_count = self._at_least_of_all(classes)
        times = self.supplies[supply].device_count // device_count
        yield Combination(((supply, device_count),), times)

    def _at_least_of_all(self, classes: Sequence[_DeviceClass]) -> int:
        """How many devices a claim for all of some classes has at least.

        One that finds a device in use is not granted, so that the others may count. A claim for all has one share of
        each shared device, and of several generations of a pool the devices of one.
        """
        dedicated = [
            device_class.device_count
            for device_class in classes
            if not device_class.view.shareable
            and device_class.view.slot not in self.problem.several_versions
        ]
        return max(1, sum(dedicated))

    def _with_common_value(
        self, stock: _Stock, item: Item
    ) -> Iterator[Combination]:
        """For each value, devices that carry it."""
        for value, carriers in self._carriers(item, stock.by_type).items():
            # Values that as many equal devices carry are alike.
            role = tuple(map(_device_counts, carriers))
            draws = []
            for part, classes in zip(item, carriers, strict=True):
                key = "value", part.type, part.attribute, value
                supply = self._supply(stock, key, role, classes)
                if (
                    supply is not None
                    and self.supplies[supply].device_count >= part.device_count
                ):
                    draws.append((supply, part.device_count))
            if len(draws) == len(item):
                times = (
                    self.supplies[supply].device_count // times_needed
                    for supply, times_needed in draws
                )
                yield Combination(tuple(draws), min(times))

    def _distinct(self, stock: _Stock, part: ItemPart) -> Iterator[Combination]:
        """For each choice of values, a device that carries each of them.

        At most one of them carries none. A device with several values stands for each of these: where no two have any
        in common, their first ones differ.
        """
        classes = stock.by_type[part.type]
        index = self.attributes.index(part.attribute)
        classes_of = grouped(
            (value, device_class)
            for device_class in classes
            for value in device_class.values[index] or (None,)
        )
        if comb(len(classes_of), part.device_count) > _MOST_COMBINATIONS:
            yield from self._of_type(stock, part)
            return
        supplies_by_value = []
        for value, carriers in classes_of.items():
            key = "value", part.type, part.attribute, value
            role = (_device_counts(carriers),)
            supply = self._supply(stock, key, role, carriers)
            if supply is not None:
                supplies_by_value.append(supply)
        for chosen in combinations(supplies_by_value, part.device_count):
            times = min(self.supplies[supply].device_count for supply in chosen)
            yield Combination(tuple([(supply, 1) for supply in chosen]), times)

    def _carriers(
        self, item: Item, by_type: Mapping[int, Sequence[_DeviceClass]]
    ) -> Mapping[Scalar, list[list[_DeviceClass]]]:
        """By value that devices for every part carry: for each part, the device classes that do."""
        carriers_of: dict[Scalar, list[list[_DeviceClass]]] = {}
        for part_index, part in enumerate(item):
            index = self.attributes.index(part.attribute)
            pairs = (
                (value, device_class)
                for device_class in by_type[part.type]
                for value in device_class.values[index] or ()
            )
            for value, classes in grouped(pairs).items():
                # A value that no device for an earlier part carries is out.
                if len(carriers_of.setdefault(value, [])) == part_index:
                    carriers_of[value].append(classes)
        return {
            value: carriers
            for value, carriers in carriers_of.items()
            if len(carriers) == len(item)
        }

    def _supply(
        self,
        stock: _Stock,
        key: tuple[Hashable, ...],
        role: Hashable,
        classes: Sequence[_DeviceClass],
    ) -> int | None:
        """The number of a supply; None if nobody can have any of it."""
        supplies = stock.supplies
        if key in supplies:
            return supplies[key]
        type_ = cast(int, key[1])
        assignments = [self._way(stock.node, type_, offer) for offer in classes]
        ways = tuple([way for way in assignments if way])
        supplies[key] = None
        if ways:
            supplies[key] = len(self.supplies)
            self.supplies.append(TypeSupply(stock.node, (*key[:2], role), ways))
        return supplies[key]

    def _way(
        self, node: NodeIndex, type_: int, offer: _DeviceClass
    ) -> DeviceAssignment | None:
        """Return what one of the devices takes for a type; None if it cannot be had."""
        charge = offer.offered.charges[type_]
        if not self.ledger.may_fit(offer.view, charge):
            return None
        draws = tuple(self._draws(node, offer, charge))
        most = offer.device_count
        if offer.view.shareable:
            # Several requests can get shares of one device, as long as there is room.
            shares = [self.rows[row].limit // amount for row, amount in draws]
            most = min([_MOST_SHARES, *shares])
        return DeviceAssignment(draws, most, offer.device, charge)

    # Rows.

    def _draws(
        self, node: NodeIndex, offer: _DeviceClass, charge: Charge
    ) -> Iterator[tuple[int, int]]:
        view = offer.view
        if view.slot in self.problem.several_versions:
            if not view.shareable:
                yield self._device_row(node, offer), 1
            return
        amounts = counter_consumption(view, charge, opening=not view.shareable)
        for counter, amount in amounts:
            if amount:
                yield self._counter_row(node, counter), amount
        for name, amount in charge.capacity:
            if amount:
                yield self._capacity_row(node, offer, name), amount
        if not view.shareable and not self._is_counted(offer):
            yield self._device_row(node, offer), 1

    def _is_counted(self, offer: _DeviceClass) -> bool:
        """Whether a counter says by itself that no more can be had than there are."""
        free = self.ledger.free
        return any(
            amount * offer.device_count >= free[counter]
            for counter, amount in offer.view.consumes
        )

    def _device_row(self, node: NodeIndex, offer: _DeviceClass) -> int:
        """Return the row of such devices: as many claims have them as there are."""
        view = offer.view
        consumed = tuple(
            [(self._role(counter), amount) for counter, amount in view.consumes]
        )
        role = "devices", offer.offered.key, offer.device_count, consumed
        if offer.everywhere is not None:
            # Several nodes reach the devices, and draw on the same row.
            shared_row = ResourceRow(None, role, offer.device_count, view.id)
            return self._row(("devices", offer.everywhere), shared_row)
        kind = offer.offered.key, offer.values, view.consumes
        row = ResourceRow(node, role, offer.device_count, view.id)
        return self._row(("devices", node, *kind), row)

    def _counter_row(self, node: NodeIndex, counter: CounterIndex) -> int:
        free = max(0, self.ledger.free[counter])
        name = self.problem.counters[counter].id
        # Without the name of the counter it is the id of its set.
        row = ResourceRow(node, self._role(counter), free, name, name[:3])
        return self._row(("counter", counter), row)

    def _capacity_row(
        self, node: NodeIndex, offer: _DeviceClass, name: str
    ) -> int:
        view, last = offer.view, len(self.rows)
        free = max(0, self.ledger.capacity_left(view, name))
        role = "capacity", offer.offered.key, name
        row = ResourceRow(node, role, free, (view.id, name), view.slot)
        row_index = self._row(("capacity", view.slot, name), row)
        if row_index == last:
            self._capacity_rows[view.slot].append(row_index)
        return row_index

    def _row(self, key: Hashable, row: ResourceRow) -> int:
        """Return the number of a row by its key; a row is entered when it is first drawn on."""
        row_index = self._row_indices.setdefault(key, len(self.rows))
        if row_index == len(self.rows):
            self.rows.append(row)
        elif self.rows[row_index].node != row.node:
            # Drawn on from several nodes, and so like no row of another one.
            self.rows[row_index] = self.rows[row_index]._replace(
                node=None, role=key
            )
        return row_index

    def _role(self, counter: CounterIndex) -> Hashable:
        """Counters are alike if as much is left in all of their set."""
        counter_id = self.problem.counters[counter].id
        return "counter", self._states[counter_id[:3]], counter_id.counter


def _device_counts(classes: Sequence[_DeviceClass]) -> Hashable:
    """Return what devices offer, and how many of them."""
    return tuple(
        [(devices.offered.key, devices.device_count) for devices in classes]
    )
