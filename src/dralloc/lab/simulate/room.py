"""Making room for who waits: less important arrivals give way, or others move."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

from dralloc.ask.whatif.moves import (
    Migration,
    MovableClaim,
    MoveOption,
    rearrange,
)
from dralloc.lab.simulate.arrivals.incoming import Incoming
from dralloc.lab.simulate.batch_placing import weighted
from dralloc.lab.simulate.kept_answers import KeptAnswers
from dralloc.lab.simulate.placing import Placer, RunPlacer
from dralloc.objects.choices import Choices
from dralloc.objects.names import ClaimKey
from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex, grouped, numbered
from dralloc.problem.ledger import Holding, Ledger
from dralloc.problem.solution import Placement, charged_grants, holdings_of
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve

__all__ = ["Rearrangement", "preempt", "rearrange_all"]

# ----------------------------------------------------------------------------
# Preemption: upstream's rules, for devices, too.
#
# Source: kube-scheduler's plugin ``defaultpreemption``. On each node all arrivals of
# lower priority are taken away; if the pod fits then, as many of them as possible come
# back, the most important ones first. Of the nodes that are left the best is the one
# whose most important victim is the least important, then the one with the smallest sum
# of priorities, then with the fewest victims, then where the most important victims
# have begun last. Upstream's dry run lets victims hold on to their devices, so that it
# evicts for devices only where DRAPreemption is on, and so does policy ``scheduler``. All other
# policies preempt for devices as upstream does for CPU.

_LEAST_CANDIDATES: Final = 100
_CANDIDATES_PERCENT: Final = 10
"""Upstream chooses among so many nodes, or such a part of all, whatever is more (its defaults)."""

_PRIORITIES: Final = 2**31
"""Added to each priority before they are summed up, so that none is negative."""


@dataclass(frozen=True, slots=True)
class NodeVictims:
    """The arrivals that would go for a pod, the most important ones first."""

    priorities: tuple[int, ...]
    since: tuple[int, ...]
    victims: tuple[int, ...]

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Smaller for who is evicted rather."""
        highest = max(self.priorities, default=-_PRIORITIES)
        begins = [
            begin
            for priority, begin in zip(self.priorities, self.since, strict=True)
            if priority == highest
        ]
        total = sum(priority + _PRIORITIES for priority in self.priorities)
        return highest, total, len(self.victims), -min(begins, default=0)


