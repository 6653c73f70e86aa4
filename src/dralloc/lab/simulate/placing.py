"""Who finds places for those who wait: one job after the other, or many at once.

All of them keep a compiled cluster and what is in use of it. Nothing is compiled again while time goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from dralloc.check import check
from dralloc.compile.compiler.pod_rules import has_rules_between
from dralloc.lab.simulate.arrivals.incoming import Incoming
from dralloc.lab.simulate.waiting_queue import WaitingQueue
from dralloc.objects.names import ClaimKey
from dralloc.problem import Claim, Demand, DemandIndex, Problem, Request
from dralloc.problem.inter_pod import InterPodRule, Role, settled_rule
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import (
    Grant,
    Placement,
    Solution,
    charged_grants,
    devices_only,
    with_node_grants,
)
from dralloc.solve.first_fit.plain import PlainRun
from dralloc.solve.first_fit.search_ledger import SearchLedger
from dralloc.solve.scheduler import Planned, Profile, Release, SchedulingRun

__all__ = ["Placer", "RunPlacer", "SchedulerPlacer", "check_state"]


class Placer(ABC):
    """Finds places for jobs that wait, and gives back those of arrivals that leave."""

    def __init__(self, waiting: Incoming) -> None:
        self.incoming = waiting

    def equal_jobs(self, job: int) -> Hashable:
        """Return a key for jobs of which none fits if one does not; None if a job's failure says nothing of others."""
        arrivals, pods = self.incoming.arrivals, self.incoming.pods
        if self._have_rules(job):
            return None
        return tuple(
            (arrivals[arrival].template, pods[arrival].namespace)
            for arrival in self.incoming.jobs[job]
        )

    def _have_rules(self, job: int) -> bool:
        """Return whether rules between pods bind the arrivals of a job."""
        demands = (
            self.incoming.demand(arrival) for arrival in self.incoming.jobs[job]
        )
        return any(demand is not None and demand.roles for demand in demands)

    @abstractmethod
    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Give out the jobs that get a place now, as they do; whoever asks for them takes them out of the queue."""

    @abstractmethod
    def release(self, arrival: int) -> None:
        """Give back everything that an arrival with a place holds."""

    @abstractmethod
    def exchange(
        self, leaving: Sequence[int], entering: Sequence[Placement]
    ) -> bool:
        """Let arrivals with a place give it back, and enter placements that somebody else has found, theirs among them.

        Placements are in the numbers of the whole problem. False if something that their problem does not know is
        against it; then nothing has changed.
        """

    @property
    def problem(self) -> Problem:
        """The problem that places are an answer to."""
        return self.incoming.problem

    def as_running(self, demand: Demand) -> Demand:
        """Return a demand as it is bound once it has a place: its group is there, and rules bind newcomers alone."""
        return demand.by_itself().running

    @property
    def whole_problem(self) -> Problem:
        """The problem of all arrivals, with what else binds pods to nodes as it is now."""
        return self.incoming.problem

    @property
    @abstractmethod
    def placements(self) -> Mapping[int, Placement]:
        """By arrival, who has a place now, as an answer to `problem`."""

    @property
    @abstractmethod
    def ledger(self) -> SearchLedger:
        """The ledger of what is in use now."""

    def whole_placements(self) -> Mapping[int, Placement]:
        """By arrival, who has a place now, with what is taken of nodes beside devices."""
        return self.placements

    def whole_ledger(self) -> Ledger:
        """Return what is in use now, with what is taken of nodes beside devices."""
        return self.ledger

    def waiting_problem(self, waiting: Sequence[DemandIndex]) -> Problem:
        """Return the problem of some demands that wait, with all that is in use now."""
        problem, in_use = self.whole_problem, self.whole_ledger().applied()
        rules = self._rules_now()
        demands = tuple(
            with_rules(problem.demands[demand], rules) for demand in waiting
        )
        return replace(
            problem,
            demands=demands,
            usage=in_use.usage,
            counters=in_use.counters,
        )

    def _rules_now(self) -> dict[InterPodRule, InterPodRule]:
        """Return what has become of the rules between pods of which some have places."""
        problem = self.whole_problem
        if not any(demand.roles for demand in problem.demands):
            return {}
        present: dict[InterPodRule, list[tuple[Role, str]]] = defaultdict(list)
        for placement in self.placements.values():
            for role in problem.demands[placement.demand].roles:
                present[role.rule].append(
                    (role, problem.nodes[placement.node].name)
                )
        return {
            rule: settled_rule(rule, placed_roles)
            for rule, placed_roles in present.items()
        }

    @abstractmethod
    def node_of(self, arrival: int) -> str:
        """Return the node on which an arrival with a place is."""

    @abstractmethod
    def placement_of(self, arrival: int) -> Placement | None:
        """Return what an arrival with a place has; None if that is no device."""


class RunPlacer(Placer):
    """First fit, or another policy that takes one demand after the other, which goes on as demands come and go."""

    def __init__(self, waiting: Incoming, run: PlainRun) -> None:
        super().__init__(waiting)
        self._run = run
        # Where in the run's list the placement of each demand is.
        self._places: dict[int, int] = {}

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Try one job after the other."""
        for job in queue.hopeful():
            if self.place(job):
                yield job

    def place(self, job: int) -> bool:
        """Place all arrivals of a job, or none of them."""
        placements = self._run.placements
        before = len(placements)
        demands = [
            self.incoming.demands[arrival]
            for arrival in self.incoming.jobs[job]
        ]
        self._run.place_together(
            [demand for demand in demands if demand is not None]
        )
        for position in range(before, len(placements)):
            self._places[placements[position].demand] = position
        return len(placements) > before

    def release(self, arrival: int) -> None:
        """Take the arrival's placement out of the run."""
        demand = self.incoming.demands[arrival]
        assert demand is not None
        placements, position = self._run.placements, self._places.pop(demand)
        released, last = placements[position], placements.pop()
        if last is not released:
            placements[position] = last
            self._places[last.demand] = position
        self._run.depart(released)

    def exchange(
        self, leaving: Sequence[int], entering: Sequence[Placement]
    ) -> bool:
        """Do it: the whole problem knows all that there is."""
        for arrival in leaving:
            self.release(arrival)
        for placement in entering:
            self.accept(placement)
        return True

    def accept(self, placement: Placement) -> None:
        """Enter a placement that somebody else has found, in the numbers of the whole problem."""
        self._places[placement.demand] = len(self._run.placements)
        self._run.accept(placement)

    @property
    def placements(self) -> Mapping[int, Placement]:
        """The placements of the run."""
        arrival_of = self.incoming.arrival_of
        return {
            arrival_of[placement.demand]: placement
            for placement in self._run.placements
        }

    @property
    def ledger(self) -> SearchLedger:
        """The ledger of the run."""
        return self._run.ledger

    def node_of(self, arrival: int) -> str:
        """Return the node of the placement."""
        return self.incoming.problem.nodes[self.placement_of(arrival).node].name

    def placement_of(self, arrival: int) -> Placement:
        """Return the placement in the run."""
        demand = self.incoming.demands[arrival]
        assert demand is not None
        return self._run.placements[self._places[demand]]


