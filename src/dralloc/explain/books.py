"""Who holds what: the usage of a problem claim by claim, so that single claims can be taken out or put in.

The rules are those of `dralloc.problem.Usage`: a device in use charges its counters once, in every generation of its
pool (KEP-4815); a share consumes capacity (KEP-5075); some charges come with each allocation (KEP-5941).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from dralloc.inventory.groups import common_groups
from dralloc.names import ClaimKey
from dralloc.problem import Charge, Device, Problem, counter_draws
from dralloc.solution import Placement

__all__ = ["Books", "Holding", "holdings_of"]


@dataclass(frozen=True, slots=True)
class Holding:
    """What a claim holds of one device.

    Parameters
    ----------
    share
        Whether it is a share of the device and not the device itself.
    capacity, counters
        What it takes beside the device's fixed counters, in nanos.
    """

    claim: ClaimKey
    slot: int
    share: bool
    capacity: tuple[tuple[str, int], ...] = ()
    counters: tuple[tuple[int, int], ...] = ()


def holdings_of(problem: Problem, placement: Placement) -> Iterator[Holding]:
    """What a placement's claims hold. Admin access holds nothing (KEP-5018)."""
    for claim, grants in zip(problem.demands[placement.demand].claims, placement.grants, strict=True):
        for request, choice, number in grants:
            alternative = claim.requests[request].alternatives[choice]
            if not alternative.admin:
                device = problem.devices[number]
                charge = problem.eligibility.charge(alternative.index, number) or Charge()
                yield Holding(claim.key, device.slot, device.shareable, charge.capacity, charge.counters)


