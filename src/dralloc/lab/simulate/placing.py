"""Who finds places for those who wait: one job after the other, or many at once.

All of them keep a compiled cluster and what is in use of it. Nothing is compiled again while time goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from dralloc.compile.compiler.pod_rules import has_rules_between
from dralloc.lab.simulate.incoming import Incoming
from dralloc.lab.simulate.queue import WaitingQueue
from dralloc.problem import Demand, Problem
from dralloc.problem.inter_pod import InterPodRule, Role, settled_rule
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, charged_grants, with_node_grants
from dralloc.solve.first_fit.ledger import SearchLedger
from dralloc.solve.first_fit.plain import PlainRun
from dralloc.solve.scheduler import Profile, Release, SchedulingRun

__all__ = ["Placer", "RunPlacer", "SchedulerPlacer"]


class Placer(ABC):
    """Finds places for jobs that wait, and gives back those of arrivals that leave."""

    def __init__(self, waiting: Incoming) -> None:
        self.incoming = waiting

    def equal_jobs(self, job: int) -> Hashable:
        """What jobs have in common of which none fits if one of them does not; None if that says nothing of others."""
        arrivals, pods = self.incoming.arrivals, self.incoming.pods
        if self._have_rules(job):
            return None
        return tuple(
            (arrivals[number].template, pods[number].namespace)
            for number in self.incoming.jobs[job]
        )

    def _have_rules(self, job: int) -> bool:
        """Whether rules between pods bind the arrivals of a job."""
        demands = (self.incoming.demand(number) for number in self.incoming.jobs[job])
        return any(demand is not None and demand.roles for demand in demands)

    @abstractmethod
    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Give out the jobs that get a place now, as they do; whoever asks for them takes them out of the queue."""

    @abstractmethod
    def release(self, arrival: int) -> None:
        """Give back everything that an arrival with a place holds."""

    @property
    def problem(self) -> Problem:
        """The problem that places are an answer to."""
        return self.incoming.problem

    def as_running(self, demand: Demand) -> Demand:
        """What binds a demand that has a place: its group is there, and rules for others bind newcomers alone."""
        return demand.by_itself().running

    @property
    @abstractmethod
    def placements(self) -> Mapping[int, Placement]:
        """By arrival, who has a place now, as an answer to `problem`."""

    @property
    @abstractmethod
    def ledger(self) -> SearchLedger:
        """What is in use now."""

    def whole_placements(self) -> Mapping[int, Placement]:
        """By arrival, who has a place now, with what is taken of nodes beside devices."""
        return self.placements

    def whole_ledger(self) -> Ledger:
        """What is in use now, with what is taken of nodes beside devices."""
        return self.ledger

    def waiting_problem(self, numbers: Sequence[int]) -> Problem:
        """The problem of some demands that wait, with all that is in use now."""
        whole, now = self.incoming.problem, self.whole_ledger().applied()
        rules = self._rules_now()
        demands = tuple(_with_rules(whole.demands[number], rules) for number in numbers)
        return replace(whole, demands=demands, usage=now.usage, counters=now.counters)

    def _rules_now(self) -> dict[InterPodRule, InterPodRule]:
        """What has become of the rules between pods of which some have places."""
        whole = self.incoming.problem
        if not any(demand.roles for demand in whole.demands):
            return {}
        present: dict[InterPodRule, list[tuple[Role, str]]] = defaultdict(list)
        for placement in self.placements.values():
            for role in whole.demands[placement.demand].roles:
                present[role.rule].append((role, whole.nodes[placement.node].name))
        return {rule: settled_rule(rule, those) for rule, those in present.items()}

    @abstractmethod
    def node_of(self, arrival: int) -> str:
        """The node on which an arrival with a place is."""

    @abstractmethod
    def placement_of(self, arrival: int) -> Placement | None:
        """What an arrival with a place has; None if that is no device."""


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
        numbers = [self.incoming.demands[number] for number in self.incoming.jobs[job]]
        self._run.place_together([number for number in numbers if number is not None])
        for place in range(before, len(placements)):
            self._places[placements[place].demand] = place
        return len(placements) > before

    def release(self, arrival: int) -> None:
        """Take the arrival's placement out of the run."""
        number = self.incoming.demands[arrival]
        assert number is not None
        placements, place = self._run.placements, self._places.pop(number)
        released, last = placements[place], placements.pop()
        if last is not released:
            placements[place] = last
            self._places[last.demand] = place
        self._run.depart(released)

    @property
    def placements(self) -> Mapping[int, Placement]:
        """Those of the run."""
        arrival_of = self.incoming.arrival_of
        return {arrival_of[one.demand]: one for one in self._run.placements}

    @property
    def ledger(self) -> SearchLedger:
        """That of the run."""
        return self._run.ledger

    def node_of(self, arrival: int) -> str:
        """The node of the placement."""
        return self.incoming.problem.nodes[self.placement_of(arrival).node].name

    def placement_of(self, arrival: int) -> Placement:
        """The placement in the run."""
        number = self.incoming.demands[arrival]
        assert number is not None
        return self._run.placements[self._places[number]]


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
        self._run = SchedulingRun(waiting.compiled, profiles, Random(seed), release)
        self._has_rules = has_rules_between(waiting.compiled.cluster.pods)

    @property
    def problem(self) -> Problem:
        """That of devices: what else binds pods to nodes is for the plugins to say."""
        return self.incoming.compiled.problem

    def as_running(self, demand: Demand) -> Demand:
        """Filters of its own say where a pod may go."""
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
                    self.incoming.pods[number] for number in self.incoming.jobs[job]
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

    @property
    def placements(self) -> Mapping[int, Placement]:
        """Those of pods that ask for devices."""
        arrival_of = self.incoming.arrival_of
        return {
            arrival_of[one.demand]: one
            for one in self._run.scheduler.solution.placements
        }

    @property
    def ledger(self) -> SearchLedger:
        """That of the scheduler."""
        return self._run.scheduler.ledger

    def whole_placements(self) -> Mapping[int, Placement]:
        """Those of pods that ask for devices."""
        placements = self.placements
        whole = with_node_grants(self.incoming.problem, placements.values())
        return dict(zip(placements, whole, strict=True))

    def whole_ledger(self) -> Ledger:
        """Made anew of the placements, as the plugins keep count of nodes by themselves."""
        whole = self.incoming.problem
        ledger = Ledger(whole)
        taken = charged_grants(whole, self.whole_placements().values())
        for _, device, charge in taken:
            shared = whole.devices[device].shareable
            ledger.enter(whole.devices[device], charge, share=shared)
        return ledger

    def node_of(self, arrival: int) -> str:
        """The node to which the pod was bound."""
        node = self._run.node_of(self.incoming.pods[arrival])
        assert node is not None
        return node

    def placement_of(self, arrival: int) -> Placement | None:
        """What the pod has of devices."""
        return self._run.scheduler.placement_of(self.incoming.pods[arrival])


def _with_rules(demand: Demand, rules: Mapping[InterPodRule, InterPodRule]) -> Demand:
    if not demand.roles:
        return demand
    roles = (
        role._replace(rule=rules.get(role.rule, role.rule)) for role in demand.roles
    )
    return replace(demand, roles=tuple(roles))
