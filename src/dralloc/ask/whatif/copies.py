"""Counts how many copies of a demand fit.

From the bottom: many of one demand, the most that single devices allow, and how many more of it fit. For several
demands beside each other see `dralloc.ask.whatif.fronts`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Final

from dralloc.ask.whatif.node_types import NotRepresentativeError
from dralloc.check import check
from dralloc.objects.choices import Options
from dralloc.objects.errors import FatalError
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Charge,
    Demand,
    DeviceIndex,
    NodeIndex,
    Problem,
    Request,
)
from dralloc.problem.equivalence import NodeClasses, equivalent_nodes
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import Overlay
from dralloc.problem.solution import Placement, Solution, charged_grants
from dralloc.problem.subproblem import cut
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.stopping import Stop, with_time_left

__all__ = [
    "MOST_COPIES",
    "CopyCount",
    "PerDeviceBound",
    "by_demand",
    "copies",
    "count_copies",
    "replicated",
    "takes_nothing",
]

# ----------------------------------------------------------------------------
# Many of one demand, and whether there is an end to how many fit.

MOST_COPIES: Final = 1_000_000
"""More of a demand are not looked for."""


def copies(demand: Demand, count: int) -> Iterator[Demand]:
    """So many demands that equal it but for the names, of equal weight, and content with any alternative."""

    def unranked(request: Request) -> Request:
        alternatives = tuple(
            replace(alternative, rank=0) for alternative in request.alternatives
        )
        return replace(request, alternatives=alternatives)

    claims = tuple(
        replace(claim, requests=tuple(map(unranked, claim.requests)))
        for claim in demand.claims
    )
    pattern = demand.by_itself(weight=1, priority=0, claims=claims)
    for copy_index in range(count):
        claims = tuple(
            replace(claim, key=_numbered(claim.key, copy_index))
            for claim in pattern.claims
        )
        yield replace(
            pattern, key=_numbered(demand.key, copy_index), claims=claims
        )


def replicated(
    problem: Problem, demands: Sequence[Demand], counts: Sequence[int]
) -> Problem:
    """The problem with so many copies of each demand, one demand after the other."""
    groups = map(copies, demands, counts)
    return replace(problem, demands=tuple(chain.from_iterable(groups)))


def by_demand(
    placements: Sequence[Placement], counts: Sequence[int]
) -> tuple[tuple[Placement, ...], ...]:
    """Placements in a problem with so many copies of each demand, by what they are copies of."""
    origins = [
        origin for origin, count in enumerate(counts) for _ in range(count)
    ]
    copies_of: list[list[Placement]] = [[] for _ in counts]
    for placement in placements:
        copies_of[origins[placement.demand]].append(placement)
    return tuple(map(tuple, copies_of))


def _numbered(key: ClaimKey, copy_index: int) -> ClaimKey:
    return ClaimKey(key.namespace, f"{key.name} {copy_index}")


def takes_nothing(problem: Problem, demand: Demand) -> bool:
    """Whether the demand can be had for nothing, and so without end.

    Admin access takes nothing (KEP-5018), nor does a share of a device that consumes no capacity: what the device
    itself draws on counters is drawn once (KEP-4815, KEP-5075).
    """
    admin = frozenset(
        alternative.index
        for alternative in demand.alternatives()
        if alternative.admin
    )
    for_nothing = _ForNothing(problem.eligibility, problem, admin)
    return bool(
        solve(
            replace(problem, demands=(demand,), eligibility=for_nothing)
        ).placements
    )


def _is_for_nothing(problem: Problem, placement: Placement) -> bool:
    """Whether another copy could always be placed beside this one, in the same way: what it has costs nothing."""
    return all(
        _is_free(problem, device, charge)
        for _, device, charge in charged_grants(problem, [placement])
    )


def _is_free(
    problem: Problem, device: DeviceIndex, charge: Charge | None
) -> bool:
    shareable = problem.devices[device].shareable
    return (
        shareable
        and charge is not None
        and not any(
            amount for _, amount in (*charge.capacity, *charge.counters)
        )
    )


@dataclass(eq=False)
class _ForNothing(Overlay):
    """The eligibility of a problem, where only what takes nothing is let in."""

    problem: Problem
    admin: frozenset[int]

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        return super().admits(alternative, device) and (
            alternative in self.admin
            or _is_free(self.problem, device, self.charge(alternative, device))
        )

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        return alternative

    def device_key(self, device: DeviceIndex) -> Hashable:
        return device


# ----------------------------------------------------------------------------
# How many of a demand there would be if every device were looked at alone: never
# fewer than fit.


@dataclass(frozen=True)
class PerDeviceBound:
    """Counts devices for a demand.

    Each of its requests could be served so often by the devices that match and are free, as if no two of them shared
    counters and no other request wanted them; the scarcest request decides.
    """

    problem: Problem
    demand: Demand

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of what allocated claims hold."""
        return Ledger(self.problem)

    def total(self, times: Mapping[NodeIndex, int] | None = None) -> int | None:
        """The estimate; None if nothing limits it.

        Parameters
        ----------
        times
            How often each node counts; once if it is not listed.
        """
        requests = [
            request
            for claim in self.demand.claims
            for request in claim.requests
        ]
        estimates = [
            self._of_request(request, times or {}) for request in requests
        ]
        return min(
            (estimate for estimate in estimates if estimate is not None),
            default=None,
        )

    def _of_request(
        self, request: Request, times: Mapping[NodeIndex, int]
    ) -> int | None:
        total = 0
        seen: set[int] = set()
        for node in self.problem.candidate_nodes(self.demand):
            for device in self.problem.nodes[node].devices():
                if device not in seen and self.problem.on_node(device, node):
                    seen.add(device)
                    uses = self._of_device(request, device)
                    if uses is None:
                        return None
                    total += uses * times.get(node, 1)
        return total // min(
            alternative.count or 1 for alternative in request.alternatives
        )

    def _of_device(self, request: Request, device: DeviceIndex) -> int | None:
        """Return how many times the device could serve the request by any alternative; None for no limit."""
        fitting = list(self._fitting(request.alternatives, device))
        if any(alternative.admin for alternative, _ in fitting):
            return None
        if not fitting or not self.problem.devices[device].shareable:
            return len(fitting[:1])
        return self._shares(device, [charge for _, charge in fitting])

    def _fitting(
        self, alternatives: Sequence[Alternative], device: DeviceIndex
    ) -> Iterator[tuple[Alternative, Charge]]:
        """The alternatives that the device could serve alone, with what they take."""
        offers, view = self.problem.eligibility, self.problem.devices[device]
        for alternative in alternatives:
            index = alternative.index
            if offers.selects(index, device) is True and offers.admits(
                index, device
            ):
                charge = offers.charge(index, device)
                if charge is not None and self.ledger.may_fit(
                    view, charge, admin=alternative.admin
                ):
                    yield alternative, charge

    def _shares(
        self, device: DeviceIndex, charges: Sequence[Charge]
    ) -> int | None:
        """Return how many times the smallest amounts fit: each resource by itself, and all resources together."""
        amounts_taken = [
            dict[str | int, int]((*charge.capacity, *charge.counters))
            for charge in charges
        ]
        limits: list[tuple[int, int]] = []
        total = 0
        for name in dict.fromkeys(chain.from_iterable(amounts_taken)):
            free = self._free(device, name)
            least = min(amounts.get(name, 0) for amounts in amounts_taken)
            limits.append((free, least))
            total += free
        # Whatever an alternative takes, it takes of the sum of all that is free.
        least = min(sum(amounts.values()) for amounts in amounts_taken)
        limits.append((total, least))
        return min(
            (free // least for free, least in limits if least), default=None
        )

    def _free(self, device: DeviceIndex, name: str | int) -> int:
        if isinstance(name, int):
            return self.ledger.free[name]
        return self.ledger.capacity_left(self.problem.devices[device], name)


# ----------------------------------------------------------------------------
# How many more of one demand fit: exactly, by first fit, and device by device.

_TRIES = (32, 512, 10_000)
"""Where nothing tells how many there could be, so many are tried: more as long as all of them fit."""

_ONCE: Mapping[NodeIndex, int] = {}


@dataclass(frozen=True, slots=True)
class CopyCount:
    """How many of a demand fit. None stands for no end.

    Parameters
    ----------
    number
        So many can be placed: the checker has accepted it.
    bound
        Not more than so many can be placed.
    first_fit
        How many first fit places before it fails.
    per_device
        How many there would be if each device were looked at alone.
    reason
        The error that ends first fit's attempt.
    warnings
        Devices left out because a selector failed on them.
    homes
        Where the copies are placed, by name; of nodes that count several times, once.
    """

    number: int | None
    bound: int | None
    first_fit: int | None
    per_device: int | None
    reason: str = ""
    warnings: tuple[str, ...] = ()
    homes: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def exact(self) -> bool:
        """Whether the number is proven."""
        return self.number == self.bound


def count_copies(
    problem: Problem,
    demand: Demand,
    options: Options | None = None,
    times: Mapping[NodeIndex, int] = _ONCE,
) -> CopyCount:
    """Find out how many more of a demand fit into a problem, of which only the inventory is looked at.

    Of equal nodes one is solved for all. The independent checker has accepted both answers.

    Parameters
    ----------
    times
        How often nodes count, if not once (see `dralloc.ask.whatif.node_types`).

    Raises
    ------
    NotRepresentativeError
        An error ends first fit, so that the order of nodes matters, and some count more than once.
    """
    classes = equivalent_nodes(problem, [demand])
    part = (
        (problem, demand, times)
        if classes is None
        else _one_of_each(problem, demand, classes, times)
    )
    counted = _Counting(*part).run(options or Options())
    if not counted.reason or counted.first_fit is None:
        return counted
    if any(count > 1 for count in times.values()):
        raise NotRepresentativeError
    # An error on one node ends the attempt, and leaves nothing for the nodes behind it.
    greedy = _Counting(problem, demand, {}).first_fit(counted.per_device)
    return replace(
        counted, first_fit=len(greedy.placements), reason=_first_error(greedy)
    )


def _one_of_each(
    problem: Problem,
    demand: Demand,
    classes: NodeClasses,
    times: Mapping[NodeIndex, int],
) -> tuple[Problem, Demand, dict[int, int]]:
    """The problem with one node of each class, the demand there, and how often each of these nodes counts."""
    counts: dict[int, int] = {}
    for class_index, group in enumerate(classes.groups):
        counts[class_index] = sum(times.get(node, 1) for node in group)
    representatives = [group[0] for group in classes.groups]
    part = cut(problem, representatives).problem
    return part, replace(demand, nodes=None), counts


@dataclass(frozen=True)
class _Counting:
    """Copies of a demand on nodes that count several times."""

    problem: Problem
    demand: Demand
    times: Mapping[NodeIndex, int]

    def run(self, options: Options) -> CopyCount:
        """Place as many as possible."""
        stop = Stop.after(options.time_limit)
        estimate = PerDeviceBound(self.problem, self.demand)
        per_device, max_copies = estimate.total(self.times), estimate.total()
        if per_device is None and takes_nothing(self.problem, self.demand):
            greedy = self.first_fit(1)
            return CopyCount(
                None,
                None,
                None if greedy.placements else 0,
                None,
                _first_error(greedy),
            )
        for tried in self._tries() if max_copies is None else (max_copies,):
            problem = self._replicated(tried)
            greedy = first_fit(problem)
            best = solve(problem, with_time_left(options, stop), hint=greedy)
            if best.tiers[0].value < tried or self._is_endless(problem, best):
                break
        check(problem, greedy)
        check(problem, best)
        if self._is_endless(problem, best):
            ends = not self._is_endless(problem, greedy)
            greedy_count = self._count(greedy) if ends else None
            return CopyCount(
                None,
                None,
                greedy_count,
                None,
                _first_error(greedy),
                best.warnings,
            )
        count, tier = self._count(best), best.tiers[0]
        # What is open could be open on nodes of the most frequent class. Where all that were tried could be placed for
        # all that is proven, more could be, too.
        open_ended = tier.bound == len(problem.demands) != max_copies
        bound = count + (tier.bound - tier.value) * max(
            self.times.values(), default=1
        )
        return CopyCount(
            number=count,
            bound=per_device if open_ended else bound,
            first_fit=self._count(greedy),
            per_device=per_device,
            reason=_first_error(greedy),
            warnings=best.warnings,
            homes=tuple(
                problem.nodes[placement.node].name
                for placement in best.placements
            ),
        )

    def _tries(self) -> Sequence[int]:
        """Models of many copies that take all there is grow with the square of their number."""
        for_all = any(
            alternative.count is None
            for alternative in self.demand.alternatives()
        )
        return _TRIES[:-1] if for_all else _TRIES

    def _is_endless(self, problem: Problem, solution: Solution) -> bool:
        """Whether all copies are placed, one of them for nothing, so that there is always room for another one."""
        placed = solution.placements
        return len(placed) == len(problem.demands) and any(
            _is_for_nothing(problem, placement) for placement in placed
        )

    def first_fit(self, max_copies: int | None) -> Solution:
        """Return what first fit makes of so many copies."""
        return first_fit(self._replicated(max_copies))

    def _replicated(self, max_copies: int | None) -> Problem:
        count = min(
            _TRIES[-1] if max_copies is None else max_copies, MOST_COPIES
        )
        return replicated(self.problem, [self.demand], [max(count, 1)])

    def _count(self, solution: Solution) -> int:
        return sum(
            self.times.get(placement.node, 1)
            for placement in solution.placements
        )


def _first_error(solution: Solution) -> str:
    """Return why the first copy that is not placed ended with an error; empty if it just did not fit."""
    fatal = (
        str(error)
        for error in solution.errors.values()
        if isinstance(error, FatalError)
    )
    return next(fatal, "")
