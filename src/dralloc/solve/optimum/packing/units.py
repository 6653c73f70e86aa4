"""Units: what the units of bins can give, sorted into types, and which devices they pick for items.

A unit is a GPU with its partitions, a shared device, or the counters of a bin that are charged by request. A *unit
type* says which items a unit can give together, by states: before anything is taken (`UnitType.start`), and after one
item more (`UnitType.step`). There are two sorts:

- `PatternUnitType`: few items fit, so all maximal patterns of them are listed;
- `CapacityUnitType`: items take amounts of capacities, in too many ways to list patterns (KEP-5075).

`UnitClassifier` finds the type of each unit of a bin, and says which devices serve items of it in the end.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from math import fsum, gcd
from typing import Final, NamedTuple, Protocol

import numpy as np

from dralloc.objects.errors import ModelError
from dralloc.problem import DeviceIndex
from dralloc.problem.indices import grouped
from dralloc.problem.subproblem import ONLY_NODE
from dralloc.solve.optimum.classes.bins import (
    Bin,
    BinClass,
    NodeView,
    UnitView,
    Values,
)
from dralloc.solve.optimum.classes.demand_classes import ItemGroup
from dralloc.solve.optimum.classes.flow_supplies import FlowSource, FlowSupply
from dralloc.solve.optimum.classes.numbering import Listed
from dralloc.solve.optimum.classes.patterns import Pattern, maximal_patterns
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.supplies import follow
from dralloc.solve.optimum.classes.usable_devices import Profile
from dralloc.solve.optimum.packing.bundles import Bundles, ChargedCounters
from dralloc.solve.optimum.rows import SAFE_SUM, Term, sum_of
from dralloc.solve.optimum.search import most_of
from dralloc.solve.optimum.shares import TooManyPatterns, share_patterns
from dralloc.solve.optimum.solvers import cp_model

__all__ = [
    "CapacityUnitType",
    "ClassifiedUnit",
    "ItemCounts",
    "PatternUnitType",
    "Supplied",
    "UnitClassifier",
    "UnitType",
]

_PATTERN_EFFORT: Final = 150_000
"""More devices are not looked at for the patterns of one unit."""

_PATTERNS_PER_UNIT: Final = 25
"""So many patterns are listed of equal shared devices at most, for each of them. What one device has for several
requests is known exactly by its capacities; patterns say more about many devices together."""

_MOST_ARCS: Final = 20_000
"""With more arcs in its flow a capacity is only added up."""

_NAMELESS_BIN: Final = Bin((), ())
"""Stands for a device in a flow that is never expanded to names."""

ItemCounts = tuple[int, ...]
"""How many items of each type, by position in `UnitType.types`."""

Amounts = tuple[int, ...]
"""What is left of each capacity, or what an item takes of each."""

Devices = tuple[tuple[int, ...], ...]
"""What serves an item: for each of its item groups the devices, by position in the unit."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """Equal units in a model.

    Parameters
    ----------
    portions
        Variables, each for how often some items (by type) are given together.
    pooled
        Whether all of them are given by one unit, and not each time by another one.
    """

    portions: Sequence[tuple[cp_model.IntVar, tuple[int, ...]]]
    pooled: bool = False

    @property
    def terms(self) -> Mapping[int, Sequence[Term]]:
        """By type, terms that add up to the items that are supplied."""
        terms: list[tuple[int, Term]] = []
        for variable, item_types in self.portions:
            for item_type, count in Tally(item_types).items():
                terms.append((item_type, (variable, count)))
        return grouped(terms)

    def shares(self, values: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the items of each unit that gives any, given the values of all variables."""
        shares: list[tuple[int, ...]] = []
        for variable, item_types in self.portions:
            shares += [item_types] * values[variable.index]
        if self.pooled:
            return [tuple(chain.from_iterable(shares))]
        return shares


