"""What allocated claims hold. Always derived from their ``status.allocation``, never guessed."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from dralloc.objects.api import DeviceRequestAllocationResult, ResourceClaim
from dralloc.problem import Counter, Device, Usage
from dralloc.problem.ledger import Holding

__all__ = ["held_results", "left_of_counters", "usage_of"]


def held_results(
    claims: Iterable[ResourceClaim],
) -> Iterator[tuple[ResourceClaim, DeviceRequestAllocationResult]]:
    """What allocated claims hold, each with its claim: everything but what they have by admin access."""
    return (
        (claim, result)
        for claim in claims
        for result in claim.results
        if not result.admin_access
    )


def usage_of(holdings: Iterable[Holding]) -> Usage:
    """The holdings as plain sums."""
    held: set[int] = set()
    shares: Tally[int] = Tally()
    consumed: dict[int, Tally[str]] = defaultdict(Tally)
    for holding in holdings:
        if holding.share:
            shares[holding.slot] += 1
        else:
            held.add(holding.slot)
        for name, amount in holding.charge.capacity:
            consumed[holding.slot][name] += amount
    return Usage(
        frozenset(held),
        dict(shares),
        {slot: dict(amounts) for slot, amounts in consumed.items()},
    )


def left_of_counters(
    counters: Sequence[Counter],
    devices: Sequence[Device],
    holdings: Iterable[Holding],
    versions_of: Callable[[int], Iterable[int]],
) -> tuple[Counter, ...]:
    """The counters with what the holdings leave of them.

    A device in use charges its fixed amounts once, in every generation that publishes it (KEP-4815), and each of its
    allocations what it recorded for counters that are consumed by request (KEP-5941).

    Parameters
    ----------
    versions_of
        Tells the devices behind a slot.
    """
    charged: Tally[int] = Tally()
    opened: set[int] = set()
    for holding in holdings:
        for index, amount in holding.charge.counters:
            charged[index] += amount
        if holding.slot not in opened:
            opened.add(holding.slot)
            for version in versions_of(holding.slot):
                for index, amount in devices[version].consumes:
                    charged[index] += amount
    remaining = list(counters)
    for index, amount in charged.items():
        counter = remaining[index]
        remaining[index] = Counter(
            counter.id, counter.total, counter.total - amount, counter.group
        )
    return tuple(remaining)
