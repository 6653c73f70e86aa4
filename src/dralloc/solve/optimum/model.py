"""The exact model of a problem, over the devices that requests can get.

Every demand *u* is on one of its nodes or missed, every request *r* of it is served by one alternative *a*, and a
serving takes as many of its candidate devices *d* as it asks for::

    sum_n on[u, n] + miss[u] = 1
    sum_a serve[r, a, n] = on[u(r), n]
    sum_d take[r, a, d, n] = count[a] * serve[r, a, n]

Of interchangeable devices (`dralloc.solve.optimum.interchangeable`), one boolean per device says that it is taken, and
the servings only add up to as many: they count devices of a group *g* in place of taking each *d*. The rest is one
function per family of rules (`dralloc.solve.optimum.component.RULES`), which add their rows to this model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dralloc.objects.errors import ModelError
from dralloc.problem import CounterIndex, DeviceIndex, Problem
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.rows import Literal, Term
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.variables import Serving, Variables

__all__ = ["Model"]


@dataclass(frozen=True, slots=True)
class Model:
    """A CP-SAT model of some demands of a problem, which have these sites, without objective.

    ``turns``: the variables that `turn` has made.
    """

    problem: Problem
    sites: Mapping[DemandIndex, tuple[CandidateSite, ...]]
    cp: cp_model.CpModel
    variables: Variables
    turns: dict[Hashable, cp_model.IntVar] = field(default_factory=dict)

    def turn(self, of: Hashable) -> cp_model.IntVar:
        """Return the variable for the turn of a demand, or a time between turns, if the order matters."""
        if of not in self.turns:
            # There is room for one other time beside each demand.
            last = 2 * len(self.variables.miss) + 1
            # Times belong to rules, whose text lists sets: in another order in each process. So they have no names of
            # their own.
            name = f"turn {of}" if isinstance(of, int) else "time"
            self.turns[of] = self.cp.new_int_var(0, last, name)
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

    def first_users(self) -> Iterator[tuple[DeviceIndex, Literal]]:
        """By device: a literal that puts its version in force, which is a dedicated use, or the first of its shares.

        While a pool is updated, only one of the generations that nodes see has counters, and a grant consumes only the
        counters of the version that its node sees (upstream behaviour): there is an order in which those grants come
        first.
        """
        for take in self.variables.takes():
            if not take.admin and not take.view.shareable:
                yield take.device, take.literal
        yield from self.variables.in_force.items()

    def counter_terms(self) -> Mapping[CounterIndex, list[Term]]:
        """The consumption of counters: by a device in use (KEP-4815), by each allocation on request (KEP-5941)."""
        drawn: dict[CounterIndex, list[Term]] = defaultdict(list)
        for take in self.variables.takes():
            if take.admin:
                continue
            for counter, amount in take.charge.counters:
                drawn[counter].append((take.literal, amount))
        for serving in self.variables.every_serving():
            for group_count in serving.group_counts:
                for counter, amount in group_count.use.counters:
                    drawn[counter] += [
                        (variable, times * amount)
                        for variable, times in group_count.terms
                    ]
        consumed = self.variables.consumed
        for device, user in self.first_users():
            for counter, amount in self.problem.devices[device].consumes:
                literal = consumed.get((device, counter), user)
                drawn[counter].append((literal, amount))
        return dict(sorted(drawn.items()))

    def placements(
        self, value: Callable[[Literal], int]
    ) -> tuple[Placement, ...]:
        """Read an answer: placements in the order of the demands, grants in the order of requests and search.

        The devices taken of a group are handed out in search order to the demands in their order.
        """
        # By group what is to be handed out, the first device last.
        pools: list[list[DeviceIndex]] = []
        for group in self.variables.device_groups:
            in_reverse = reversed(group.takes)
            pools.append(
                [take.device for take in in_reverse if value(take.literal)]
            )
        placements = []
        for (demand, node), on in self.variables.on.items():
            if not value(on):
                continue
            claims: list[list[Grant]] = [
                [] for _ in self.problem.demands[demand].claims
            ]
            for serving in _flat(self.variables.servings[demand, node]):
                if value(serving.literal):
                    claims[serving.choice.claim] += _grants(
                        serving, value, pools
                    )
            placements.append(
                Placement(demand, node, tuple(map(tuple, claims)))
            )
        return tuple(placements)

    def hint(self, placements: Iterable[Placement]) -> None:
        """Let the search start from an answer, in place of the one that it was told to start from before."""
        placed = {placement.demand: placement for placement in placements}
        values: dict[int, tuple[Literal, int]] = {}
        for demand, miss in self.variables.miss.items():
            values[miss.index] = miss, demand not in placed
        anonymous: set[int] = set()
        for (demand, node), on in self.variables.on.items():
            placement = placed.get(demand)
            if placement is not None and placement.node != node:
                placement = None
            values[on.index] = on, placement is not None
            for claim in self.variables.shared.get(demand, ()):
                home = self.variables.homes.get((demand, claim, node))
                if home is not None:
                    is_home = placement is not None and bool(
                        placement.grants[claim]
                    )
                    values[home.index] = home, is_home
            for serving in _flat(self.variables.servings[demand, node]):
                devices = _devices(serving, placement)
                if serving.group_counts:
                    anonymous |= devices
                self._hint_serving(values, serving, devices)
        for group in self.variables.device_groups:
            for take in group.takes:
                values[take.literal.index] = (
                    take.literal,
                    take.device in anonymous,
                )
        self.cp.clear_hints()  # type: ignore[no-untyped-call]
        for variable, value in values.values():
            self.cp.add_hint(variable, value)

    def _hint_serving(
        self,
        values: dict[int, tuple[Literal, int]],
        serving: Serving,
        devices: set[DeviceIndex],
    ) -> None:
        # A literal that stands for several decisions keeps the first value it gets.
        values.setdefault(
            serving.literal.index, (serving.literal, bool(devices))
        )
        for take in serving.takes:
            is_taken = take.device in devices
            values.setdefault(take.literal.index, (take.literal, is_taken))
        for group, variables, _, _ in serving.group_counts:
            takes = self.variables.device_groups[group].takes
            count = sum(take.device in devices for take in takes)
            for index, variable in enumerate(variables):
                value = count if len(variables) == 1 else index < count
                values.setdefault(variable.index, (variable, value))


def _flat(requests: Iterable[Iterable[Serving]]) -> Iterable[Serving]:
    return (serving for servings in requests for serving in servings)


def _grants(
    serving: Serving,
    value: Callable[[Literal], int],
    pools: list[list[DeviceIndex]],
) -> list[Grant]:
    choice = serving.choice
    devices = {take.device for take in serving.takes if value(take.literal)}
    for group_count in serving.group_counts:
        device_count = sum(
            times * value(variable) for variable, times in group_count.terms
        )
        devices.update(
            pools[group_count.group].pop() for _ in range(device_count)
        )
    return [
        Grant(choice.request, choice.alternative, device)
        for device, _ in choice.candidates
        if device in devices
    ]


def _devices(serving: Serving, placement: Placement | None) -> set[DeviceIndex]:
    """Return the devices of a serving in an answer, given its demand's placement if that is on its node."""
    choice = serving.choice
    grants = placement.grants[choice.claim] if placement else ()
    return {
        grant.device
        for grant in grants
        if grant[:2] == (choice.request, choice.alternative)
    }