class UnitType(Protocol):
    """Units that can supply the same items."""

    @property
    def types(self) -> tuple[int, ...]:
        """The types of items that it can give."""

    @property
    def shared(self) -> bool:
        """Whether one device may give several items."""

    @property
    def is_one_device(self) -> bool:
        """Whether a unit gives all items from one device."""

    @property
    def together(self) -> bool:
        """Whether the supply of several units is exactly what they can give; that of one is."""

    @property
    def start(self) -> Hashable:
        """The state before anything is taken."""

    def most(self, item_type: int) -> int:
        """Return how many items of a type there are at most, if nothing else is taken."""

    def step(self, state: Hashable, item_type: int) -> Hashable | None:
        """Return the state after one more item; None if there is none left."""

    def worth(self, state: Hashable, prices: Mapping[int, float]) -> float:
        """Return what the items that can still be taken are worth at most."""

    def supply(self, cp: cp_model.CpModel, unit_count: int) -> Supplied:
        """Add variables and rows for so many units."""


@dataclass(frozen=True, slots=True)
class PatternUnitType:
    """Units known by their maximal patterns: a state says how many items of each type have been taken.

    Which devices they are is decided in the end, so no item taken early excludes a later one.
    """

    types: tuple[int, ...]
    patterns: tuple[ItemCounts, ...]
    shared: bool
    is_one_device: bool
    together = True

    @property
    def start(self) -> ItemCounts:
        """The state in which nothing is taken."""
        return (0,) * len(self.types)

    def most(self, item_type: int) -> int:
        """Return how many items of a type the best pattern for it has."""
        position = self.types.index(item_type)
        return max(pattern[position] for pattern in self.patterns)

    def step(self, state: Hashable, item_type: int) -> ItemCounts | None:
        """Return the state after one more item, if some pattern has as many of all."""
        assert isinstance(state, tuple)
        counts = list(state)
        counts[self.types.index(item_type)] += 1
        after = tuple(counts)
        fits = any(self.patterns_around(after))
        return after if fits else None

    def worth(self, state: Hashable, prices: Mapping[int, float]) -> float:
        """Return what the most precious pattern around the state adds to it."""
        assert isinstance(state, tuple)
        own_prices = [prices[item_type] for item_type in self.types]
        additions = []
        for pattern in self.patterns_around(state):
            summands = []
            for limit, count, price in zip(
                pattern, state, own_prices, strict=True
            ):
                summands.append((limit - count) * price)
            # An exact sum, so that the order of the types cannot matter.
            additions.append(fsum(summands))
        return max(additions)

    def patterns_around(self, state: ItemCounts) -> Iterator[ItemCounts]:
        """Yield the patterns that have as many of all items."""
        for pattern in self.patterns:
            if all(map(int.__ge__, pattern, state)):
                yield pattern

    def supply(self, cp: cp_model.CpModel, unit_count: int) -> Supplied:
        """Add that each unit has one of the patterns, which is exact."""
        variables = [
            cp.new_int_var(0, unit_count, f"pattern {pattern}")
            for pattern in self.patterns
        ]
        cp.add(cp_model.LinearExpr.sum(variables) <= unit_count)
        portions = []
        for variable, pattern in zip(variables, self.patterns, strict=True):
            counts = Tally(dict(zip(self.types, pattern, strict=True)))
            portions.append((variable, tuple(counts.elements())))
        return Supplied(portions)


