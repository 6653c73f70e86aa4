"""The same request for less: fewer devices, or a smaller amount of a capacity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dralloc.context.offers import Variation
from dralloc.explain.change import Change, Place
from dralloc.explain.lab import Witness
from dralloc.explain.members import Member, alternatives_of
from dralloc.explain.situation import Situation, Wish
from dralloc.explain.wording import devices_text
from dralloc.problem import Alternative, Claim
from dralloc.quantity import Format, Quantity
from dralloc.report import amount

__all__ = ["lesser_wishes"]


def lesser_wishes(situation: Situation, members: Sequence[Member]) -> Iterator[Wish]:  # noqa: ARG001
    """For each request the largest count, and for each capacity the largest amount, that can be served."""
    for place, claim, alternative in alternatives_of(situation.lab.turn.demand.claims):
        about = f"claim {claim.key}, request {alternative.name}"
        if alternative.count is not None and alternative.count > 1:
            yield from _fewer(situation, place, alternative, about)
        yield from _smaller(situation, place, claim, alternative)


def _largest(values: Sequence[int], admit: Callable[[int], Witness | None]) -> tuple[int, Witness] | None:
    """The largest value that is admitted, if smaller values are never harder; the answer has been tried in any case."""
    best: tuple[int, Witness] | None = None
    low, high = 0, len(values) - 1
    while low <= high:
        middle = (low + high) // 2
        witness = admit(values[middle])
        if witness is None:
            high = middle - 1
        else:
            best = values[middle], witness
            low = middle + 1
    return best


def _fewer(situation: Situation, place: Place, alternative: Alternative, about: str) -> Iterator[Wish]:
    count = alternative.count or 0
    found = _largest(range(1, count), lambda fewer: situation.lab.admit(Change(counts={place: fewer})))
    if found is not None:
        text = f"{about}: ask for {devices_text(found[0])} in place of {count}"
        change = Change(counts={place: found[0]})
        yield Wish(text, change, count - found[0], found[1].node)


def _smaller(situation: Situation, place: Place, claim: Claim, alternative: Alternative) -> Iterator[Wish]:
    asked = situation.lab.turn.context.offers.amounts(alternative.index)
    for name, rooms in _rooms(situation, alternative).items():
        limit = asked[name].nanos if name in asked else max(rooms) + 1
        values = sorted(room for room in rooms if 0 < room < limit)[-64:]

        def change_to(nanos: int, name: str = name) -> Change:
            return Change(variations={place: Variation(amounts=((name, Quantity(nanos, Format.BINARY)),))})

        found = _largest(values, lambda nanos: situation.lab.admit(change_to(nanos)))
        if found is not None:
            before = f" in place of {asked[name]}" if name in asked else " (now it asks for no amount)"
            text = f"claim {claim.key}, request {alternative.name}: ask for {amount(found[0])} of {name}{before}"
            yield Wish(text, change_to(found[0]), 1, found[1].node)


def _rooms(situation: Situation, alternative: Alternative) -> dict[str, set[int]]:
    """For each capacity the amounts that some device, or a cap, has left."""
    context = situation.lab.turn.context
    asked = context.offers.amounts(alternative.index)
    rooms: dict[str, set[int]] = {}
    for number, device in enumerate(situation.problem.devices):
        if device.shareable and context.offers.selects(alternative.index, number) is True:
            for name, capacity in device.capacity.items():
                if capacity.consumable:
                    rooms.setdefault(name, set()).add(context.ledger.capacity_left(device, name))
        elif asked and context.offers.selects(alternative.index, number) is True:
            for name in asked.keys() & device.capacity.keys():
                rooms.setdefault(name, set()).add(device.capacity[name].total)
    for budget in context.budgets:
        if budget.resource in rooms and budget.left:
            rooms[budget.resource].add(budget.left)
    return rooms
