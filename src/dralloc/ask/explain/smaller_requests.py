"""Suggestions to scale a request down: fewer devices, or a smaller amount of a capacity."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dralloc.ask.context.offers import Variation
from dralloc.ask.explain.changes import Change, Cost, Place, Suggestion
from dralloc.ask.explain.conflict_members import alternatives_of
from dralloc.ask.explain.oracle import Certificate, FeasibilityOracle
from dralloc.ask.explain.wording import devices_text, request_text
from dralloc.objects.quantity import Format, Quantity
from dralloc.objects.report import amount
from dralloc.problem import Alternative, numbered

__all__ = ["scaled_down"]

_MOST_AMOUNTS = 64


def scaled_down(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """Return, by request the largest count, and by capacity the largest amount, that can be served."""
    for position, claim, alternative in alternatives_of(
        oracle.snapshot.demand.claims
    ):
        for suggestion in (
            *_fewer(oracle, position, alternative),
            *_smaller(oracle, position, alternative),
        ):
            request = request_text(claim, alternative)
            text = f"{request}: ask for {suggestion.text}"
            yield replace(suggestion, text=text)


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

    admitted_count = bisect_left(values, True, key=refused)
    return (
        (values[admitted_count - 1], tried[values[admitted_count - 1]])
        if admitted_count
        else None
    )


def _fewer(
    oracle: FeasibilityOracle, position: Place, alternative: Alternative
) -> Iterator[Suggestion]:
    count = alternative.count or 0
    largest = _largest(
        range(1, count),
        lambda fewer: oracle.admit(Change(counts={position: fewer})),
    )
    if largest is not None:
        fewer, certificate = largest
        text, outcome = (
            f"{devices_text(fewer)} in place of {count}",
            oracle.fits_on(certificate.node),
        )
        yield Suggestion(
            text,
            outcome,
            Cost.LESS,
            count - fewer,
            Change(counts={position: fewer}),
        )


def _smaller(
    oracle: FeasibilityOracle, position: Place, alternative: Alternative
) -> Iterator[Suggestion]:
    requested = oracle.snapshot.context.offers.amounts(alternative.index)
    for name, free in _free_amounts(oracle, alternative).items():
        # Where nothing is asked for, a default or all of it is taken: any amount that is left may be a smaller one.
        limit = requested[name].nanos if name in requested else max(free) + 1
        # In ascending order, as the search by halves needs them. If there are too many, the smallest are not tried.
        values = sorted(nanos for nanos in free if 0 < nanos < limit)[
            -_MOST_AMOUNTS:
        ]

        def change_to(nanos: int, name: str = name) -> Change:
            return Change(
                variations={
                    position: Variation(
                        amounts=((name, Quantity(nanos, Format.BINARY)),)
                    )
                }
            )

        largest = _largest(values, lambda nanos: oracle.admit(change_to(nanos)))
        if largest is not None:
            smaller, certificate = largest
            before = (
                f" in place of {requested[name]}"
                if name in requested
                else " (now it asks for no amount)"
            )
            text, outcome = (
                f"{amount(smaller)} of {name}{before}",
                oracle.fits_on(certificate.node),
            )
            yield Suggestion(text, outcome, Cost.LESS, 1, change_to(smaller))


def _free_amounts(
    oracle: FeasibilityOracle, alternative: Alternative
) -> dict[str, set[int]]:
    """Return, by capacity, the amounts that some device, or a cap, has left, as far as request policies grant them."""
    context = oracle.snapshot.context
    # The amount may be there and not allowed: what a cap leaves is worth a try as well.
    cap_rests: dict[str, list[int]] = defaultdict(list)
    for budget in context.budgets:
        if budget.left:
            cap_rests[budget.resource].append(budget.left)
    requested = context.offers.amounts(alternative.index)
    free_amounts: dict[str, set[int]] = defaultdict(set)
    for device_index, device in numbered(context.problem.devices):
        if (
            not (device.shareable or requested)
            or context.offers.selects(alternative.index, device_index)
            is not True
        ):
            continue
        for name, capacity in device.capacity.items():
            if device.shareable and capacity.consumable:
                free = context.ledger.capacity_left(device, name)
            # A device that one claim has for itself is asked for an amount, but nothing of it is consumed.
            elif name in requested and not device.shareable:
                free = capacity.total
            else:
                continue
            # What a policy would round up is more than there is: the next smaller amount of the policy is not.
            for rest in (free, *cap_rests[name]):
                granted = context.offers.amount_within(
                    device_index, name, Quantity(rest, Format.BINARY)
                )
                if granted is not None:
                    free_amounts[name].add(granted.nanos)
    return free_amounts
