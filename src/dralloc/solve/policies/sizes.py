"""How large a demand is beside what there is."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from dralloc.problem import Alternative, Charge, Claim, Demand, Problem
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, charged_grants
from dralloc.solve.first_fit.claim_classes import ClaimClasses

__all__ = ["PARTS", "Amounts", "Sizes", "amounts_of", "free_totals"]

PARTS: Final = 10**12
"""Sizes are in such parts of everything there is, rounded up."""

Amounts = Mapping[Hashable, int]


class Sizes:
    """Works out sizes, once for equal demands.

    Attributes
    ----------
    totals
        How much there is of each resource, in use or not.

    The size of a demand is its dominant share (Ghodsi et al., "Dominant Resource Fairness", NSDI'11): of each resource
    the part that it takes of all there is in the problem, of these the largest. Resources are, by driver: each counter
    by name, each capacity of shareable devices by name, and the number of dedicated devices that consume no counters.
    A request counts with the device, and the alternative, that costs least by the same measure; one for all devices
    with all that a node has for it, on the node where that is least.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._claim_classes = ClaimClasses(problem)
        self._sizes: dict[Hashable, int] = {}
        self._costs: dict[Hashable, Amounts] = {}
        self._choices_of: dict[Hashable, Sequence[Amounts]] = {}
        self.totals = _totals(problem)

    def of(self, demand: Demand) -> int:
        """The size of a demand, at least 1; 1 for one that can never be allocated."""
        claim_class = self._claim_classes.of(demand.claims)
        if claim_class is None:
            return 1
        if claim_class not in self._sizes:
            self._sizes[claim_class] = max(1, self._share(self._taken(demand.claims)))
        return self._sizes[claim_class]

    def taken(self, demand: Demand) -> Amounts:
        """The least amounts that a demand takes, by resource."""
        return self._taken(demand.claims)

    def least(self, demand: Demand) -> Amounts:
        """Of each resource by itself what the demand takes at least, whatever devices it gets; nothing of `All`."""
        least: Tally[Hashable] = Tally()
        for claim in demand.claims:
            for request in claim.requests:
                choices = [
                    amounts
                    for one in request.alternatives
                    for amounts in self._choices(one)
                ]
                in_all = set(choices[0]).intersection(*choices) if choices else set()
                least.update(
                    {name: min(amounts[name] for amounts in choices) for name in in_all}
                )
        return least

    def _choices(self, alternative: Alternative) -> Sequence[Amounts]:
        """What an alternative takes, for each class of devices that can serve it."""
        key = (
            self._problem.eligibility.request_key(alternative.index),
            alternative.count,
            alternative.admin,
        )
        if key not in self._choices_of:
            count = 0 if alternative.admin else alternative.count or 0
            each = (self._sum(alternative, (device,)) for device in self._examples)
            multiplied = (
                {name: count * amount for name, amount in amounts.items()}
                for amounts in each
                if amounts
            )
            self._choices_of[key] = tuple(multiplied)
        return self._choices_of[key]

    def _taken(self, claims: Sequence[Claim]) -> Amounts:
        """The least amounts that claims take."""
        taken: Tally[Hashable] = Tally()
        for claim in claims:
            for request in claim.requests:
                taken.update(
                    min(
                        map(self._cost, request.alternatives),
                        key=self._share,
                        default={},
                    )
                )
        return taken

    def _cost(self, alternative: Alternative) -> Amounts:
        key = (
            self._problem.eligibility.request_key(alternative.index),
            alternative.count,
            alternative.admin,
        )
        if key not in self._costs:
            self._costs[key] = self._cost_of(alternative)
        return self._costs[key]

    def _cost_of(self, alternative: Alternative) -> Amounts:
        """What the alternative takes on the cheapest devices; nothing if there are none, or with admin access."""
        if alternative.admin:
            return {}
        per_node = (node.devices() for node in self._problem.nodes)
        choices = (
            per_node
            if alternative.count is None
            else ((device,) for device in self._examples)
        )
        each = (self._sum(alternative, devices) for devices in choices)
        cheapest = min(
            (amounts for amounts in each if amounts), key=self._share, default={}
        )
        times = 1 if alternative.count is None else alternative.count
        return {name: times * amount for name, amount in cheapest.items()}

    def _sum(self, alternative: Alternative, devices: Iterable[int]) -> Amounts:
        """What the alternative takes on all of these devices that can serve it."""
        eligibility, index = self._problem.eligibility, alternative.index
        taken: Tally[Hashable] = Tally()
        for device in devices:
            charge = eligibility.charge(index, device)
            if (
                charge is not None
                and eligibility.selects(index, device) is True
                and eligibility.admits(index, device)
            ):
                taken.update(dict(_takes(self._problem, device, charge)))
        return taken

    def _share(self, amounts: Amounts) -> int:
        """The largest part that the amounts are of all there is."""
        return max(
            (
                -(-amount * PARTS // max(self.totals[name], 1))
                for name, amount in amounts.items()
            ),
            default=0,
        )

    @cached_property
    def _examples(self) -> Sequence[int]:
        """One of each class of devices."""
        device_key = self._problem.eligibility.device_key
        found: dict[Hashable, int] = {}
        for index in range(len(self._problem.devices)):
            found.setdefault(
                (device_key(index), tuple(_takes(self._problem, index, Charge()))),
                index,
            )
        return tuple(found.values())


def _takes(
    problem: Problem, index: int, charge: Charge
) -> Iterator[tuple[Hashable, int]]:
    """What an allocation takes, by resource; what opening a shareable device takes is not for one claim to pay."""
    device = problem.devices[index]
    driver = device.id.driver
    consumed: Tally[str] = Tally()
    for counter, amount in (
        *charge.counters,
        *(() if device.shareable else device.consumes),
    ):
        consumed[problem.counters[counter].id.counter] += amount
    yield from (
        (("counter", driver, name), amount) for name, amount in consumed.items()
    )
    yield from (
        (("capacity", driver, name), amount) for name, amount in charge.capacity
    )
    if not device.shareable and not device.consumes:
        yield ("device", driver), 1


def amounts_of(problem: Problem, placement: Placement) -> Amounts:
    """What a placement takes of each resource."""
    taken: Tally[Hashable] = Tally()
    for _, device, charge in charged_grants(problem, (placement,)):
        taken.update(dict(_takes(problem, device, charge)))
    return taken


def _totals(problem: Problem) -> Amounts:
    """How much there is of each resource, in use or not."""
    totals: Tally[Hashable] = Tally()
    for counter in problem.counters:
        totals["counter", counter.id.driver, counter.id.counter] += counter.total
    for device in problem.devices:
        if device.shareable:
            for each in device.capacity.values():
                totals["capacity", device.id.driver, each.name] += each.total
        elif not device.consumes:
            totals["device", device.id.driver] += 1
    return totals


def free_totals(problem: Problem, ledger: Ledger) -> Amounts:
    """How much there is of each resource that is not in use."""
    totals: Tally[Hashable] = Tally()
    for counter, free in zip(problem.counters, ledger.free, strict=True):
        totals["counter", counter.id.driver, counter.id.counter] += max(0, free)
    for device in problem.devices:
        driver = device.id.driver
        if device.shareable:
            for name in device.capacity if ledger.is_free(device) else ():
                left = ledger.capacity_left(device, name)
                totals["capacity", driver, name] += max(0, left)
        elif not device.consumes:
            totals["device", driver] += ledger.is_free(device)
    return totals
