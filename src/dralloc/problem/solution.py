"""Answers to a `Problem`: node and devices of each demand, and the amounts in use. No solver types in it."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.objects.notebook import Brief
from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    Counter,
    Demand,
    Device,
    Problem,
    numbered,
)
from dralloc.problem.indices import (
    CounterIndex,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Numbered,
    summed,
)
from dralloc.problem.ledger import Holding

__all__ = [
    "APPRAISAL_UNIT",
    "Appraisal",
    "AskAppraisal",
    "Grant",
    "LevelPrices",
    "Placement",
    "Progress",
    "Solution",
    "Status",
    "Tier",
    "amount_used",
    "charged_grants",
    "devices_only",
    "grants_of",
    "holdings_of",
    "served_by",
    "spending",
    "spent",
    "translated",
    "with_node_grants",
]


class Grant(NamedTuple):
    """A device granted to a request: the indices of the request in its claim, the alternative in it, and the device."""

    request: int
    alternative: int
    device: DeviceIndex


@dataclass(frozen=True, slots=True)
class Placement:
    """A demand on a node.

    ``grants`` has one tuple per claim of the demand, in the order of the results. It is empty for a claim that is
    granted in another placement, because several pods use it.
    """

    demand: DemandIndex
    node: NodeIndex
    grants: tuple[tuple[Grant, ...], ...]


def grants_of(
    problem: Problem, placements: Iterable[Placement]
) -> Iterator[tuple[Claim, Alternative, Grant]]:
    """Every granted device with its claim and the alternative that it serves, in order."""
    for placement in placements:
        yield from served_by(
            problem.demands[placement.demand].claims, placement.grants
        )


def served_by(
    claims: Iterable[Claim], granted: Iterable[Iterable[Grant]]
) -> Iterator[tuple[Claim, Alternative, Grant]]:
    """Yield every granted device of some claims, with its claim and the alternative that it serves."""
    for claim, grants in zip(claims, granted, strict=True):
        for grant in grants:
            yield (
                claim,
                claim.requests[grant.request].alternatives[grant.alternative],
                grant,
            )


def charged_grants(
    problem: Problem, placements: Iterable[Placement]
) -> Iterator[tuple[Claim, DeviceIndex, Charge]]:
    """Every grant that takes something, with its claim, the device and the charge. Admin access does not (KEP-5018)."""
    for claim, alternative, grant in grants_of(problem, placements):
        if not alternative.admin:
            yield (
                claim,
                grant.device,
                problem.eligibility.charge(alternative.index, grant.device)
                or Charge(),
            )


def holdings_of(problem: Problem, placement: Placement) -> Iterator[Holding]:
    """Yield the holdings of a placement's claims."""
    for claim, device_index, charge in charged_grants(problem, (placement,)):
        device = problem.devices[device_index]
        yield Holding(claim.key, device.slot, device.shareable, charge)


def devices_only(
    problem: Problem, placements: Iterable[Placement]
) -> Iterator[Placement]:
    """The placements without synthetic claims, for the problem without them."""
    for placement in placements:
        pairs = zip(
            problem.demands[placement.demand].claims,
            placement.grants,
            strict=True,
        )
        yield Placement(
            placement.demand,
            placement.node,
            tuple(
                [grants for claim, grants in pairs if not claim.is_synthetic]
            ),
        )


def with_node_grants(
    problem: Problem, placements: Iterable[Placement]
) -> Iterator[Placement]:
    """The placements with synthetic claims, for the problem with them: the inverse of `devices_only`."""
    for placement in placements:
        device_grants = iter(placement.grants)
        # Of a node there is one synthetic device, in its last pool, and its claim has
        # one request with one alternative.
        grants = (
            (Grant(0, 0, problem.nodes[placement.node].pools[-1].devices[0]),)
            if claim.is_synthetic
            else next(device_grants)
            for claim in problem.demands[placement.demand].claims
        )
        yield replace(placement, grants=tuple(grants))


def translated(
    problem: Problem, placements: Iterable[Placement], target: Problem
) -> Iterator[Placement]:
    """Yield placements in the numbers of another problem of about the same cluster, as far as names are the same.

    Left out is who is not asked about there, or has other claims, or whose node or devices are not there. What else may
    have changed is not looked at.
    """
    demands = {
        _names(demand): demand_index
        for demand_index, demand in numbered(target.demands)
    }
    nodes = {
        node.name: node_index for node_index, node in numbered(target.nodes)
    }
    devices_on: dict[NodeIndex, dict[DeviceID, DeviceIndex]] = {}
    for placement in placements:
        demand_index = demands.get(_names(problem.demands[placement.demand]))
        node = nodes.get(problem.nodes[placement.node].name)
        if demand_index is None or node is None:
            continue
        # By node, as two nodes can see different versions of a device.
        if node not in devices_on:
            devices_on[node] = {
                target.devices[device].id: device
                for device in target.nodes[node].devices()
            }
        devices = devices_on[node]
        with suppress(KeyError):
            grants = tuple(
                [
                    _on_devices(problem, claim_grants, devices)
                    for claim_grants in placement.grants
                ]
            )
            yield Placement(demand_index, node, grants)