class SchedulerPlacer(Placer):
    """kube-scheduler: its filters, samples, scores and ties."""

    def __init__(
        self,
        waiting: Incoming,
        profiles: Sequence[Profile],
        release: Release,
        seed: int,
    ) -> None:
        super().__init__(waiting)
        self._run = SchedulingRun(
            waiting.compiled, profiles, Random(seed), release
        )
        self._has_rules = has_rules_between(waiting.compiled.cluster.pods)
        # Pods that ran before anybody arrived, and have been evicted since.
        self._evicted: frozenset[ClaimKey] = frozenset()
        self._whole = waiting.problem

    @property
    def whole_problem(self) -> Problem:
        """The problem without those who ran before anybody arrived and have been evicted since."""
        return self._whole

    @property
    def problem(self) -> Problem:
        """The problem of devices alone: what else binds pods to nodes is for the plugins to say.

        What pods held that ran before anybody arrived and have been evicted since is free in it.
        """
        return self._run.scheduler.beside_evicted(
            self.incoming.compiled.problem
        )

    def as_running(self, demand: Demand) -> Demand:
        """Return a demand without rules: the plugins' filters say where a pod may go."""
        return demand.by_itself(nodes=None, roles=())

    def _have_rules(self, _: int) -> bool:
        return self._has_rules

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Try everybody in turn, and again those whom others may have helped, as long as that helps somebody."""
        helped = True
        while helped:
            helped, may_help = False, False
            for job in queue.hopeful():
                pods = [
                    self.incoming.pods[arrival]
                    for arrival in self.incoming.jobs[job]
                ]
                if self._run.try_once(pods):
                    may_help = True
                    yield job
                elif self._run.may_be_helped(pods[0]):
                    helped = True
            helped = helped and may_help

    def release(self, arrival: int) -> None:
        """Take the arrival's pod off its node."""
        self._run.depart(self.incoming.pods[arrival])

    def exchange(
        self, leaving: Sequence[int], entering: Sequence[Placement]
    ) -> bool:
        """Ask the scheduler's filters about everybody who comes to a node."""
        problem = self.incoming.problem
        planned: dict[ClaimKey, Planned] = {}
        for placement in devices_only(problem, entering):
            demand = self.problem.demands[placement.demand]
            pairs = zip(demand.claims, placement.grants, strict=True)
            planned[demand.key] = Planned(
                problem.nodes[placement.node].name,
                {claim.key: grants for claim, grants in pairs},
            )
        pods = [self.incoming.pods[arrival] for arrival in leaving]
        return self._run.exchange(pods, planned)

    def preempt(self, job: int, _: Mapping[int, int]) -> tuple[int, ...] | None:
        """Place a job in the stead of arrivals that kube-scheduler evicts for it; returns these, None if it does not.

        Who began when, the scheduler knows. Pods that ran before anybody arrived may be evicted, too; they are none
        of those who are returned.
        """
        arrival, *mates = self.incoming.jobs[job]
        if mates:
            return None
        victims = self._run.preempt(self.incoming.pods[arrival])
        if victims is None:
            return None
        arrival_of = {
            pod: arrival_index
            for arrival_index, pod in enumerate(self.incoming.pods)
        }
        evicted = self._evicted.union(
            victim for victim in victims if victim not in arrival_of
        )
        if evicted != self._evicted:
            self._evicted = evicted
            self._whole = _without(self.incoming, evicted)
        return tuple(
            arrival_of[victim] for victim in victims if victim in arrival_of
        )

    @property
    def placements(self) -> Mapping[int, Placement]:
        """The placements of pods that ask for devices."""
        arrival_of = self.incoming.arrival_of
        return {
            arrival_of[placement.demand]: placement
            for placement in self._run.scheduler.solution.placements
        }

    @property
    def ledger(self) -> SearchLedger:
        """The ledger of the scheduler."""
        return self._run.scheduler.ledger

    def whole_placements(self) -> Mapping[int, Placement]:
        """Return the placements of pods that ask for devices, with what they take of nodes."""
        placements = self.placements
        with_nodes = with_node_grants(
            self.incoming.problem, placements.values()
        )
        return dict(zip(placements, with_nodes, strict=True))

    def whole_ledger(self) -> Ledger:
        """Make a ledger of the placements, as the plugins keep count of nodes by themselves."""
        problem = self._run.scheduler.beside_evicted(self._whole)
        ledger = Ledger(problem)
        charges = charged_grants(problem, self.whole_placements().values())
        for _, device, charge in charges:
            shared = problem.devices[device].shareable
            ledger.enter(problem.devices[device], charge, share=shared)
        return ledger

    def node_of(self, arrival: int) -> str:
        """Return the node to which the pod was bound."""
        node = self._run.node_of(self.incoming.pods[arrival])
        assert node is not None
        return node

    def placement_of(self, arrival: int) -> Placement | None:
        """Return what the pod has of devices and, beside them, of its node; None if that is no device."""
        placement = self._run.scheduler.placement_of(
            self.incoming.pods[arrival]
        )
        if placement is None:
            return None
        # Figures are about the whole problem, in which nodes are devices, too.
        return next(with_node_grants(self.incoming.problem, (placement,)))


