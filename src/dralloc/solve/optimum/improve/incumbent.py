"""The answer in hand of a search, with what is in use beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from dralloc.problem import Charge, Problem
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, charged_grants

__all__ = ["Incumbent"]


class Incumbent:
    """An answer to a problem that can be changed placement by placement.

    Attributes
    ----------
    placements
        By demand, of those that are placed.
    ledger
        What is in use with them.
    """

    def __init__(self, problem: Problem, placements: Iterable[Placement]) -> None:
        self.problem = problem
        self.placements: dict[int, Placement] = {}
        self.ledger = Ledger(problem)
        self._on_node: list[dict[int, None]] = [{} for _ in problem.nodes]
        for placement in placements:
            self.enter(placement)

    def enter(self, placement: Placement) -> None:
        """Add the placement of a demand that is not placed."""
        self.placements[placement.demand] = placement
        self._on_node[placement.node][placement.demand] = None
        for device, charge in self._charges(placement):
            self.ledger.enter(
                self.problem.devices[device],
                charge,
                share=self.problem.devices[device].shareable,
            )

    def withdraw(self, demand: int) -> Placement:
        """Take out the placement of a demand, and return it."""
        placement = self.placements.pop(demand)
        del self._on_node[placement.node][demand]
        for device, charge in self._charges(placement):
            self.ledger.revoke(
                self.problem.devices[device],
                charge,
                share=self.problem.devices[device].shareable,
            )
        return placement

    @contextmanager
    def without(self, demands: Iterable[int]) -> Iterator[None]:
        """Inside of the block, these demands are not placed."""
        withdrawn = [
            self.withdraw(demand) for demand in demands if demand in self.placements
        ]
        try:
            yield
        finally:
            for placement in withdrawn:
                self.enter(placement)

    def on_node(self, node: int) -> Sequence[int]:
        """The demands that are placed on a node."""
        return tuple(self._on_node[node])

    def in_order(self) -> tuple[Placement, ...]:
        """The placements in the order of the demands."""
        return tuple(self.placements[demand] for demand in sorted(self.placements))

    def _charges(self, placement: Placement) -> Iterator[tuple[int, Charge]]:
        for _, device, charge in charged_grants(self.problem, (placement,)):
            yield device, charge
