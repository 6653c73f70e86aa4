"""The relaxation: items may come from any unit of an area, whatever bin it is in.

So the places of `dralloc.solve.optimum.packing.tiered` are areas. Any answer is an answer here, so what is proven here
is a bound for all; and the shadow prices of its linear relaxation say how precious an item is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dralloc.problem.grouping import summed
from dralloc.solve.optimum.linear import solve_linear
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.packing.tiered import TieredModel
from dralloc.solve.optimum.stopping import Stop

_SIZE: Final = 0.001
"""What size weighs beside prices."""

__all__ = ["Prices", "Relaxation", "guide"]

Prices = Mapping[tuple[int, int], float]
"""What an item is worth, by area and type, in the unit of the weights."""


class Relaxation(TieredModel):
    """The model; see the module."""

    def __init__(self, instance: PackingInstance) -> None:
        super().__init__(instance, instance.demand)
        self.placed = {
            (option, area): self.cp.new_int_var(
                0, self.demand[instance.options[option].cls], f"placed {option} {area}"
            )
            for area in range(len(instance.areas))
            for option in instance.options_of(area)
        }
        self.cover((option, variable) for (option, _), variable in self.placed.items())
        units = summed(
            ((bin_type.area, unit_type), len(bin_type.instances))
            for bin_type in instance.bin_types
            for unit_type in bin_type.unit_types
        )
        self._rows = {
            (area, type_): row
            for area in range(len(instance.areas))
            for type_, row in self.balance(
                [
                    (option, variable)
                    for (option, place), variable in self.placed.items()
                    if place == area
                ],
                (
                    instance.unit_types[unit].supply(self.cp, n)
                    for (place, unit), n in units.items()
                    if place == area
                ),
            ).items()
        }

    def targets(self, values: Sequence[int]) -> dict[tuple[int, int], int]:
        """By option and area, how many are placed, given the values of all variables."""
        return {
            place: values[variable.index] for place, variable in self.placed.items()
        }

    def prices(self, stop: Stop) -> Prices:
        """What one more item would be worth in the first tier, with fractions allowed."""
        found = solve_linear(self.cp, self.cost(0), stop)
        return (
            {place: abs(found.duals[row.index]) for place, row in self._rows.items()}
            if found
            else {}
        )


def guide(instance: PackingInstance, prices: Prices) -> Prices:
    """Prices that also tell large items from small ones where the relaxation has enough of both."""
    scale = max(prices.values(), default=0.0) or 1.0
    most = {
        type_: max(
            (
                unit_type.most(type_)
                for unit_type in instance.unit_types
                if type_ in unit_type.types
            ),
            default=0,
        )
        for type_ in instance.types
    }
    return {
        (area, type_): prices.get((area, type_), 0.0)
        + _SIZE * scale / max(1, most[type_])
        for area in range(len(instance.areas))
        for type_ in instance.types
    }
