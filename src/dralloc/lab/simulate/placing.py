"""Who waits, and who finds places for them: one job after the other, or everybody who waits at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from heapq import heapify, heappop, heappush
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from dralloc.compile.compiler.pod_rules import has_rules_between
from dralloc.compile.compiler.worth import annotated_values, worth_of
from dralloc.lab.simulate.arrivals import Incoming
from dralloc.objects.choices import Choices, Goal, Priorities
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey
from dralloc.objects.save import write_text
from dralloc.problem import Demand, DemandIndex, Problem
from dralloc.problem.inter_pod import InterPodRule, Role, settled_rule
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import (
    LevelPrices,
    Placement,
    Solution,
    charged_grants,
    devices_only,
    grants_of,
    with_node_grants,
)
from dralloc.solve.first_fit import first_fit
from dralloc.solve.first_fit.batch import QuickRun
from dralloc.solve.first_fit.plain import PlainRun
from dralloc.solve.first_fit.search import SearchLedger
from dralloc.solve.optimum import Earlier, solve
from dralloc.solve.recreate.starts import Starts
from dralloc.solve.scheduler import Planned, Profile, Release, SchedulingRun

__all__ = [
    "BatchPlacer",
    "KeptAnswers",
    "OptimalPlacer",
    "Placer",
    "RunPlacer",
    "SchedulerPlacer",
    "WaitingQueue",
    "weighted",
]

# ----------------------------------------------------------------------------
# Jobs that wait, by priority and then by when they came; equal jobs stand one behind
# the other.
#
# What did not fit for a job does not fit for an equal one until something is
# released. So of equal jobs one is tried, and all of them are passed over from then
# on.


class Rank(NamedTuple):
    """The place of a job in the queue: the smallest comes first."""

    less_important: int
    since: int
    job: int


class WaitingQueue:
    """The queue.

    Parameters
    ----------
    equal_jobs
        Tells of a job what all jobs equal to it have in common; None if there are none, and if it may be helped by
        others that are placed. Then it is tried each time.
    """

    def __init__(self, equal_jobs: Callable[[int], Hashable]) -> None:
        self._equal_jobs = equal_jobs
        self._ranks: dict[int, Rank] = {}
        self._lines: dict[Hashable, list[Rank]] = {}
        self._passed_over: set[Hashable] = set()

    def __len__(self) -> int:
        return len(self._ranks)

    def __contains__(self, job: int) -> bool:
        return job in self._ranks

    def enter(self, job: int, priority: int, since: int) -> None:
        """A job comes."""
        rank = self._ranks[job] = Rank(-priority, since, job)
        group = self._equal_jobs(job)
        heappush(
            self._lines.setdefault(rank if group is None else group, []), rank
        )

    def leave(self, job: int) -> None:
        """A job goes, placed or not."""
        del self._ranks[job]

    def reopen(self) -> None:
        """Pass over nobody any more, as something has been released."""
        self._passed_over.clear()

    def in_order(self) -> list[int]:
        """Return everybody who waits, in order."""
        return [rank.job for rank in sorted(self._ranks.values())]

    def hopeful(self) -> Iterator[int]:
        """Yield the jobs to be tried, in order. One that is still there when the next is asked for did not fit."""
        heads = [(line[0], group) for group, line in self._open_lines()]
        heapify(heads)
        while heads:
            rank, group = heappop(heads)
            yield rank.job
            if rank.job in self._ranks:
                if group != rank:
                    self._passed_over.add(group)
            elif (line := self._line(group)) is not None:
                heappush(heads, (line[0], group))

    def _open_lines(self) -> Iterable[tuple[Hashable, list[Rank]]]:
        for group in list(self._lines):
            if (
                group not in self._passed_over
                and (line := self._line(group)) is not None
            ):
                yield group, line

    def _line(self, group: Hashable) -> list[Rank] | None:
        """Return those of equal jobs who still wait; None if nobody does."""
        line = self._lines[group]
        while line and self._ranks.get(line[0].job) != line[0]:
            heappop(line)
        if line:
            return line
        del self._lines[group]
        return None


# ----------------------------------------------------------------------------
# What solvers answered in a run, kept in a file line by line, so that a run that was
# killed goes on where it was.
#
# Everything else in a run is worked out again, which is quick: it depends on nothing
# but these answers, the arrivals and the seed. What the search remembers from one batch
# to the next is not kept; the first batch after a restart does without.

A = TypeVar("A")


class KeptAnswers:
    """The answers of a run, in the order in which they were asked for.

    Parameters
    ----------
    path
        The file with one line per answer, after one with the heading; None if nothing is kept.
    heading
        Everything that the answers depend on. A file with another one is begun anew, and so is one of which no line is
        whole.
    """

    def __init__(self, path: Path | None = None, heading: str = "") -> None:
        self._path = path
        self._known: deque[object] = deque()
        if path is None:
            return
        kept = list(_whole_lines(path))
        if kept[:1] == [heading]:
            self._known.extend(kept[1:])
        # Also to be rid of a line that was cut off.
        lines = map(orjson.dumps, (heading, *self._known))
        write_text(b"".join(line + b"\n" for line in lines).decode(), path)

    def once(self, adapter: TypeAdapter[A], ask: Callable[[], A]) -> A:
        """Return the next answer: the one that is kept, or the one that is asked for now."""
        if self._known:
            try:
                return adapter.validate_python(self._known.popleft())
            except ValidationError:
                raise DrallocError(
                    f"{self._path}: is about another run"
                ) from None
        answer = ask()
        if self._path is not None:
            line = orjson.dumps(adapter.dump_python(answer, mode="json"))
            try:
                with self._path.open("ab") as file:
                    file.write(line + b"\n")
            except OSError as error:
                raise DrallocError(
                    f"{self._path}: {error.strerror or error}"
                ) from None
        return answer


def _whole_lines(path: Path) -> Iterator[object]:
    """Yield what the lines of a file say, up to one that was cut off; nothing if there is no such file."""
    try:
        written = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise DrallocError(f"{path}: {error.strerror or error}") from None
    for line in written.split(b"\n")[:-1]:
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            return


# ----------------------------------------------------------------------------
# Who finds places for those who wait: one job after the other, or many at once.
#
# All of them keep a compiled cluster and what is in use of it. Nothing is compiled
# again while time goes on.


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
        problem, in_use = self.incoming.problem, self.whole_ledger().applied()
        rules = self._rules_now()
        demands = tuple(
            _with_rules(problem.demands[demand], rules) for demand in waiting
        )
        return replace(
            problem,
            demands=demands,
            usage=in_use.usage,
            counters=in_use.counters,
        )

    def _rules_now(self) -> dict[InterPodRule, InterPodRule]:
        """Return what has become of the rules between pods of which some have places."""
        problem = self.incoming.problem
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

    @property
    def problem(self) -> Problem:
        """The problem of devices alone: what else binds pods to nodes is for the plugins to say."""
        return self.incoming.compiled.problem

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
        problem = self.incoming.problem
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


def _with_rules(
    demand: Demand, rules: Mapping[InterPodRule, InterPodRule]
) -> Demand:
    if not demand.roles:
        return demand
    roles = (
        role._replace(rule=rules.get(role.rule, role.rule))
        for role in demand.roles
    )
    return replace(demand, roles=tuple(roles))


# ----------------------------------------------------------------------------
# Everybody who waits, placed together: by the optimum, or by a policy with an order
# of its own.

_BATCHES: Final = TypeAdapter(tuple[Placement, ...])

Answer = Callable[[Problem], Solution]
"""Answers a problem of what waits, with what is in use now."""


class BatchPlacer(RunPlacer):
    """Asks for an answer to all that waits, and accepts it."""

    def __init__(
        self,
        waiting: Incoming,
        answer: Answer,
        kept: KeptAnswers | None = None,
    ) -> None:
        super().__init__(waiting, QuickRun(waiting.problem))
        self._answer = answer
        self._kept = kept or KeptAnswers()

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Ask about everybody at once."""
        jobs = queue.in_order()
        members = [
            (demand, job) for job in jobs for demand in self._demands(job)
        ]
        if not members:
            return
        demands = [demand for demand, _ in members]

        def answer() -> tuple[Placement, ...]:
            return self._answer(self.waiting_problem(demands)).placements

        placed = set()
        for placement in self._kept.once(_BATCHES, answer):
            demand, job = members[placement.demand]
            self.accept(replace(placement, demand=demand))
            placed.add(job)
        yield from (job for job in jobs if job in placed)

    def _demands(self, job: int) -> list[DemandIndex]:
        demands = (
            self.incoming.demands[arrival]
            for arrival in self.incoming.jobs[job]
        )
        return [demand for demand in demands if demand is not None]