def preempt(
    placer: RunPlacer, job: int, since: Mapping[int, int]
) -> tuple[int, ...] | None:
    """Place a job in the stead of less important arrivals.

    Parameters
    ----------
    job
        It has no place. Arrivals in groups evict nobody, as upstream's pods of a group do.
    since
        By arrival that has a place, when it got one.

    Returns
    -------
    tuple[int, ...] | None
        The arrivals that have lost their place; None if that does not help, and nothing has changed.
    """
    incoming = placer.incoming
    arrival, *mates = incoming.jobs[job]
    demand = incoming.demand(arrival)
    if mates or demand is None or not incoming.may_preempt(arrival):
        return None
    priority = incoming.priority(arrival)
    lower = (
        (placement.node, placed_arrival)
        for placed_arrival, placement in placer.placements.items()
        if incoming.priority(placed_arrival) < priority
    )
    by_node = grouped(lower)
    nodes = incoming.problem.candidate_nodes(demand)
    most = max(_LEAST_CANDIDATES, len(nodes) * _CANDIDATES_PERCENT // 100)
    best: NodeVictims | None = None
    seen = 0
    for node in nodes:
        # Where nobody is less important, nobody can give way.
        if node not in by_node or seen == most:
            continue
        candidate = _victims_on(placer, job, by_node[node], since)
        if candidate is None:
            continue
        seen += 1
        if best is None or candidate.rank < best.rank:
            best = candidate
    if best is None:
        return None
    # All that was tried was taken back: only now do the victims leave.
    for victim in best.victims:
        placer.release(victim)
    placer.place(job)
    return best.victims


def _victims_on(
    placer: RunPlacer,
    job: int,
    lower: Sequence[int],
    since: Mapping[int, int],
) -> NodeVictims | None:
    """Return who has to go for a job of those on a node; nothing has changed afterwards."""
    incoming = placer.incoming

    def importance(arrival: int) -> tuple[int, int]:
        return -incoming.priority(arrival), since[arrival]

    held = {
        arrival: placer.placement_of(arrival)
        for arrival in sorted(lower, key=importance)
    }
    for arrival in held:
        placer.release(arrival)
    # All have left by now. Each comes back in turn, and stays unless it takes the place that the job has found.
    victims: list[int] = []
    helps = _fits(placer, job)
    for arrival, placement in held.items():
        placer.accept(placement)
        if helps and not _fits(placer, job):
            placer.release(arrival)
            victims.append(arrival)
    # The victims come back as well: this was a trial.
    for arrival in victims:
        placer.accept(held[arrival])
    if not helps:
        return None
    return NodeVictims(
        tuple(incoming.priority(arrival) for arrival in victims),
        tuple(since[arrival] for arrival in victims),
        tuple(victims),
    )


def _fits(placer: RunPlacer, job: int) -> bool:
    """Return whether a job could be placed now."""
    if not placer.place(job):
        return False
    for arrival in placer.incoming.jobs[job]:
        placer.release(arrival)
    return True


# ----------------------------------------------------------------------------
# Moves: as many of those who wait as possible get a place, as `dralloc.defragment`
# finds it. Arrivals in groups, and those with rules about other pods, stay where they
# are.


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """The outcome of moves.

    Parameters
    ----------
    admitted
        The jobs that have got a place.
    moved
        By arrival that has moved, what it had before.
    restarts
        How many of them gave back what they had before they held something new.
    """

    admitted: tuple[int, ...]
    moved: Mapping[int, Placement]
    restarts: int


@dataclass(frozen=True, slots=True)
class MovePlan:
    """Who gives back what it has, what is entered then, and how many of them held nothing in between."""

    leaving: tuple[int, ...]
    entering: tuple[Placement, ...]
    restarts: int


_PLANS: Final = TypeAdapter(MovePlan)


def rearrange_all(
    placer: Placer,
    jobs: Sequence[int],
    most: int,
    choices: Choices,
    kept: KeptAnswers | None = None,
) -> Rearrangement:
    """Let some arrivals move so that the most of those who wait get a place.

    Nobody moves, and nobody gets a place, if the placer knows of something that is against it.

    Parameters
    ----------
    jobs
        Those who wait, in order.
    most
        How many claims may move.
    kept
        Where plans are kept.
    """
    plan = (kept or KeptAnswers()).once(
        _PLANS, lambda: _planned(placer, jobs, most, choices)
    )
    held = placer.whole_placements()
    moved = {arrival: held[arrival] for arrival in plan.leaving}
    if not (plan.entering and placer.exchange(plan.leaving, plan.entering)):
        return Rearrangement((), {}, 0)
    placed = set(placer.placements)
    admitted = tuple(
        job for job in jobs if placed.issuperset(placer.incoming.jobs[job])
    )
    return Rearrangement(admitted, moved, plan.restarts)


def _planned(
    placer: Placer, jobs: Sequence[int], most: int, choices: Choices
) -> MovePlan:
    """Find out who moves, and who gets a place by that."""
    incoming = placer.incoming
    waiting: list[DemandIndex] = []
    for job in jobs:
        demands = [incoming.demands[arrival] for arrival in incoming.jobs[job]]
        with_devices = [demand for demand in demands if demand is not None]
        # Who asks for no device has nothing to gain by moves, nor has a group with such a pod.
        if len(with_devices) == len(demands):
            waiting += with_devices
    if not (waiting and most):
        return MovePlan((), (), 0)
    pending = weighted(incoming, placer.waiting_problem(waiting), choices)
    held = placer.whole_placements()
    movable = [arrival for arrival in held if _is_movable(incoming, arrival)]
    migration = _migration(incoming.problem, held, pending, movable)
    before = solve(pending, choices, first_fit(pending))
    value, whole = (
        before.tiers[0].value,
        sum(demand.weight for demand in pending.demands),
    )
    if value == whole:
        migration = Migration(pending, (), ())
    plan = rearrange(migration, most, choices, before.placements)
    demand_indices = {
        demand.key: demand_index
        for demand_index, demand in numbered(incoming.problem.demands)
    }
    leaving: list[int] = []
    entering: list[Placement] = []
    for move in plan.moves:
        [demand], [placement] = move.option.demands, move.placements
        demand_index = demand_indices[demand.key]
        leaving.append(incoming.arrival_of[demand_index])
        entering.append(replace(placement, demand=demand_index))
    for step in plan.steps:
        if not step.placements:
            continue
        already = sum(len(move.demands) for move in step.moves)
        for demand, placement in zip(
            step.demands[already:], step.placements[already:], strict=True
        ):
            entering.append(
                replace(placement, demand=demand_indices[demand.key])
            )
    return MovePlan(tuple(leaving), tuple(entering), plan.restarts)


def _is_movable(incoming: Incoming, arrival: int) -> bool:
    demand = incoming.demand(arrival)
    if demand is None or demand.gang or demand.parent or demand.roles:
        return False
    # Admin access holds nothing that could be given to others.
    return not any(alternative.admin for alternative in demand.alternatives())


def _migration(
    problem: Problem,
    placements: Mapping[int, Placement],
    pending: Problem,
    movable: Sequence[int],
) -> Migration:
    """Return the migration in which these arrivals may move, each with all of its claims.

    Parameters
    ----------
    problem, placements
        By arrival, who has a place, as an answer to the whole problem.
    pending
        The problem of those who wait.
    """
    staying = placements.keys() - set(movable)
    # In use is what stays. What the others hold is free in the problem of a `Migration`.
    ledger = Ledger(problem)
    charges = charged_grants(
        problem, [placements[arrival] for arrival in sorted(staying)]
    )
    for _, device_index, charge in charges:
        device = problem.devices[device_index]
        ledger.enter(device, charge, share=device.shareable)
    in_use = ledger.applied()
    movers: list[MovableClaim] = []
    pods: list[MovableClaim] = []
    options: list[MoveOption] = []
    for group, arrival in enumerate(movable):
        placement = placements[arrival]
        demand = problem.demands[placement.demand]
        synthetic = {claim.key for claim in demand.claims if claim.is_synthetic}
        first_mover, first_pod = len(movers), len(pods)
        # What a pod takes of its node goes with its claims, and does not count as a move.
        for mover in _holders(problem, placement):
            (pods if mover.key in synthetic else movers).append(mover)
        options.append(
            MoveOption(
                movers=tuple(range(first_mover, len(movers))),
                demands=(demand.by_itself(),),
                group=group,
                pods=tuple(range(first_pod, len(pods))),
            )
        )
    return Migration(
        replace(pending, usage=in_use.usage, counters=in_use.counters),
        tuple(movers),
        tuple(options),
        tuple(pods),
    )


def _holders(problem: Problem, placement: Placement) -> Iterator[MovableClaim]:
    """Yield what each claim of a placement holds, in the order of its grants."""
    by_claim: dict[ClaimKey, list[Holding]] = defaultdict(list)
    for holding in holdings_of(problem, placement):
        by_claim[holding.claim].append(holding)
    demand = problem.demands[placement.demand]
    for claim, grants in zip(demand.claims, placement.grants, strict=True):
        devices = tuple(grant.device for grant in grants)
        holdings = tuple(by_claim[claim.key])
        yield MovableClaim(claim.key, placement.node, holdings, devices)
