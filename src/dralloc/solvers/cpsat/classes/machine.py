"""What fits into a cell: its states, and how a need is embedded in a state.

A state says what is left of every unit of a cell class. Equal devices of a unit are counted, equal units are sorted,
and what cannot be taken any more counts as taken, so that states with the same future are mostly one state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from dralloc.problem import ConstraintKind
from dralloc.solvers.cpsat.classes.live import Profile
from dralloc.solvers.cpsat.classes.needs import Need
from dralloc.solvers.cpsat.classes.signature import CellClass, UnitView

__all__ = ["Block", "Effort", "Machine", "State", "Step", "Take", "TooMuchEffort"]

Block = tuple[int, ...]
"""Of a unit: devices left per group (see `_Group`), then what is left of counters, then of capacities."""

Amounts = tuple[tuple[int, int], ...]
"""What is taken from a block, by place."""

State = tuple[Block, ...]
"""Of a cell: its units."""


class Take(NamedTuple):
    """One device for an ask: the unit's place in the state, and the group in it."""

    ask: int
    unit: int
    group: int


class Step(NamedTuple):
    """A need served on a node (its place in the cell): its takes; then the units are put in the order given."""

    need: int
    place: int
    takes: tuple[Take, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """Equal devices of a unit; a shareable one is alone. Amounts are listed with their places in the block.

    ``opens``: what the first use draws; ``uses``: by type, what each use takes; ``first``: both together.
    """

    members: tuple[int, ...]
    shareable: bool
    opens: Amounts
    uses: Mapping[int, Amounts]
    first: Mapping[int, Amounts]
    values: tuple[frozenset[int] | None, ...]
    places: frozenset[int]
    flag: int = -1

    def takes(self, block: Block) -> Mapping[int, Amounts]:
        """By type, what one more use takes."""
        return self.first if self.flag < 0 or block[self.flag] else self.uses


@dataclass(frozen=True, slots=True)
class _Layout:
    groups: tuple[_Group, ...]
    block: Block
    look: int


class TooMuchEffort(Exception):  # noqa: N818 - no error: a sign to go another way
    """A search looked at more devices than it was allowed to."""


class Effort:
    """How many devices a search may still look at; None for any number."""

    def __init__(self, limit: int | None) -> None:
        self.left: float = inf if limit is None else limit

    def spend(self, devices: int) -> None:
        """Look at so many."""
        self.left -= devices
        if self.left < 0:
            raise TooMuchEffort


class Machine:
    """The states of a cell class.

    Parameters
    ----------
    cells
        The class.
    profiles
        What its devices' profiles stand for.
    regions
        By number, the sets of candidate nodes that a region's nodes belong to.
    """

    def __init__(self, cells: CellClass, profiles: Sequence[Profile], regions: Sequence[frozenset[int]]) -> None:
        self.cells = cells
        self.profiles = profiles
        self.attributes = [name for name, _ in cells.values]
        self.sets_of_place = [regions[place.region] for place in cells.places]
        self.layouts: list[_Layout] = []
        self._looks: dict[Hashable, int] = {}
        start = 0
        for unit in cells.units:
            self.layouts.append(self._layout(unit, start))
            start += len(unit.devices)
        self.twins = self._twins()
        self._settled: dict[tuple[int, Block], Block] = {}
        self.start: State = self._settle(tuple(layout.block for layout in self.layouts))[0]

    def _layout(self, unit: UnitView, start: int) -> _Layout:
        grouped: dict[Hashable, list[int]] = defaultdict(list)
        for position, device in enumerate(unit.devices):
            values = tuple(values[start + position] for _, values in self.cells.values)
            places = frozenset(
                number for number, place in enumerate(self.cells.places) if start + position in place.reach
            )
            alone = position if device.shareable else -1
            grouped[device, values, places, alone].append(position)
        left = [len(members) for members in grouped.values()]
        named = dict(unit.named)
        counters = range(len(left), len(left) + len(unit.free))
        left += unit.free
        groups = []
        for (device, values, places, _), members in grouped.items():  # type: ignore[misc]
            at = {name: len(left) + number for number, (name, _) in enumerate(device.capacity)}
            left += [amount for _, amount in device.capacity]
            flag = -1
            if device.shareable and device.draws:
                flag = len(left)
                left.append(1)
            uses = {
                type_: _summed(
                    (
                        *((at[name], amount) for name, amount in charge.capacity),
                        *((counters[named[counter]], amount) for counter, amount in charge.counters),
                    )
                )
                for type_, charge in self.profiles[device.profile]
            }
            opens = tuple((counters[counter], amount) for counter, amount in device.draws)
            first = {type_: _summed((*opens, *amounts)) for type_, amounts in uses.items()}
            here = tuple(start + member for member in members)
            groups.append(_Group(here, device.shareable, opens, uses, first, values, places, flag))
        look = unit, tuple((group.values, group.places) for group in groups)
        return _Layout(tuple(groups), tuple(left), self._looks.setdefault(look, len(self._looks)))

    def _twins(self) -> list[list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for number, layout in enumerate(self.layouts):
            found[layout.look].append(number)
        return [members for members in found.values() if len(members) > 1]

    @property
    def size(self) -> int:
        """How many devices a cell has."""
        return sum(len(unit.devices) for unit in self.cells.units)

    def embeddings(
        self, number: int, need: Need, state: State, effort: Effort | None = None
    ) -> Iterator[tuple[State, Step]]:
        """Every way to serve a need, up to symmetry: the state that it leaves, and the step.

        Raises
        ------
        TooMuchEffort
            They are too many to look at.
        """
        seen: set[State] = set()
        for place, blocks, takes in self._ways(need, state, effort or Effort(None)):
            after, order = self._settle(blocks)
            if after not in seen:
                seen.add(after)
                yield after, Step(number, place, takes, order)

    def serves(self, need: Need) -> bool:
        """Whether a need can be served while all is there."""
        return any(True for _ in self._ways(need, self.start, Effort(None)))

    def _ways(self, need: Need, state: State, effort: Effort) -> Iterator[tuple[int, State, tuple[Take, ...]]]:
        """Every way to serve a need: from where, what is left, and what is taken."""
        for place, sets in enumerate(self.sets_of_place):
            if need.nodes in sets:
                for blocks, takes in _Embedding(self, need, place, effort).run(state):
                    yield place, blocks, takes

    def _settle(self, blocks: State) -> tuple[State, tuple[int, ...]]:
        """Count what cannot be taken as taken, and sort equal units."""
        settled = [self._settled_block(layout, block) for layout, block in zip(self.layouts, blocks, strict=True)]
        if not self.twins:
            return tuple(settled), ()
        order = list(range(len(settled)))
        for members in self.twins:
            for place, unit in zip(members, sorted(members, key=lambda unit: settled[unit]), strict=True):
                order[place] = unit
        return tuple(settled[unit] for unit in order), tuple(order)

    def _settled_block(self, layout: _Layout, block: Block) -> Block:
        key = layout.look, block
        if key not in self._settled:
            self._settled[key] = _without_rest(layout, block)
        return self._settled[key]


def _without_rest(layout: _Layout, block: Block) -> Block:
    """Nothing left of a group that cannot be opened or used, and of what no group that is left could use."""
    settled = [0] * len(block)
    for number, group in enumerate(layout.groups):
        if not block[number]:
            continue
        usable = [amounts for amounts in group.takes(block).values() if _fits(block, amounts)]
        if not usable:
            continue
        settled[number] = block[number]
        if group.flag >= 0:
            settled[group.flag] = block[group.flag]
        for amounts in usable:
            for place, _ in amounts:
                settled[place] = block[place]
    return tuple(settled)


def _summed(amounts: Iterable[tuple[int, int]]) -> Amounts:
    """The amounts, each place once."""
    sums: dict[int, int] = {}
    for place, amount in amounts:
        sums[place] = sums.get(place, 0) + amount
    return tuple(sums.items())


def _fits(block: Block, amounts: Amounts) -> bool:
    for place, amount in amounts:  # noqa: SIM110 - as a loop, for it is the hottest place of the room
        if block[place] < amount:
            return False
    return True


class _Embedding:
    """A search for all ways to serve a need on a node."""

    def __init__(self, machine: Machine, need: Need, place: int, effort: Effort) -> None:
        self.effort = effort
        self.need = need
        self.machine = machine
        self.options: list[list[tuple[int, int, _Group]]] = [
            [
                (unit, number, group)
                for unit, layout in enumerate(machine.layouts)
                for number, group in enumerate(layout.groups)
                if ask.type in group.uses and place in group.places
            ]
            for ask in need.asks
        ]
        self.rules = [
            (rule.kind, machine.attributes.index(rule.attribute), frozenset(rule.asks))
            for rule in need.rules
            if rule.attribute in machine.attributes
        ]

    def run(self, state: State) -> Iterator[tuple[State, tuple[Take, ...]]]:
        """Every way, as what is left and what is taken."""
        return self._ask(0, state, ())

    def _ask(self, ask: int, state: State, takes: tuple[Take, ...]) -> Iterator[tuple[State, tuple[Take, ...]]]:
        if ask == len(self.need.asks):
            yield state, takes
            return
        yield from self._devices(ask, 0, self.need.asks[ask].number, state, takes)

    def _devices(
        self, ask: int, first: int, count: int, state: State, takes: tuple[Take, ...]
    ) -> Iterator[tuple[State, tuple[Take, ...]]]:
        """Devices of groups from the first on: combinations, a shareable device at most once per ask.

        Of equal units in equal state the first is tried: what is left of the others is the same again.
        """
        if count == 0:
            yield from self._ask(ask + 1, state, takes)
            return
        self.effort.spend(len(self.options[ask]))
        type_ = self.need.asks[ask].type
        tried: set[tuple[int, Block, int]] = set()
        for number in range(first, len(self.options[ask])):
            unit, place, group = self.options[ask][number]
            block = state[unit]
            if not block[place]:
                continue
            same = self.machine.layouts[unit].look, block, place
            if same in tried:
                continue
            tried.add(same)
            taken = _take(block, place, group, type_)
            if taken is None or not self._agrees(ask, group, takes):
                continue
            after = (*state[:unit], taken, *state[unit + 1 :])
            again = number + 1 if group.shareable else number
            yield from self._devices(ask, again, count - 1, after, (*takes, Take(ask, unit, place)))

    def _agrees(self, ask: int, group: _Group, takes: Sequence[Take]) -> bool:
        """Whether the constraints allow one more device."""
        layouts = self.machine.layouts
        for kind, attribute, asks in self.rules:
            if ask not in asks:
                continue
            mine = group.values[attribute]
            others = [layouts[take.unit].groups[take.group].values[attribute] for take in takes if take.ask in asks]
            values = [each if each is not None else frozenset[int]() for each in (mine, *others)]
            if kind is ConstraintKind.MATCH:
                if others and not frozenset.intersection(*values):
                    return False
            elif any(not values[0].isdisjoint(other) or not (values[0] or other) for other in values[1:]):
                return False
        return True


def _take(block: Block, place: int, group: _Group, type_: int) -> Block | None:
    amounts = group.takes(block)[type_]
    if not _fits(block, amounts):
        return None
    left = list(block)
    for at, amount in amounts:
        left[at] -= amount
    if not group.shareable:
        left[place] -= 1
    elif group.flag >= 0:
        left[group.flag] = 0
    return tuple(left)
