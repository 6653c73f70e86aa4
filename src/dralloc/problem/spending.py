"""How much of a counter or a capacity allocations use, whoever they are for.

An allocation uses what it draws from counters of that name: what the device draws while it is in use (KEP-4815), if
the allocation has the device for itself, and what is drawn by request (KEP-5941). Where a device draws on no counter of
that name, it uses the capacity of that name: what is consumed of a shared device (KEP-5075), all of one that it has for
itself. So an alternative is charged at what it uses (KEP-4816). Admin access uses nothing (KEP-5018).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dralloc.objects.names import ClaimKey
from dralloc.problem import Charge, Counter, Device, Problem
from dralloc.problem.grouping import summed
from dralloc.problem.solution import Placement, charged_grants

__all__ = ["amount_used", "spending", "spent"]


def amount_used(
    resource: str, device: Device, charge: Charge, counters: tuple[Counter, ...]
) -> int:
    """What one allocation of a device uses, in nanos."""
    fixed = () if device.shareable else device.consumes
    drawn = [
        amount
        for number, amount in (*fixed, *charge.counters)
        if counters[number].id.counter == resource
    ]
    if drawn:
        return sum(drawn)
    if device.shareable:
        return sum(amount for name, amount in charge.capacity if name == resource)
    known = device.capacity.get(resource)
    return known.total if known is not None else 0


def spent(
    problem: Problem, placements: Iterable[Placement], resource: str
) -> Mapping[str, int]:
    """What placements use, by namespace, in nanos."""
    return summed(
        (claim.namespace, amount)
        for claim, amount in spending(problem, placements, resource)
    )


def spending(
    problem: Problem, placements: Iterable[Placement], resource: str
) -> Iterator[tuple[ClaimKey, int]]:
    """What each grant of the placements uses, in nanos, with the claim that it is for."""
    for claim, device, charge in charged_grants(problem, placements):
        yield (
            claim.key,
            amount_used(resource, problem.devices[device], charge, problem.counters),
        )