@dataclass(frozen=True)
class CapacityUnitType:
    """Shared devices with equal capacities, or whatever else is used up by adding amounts: vector bin packing.

    Parameters
    ----------
    types
        The items that fit.
    uses
        What an item of each type takes of each capacity.
    start
        What is left of each capacity.
    """

    types: tuple[int, ...]
    uses: tuple[Amounts, ...]
    start: Amounts
    shared = True
    is_one_device = True
    together = False

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {
            item_type: position for position, item_type in enumerate(self.types)
        }

    @cached_property
    def _amounts(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        amounts = np.array(self.uses, dtype=np.float64)
        return amounts.reshape(len(self.uses), len(self.start))

    def most(self, item_type: int) -> int:
        """Return how many items of a type there are at most, if nothing else is taken."""
        amounts = self.uses[self._positions[item_type]]
        return min(
            available // amount
            for available, amount in zip(self.start, amounts, strict=True)
            if amount
        )

    def step(self, state: Hashable, item_type: int) -> Amounts | None:
        """Return what is left after one more item, if there is enough of all."""
        assert isinstance(state, tuple)
        amounts = self.uses[self._positions[item_type]]
        after = tuple(map(int.__sub__, state, amounts))
        return after if min(after) >= 0 else None

    def worth(self, state: Hashable, prices: Mapping[int, float]) -> float:
        """Return what is left of the scarcest capacity, at the best price that an item that fits pays for it."""
        assert isinstance(state, tuple)
        available = np.array(state, dtype=np.float64)
        fits = (self._amounts <= available).all(axis=1)
        if not fits.any():
            return 0.0
        own_prices = np.array([prices[item_type] for item_type in self.types])
        paid = own_prices[fits, None]
        amounts = self._amounts[fits]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.nanmax(paid / amounts, axis=0) * available
            finite = values[np.isfinite(values)]
            if len(finite):
                return float(finite.min())
            # Where no capacity is asked for by all, each item may get as many as there are of it alone.
            counts = np.nanmin(available / amounts, axis=1)
            return float((paid[:, 0] * counts).sum())

    def supply(self, cp: cp_model.CpModel, unit_count: int) -> Supplied:
        """Add that one device gives what its capacities hold, and several no more than a flow or their sum allows."""
        # Of several devices with one capacity a flow knows what fits. There are no more arcs than sizes for each amount
        # that can be left.
        if self.types and unit_count > 1 and len(self.start) == 1:
            sizes = {
                item_type: use[0]
                for item_type, use in zip(self.types, self.uses, strict=True)
            }
            arc_count = len(set(self.uses)) * (
                self.start[0] // gcd(*sizes.values())
            )
            if arc_count <= _MOST_ARCS:
                return self._flow(cp, sizes, unit_count)
        # Else capacities are added up: that is exact for one device, and a bound for several.
        variables = []
        for item_type in self.types:
            limit = unit_count * self.most(item_type)
            variables.append(cp.new_int_var(0, limit, f"given {item_type}"))
        for capacity, available in enumerate(self.start):
            terms = []
            for variable, amounts in zip(variables, self.uses, strict=True):
                if amounts[capacity]:
                    terms.append((variable, amounts[capacity]))
            _add_at_most(cp, terms, available * unit_count)
        return self._pooled(dict(zip(self.types, variables, strict=True)))

    def _flow(
        self, cp: cp_model.CpModel, sizes: Mapping[int, int], unit_count: int
    ) -> Supplied:
        source = FlowSource(self.start[0], sizes, [_NAMELESS_BIN] * unit_count)
        flow = FlowSupply([source], dict(sizes))
        flow.build(cp)
        return self._pooled(flow.served)

    @staticmethod
    def _pooled(variables: Mapping[int, cp_model.IntVar]) -> Supplied:
        """Return the supply of variables that say, by type, how many items are given."""
        portions = [
            (variable, (item_type,))
            for item_type, variable in variables.items()
        ]
        return Supplied(portions, pooled=True)


def _capacity_units(
    uses: Mapping[int, Amounts], available: Amounts, item_count: int
) -> CapacityUnitType:
    """Return what gives items that take so much of each capacity; at most ``item_count`` of those that take nothing."""
    fitting = {
        item_type: amounts
        for item_type, amounts in uses.items()
        if all(map(int.__le__, amounts, available))
    }
    if not all(map(any, fitting.values())):
        # One more capacity, of which each item takes 1, bounds those that take nothing else.
        fitting = {
            item_type: (*amounts, 1) for item_type, amounts in fitting.items()
        }
        available = (*available, item_count)
    return CapacityUnitType(tuple(fitting), tuple(fitting.values()), available)


def _add_at_most(
    cp: cp_model.CpModel, terms: Sequence[Term], limit: int
) -> None:
    """Add ``sum(factor * variable) <= limit`` with the smallest numbers that mean the same."""
    divisor = gcd(*(factor for _, factor in terms)) or 1
    smallest = [(variable, factor // divisor) for variable, factor in terms]
    largest_sum = most_of(smallest)
    if largest_sum <= limit // divisor:
        return
    if largest_sum > SAFE_SUM:
        raise ModelError(
            f"capacities add up to {largest_sum} after removing common factors, beyond the solver's int64"
        )
    cp.add(sum_of(smallest) <= limit // divisor)


class ClassifiedUnit(NamedTuple):
    """The unit type (an index), and which devices serve items of some types that fit together."""

    unit_type: int
    devices: Callable[[Sequence[int]], list[Devices]]


@dataclass(frozen=True, slots=True)
class _SameDevices:
    """Picks for a unit of which every item has the same devices: the shared one, or none."""

    devices: Devices

    def __call__(self, item_types: Sequence[int]) -> list[Devices]:
        return [self.devices] * len(item_types)


@dataclass(frozen=True, slots=True)
class _DevicesOfPattern:
    """Picks for a unit with known patterns."""

    space: StateSpace
    patterns: Sequence[Pattern]
    _picks: dict[tuple[int, ...], list[Devices]] = field(default_factory=dict)

    def __call__(self, item_types: Sequence[int]) -> list[Devices]:
        key = tuple(item_types)
        if key not in self._picks:
            self._picks[key] = self._pick(item_types)
        return self._picks[key]

    def _pick(self, item_types: Sequence[int]) -> list[Devices]:
        """Follow the first pattern that has all items, and hand its devices out in search order."""
        counts = Tally(item_types)
        pattern = next(
            pattern
            for pattern in self.patterns
            if counts <= Tally(dict(pattern.counts))
        )
        unit_as_bin = Bin(
            (tuple(map(DeviceIndex, range(self.space.size))),), (ONLY_NODE,)
        )
        devices_by_type: dict[int, list[Devices]] = {}
        for item_type, served in follow(
            self.space, unit_as_bin, pattern.transitions
        ):
            devices_by_type.setdefault(item_type, []).append(served.devices)
        queues = {
            item_type: iter(sorted(devices))
            for item_type, devices in devices_by_type.items()
        }
        return [next(queues[item_type]) for item_type in item_types]


class UnitClassifier:
    """Sorts units into types, which it numbers.

    Parameters
    ----------
    profiles
        What devices can serve, by number.
    bundles
        The items that attribute rules bind together.
    supply
        By type, how many items are wanted in all.
    listed_patterns
        See `dralloc.objects.choices.Thresholds`.
    """

    def __init__(
        self,
        profiles: Sequence[Profile],
        bundles: Bundles,
        supply: Mapping[int, int],
        listed_patterns: int,
    ) -> None:
        self.profiles = profiles
        self.bundles = bundles
        self.listed_patterns = listed_patterns
        self.supply = supply
        self.unit_types: Listed[UnitType] = Listed()
        self._units: dict[Hashable, ClassifiedUnit | None] = {}

    def units(
        self, bin_class: BinClass
    ) -> list[tuple[tuple[int, ...], ClassifiedUnit]] | None:
        """Return the units of a bin, by unit type, each with its parts; None if one of them has too many states."""
        classified = []
        for parts in self.bundles.units(bin_class):
            views = tuple(bin_class.units[part] for part in parts)
            values = _values(bin_class, parts)
            key = views, values
            if key not in self._units:
                self._units[key] = self._classify(
                    views, bin_class.attributes, values
                )
            unit = self._units[key]
            if unit is None:
                return None
            classified.append((parts, unit))
        classified.sort(key=lambda parts_and_unit: parts_and_unit[1].unit_type)
        return classified

    def counters(
        self,
        counters: ChargedCounters,
        item_types: Mapping[tuple[ItemGroup, ...], int],
    ) -> ClassifiedUnit:
        """Return the unit of counters that are charged by request: one item for each of these item groups."""
        uses: dict[int, Amounts] = {}
        for item_groups, item_type in item_types.items():
            amounts = counters.of(item_groups)
            if amounts is not None:
                uses[item_type] = amounts
        unit_type = _capacity_units(
            uses, counters.free, sum(self.supply.values())
        )
        unit_type_index = self.unit_types.number(unit_type)
        return ClassifiedUnit(unit_type_index, _SameDevices(()))

    def _classify(
        self,
        views: tuple[UnitView, ...],
        attributes: tuple[str, ...],
        values: Values,
    ) -> ClassifiedUnit | None:
        devices = [device for view in views for device in view.devices]
        # The unit is looked at as a bin of its own, with one node that reaches all of it.
        node = NodeView(0, tuple(range(len(devices))))
        unit_as_bin = BinClass(views, attributes, values, (node,))
        space = StateSpace(unit_as_bin, self.profiles, (frozenset({0}),))
        offered: set[int] = set()
        for device in devices:
            offered.update(
                item_type for item_type, _ in self.profiles[device.profile]
            )
        supply: dict[int, int] = {}
        for item_type, count in self.supply.items():
            item_groups = self.bundles.items[item_type].item_groups
            if offered.issuperset(group.type for group in item_groups):
                supply[item_type] = count
        by_amounts = _as_capacity_units(space, supply)
        if by_amounts is not None:
            unit_type_index = self.unit_types.number(by_amounts)
            return ClassifiedUnit(unit_type_index, _SameDevices(((0,),)))
        patterns = maximal_patterns(
            space, self.bundles.items, supply, _PATTERN_EFFORT
        )
        if patterns is None:
            return None
        shareable = any(device.shareable for device in devices)
        unit_type_index = self.unit_types.number(
            _as_pattern_units(
                patterns, shared=shareable, is_one_device=len(devices) == 1
            )
        )
        return ClassifiedUnit(
            unit_type_index, _DevicesOfPattern(space, patterns)
        )

    def listed(self, unit_counts: Mapping[int, int]) -> tuple[UnitType, ...]:
        """Return all unit types, with shared devices by patterns where these are few for so many units of a type.

        They keep their numbers, and their units the devices that serve items.
        """
        return tuple(
            self._by_patterns(unit_type, unit_counts.get(unit_type_index, 0))
            if isinstance(unit_type, CapacityUnitType)
            else unit_type
            for unit_type_index, unit_type in enumerate(self.unit_types)
        )

    def _by_patterns(
        self, units: CapacityUnitType, unit_count: int
    ) -> UnitType:
        """Return the same units by patterns; as they are if these are too many, or if they are counters."""
        if not self.supply.keys() >= set(units.types):
            return units
        wanted = [self.supply[item_type] for item_type in units.types]
        longest = min(self.listed_patterns, _PATTERNS_PER_UNIT * unit_count)
        try:
            patterns = share_patterns(units.start, units.uses, longest, wanted)
        except TooManyPatterns:
            return units
        return PatternUnitType(
            units.types,
            tuple(sorted(patterns)),
            shared=True,
            is_one_device=True,
        )


def _as_pattern_units(
    patterns: Sequence[Pattern], *, shared: bool, is_one_device: bool
) -> PatternUnitType:
    """Return the unit type of patterns, with item types and patterns in canonical order."""
    item_types: set[int] = set()
    for pattern in patterns:
        item_types.update(item_type for item_type, _ in pattern.counts)
    in_order = tuple(sorted(item_types))
    rows: set[ItemCounts] = set()
    for pattern in patterns:
        counts = dict(pattern.counts)
        rows.add(tuple(counts.get(item_type, 0) for item_type in in_order))
    return PatternUnitType(
        in_order,
        tuple(sorted(rows)),
        shared=shared,
        is_one_device=is_one_device,
    )


def _as_capacity_units(
    space: StateSpace, supply: Mapping[int, int]
) -> CapacityUnitType | None:
    """See a unit as one shared device; None if it is not."""
    if len(space.layouts) > 1:
        return None
    layout = space.layouts[0]
    group = layout.groups[0]
    if len(layout.groups) > 1 or not group.shareable or group.opens:
        return None
    if not group.uses.keys() >= set(supply):
        return None
    # The first number of the block says that there is one device; what follows are amounts.
    available = layout.block[1:]
    uses: dict[int, Amounts] = {}
    for item_type in sorted(supply):
        amounts = dict(group.uses[item_type])
        uses[item_type] = tuple(
            amounts.get(position, 0)
            for position in range(1, 1 + len(available))
        )
    return _capacity_units(uses, available, sum(supply.values()))


def _values(bin_class: BinClass, parts: Sequence[int]) -> Values:
    """Return the values of the devices in some parts of a bin, numbered as they appear there."""
    device_counts = [len(view.devices) for view in bin_class.units]
    starts = list(accumulate(device_counts, initial=0))
    index_of: dict[int, int] = {}
    renumbered: list[tuple[frozenset[int] | None, ...]] = []
    for part in parts:
        for position in range(starts[part], starts[part + 1]):
            row: list[frozenset[int] | None] = []
            for values in bin_class.values[position]:
                if values is None:
                    row.append(None)
                    continue
                for value in sorted(values):
                    index_of.setdefault(value, len(index_of))
                row.append(frozenset(index_of[value] for value in values))
            renumbered.append(tuple(row))
    return tuple(renumbered)