def _without(incoming: Incoming, evicted: Collection[ClaimKey]) -> Problem:
    """The problem of the arrivals without these pods, which ran before, all they took and their rules."""
    compiled = incoming.compiled
    # Complete, so that both list the same resources; the problem itself leaves out what cannot run short.
    before = compiled.pods.applied(compiled.problem, complete=True).usage
    alone = compiled.pods.applied(compiled.problem, complete=True, gone=evicted)
    after, problem = alone.usage, incoming.problem
    pairs = zip(problem.demands, alone.demands, strict=True)
    demands = tuple(
        replace(demand, nodes=bound.nodes, roles=bound.roles)
        for demand, bound in pairs
    )
    shares, consumed = (
        dict(problem.usage.shares),
        dict(problem.usage.consumed),
    )
    for slot, share in before.shares.items():
        if slot in shares:
            shares[slot] -= share - after.shares[slot]
            consumed[slot] = {
                name: amount
                - before.consumed[slot].get(name, 0)
                + after.consumed[slot].get(name, 0)
                for name, amount in consumed.get(slot, {}).items()
            }
    usage = replace(problem.usage, shares=shares, consumed=consumed)
    return replace(problem, demands=demands, usage=usage)


def with_rules(
    demand: Demand, rules: Mapping[InterPodRule, InterPodRule]
) -> Demand:
    if not demand.roles:
        return demand
    roles = (
        role._replace(rule=rules.get(role.rule, role.rule))
        for role in demand.roles
    )
    return replace(demand, roles=tuple(roles))


