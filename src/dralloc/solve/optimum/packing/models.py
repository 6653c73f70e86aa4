"""The models of packing: the relaxation, the restricted master problem, and the exact model.

What they have in common comes first.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from dralloc.problem.indices import summed
from dralloc.solve.optimum.packing.columns import Column, PackingSolution
from dralloc.solve.optimum.packing.construction import Packing, PlacementRound
from dralloc.solve.optimum.packing.instance import (
    BinType,
    PackingInstance,
    Prices,
    SeveralDevices,
)
from dralloc.solve.optimum.packing.units import Supplied
from dralloc.solve.optimum.rows import Term, sum_of
from dralloc.solve.optimum.search import as_one, most_of, solve_linear
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "ExactModel",
    "Relaxation",
    "RestrictedMaster",
    "guide",
]

# ----------------------------------------------------------------------------
# What the models of packing have in common; the relaxation and the restricted master
# problem.
#
# Every model has variables for demands that are missed, and the tiers as costs
# (`TieredModel`). Wherever options *k* of a class *c* are placed, and items of types
# *t* are supplied by units::
#
#     sum_{k of c} placed[k] + missed[c] = size[c]
#     sum_k items[k, t] * placed[k] <= supply[t]
#
# with the supply in the variables of the unit types (see
# `dralloc.solve.optimum.packing.units`). Of a gang all is lost that does not make it
# complete. With ``members[c]`` demands of class *c* in each of gangs *g*::
#
#     lost[c] + members[c] * admitted[g] = size[c],  lost[c] >= missed[c]
#
# and ``lost[c] = missed[c]`` for all others. What counts is ``sum weight[c] *
# lost[c]``, and what options leave out.
#
# The models differ in where options are placed: in an area (`Relaxation`), in a bin
# (`ExactModel`), or anywhere, as far as the chosen columns serve them
# (`RestrictedMaster`).

_SIZE_WEIGHT: Final = 0.001
"""What the size of an item weighs beside its price."""

PlacedOption = tuple[int, "cp_model.IntVar"]
"""An option (an index), and how often it is placed somewhere."""


class TieredModel:
    """A model with a variable for how many joint demands of each class are missed, of those that are to be placed."""

    def __init__(
        self, instance: PackingInstance, demand: Sequence[int]
    ) -> None:
        self.instance = instance
        self.demand = demand
        self.cp = cp_model.CpModel()
        self.missed: list[cp_model.IntVar] = []
        for cls, size in enumerate(demand):
            self.missed.append(self.cp.new_int_var(0, size, f"missed {cls}"))
        self.admitted: dict[int, cp_model.IntVar] = {}
        self.lost = [self._lost(cls) for cls in range(len(demand))]
        self._placed: list[PlacedOption] = []

    def _lost(self, cls: int) -> cp_model.IntVar:
        """Return the variable for how many of a class are lost, with the rows that bind it to its gangs."""
        demand_class = self.instance.classes[cls]
        share = demand_class.gang
        if share is None:
            return self.missed[cls]
        if share.gangs not in self.admitted:
            gang_count = demand_class.size // share.number
            self.admitted[share.gangs] = self.cp.new_int_var(
                0, gang_count, f"admitted {share.gangs}"
            )
        lost = self.cp.new_int_var(0, demand_class.size, f"lost {cls}")
        admitted = self.admitted[share.gangs]
        self.cp.add(lost + share.number * admitted == demand_class.size)
        self.cp.add(lost >= self.missed[cls])
        return lost

    def cover(self, placed: Iterable[PlacedOption]) -> None:
        """Add that all of a class are placed by one of its options, given wherever they are, or missed."""
        self._placed = list(placed)
        summands = [[missed] for missed in self.missed]
        for option, variable in self._placed:
            cls = self.instance.options[option].cls
            summands[cls].append(variable)
        for size, variables in zip(self.demand, summands, strict=True):
            total = cp_model.LinearExpr.sum(variables)
            self.cp.add(total == size)

    def balance(
        self, placed: Iterable[PlacedOption], supplies: Iterable[Supplied]
    ) -> dict[int, cp_model.Constraint]:
        """Add that no more items are taken in a place than its units supply; return the rows by type of item."""
        terms: dict[int, list[Term]] = defaultdict(list)
        for option, variable in placed:
            items = self.instance.options[option].items
            item_counts = Tally(item.type for item in items)
            for item_type, count in item_counts.items():
                terms[item_type].append((variable, count))
        for supplied in supplies:
            for item_type, supplied_terms in supplied.terms.items():
                for variable, count in supplied_terms:
                    terms[item_type].append((variable, -count))
        rows = {}
        for item_type, row in terms.items():
            rows[item_type] = self.cp.add(sum_of(row) <= 0)
        return rows

    def cost(self, level: int) -> list[Term]:
        """Return the cost of a tier: of the missed weight, most important first, and then the ranks."""
        terms: list[Term] = []
        weights = self.instance.weights
        if level < len(weights):
            terms += zip(self.lost, weights[level], strict=True)
        option_costs = self.instance.option_costs[level]
        for option, variable in self._placed:
            terms.append((variable, option_costs[option]))
        return [(variable, factor) for variable, factor in terms if factor]

    def cost_after(self, fixed: Sequence[int]) -> list[Term]:
        """Fix the first tiers at what they cost, and return the cost of the tier after them."""
        for level, limit in enumerate(fixed):
            if terms := self.cost(level):
                self.cp.add(sum_of(terms) <= limit)
        return self.cost(len(fixed))

    def all_costs(self) -> Sequence[Term]:
        """Return all tiers as one cost, as far as the numbers allow."""
        levels = range(len(self.instance.weights) + 1)
        return as_one([self.cost(level) for level in levels])


class Relaxation(TieredModel):
    """The relaxation: items may come from any unit of an area, whatever bin it is in.

    Any answer is an answer here, so what is proven here is a bound for all; and the shadow prices of its linear
    relaxation say how precious an item is.
    """

    def __init__(self, instance: PackingInstance) -> None:
        super().__init__(instance, instance.demand)
        areas = range(len(instance.areas))
        self.placed: dict[tuple[int, int], cp_model.IntVar] = {}
        for area in areas:
            for option in instance.options_of(area):
                size = self.demand[instance.options[option].cls]
                self.placed[option, area] = self.cp.new_int_var(
                    0, size, f"placed {option} {area}"
                )
        self.cover(
            [
                (option, variable)
                for (option, _), variable in self.placed.items()
            ]
        )
        unit_counts = self._unit_counts()
        self._rows: dict[tuple[int, int], cp_model.Constraint] = {}
        for area in areas:
            for item_type, row in self._balance_area(area, unit_counts).items():
                self._rows[area, item_type] = row

    def _unit_counts(self) -> dict[tuple[int, int], int]:
        """Return the number of units of each type in each area."""
        return summed(
            ((bin_type.area, unit_type), len(bin_type.instances))
            for bin_type in self.instance.bin_types
            for unit_type in bin_type.unit_types
        )

    def _balance_area(
        self, area: int, unit_counts: Mapping[tuple[int, int], int]
    ) -> dict[int, cp_model.Constraint]:
        placed_here = []
        for (option, where), variable in self.placed.items():
            if where == area:
                placed_here.append((option, variable))
        supplies = []
        for (where, unit_type), count in unit_counts.items():
            if where == area:
                supplied = self.instance.unit_types[unit_type].supply(
                    self.cp, count
                )
                supplies.append(supplied)
        return self.balance(placed_here, supplies)

    def targets(self, values: Sequence[int]) -> dict[tuple[int, int], int]:
        """Return by option and area how many are placed, given the values of all variables."""
        return {
            key: values[variable.index] for key, variable in self.placed.items()
        }

    def prices(self, stop: Stop) -> Prices:
        """Return the worth of one more item in the first tier, with fractions allowed."""
        solution = solve_linear(self.cp, self.cost(0), stop)
        if solution is None:
            return {}
        return {
            key: abs(solution.duals[row.index])
            for key, row in self._rows.items()
        }


def guide(instance: PackingInstance, prices: Prices) -> Prices:
    """Return prices that also tell large items from small ones where the relaxation has enough of both."""
    scale = max(prices.values(), default=0.0) or 1.0
    guiding: dict[tuple[int, int], float] = {}
    for item_type in instance.types:
        # An item is the larger, the fewer of it a unit can give at most.
        limits = [
            unit_type.most(item_type)
            for unit_type in instance.unit_types
            if item_type in unit_type.types
        ]
        by_size = _SIZE_WEIGHT * scale / max([1, *limits])
        for area in range(len(instance.areas)):
            price = prices.get((area, item_type), 0.0)
            guiding[area, item_type] = price + by_size
    return guiding


class RestrictedMaster(TieredModel):
    """The restricted master problem of column generation: which columns the bins of each bin type have.

    With ``count[j, k]`` for how often column *j* serves assignment option *k* of demand class *c*, and copies of
    columns to choose::

        sum_j copies[b, j] <= bins[b]                               for each bin type
        served[k] <= sum_{b, j} count[j, k] * copies[b, j]          for each option
        sum_{k of c} served[k] + missed[c] = demand[c]              for each class

    It is solved with fractions, or in integers. In a basic solution of the linear relaxation, at most as many bin
    types have fractional copies as there are rows of options and classes: with few classes nearly every bin is decided.

    Parameters
    ----------
    choices
        The columns to choose from, by bin type.
    bins
        How many bins there are of each type.
    demand
        How many of each demand class are to be placed.

    Raises
    ------
    Stopped
        It is time to stop.
    """

    def __init__(
        self,
        instance: PackingInstance,
        choices: Mapping[int, Sequence[Column]],
        bins: Mapping[int, int],
        demand: Sequence[int],
        stop: Stop,
    ) -> None:
        super().__init__(instance, demand)
        self.choices = choices
        self.served: list[cp_model.IntVar] = []
        for option, assignment in enumerate(instance.options):
            size = demand[assignment.cls]
            self.served.append(self.cp.new_int_var(0, size, f"served {option}"))
        self.copies: dict[int, list[cp_model.IntVar]] = {}
        for bin_type, columns in stop.each(choices.items()):
            self.copies[bin_type] = self._copies(
                bin_type, len(columns), bins[bin_type]
            )
        for bin_type, copies in self.copies.items():
            total = cp_model.LinearExpr.sum(copies)
            self.cp.add(total <= bins[bin_type])
        self.rows_of_options = self._serve(stop)
        self.cover(enumerate(self.served))

    def _copies(
        self, bin_type: int, column_count: int, bin_count: int
    ) -> list[cp_model.IntVar]:
        return [
            self.cp.new_int_var(0, bin_count, f"copies {bin_type} {column}")
            for column in range(column_count)
        ]

    def _serve(self, stop: Stop) -> list[int]:
        """Add that no option is served more often than columns do; return the rows (by index) of the options."""
        terms: list[list[Term]] = [[(served, -1)] for served in self.served]
        for bin_type, copies in stop.each(self.copies.items()):
            for variable, column in zip(
                copies, self.choices[bin_type], strict=True
            ):
                for option, count in enumerate(column.counts):
                    if count:
                        terms[option].append((variable, count))
        rows = []
        for row in terms:
            constraint = self.cp.add(sum_of(row) >= 0)
            rows.append(constraint.index)
        return rows

    def read(
        self, values: Sequence[float]
    ) -> dict[int, list[tuple[Column, float]]]:
        """Return by bin type the columns with copies, given the values of all variables."""
        chosen: dict[int, list[tuple[Column, float]]] = {}
        for bin_type, copies in self.copies.items():
            chosen[bin_type] = []
            for variable, column in zip(
                copies, self.choices[bin_type], strict=True
            ):
                copy_count = values[variable.index]
                if copy_count:
                    chosen[bin_type].append((column, copy_count))
        return chosen


# ----------------------------------------------------------------------------
# The exact model of packing: it decides over items and bins at once, so each bin is a
# place where options are placed and items supplied.


class _UnitGroup(NamedTuple):
    """Equal units of a bin (by place), and what they supply."""

    units: list[int]
    is_shared: bool
    supplied: Supplied


class _BinVariables(NamedTuple):
    """The variables of a bin.

    Parameters
    ----------
    placed
        By option, how often it is served.
    groups
        What units supply.
    apart
        For item groups of several different devices, how many items each group of units gives to those of a kind.
    """

    placed: dict[int, cp_model.IntVar]
    groups: list[_UnitGroup]
    apart: Mapping[SeveralDevices, Sequence[cp_model.IntVar]]


class ExactModel(TieredModel):
    """The exact model: each bin has variables of its own.

    Parameters
    ----------
    stop
        When to stop building it.

    Raises
    ------
    Stopped
        It is time to stop.
    """

    def __init__(
        self, instance: PackingInstance, stop: Stop | None = None
    ) -> None:
        super().__init__(instance, instance.demand)
        stop = stop or Stop()
        bin_types: list[BinType] = []
        for bin_type in instance.bin_types:
            bin_types += [bin_type] * len(bin_type.instances)
        self.bins = [
            self._bin(bin_type) for bin_type in stop.hundreds(bin_types)
        ]
        self.cover(
            option for bin_ in self.bins for option in bin_.placed.items()
        )

    def _bin(self, bin_type: BinType) -> _BinVariables:
        placed: dict[int, cp_model.IntVar] = {}
        for option in self.instance.options_of(bin_type.area):
            size = self.demand[self.instance.options[option].cls]
            placed[option] = self.cp.new_int_var(0, size, f"placed {option}")
        groups = []
        for unit_type_index, units in self._unit_groups(bin_type):
            unit_type = self.instance.unit_types[unit_type_index]
            supplied = unit_type.supply(self.cp, len(units))
            groups.append(_UnitGroup(units, unit_type.shared, supplied))
        self.balance(placed.items(), [group.supplied for group in groups])
        return _BinVariables(placed, groups, self._keep_apart(placed, groups))

    def _keep_apart(
        self,
        placed: Mapping[int, cp_model.IntVar],
        groups: Sequence[_UnitGroup],
    ) -> dict[SeveralDevices, list[cp_model.IntVar]]:
        """Add that item groups of several devices get different ones.

        Of *k* item groups of *m* devices, a shared device can give one item to each. If none gives more than *k*, and
        all together *k m*, they can be handed out: each time the *m* devices that have most left give one (Gale and
        Ryser 1957).
        """
        apart = {
            kind: self._to_different_devices(kind, group_terms, groups)
            for kind, group_terms in self._groups_kept_apart(placed).items()
        }
        for group_index, group in enumerate(groups):
            supply = group.supplied.terms
            for item_type in dict.fromkeys(kind.type for kind in apart):
                given = [
                    variables[group_index]
                    for kind, variables in apart.items()
                    if kind.type == item_type
                ]
                supplied = sum_of(supply.get(item_type, ()))
                self.cp.add(cp_model.LinearExpr.sum(given) <= supplied)
        return apart

    def _groups_kept_apart(
        self, placed: Mapping[int, cp_model.IntVar]
    ) -> Mapping[SeveralDevices, list[Term]]:
        """Return by kind the terms that add up to the item groups whose devices have to be told apart."""
        group_terms: dict[SeveralDevices, list[Term]] = defaultdict(list)
        for option, variable in placed.items():
            several = self.instance.options[option].several_devices
            for kind, count in Tally(several).items():
                if kind.type in self.instance.kept_apart:
                    group_terms[kind].append((variable, count))
        return group_terms

    def _to_different_devices(
        self,
        kind: SeveralDevices,
        group_terms: Sequence[Term],
        groups: Sequence[_UnitGroup],
    ) -> list[cp_model.IntVar]:
        """Add how many items units give to item groups of a kind: a shared device gives each of them one at most."""
        most_items = kind.number * most_of(group_terms)
        item_group_count = sum_of(group_terms)
        given = [
            self.cp.new_int_var(0, most_items, f"apart {kind}") for _ in groups
        ]
        self.cp.add(
            cp_model.LinearExpr.sum(given) == kind.number * item_group_count
        )
        for group, variable in zip(groups, given, strict=True):
            if group.is_shared:
                self.cp.add(variable <= item_group_count)
        return given

    def _unit_groups(
        self, bin_type: BinType
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield the units of each type, together if the supply of several is exact."""
        units_by_type: dict[int, list[int]] = defaultdict(list)
        for unit, unit_type in enumerate(bin_type.unit_types):
            units_by_type[unit_type].append(unit)
        for unit_type, units in units_by_type.items():
            units_here = self.instance.unit_types[unit_type]
            # Which of several shared devices gives an item has to be known where that may not be the same one again.
            is_kept_apart = units_here.shared and bool(
                self.instance.kept_apart.intersection(units_here.types)
            )
            if units_here.together and not is_kept_apart:
                yield unit_type, units
            else:
                for unit in units:
                    yield unit_type, [unit]

    def hint(self, answer: PackingSolution) -> None:
        """Start the search from an answer."""
        nothing = (0,) * len(self.instance.options)
        bins = iter(self.bins)
        for bin_type, chosen in zip(
            self.instance.bin_types, answer, strict=True
        ):
            counts_of_bins: list[tuple[int, ...]] = []
            for column, copies in chosen:
                counts_of_bins += [column.counts] * copies
            idle_bins = len(bin_type.instances) - len(counts_of_bins)
            counts_of_bins += [nothing] * idle_bins
            for counts in counts_of_bins[: len(bin_type.instances)]:
                for option, variable in next(bins).placed.items():
                    self.cp.add_hint(variable, counts[option])

    def read(self, values: Sequence[int]) -> Packing:
        """Return what is served in each bin, given the values of all variables."""
        counts = np.zeros(
            (len(self.bins), len(self.instance.options)), dtype=np.int64
        )
        rounds = []
        for bin_number, bin_ in enumerate(self.bins):
            for option, units in self._content(bin_, values):
                counts[bin_number, option] += 1
                rounds.append(
                    PlacementRound(
                        option, np.array([bin_number]), np.array([units])
                    )
                )
        return Packing(counts, rounds)

    def _content(
        self, bin_: _BinVariables, values: Sequence[int]
    ) -> Iterator[tuple[int, list[int]]]:
        """Yield each option that is served, with units for its items: the first that have any to give."""
        suppliers = _Suppliers()
        for group_index, group in enumerate(bin_.groups):
            several = {
                kind: values[variables[group_index].index]
                for kind, variables in bin_.apart.items()
            }
            suppliers.enter(group, several, values)
        for option, variable in bin_.placed.items():
            items = Tally(self.instance.options[option].items)
            for _ in range(values[variable.index]):
                units: list[int] = []
                for item, count in items.items():
                    kind = SeveralDevices(item.type, count)
                    units += suppliers.take(kind, apart=kind in bin_.apart)
                yield option, units