class OptimalPlacer(BatchPlacer):
    """The optimum of each batch, as `dralloc.allocate` finds it."""

    def __init__(
        self,
        waiting: Incoming,
        choices: Choices,
        kept: KeptAnswers | None = None,
    ) -> None:
        super().__init__(waiting, self._optimum, kept)
        self._choices = choices
        self._prices: tuple[LevelPrices, ...] = ()

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Place everybody by first fit if all get their best alternatives, as nothing is better; else solve."""
        jobs = queue.in_order()
        fitting = Goal(self._choices.goal) is Goal.NONE and self._all_fit(jobs)
        yield from jobs if fitting else super().decide(queue)

    def _all_fit(self, jobs: Sequence[int]) -> bool:
        """Place all jobs by first fit, or none of them."""
        placements = self._run.placements
        before = len(placements)
        for job in jobs:
            before_job = len(placements)
            fits = self.place(job)
            if not fits or any(
                served.rank
                for _, served, _ in grants_of(
                    self.incoming.problem, placements[before_job:]
                )
            ):
                for placement in reversed(placements[before:]):
                    self.release(self.incoming.arrival_of[placement.demand])
                return False
        return True

    def _optimum(self, problem: Problem) -> Solution:
        valued = weighted(self.incoming, problem, self._choices)
        solution = solve(
            valued,
            self._choices,
            first_fit(valued),
            starts=Starts(valued, self._choices),
            earlier=Earlier(self._prices),
        )
        # What proved a bound most often proves that of the next batch, too.
        self._prices = solution.prices or self._prices
        return solution


def weighted(incoming: Incoming, problem: Problem, choices: Choices) -> Problem:
    """Return a problem whose demands have the weights that `dralloc.allocate` would give them."""
    values = annotated_values(incoming.compiled.cluster, problem.demands)
    worth = worth_of(
        problem, Priorities(choices.priorities), choices.objective, values
    )
    return worth.applied(problem)
