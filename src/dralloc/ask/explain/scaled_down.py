"""Suggestions to scale a request down: fewer devices, or a smaller amount of a capacity."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dralloc.ask.context.offers import Variation
from dralloc.ask.explain.change import Change, Cost, Place, Suggestion
from dralloc.ask.explain.members import alternatives_of
from dralloc.ask.explain.oracle import Certificate, FeasibilityOracle
from dralloc.ask.explain.wording import devices_text, request_text
from dralloc.objects.quantity import Format, Quantity
from dralloc.objects.report import amount
from dralloc.problem import Alternative

__all__ = ["scaled_down"]

_MOST_AMOUNTS = 64


def scaled_down(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """For each request the largest count, and for each capacity the largest amount, that can be served."""
    for place, claim, alternative in alternatives_of(oracle.snapshot.demand.claims):
        for one in (
            *_fewer(oracle, place, alternative),
            *_smaller(oracle, place, alternative),
        ):
            yield replace(
                one, text=f"{request_text(claim, alternative)}: ask for {one.text}"
            )


def _largest(
    values: Sequence[int], admit: Callable[[int], Certificate | None]
) -> tuple[int, Certificate] | None:
    """The largest value that is admitted, if smaller values are never harder; the answer has been tried in any case."""
    tried: dict[int, Certificate] = {}

    def refused(value: int) -> bool:
        certificate = admit(value)
        if certificate is not None:
            tried[value] = certificate
        return certificate is None

    number = bisect_left(values, True, key=refused)
    return (values[number - 1], tried[values[number - 1]]) if number else None


def _fewer(
    oracle: FeasibilityOracle, place: Place, alternative: Alternative
) -> Iterator[Suggestion]:
    count = alternative.count or 0
    found = _largest(
        range(1, count), lambda fewer: oracle.admit(Change(counts={place: fewer}))
    )
    if found is not None:
        fewer, certificate = found
        text, outcome = (
            f"{devices_text(fewer)} in place of {count}",
            oracle.fits_on(certificate.node),
        )
        yield Suggestion(
            text, outcome, Cost.LESS, count - fewer, Change(counts={place: fewer})
        )


def _smaller(
    oracle: FeasibilityOracle, place: Place, alternative: Alternative
) -> Iterator[Suggestion]:
    asked = oracle.snapshot.context.offers.amounts(alternative.index)
    for name, left in _amounts_left(oracle, alternative).items():
        limit = asked[name].nanos if name in asked else max(left) + 1
        values = sorted(nanos for nanos in left if 0 < nanos < limit)[-_MOST_AMOUNTS:]

        def change_to(nanos: int, name: str = name) -> Change:
            return Change(
                variations={
                    place: Variation(amounts=((name, Quantity(nanos, Format.BINARY)),))
                }
            )

        found = _largest(values, lambda nanos: oracle.admit(change_to(nanos)))
        if found is not None:
            smaller, certificate = found
            before = (
                f" in place of {asked[name]}"
                if name in asked
                else " (now it asks for no amount)"
            )
            text, outcome = (
                f"{amount(smaller)} of {name}{before}",
                oracle.fits_on(certificate.node),
            )
            yield Suggestion(text, outcome, Cost.LESS, 1, change_to(smaller))


def _amounts_left(
    oracle: FeasibilityOracle, alternative: Alternative
) -> dict[str, set[int]]:
    """For each capacity the amounts that some device, or a cap, has left."""
    context = oracle.snapshot.context
    asked = context.offers.amounts(alternative.index)
    left: dict[str, set[int]] = defaultdict(set)
    for number, device in enumerate(context.problem.devices):
        if (
            not (device.shareable or asked)
            or context.offers.selects(alternative.index, number) is not True
        ):
            continue
        for name, capacity in device.capacity.items():
            if device.shareable and capacity.consumable:
                left[name].add(context.ledger.capacity_left(device, name))
            elif name in asked and not device.shareable:
                left[name].add(capacity.total)
    for budget in context.budgets:
        if budget.resource in left and budget.left:
            left[budget.resource].add(budget.left)
    return left
