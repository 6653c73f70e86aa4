"""The exact model of a problem, over the devices that requests can get.

Every demand *u* is on one of its nodes or missed, every request *r* of it is served by one alternative *a*, and a
serving takes as many of its candidate devices *d* as it asks for::

    sum_n on[u, n] + miss[u] = 1
    sum_a serve[r, a, n] = on[u(r), n]
    sum_d take[r, a, d, n] = count[a] * serve[r, a, n]

Of interchangeable devices, one boolean per device says that it is taken, and the servings only add up to as many: see
`dralloc.solve.optimum.interchangeable`.
The rest is one function per family of rules in `dralloc.solve.optimum.constraints`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ortools.sat.python import cp_model

from dralloc.objects.errors import ModelError
from dralloc.problem import Problem
from dralloc.problem.grouping import grouped
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.rows import Literal, Term
from dralloc.solve.optimum.variables import Serving, Variables

__all__ = ["Model"]


@dataclass(frozen=True, slots=True)
class Model:
    """A CP-SAT model of some demands of a problem, which have these sites, without objective.

    ``turns``: the variables that `turn` has made.
    """

    problem: Problem
    sites: Mapping[int, tuple[CandidateSite, ...]]
    cp: cp_model.CpModel
    variables: Variables
    turns: dict[Hashable, cp_model.IntVar] = field(default_factory=dict)

    def turn(self, of: Hashable) -> cp_model.IntVar:
        """When a demand comes, or some other time between the turns of demands, as far as it matters to somebody."""
        if of not in self.turns:
            # There is room for one other time beside each demand.
            self.turns[of] = self.cp.new_int_var(
                0, 2 * len(self.variables.miss) + 1, f"turn {of}"
            )
        return self.turns[of]

    def write(self, path: Path) -> None:
        """Write the model in CP-SAT's exchange format: text if the file's name ends in ``.txt``.

        Raises
        ------
        ModelError
            The file cannot be written.
        """
        if not self.cp.export_to_file(str(path)):
            raise ModelError(f"{path}: cannot write the model")

    def dedicated_users(self) -> Mapping[int, list[Literal]]:
        """By slot: the uses of a dedicated device; admin access is none."""
        takes = self.variables.takes()
        return grouped(
            (take.view.slot, take.literal)
            for take in takes
            if not (take.admin or take.view.shareable)
        )

    def first_users(self) -> Iterator[tuple[int, Literal]]:
        """By device: a literal that puts its version in force, which is a dedicated use, or the first of its shares.

        While a pool is updated, only one of the generations that nodes see has counters, and a grant consumes only the
        counters of the version that its node sees (upstream behaviour): there is an order in which those grants come
        first.
        """
        for take in self.variables.takes():
            if not take.admin and not take.view.shareable:
                yield take.device, take.literal
        yield from self.variables.in_force.items()

    def counter_terms(self) -> Mapping[int, list[Term]]:
        """The consumption of counters: by a device in use (KEP-4815), by each allocation on request (KEP-5941)."""
        drawn: dict[int, list[Term]] = defaultdict(list)
        for take in self.variables.takes():
            for counter, amount in () if take.admin else take.charge.counters:
                drawn[counter].append((take.literal, amount))
        for device, user in self.first_users():
            for counter, amount in self.problem.devices[device].consumes:
                drawn[counter].append(
                    (self.variables.consumed.get((device, counter), user), amount)
                )
        return dict(sorted(drawn.items()))

    def placements(self, value: Callable[[Literal], int]) -> tuple[Placement, ...]:
        """Read an answer: placements in the order of the demands, grants in the order of requests and search.

        The devices taken of a group are handed out in search order to the demands in their order.
        """
        left = [
            [take.device for take in reversed(group.takes) if value(take.literal)]
            for group in self.variables.device_groups
        ]
        found = []
        for (demand, node), on in self.variables.on.items():
            if value(on):
                claims: list[list[Grant]] = [
                    [] for _ in self.problem.demands[demand].claims
                ]
                for serving in _flat(self.variables.servings[demand, node]):
                    if value(serving.literal):
                        claims[serving.choice.claim] += _grants(serving, value, left)
                found.append(Placement(demand, node, tuple(map(tuple, claims))))
        return tuple(found)

    def hint(self, placements: Iterable[Placement]) -> None:
        """Let the search start from an answer, in place of the one that it was told to start from before."""
        placed = {placement.demand: placement for placement in placements}
        values: dict[int, tuple[Literal, int]] = {}
        for demand, miss in self.variables.miss.items():
            values[miss.index] = miss, demand not in placed
        anonymous: set[int] = set()
        for (demand, node), on in self.variables.on.items():
            here = placed.get(demand)
            here = here if here is not None and here.node == node else None
            values[on.index] = on, here is not None
            for claim in self.variables.shared.get(demand, ()):
                home = self.variables.homes.get((demand, claim, node))
                if home is not None:
                    values[home.index] = (
                        home,
                        here is not None and bool(here.grants[claim]),
                    )
            for serving in _flat(self.variables.servings[demand, node]):
                mine = _devices(serving, here)
                anonymous |= mine if serving.group_counts else set()
                self._hint_serving(values, serving, mine)
        for group in self.variables.device_groups:
            for take in group.takes:
                values[take.literal.index] = take.literal, take.device in anonymous
        self.cp.clear_hints()  # type: ignore[no-untyped-call]
        for variable, value in values.values():
            self.cp.add_hint(variable, value)

    def _hint_serving(
        self, values: dict[int, tuple[Literal, int]], serving: Serving, mine: set[int]
    ) -> None:
        values.setdefault(serving.literal.index, (serving.literal, bool(mine)))
        for take in serving.takes:
            values.setdefault(take.literal.index, (take.literal, take.device in mine))
        for group, variable, _ in serving.group_counts:
            taken = sum(
                take.device in mine
                for take in self.variables.device_groups[group].takes
            )
            values.setdefault(variable.index, (variable, taken))


def _flat(requests: Iterable[Iterable[Serving]]) -> Iterable[Serving]:
    return (serving for servings in requests for serving in servings)


def _grants(
    serving: Serving, value: Callable[[Literal], int], left: list[list[int]]
) -> list[Grant]:
    choice = serving.choice
    devices = {take.device for take in serving.takes if value(take.literal)}
    for group, variable, times in serving.group_counts:
        devices.update(left[group].pop() for _ in range(times * value(variable)))
    return [
        Grant(choice.request, choice.alternative, device)
        for device, _ in choice.candidates
        if device in devices
    ]


def _devices(serving: Serving, here: Placement | None) -> set[int]:
    """What the serving has in an answer, given the placement of its demand if that is on its node."""
    choice = serving.choice
    grants = here.grants[choice.claim] if here else ()
    return {
        grant.device
        for grant in grants
        if grant[:2] == (choice.request, choice.alternative)
    }
