"""A part of a problem as a small problem of its own, with the way in and out for answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dralloc.problem import Problem
from dralloc.problem.solution import Grant, Placement
from dralloc.problem.subproblem import places

__all__ = ["Excerpt"]


@dataclass(frozen=True)
class Excerpt:
    """Some demands, nodes, devices and counters of a problem.

    Parameters
    ----------
    problem
        They alone, with numbers of their own.
    demands, nodes, devices
        Their numbers in the whole problem, in order; None if they stay as they are.
    """

    problem: Problem
    demands: Sequence[int]
    nodes: Sequence[int] | None = None
    devices: Sequence[int] | None = None

    def inward(self, placements: Iterable[Placement]) -> list[Placement]:
        """Placements of the whole problem, in the numbers of the small one."""
        numbers = (
            None if each is None else places(each)
            for each in (self.nodes, self.devices)
        )
        return _renumbered(placements, self.place_of, *numbers)

    @cached_property
    def place_of(self) -> Mapping[int, int]:
        """By demand of the whole problem, its number in the small one."""
        return places(self.demands)

    def outward(self, placements: Iterable[Placement]) -> list[Placement]:
        """Placements of the small problem, in the numbers of the whole one."""
        return _renumbered(placements, self.demands, self.nodes, self.devices)


_Numbers = Mapping[int, int] | Sequence[int]


def _renumbered(
    placements: Iterable[Placement],
    demands: _Numbers,
    nodes: _Numbers | None,
    devices: _Numbers | None,
) -> list[Placement]:
    def moved(grants: Sequence[Grant]) -> tuple[Grant, ...]:
        return tuple(
            grants
            if devices is None
            else (each._replace(device=devices[each.device]) for each in grants)
        )

    return [
        Placement(
            demands[each.demand],
            each.node if nodes is None else nodes[each.node],
            tuple(map(moved, each.grants)),
        )
        for each in placements
    ]