def check_state(placer: Placer) -> None:
    """Make sure that what runs keeps every rule now, as if it had come at once.

    Raises
    ------
    CheckError
        It does not.
    """
    placements = sorted(
        placer.placements.values(), key=lambda placement: placement.demand
    )
    problem = placer.problem
    demands = tuple(
        placer.as_running(_as_granted(problem, placement))
        for placement in placements
    )
    renumbered = tuple(
        replace(placement, demand=DemandIndex(demand_index))
        for demand_index, placement in enumerate(placements)
    )
    check(replace(problem, demands=demands, budgets=()), Solution(renumbered))


def _as_granted(problem: Problem, placement: Placement) -> Demand:
    """Return the demand of a placement; where it asked for all devices, for as many as it was given.

    Upstream leaves shared devices out of all devices while too little is left of them, so that what all are depends on
    who ran when the placement was made.
    """
    demand = problem.demands[placement.demand]
    if all(
        alternative.count is not None for alternative in demand.alternatives()
    ):
        return demand
    granted = zip(demand.claims, placement.grants, strict=True)
    claims = tuple(_counted_claim(claim, grants) for claim, grants in granted)
    return replace(demand, claims=claims)


def _counted_claim(claim: Claim, grants: Sequence[Grant]) -> Claim:
    requests = tuple(
        _counted(request, request_index, grants)
        for request_index, request in enumerate(claim.requests)
    )
    return replace(claim, requests=requests)


def _counted(
    request: Request, request_index: int, grants: Sequence[Grant]
) -> Request:
    count = sum(grant.request == request_index for grant in grants)
    alternatives = tuple(
        replace(alternative, count=count)
        if alternative.count is None
        else alternative
        for alternative in request.alternatives
    )
    return replace(request, alternatives=alternatives)
