"""What the claims of a mix find: a problem with one claim of each kind, and everything that is in use."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property

from dralloc.explain.books import Books
from dralloc.explain.offers import Offers
from dralloc.explain.scene import Scene
from dralloc.explain.turn import allocated_holdings
from dralloc.match import MatchTable
from dralloc.problem import Alternative, Demand, Problem
from dralloc.stranded.essential import Essential
from dralloc.stranded.measures import Measures
from dralloc.stranded.mix import Mix

__all__ = ["Ground", "alternatives_of"]


def alternatives_of(demand: Demand) -> Iterator[Alternative]:
    """Every alternative of a demand."""
    return (each for claim in demand.claims for request in claim.requests for each in request.alternatives)


class Ground:
    """A mix with what there is for it."""

    def __init__(self, mix: Mix) -> None:
        self.mix = mix
        self.problem: Problem = mix.compiled.problem
        self.table: MatchTable = mix.compiled.table
        books = Books(self.problem, allocated_holdings(mix.compiled))
        self.scene = Scene(self.problem, Offers(self.table), books)
        self.measures = Measures(mix.compiled, books)
        self.essential = Essential(self.problem.demands, self.table)
        self._numbers: dict[Hashable, int] = {}
        self._selecting: dict[Hashable, tuple[int, ...]] = {}

    def number(self, thing: Hashable) -> int:
        """A number that stands for a thing: large keys are compared once."""
        return self._numbers.setdefault(thing, len(self._numbers))

    def draws(self, device: int) -> Iterator[int]:
        """The counters that a device draws on, also those of which claims say how much."""
        yield from (number for number, _ in self.problem.devices[device].consumes)
        yield from (number for number, _ in self.mix.compiled.inventory.sources[device].requested_counters)

    def selecting(self, device: int) -> tuple[int, ...]:
        """The numbers of the demands that select a device for one of their requests."""
        look = self.table.look(device)
        if look not in self._selecting:
            self._selecting[look] = tuple(
                number
                for number, demand in enumerate(self.problem.demands)
                if any(self.table.selects(each.index, device) is True for each in alternatives_of(demand))
            )
        return self._selecting[look]

    def selects_shared(self, alternative: Alternative) -> bool:
        """Whether some shareable device is selected by an alternative."""
        return any(
            device.shareable and self.table.selects(alternative.index, number) is True
            for number, device in enumerate(self.problem.devices)
        )

    @cached_property
    def reached(self) -> Mapping[int, list[int]]:
        """For each node the devices that it reaches and that some demand selects, in search order."""
        on_node, selecting = self.problem.on_node, self.selecting
        return {
            number: [device for device in node.devices() if selecting(device) and on_node(device, number)]
            for number, node in enumerate(self.problem.nodes)
        }

    @cached_property
    def schedulable(self) -> frozenset[int]:
        """The nodes that claims may go to: those that are not cordoned."""
        demands = self.problem.demands
        return frozenset(self.problem.candidate_nodes(demands[0]) if demands else ())