def _on_devices(
    problem: Problem,
    grants: Iterable[Grant],
    devices: Mapping[DeviceID, DeviceIndex],
) -> tuple[Grant, ...]:
    """Return grants of devices with the numbers that devices have elsewhere; raises KeyError where one is not there."""
    return tuple(
        grant._replace(device=devices[problem.devices[grant.device].id])
        for grant in grants
    )


def _names(demand: Demand) -> tuple[ClaimKey, ...]:
    """Return the names by which a demand is told from others: its own, and those of its claims."""
    return demand.key, *(claim.key for claim in demand.claims)


class Status(StrEnum):
    """The state of knowledge about an answer.

    ``FEASIBLE``: it keeps every rule; nothing is known about better ones (first fit, or a solve that ran out of time).
    ``OPTIMAL``: there is no better one, in any tier of the objective.
    """

    FEASIBLE = "FEASIBLE"
    OPTIMAL = "OPTIMAL"


def _relative_gap(value: int, bound: int) -> float:
    """The distance of a value to its bound, relative to the value; 0 if they meet, 1 if nothing was reached."""
    # Integers can be too large for a float; their quotient is not.
    distance = abs(bound - value)
    return (
        distance / abs(value) if distance and value else float(bool(distance))
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a solve is: the tier that is being solved, its value and bound over the whole problem, seconds so far."""

    phase: str
    best: int
    bound: int
    seconds: float

    @property
    def gap(self) -> float:
        """Distance of the best to its bound relative to the best."""
        return _relative_gap(self.best, self.bound)


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier of the lexicographic objective: its value, and the proven bound of what any answer can reach.

    ``sense`` is 1 if more is better and -1 if less is better. Exact integers. ``why`` says why it is not proven.
    ``limits``, of a sum of weights: how many demands of some weights the optimum places at most.
    """

    name: str
    value: int
    bound: int
    sense: int = 1
    why: str = ""
    limits: tuple[tuple[int, int], ...] = ()

    @property
    def gap(self) -> float:
        """Distance to the bound relative to the value; 0 when the tier is proven."""
        return _relative_gap(self.value, self.bound)

    @property
    def proven(self) -> bool:
        """Whether no answer is better in this tier (given the tiers before it)."""
        return self.value == self.bound


class LevelPrices(NamedTuple):
    """The prices that proved a bound: a good guess for any problem that differs little, where they prove one again.

    Parameters
    ----------
    factors
        What one more of each level of the weight counts, from the most important level to the last that is bounded.
    rows
        By name of something that is limited, what one of it costs.
    """

    factors: tuple[float, ...]
    rows: Mapping[Hashable, float]


APPRAISAL_UNIT: Final = 2**20
"""What placing a demand of the lowest priority is worth, where demands are appraised."""


@dataclass(frozen=True, slots=True)
class Appraisal:
    """What demands and nodes are worth at the prices of a relaxation, which tells where a bound and an answer differ.

    All in one unit: placing a demand of the lowest priority is worth `APPRAISAL_UNIT`. The bound is the sum of what all
    nodes are worth and of what demands are worth beyond what they pay. So it differs from an answer by three things
    alone: what is worth something on a node and not paid for by who is there, what demands pay beyond the least that
    they could, and what those that wait are worth beyond that.

    Parameters
    ----------
    sizes
        By demand that fits anywhere, what it pays on the node where that is least.
    profits
        By demand that fits anywhere, what it is worth beyond that; below 0 for one that would pay more.
    nodes
        By node, what all that it has is worth.
    """

    sizes: Mapping[DemandIndex, int]
    profits: Mapping[DemandIndex, int]
    nodes: Sequence[int]

    @classmethod
    def together(cls, appraisals: Sequence[Appraisal]) -> Appraisal | None:
        """Put those of parts of the demands together, on the same nodes; None if there are none."""
        if not appraisals:
            return None
        sizes: dict[DemandIndex, int] = {}
        profits: dict[DemandIndex, int] = {}
        for appraisal in appraisals:
            sizes |= appraisal.sizes
            profits |= appraisal.profits
        columns = zip(
            *(appraisal.nodes for appraisal in appraisals), strict=True
        )
        return cls(sizes, profits, [sum(values) for values in columns])

    def renumbered(self, demands: Sequence[DemandIndex]) -> Appraisal:
        """Return the same with other numbers of demands, given by number."""
        return Appraisal(
            {demands[demand]: size for demand, size in self.sizes.items()},
            {demands[demand]: value for demand, value in self.profits.items()},
            self.nodes,
        )

    def of_part(
        self, demands: Sequence[DemandIndex], nodes: Sequence[NodeIndex]
    ) -> Appraisal:
        """Return the same for some of the demands and nodes, in numbers of their own."""

        def of_demands(
            values: Mapping[DemandIndex, int],
        ) -> dict[DemandIndex, int]:
            return {
                DemandIndex(index): values[demand]
                for index, demand in enumerate(demands)
                if demand in values
            }

        return Appraisal(
            of_demands(self.sizes),
            of_demands(self.profits),
            [self.nodes[node] for node in nodes],
        )

    def unpaid(self, node: NodeIndex, demands: Iterable[DemandIndex]) -> int:
        """Return what of a node is not paid for by the demands on it, counted as if they paid the least."""
        paid = sum([self.sizes.get(demand, 0) for demand in demands])
        return max(0, self.nodes[node] - paid)


AskAppraisal = Callable[[], Appraisal | None]
"""Tells what demands and nodes are worth, as far as that is known by then; None if it is not."""


@dataclass(frozen=True, slots=True, repr=False)
class Solution(Brief):
    """The placed demands, in the order of the problem's demands.

    Parameters
    ----------
    placements
        One per placed demand.
    status
        What is known about the answer.
    tiers
        The objective, most important first; empty for first fit, which has none.
    errors
        Why an attempt ended with an error, by demand (first fit).
    warnings
        What the user should know, e.g. devices left out because a selector failed on them (optimal).
    timings
        Seconds by phase.
    steps
        Effort of the last demand's search in steps of upstream's (first fit).
    bindings
        All pods that got a node, with its name, in the order in which they did, those included that ask for no devices
        (scheduler).
    prices
        What proved the bound, where a relaxation did (optimal).
    aims
        By tier, the gap that a search from nothing has come to, where this answer went on from that (optimal).
    most_placed
        How many demands the optimum places at most, whatever their priority: less than the bounds of all tiers together
        where room for one is missing to another (optimal).
    """

    placements: tuple[Placement, ...]
    status: Status = Status.FEASIBLE
    tiers: tuple[Tier, ...] = ()
    errors: dict[int, AllocationError] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    bindings: tuple[tuple[ClaimKey, str], ...] = ()
    prices: tuple[LevelPrices, ...] = ()
    aims: Mapping[str, float] = field(default_factory=dict)
    most_placed: int | None = None


# ----------------------------------------------------------------------------
# How much of a counter or a capacity allocations use, whoever they are for.
#
# An allocation uses what it draws from counters of that name: what the device draws
# while it is in use (KEP-4815), if the allocation has the device for itself, and what
# is drawn by request (KEP-5941). Where a device draws on no counter of that name, it
# uses the capacity of that name: what is consumed of a shared device (KEP-5075), all
# of one that it has for itself. So an alternative is charged at what it uses
# (KEP-4816). Admin access uses nothing (KEP-5018).


def amount_used(
    resource: str,
    device: Device,
    charge: Charge,
    counters: Numbered[CounterIndex, Counter],
) -> int:
    """Return the amount that one allocation of a device uses, in nanos."""
    # What a shareable device charges once is for all who share it, so it is on no
    # allocation's account.
    fixed = () if device.shareable else device.consumes
    drawn = [
        amount
        for counter, amount in (*fixed, *charge.counters)
        if counters[counter].id.counter == resource
    ]
    if drawn:
        return sum(drawn)
    if device.shareable:
        return sum(
            amount for name, amount in charge.capacity if name == resource
        )
    capacity = device.capacity.get(resource)
    return capacity.total if capacity is not None else 0


def spent(
    problem: Problem, placements: Iterable[Placement], resource: str
) -> Mapping[str, int]:
    """Return the amounts that placements use, by namespace, in nanos."""
    return summed(
        (claim.namespace, amount)
        for claim, amount in spending(problem, placements, resource)
    )


def spending(
    problem: Problem, placements: Iterable[Placement], resource: str
) -> Iterator[tuple[ClaimKey, int]]:
    """Yield the amount that each grant of the placements uses, in nanos, with its claim."""
    for claim, device, charge in charged_grants(problem, placements):
        yield (
            claim.key,
            amount_used(
                resource, problem.devices[device], charge, problem.counters
            ),
        )