class _Supplier(NamedTuple):
    """A unit that gives items; one of different devices of a unit is told from the others by a number."""

    unit: int
    device: int


class _Suppliers:
    """Which units of a bin give items, as a model decided."""

    def __init__(self) -> None:
        self._by_type: dict[int, list[int]] = defaultdict(list)
        # For item groups of several different devices, how many items each supplier has left for those of a kind.
        self._apart: dict[SeveralDevices, Tally[_Supplier]] = defaultdict(Tally)

    def enter(
        self,
        group: _UnitGroup,
        several: Mapping[SeveralDevices, int],
        values: Sequence[int],
    ) -> None:
        """Enter what equal units give, of which so many items are for item groups of several different devices."""
        units_by_type: dict[int, list[int]] = defaultdict(list)
        for unit, item_types in zip(
            group.units, group.supplied.shares(values), strict=False
        ):
            for item_type in item_types:
                units_by_type[item_type].append(unit)
        for kind, count in several.items():
            suppliers = self._apart[kind]
            units = units_by_type[kind.type]
            for unit in units[:count]:
                device = 0 if group.is_shared else suppliers.total()
                suppliers[_Supplier(unit, device)] += 1
            units_by_type[kind.type] = units[count:]
        for item_type, units in units_by_type.items():
            self._by_type[item_type] += units

    def take(self, kind: SeveralDevices, *, apart: bool) -> list[int]:
        """Take so many items of a type, and return the units that give them: different devices if they are kept apart.

        Those that have most left give one each.
        """
        if not apart:
            units = self._by_type[kind.type]
            self._by_type[kind.type] = units[kind.number :]
            return units[: kind.number]
        suppliers = self._apart[kind]
        chosen = [
            supplier for supplier, _ in suppliers.most_common(kind.number)
        ]
        suppliers.subtract(chosen)
        return [supplier.unit for supplier in chosen]