class Books:
    """What is held and what is left of it. Starts with the usage of a problem.

    Parameters
    ----------
    known
        What of that usage is known by claim; the rest has no name and cannot be released.
    """

    def __init__(self, problem: Problem, known: Iterable[Holding] = ()) -> None:
        self._problem = problem
        self.held = set(problem.usage.held)
        self.shares = dict(problem.usage.shares)
        self.consumed = {slot: dict(amounts) for slot, amounts in problem.usage.consumed.items()}
        self.free = [counter.free for counter in problem.counters]
        self.by_claim: dict[ClaimKey, list[Holding]] = defaultdict(list)
        self.by_slot: dict[int, list[Holding]] = defaultdict(list)
        self._forget()
        for holding in known:
            self._note(holding)

    def copy(self) -> Books:
        """Books that can be changed apart from these."""
        twin = Books.__new__(Books)
        twin._problem = self._problem
        twin.held, twin.shares, twin.free = set(self.held), dict(self.shares), list(self.free)
        twin.consumed = {slot: dict(amounts) for slot, amounts in self.consumed.items()}
        twin.by_claim = defaultdict(list, {key: list(entries) for key, entries in self.by_claim.items()})
        twin.by_slot = defaultdict(list, {slot: list(entries) for slot, entries in self.by_slot.items()})
        twin._forget()
        return twin

    def _forget(self) -> None:
        """Forget what has been worked out, after a change."""
        self._drawn: dict[int, dict[ClaimKey, int]] | None = None
        self._overdrawn: Mapping[int, list[int]] | None = None
        self._common: Mapping[int, frozenset[str]] | None = None

    def _note(self, holding: Holding) -> None:
        self._forget()
        self.by_claim[holding.claim].append(holding)
        self.by_slot[holding.slot].append(holding)

    def enter(self, holdings: Iterable[Holding]) -> None:
        """Enter what claims take."""
        for holding in holdings:
            if not self._in_use(holding.slot):
                self._fixed(holding.slot, 1)
            if holding.share:
                self.shares[holding.slot] = self.shares.get(holding.slot, 0) + 1
            else:
                self.held.add(holding.slot)
            self._amounts(holding, 1)
            self._note(holding)

    def release(self, claims: Iterable[ClaimKey]) -> None:
        """Give back what the claims hold."""
        for claim in claims:
            self._forget()
            for holding in self.by_claim.pop(claim, ()):
                self.by_slot[holding.slot].remove(holding)
                self._give_back(holding)

    def vacate(self, devices: Collection[int]) -> None:
        """Make devices and the counters of their groups as good as new, whoever holds them."""
        groups = {self._problem.devices[device].group for device in devices}
        for slot in {self._problem.devices[device].slot for device in devices}:
            self.held.discard(slot)
            self.shares.pop(slot, None)
            self.consumed.pop(slot, None)
            self.by_slot.pop(slot, None)
        for number, counter in enumerate(self._problem.counters):
            if counter.group in groups:
                self.free[number] = counter.total
        self._forget()

    def _give_back(self, holding: Holding) -> None:
        if holding.share:
            self.shares[holding.slot] -= 1
            if not self.shares[holding.slot]:
                del self.shares[holding.slot]
        elif all(other.share for other in self.by_slot[holding.slot]):
            self.held.discard(holding.slot)
        self._amounts(holding, -1)
        if not self._in_use(holding.slot):
            self._fixed(holding.slot, -1)

    def _in_use(self, slot: int) -> bool:
        return slot in self.held or slot in self.shares

    def _amounts(self, holding: Holding, sign: int) -> None:
        consumed = self.consumed.setdefault(holding.slot, {})
        for name, amount in holding.capacity:
            consumed[name] = consumed.get(name, 0) + sign * amount
        for counter, amount in holding.counters:
            self.free[counter] -= sign * amount

    def _fixed(self, slot: int, sign: int) -> None:
        for version in self._problem.versions[slot]:
            for counter, amount in self._problem.devices[version].consumes:
                self.free[counter] -= sign * amount

    def overdrawn(self) -> Mapping[int, list[int]]:
        """By group, the counters of which more is held than there is."""
        if self._overdrawn is None:
            self._overdrawn = defaultdict(list)
            for number, left in enumerate(self.free):
                if left < 0:
                    self._overdrawn[self._problem.counters[number].group].append(number)
        return self._overdrawn

    def shortages(self, device: Device, charge: Charge) -> Iterator[tuple[int, int]]:
        """The counters that keep a device from whoever would be charged so, with what is needed of each.

        A device that is not in use yet does not come into use while a counter of its group is overdrawn, even if it
        needs nothing of it.
        """
        opening = device.slot not in self.shares
        needed = dict(counter_draws(device, charge, opening=opening))
        closed = self.overdrawn().get(device.group, ()) if opening and device.consumes else ()
        for counter in dict.fromkeys((*closed, *needed)):
            amount = needed.get(counter, 0)
            if counter in closed or amount > self.free[counter]:
                yield counter, amount

    def compatibility(self) -> Mapping[int, frozenset[str]]:
        """By counter set in use, the groups that everything in use there has in common (KEP-5963)."""
        if self._common is None:
            grouped = self._problem.devices if self._problem.has_compatibility_groups else ()
            self._common = common_groups(one for one in grouped if self._in_use(one.slot))
        return self._common

    def users_of_set(self, number: int) -> Mapping[ClaimKey, frozenset[str]]:
        """The claims that draw on a counter set with compatibility groups, with the groups of what they hold there."""
        found: dict[ClaimKey, frozenset[str]] = {}
        for slot, holdings in self.by_slot.items():
            for version in self._problem.versions[slot]:
                for counter_set, groups in self._problem.devices[version].compatibility:
                    for holding in holdings if counter_set == number else ():
                        found[holding.claim] = found.get(holding.claim, groups) & groups
        return found

    def holders_of_slot(self, slot: int) -> Mapping[ClaimKey, int]:
        """The claims that hold a device or shares of it, with how many."""
        found: dict[ClaimKey, int] = {}
        for holding in self.by_slot.get(slot, ()):
            found[holding.claim] = found.get(holding.claim, 0) + 1
        return found

    def holders_of_capacity(self, slot: int, name: str) -> Mapping[ClaimKey, int]:
        """The claims that consume a capacity of a device, with the amounts."""
        found: dict[ClaimKey, int] = {}
        for holding in self.by_slot.get(slot, ()):
            amount = dict(holding.capacity).get(name, 0)
            if amount:
                found[holding.claim] = found.get(holding.claim, 0) + amount
        return found

    def holders_of_counter(self, counter: int) -> Mapping[ClaimKey, int]:
        """The claims that draw on a counter, with the amounts; a shared device's draw is that of its first user."""
        if self._drawn is None:
            self._drawn = self._draws()
        return self._drawn.get(counter, {})

    def _draws(self) -> dict[int, dict[ClaimKey, int]]:
        drawn: dict[int, dict[ClaimKey, int]] = defaultdict(dict)
        for slot, holdings in self.by_slot.items():
            for first, holding in enumerate(holdings):
                fixed = self._fixed_of(slot) if first == 0 else ()
                for counter, amount in (*fixed, *holding.counters):
                    before = drawn[counter].get(holding.claim, 0)
                    drawn[counter][holding.claim] = before + amount
        return drawn

    def _fixed_of(self, slot: int) -> Iterator[tuple[int, int]]:
        for version in self._problem.versions[slot]:
            yield from self._problem.devices[version].consumes
