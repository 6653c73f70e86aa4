"""Nodes that are equal to a few demands: what fits on one of them fits on every other.

Two nodes are alike if their devices that could serve the demands are equal one by one, in search order: they serve the
same requests at the same charge, as much is left of them, and counters and compared attribute values recur in the same
pattern. The names of devices, counters and values do not matter, so the n-th device of the one stands for the n-th of
the other in any answer.

That is only true of *islands*: nodes none of whose devices, and none of whose counters, another node reaches. Devices
that choose their own nodes are on no island.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.errors import AllocationError
from dralloc.problem import Charge, Demand, Device, PoolState, Problem, Scalar
from dralloc.problem.ledger import Ledger

__all__ = ["Islands", "Recurrence", "find_islands"]

_NOTHING = Charge()


@dataclass(frozen=True, slots=True)
class Islands:
    """Nodes that are alike stand together; the first of each group stands for the others.

    Parameters
    ----------
    groups
        The nodes of each kind, in search order; nodes where nothing can happen to the demands are in none.
    offers
        A number for each group; groups that only differ in which of the demands may go there have the same.
    """

    groups: tuple[tuple[int, ...], ...]
    offers: tuple[int, ...]


def find_islands(problem: Problem, demands: Sequence[Demand]) -> Islands | None:
    """Group the nodes by what the demands see of them; None if they are no islands."""
    survey = _Survey(problem, demands)
    groups: dict[tuple[tuple[bool, ...], int], list[int]] = {}
    offers: dict[Hashable, int] = {}
    for node in range(len(problem.nodes)):
        allowed = tuple(nodes is None or node in nodes for nodes in survey.allowed)
        if any(allowed):
            sight = survey.look_at(node)
            if not survey.is_apart(sight):
                return None
            # Where a pool cannot be used, a request for all devices is an error, whatever there is.
            if sight.devices or sight.closed:
                offer = offers.setdefault(sight.key(), len(offers))
                groups.setdefault((allowed, offer), []).append(node)
    return Islands(tuple(map(tuple, groups.values())), tuple(offer for _, offer in groups))


@dataclass(slots=True)
class Recurrence:
    """Tells where values of the named attributes recur, whatever they are: they are numbered as they appear."""

    names: Sequence[str]
    _numbers: dict[tuple[str, Scalar], int] = field(default_factory=dict)

    def of(self, attributes: Mapping[str, frozenset[Scalar]]) -> tuple[frozenset[int] | None, ...]:
        """The values of a device by name, None for one that it lacks."""
        return tuple(self._numbered(name, attributes.get(name)) for name in self.names)

    def _numbered(self, name: str, values: frozenset[Scalar] | None) -> frozenset[int] | None:
        if values is None:
            return None
        numbers = self._numbers
        return frozenset(numbers.setdefault((name, value), len(numbers)) for value in sorted(values, key=repr))


@dataclass(slots=True)
class _Sight:
    """What is seen of one node. Counters and values are numbered as they appear."""

    closed: bool
    values: Recurrence
    chosen: bool = False
    devices: list[Hashable] = field(default_factory=list)
    slots: set[int] = field(default_factory=set)
    sets: dict[int, int] = field(default_factory=dict)
    counters: dict[int, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)

    def key(self) -> tuple[Hashable, ...]:
        return self.closed, tuple(self.devices), tuple(self.free)


@dataclass(frozen=True, slots=True)
class _Offer:
    """What the alternatives make of devices of one look: by position whether it is admitted and what it takes.

    ``number`` stands for all of this if no counter is charged by request.
    """

    uses: tuple[tuple[int, bool, Charge], ...]
    failing: bool
    number: int
    matters: bool


class _Survey:
    def __init__(self, problem: Problem, demands: Sequence[Demand]) -> None:
        self.problem = problem
        self.allowed = [None if demand.nodes is None else frozenset(demand.nodes) for demand in demands]
        self.alternatives = [one for demand in demands for one in demand.alternatives()]
        self.every = any(alternative.count is None for alternative in self.alternatives)
        self.minds_all = self.every or any(alternative.admin for alternative in self.alternatives)
        self.compared = sorted(
            {constraint.attribute for demand in demands for claim in demand.claims for constraint in claim.constraints}
        )
        self.ledger = Ledger(problem)
        self.in_use = self.ledger.common_groups()
        self.slots: set[int] = set()
        self.sets: set[int] = set()
        self.counters: set[int] = set()
        self.offers: dict[Hashable, _Offer] = {}
        self.numbers: dict[Hashable, int] = {}

    def is_apart(self, sight: _Sight) -> bool:
        """Whether no node before reaches the same devices, counters or sets, and no device has several versions."""
        mine = sight.slots, sight.sets.keys(), sight.counters.keys()
        known = self.slots, self.sets, self.counters
        apart = all(before.isdisjoint(here) for before, here in zip(known, mine, strict=True))
        for before, here in zip(known, mine, strict=True):
            before.update(here)
        return apart and not sight.chosen and self.problem.several_versions.isdisjoint(sight.slots)

    def look_at(self, node: int) -> _Sight:
        """See a node."""
        view = self.problem.nodes[node]
        closed = self.every and any(pool.state is not PoolState.USABLE for pool in view.pools)
        sight = _Sight(closed, Recurrence(self.compared))
        look_of, offers = self.problem.eligibility.look, self.offers
        for device in view.devices():
            look = look_of(device)
            offer = offers.get(look)
            if offer is None:
                offer = offers[look] = self._offer(device)
            if offer.matters:
                self._enter(sight, device, offer)
        return sight

    def _offer(self, device: int) -> _Offer:
        eligibility, uses, failing = self.problem.eligibility, [], False
        for position, alternative in enumerate(self.alternatives):
            selected = eligibility.selects(alternative.index, device)
            failing |= isinstance(selected, AllocationError)
            charge = eligibility.charge(alternative.index, device) if selected is True else None
            if charge is not None:
                uses.append((position, eligibility.admits(alternative.index, device), charge))
        key = tuple(uses)
        return _Offer(key, failing, self.numbers.setdefault(key, len(self.numbers)), failing or bool(uses))

    def _enter(self, sight: _Sight, device: int, offer: _Offer) -> None:
        view = self.problem.devices[device]
        sight.slots.add(view.slot)
        sight.chosen |= view.nodes is not None
        free = self.ledger.is_free(view)
        live = free and self.ledger.has_counters(view, _NOTHING)
        if live or self.minds_all or offer.failing:
            status = live, free, offer.failing, self.ledger.is_open(view)
            seen = self._served(sight, offer), *self._left(sight, view), *sight.values.of(view.attributes)
            if view.compatibility:
                seen = *seen, *self._groups(sight, view)
            sight.devices.append((status, *seen))

    def _served(self, sight: _Sight, offer: _Offer) -> Hashable:
        if not any(charge.counters for _, _, charge in offer.uses):
            return offer.number
        return tuple(
            (position, admits, charge.capacity, self._drawn(sight, charge.counters))
            for position, admits, charge in offer.uses
        )

    def _left(self, sight: _Sight, view: Device) -> tuple[Hashable, ...]:
        drawn = self._drawn(sight, view.consumes)
        if not view.shareable:
            return (drawn,)
        left = (
            (name, self.ledger.capacity_left(view, name), each.total, each.consumable)
            for name, each in view.capacity.items()
        )
        return drawn, tuple(left)

    def _drawn(self, sight: _Sight, amounts: Sequence[tuple[int, int]]) -> Hashable:
        numbers, counters = sight.counters, self.problem.counters
        found = []
        for counter, amount in amounts:
            number = numbers.get(counter)
            if number is None:
                number = numbers[counter] = len(numbers)
                sight.free.append(counters[counter].free)
            found.append((number, amount))
        return tuple(found)

    def _groups(self, sight: _Sight, view: Device) -> Iterator[Hashable]:
        """Its compatibility groups, and those that what is in use has in common (KEP-5963)."""
        for number, groups in view.compatibility:
            yield sight.sets.setdefault(number, len(sight.sets)), groups, self.in_use.get(number)
