"""One run: events happen in the order of a clock, jobs wait, run and leave, and everything is noted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from heapq import heapify, heappop, heappush
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from dralloc.lab.simulate.arrivals.incoming import Incoming
from dralloc.lab.simulate.placing import Placer
from dralloc.lab.simulate.room import Rearrangement
from dralloc.lab.simulate.waiting_queue import WaitingQueue
from dralloc.problem.indices import grouped
from dralloc.problem.solution import Placement

__all__ = [
    "ArrivalState",
    "Decisions",
    "History",
    "Instant",
    "MoveTimes",
    "Moved",
    "Preempt",
    "RoomMaking",
    "Simulation",
    "Stay",
]

# ----------------------------------------------------------------------------
# The clock: what happens when, in one order for every run.
#
# At one time departures come before arrivals, as what is released is there for who
# arrives, and decisions come last.


class EventKind(IntEnum):
    """The kind of an event, in the order in which they happen at one time."""

    DEPARTURE = 0
    ARRIVAL = 1
    IMPATIENCE = 2
    DECISION = 3
    REARRANGEMENT = 4


class Event(NamedTuple):
    """An event of an arrival, or of a job of several, by number; decisions and rearrangements are about nobody."""

    time: int
    kind: EventKind
    subject: int | None = None


class Clock:
    """The events to come.

    Attributes
    ----------
    now
        Milliseconds; the time of the last event that has happened.
    """

    def __init__(self, events: list[Event]) -> None:
        self._heap = events
        heapify(self._heap)
        self._news = sum(event.subject is not None for event in events)
        self.now = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def next_time(self) -> int:
        """When the next event happens."""
        return self._heap[0].time

    @property
    def has_news(self) -> bool:
        """Whether anything will happen to an arrival."""
        return self._news > 0

    def schedule(self, event: Event) -> None:
        """Let something happen, now or later."""
        heappush(self._heap, event)
        self._news += event.subject is not None

    def instant(self) -> Iterator[tuple[EventKind, list[Event]]]:
        """Yield all that happens at the next time, by kind; what is scheduled for now meanwhile comes afterwards."""
        self.now = self._heap[0].time
        due: list[Event] = []
        while self._heap and self._heap[0].time == self.now:
            due.append(heappop(self._heap))
        self._news -= sum(event.subject is not None for event in due)
        for kind, events in groupby(due, key=attrgetter("kind")):
            yield kind, list(events)


# ----------------------------------------------------------------------------
# One run: events happen, jobs wait, run and leave, and everything is noted.
#
# Every arrival is at any time exactly one of pending, running, done, refused and
# preempted. A pod runs from the moment in which it gets a place, as if binding and
# starting took no time.


class ArrivalState(StrEnum):
    """The state of an arrival.

    ``PENDING``: it waits for a place. ``RUNNING``: it has one. ``DONE``: it had one for as long as it wanted.
    ``REFUSED``: it can never have one, or has lost patience. ``PREEMPTED``: it had one until somebody more important
    took it.
    """

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    PREEMPTED = "preempted"


@dataclass(slots=True)
class Stay:
    """The fate of an arrival, with times in milliseconds; None for what has not happened.

    ``node``, ``placement``: where it ran, and what it had of devices.
    """

    state: ArrivalState
    arrived: int
    started: int | None = None
    ended: int | None = None
    node: str = ""
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class Instant:
    """The number of arrivals in each state after all that happened at one time."""

    time: int
    pending: int
    running: int


@dataclass(frozen=True, slots=True)
class Decisions:
    """The times at which those who wait are looked at.

    Parameters
    ----------
    every
        Milliseconds between two times; None for whenever somebody comes or goes.
    batch
        Also as soon as so many have come since the last time; None if that does not matter.
    """

    every: int | None = None
    batch: int | None = None

    @property
    def at_once(self) -> bool:
        """Whether everything that happens is a reason."""
        return self.every is None and self.batch is None


@dataclass(frozen=True, slots=True)
class MoveTimes:
    """The times at which arrivals with a place may move, and how many at a time.

    Parameters
    ----------
    every
        Milliseconds between two times.
    most
        How many claims move at most at each of them.
    """

    every: int
    most: int


@dataclass(frozen=True, slots=True)
class Moved:
    """A move of an arrival: when, and what it had before."""

    time: int
    arrival: int
    before: Placement


@dataclass
class History:
    """The record of a run.

    Parameters
    ----------
    stays
        By arrival; those who have not come yet are not in it.
    instants
        In order of time.
    decided
        When those who waited were looked at.
    moves
        In order of time.
    restarts
        How many of the moves gave back what they had before they held something new.
    """

    stays: dict[int, Stay] = field(default_factory=dict)
    instants: list[Instant] = field(default_factory=list)
    decided: list[int] = field(default_factory=list)
    moves: list[Moved] = field(default_factory=list)
    restarts: int = 0

    @property
    def moves_of(self) -> Mapping[int, Sequence[Moved]]:
        """The moves of each arrival that has moved."""
        return grouped((move.arrival, move) for move in self.moves)


OnInstant = Callable[[Instant, Placer], None]
"""Called after all that happens at one time."""

Preempt = Callable[[int, Mapping[int, int]], Sequence[int] | None]
"""Places a job in the stead of less important arrivals, knowing since when each has a place; returns who lost it."""

Rearrange = Callable[[Sequence[int], int], Rearrangement]
"""Moves so many claims that the most of the jobs that wait get a place."""


@dataclass(frozen=True)
class RoomMaking:
    """The ways in which room is made for who waits.

    Parameters
    ----------
    preempt
        Tried for each job without a place; None if nobody is evicted.
    move_times, rearrange
        When others move, and how; None if nobody does.
    """

    preempt: Preempt | None = None
    move_times: MoveTimes | None = None
    rearrange: Rearrange | None = None


class Simulation:
    """A run.

    Parameters
    ----------
    placer
        Who finds places.
    patience
        Milliseconds after which a job that has no place is refused; None for never.
    until
        Milliseconds after which nothing is looked at any more; None for the end of everything.
    room
        How room is made for who waits.
    """

    def __init__(  # noqa: PLR0913 - who comes, who places them, and when
        self,
        incoming: Incoming,
        placer: Placer,
        decisions: Decisions | None = None,
        *,
        patience: int | None = None,
        until: int | None = None,
        room: RoomMaking | None = None,
    ) -> None:
        self.history = History()
        self._room = room or RoomMaking()
        self._incoming = incoming
        self._placer = placer
        self._decisions = decisions or Decisions()
        self._patience = patience
        self._until = until
        self._queue = WaitingQueue(placer.equal_jobs)
        self._numbers = dict.fromkeys(ArrivalState, 0)
        # How many have come since the last decision, and whether anything at all has happened since then.
        self._new = 0
        self._changed = False
        # Whether anything has happened since others were asked to move: decisions in between change nothing there.
        self._may_move = False
        self._is_due = False
        self._moves_are_due = False
        # By sort of event, when the next one is planned at a multiple of an interval.
        self._planned: dict[EventKind, int] = {}
        # Since when those who have a place have one.
        self._since: dict[int, int] = {}
        self._job_of = {
            arrival_index: job
            for job, members in enumerate(incoming.jobs)
            for arrival_index in members
        }
        self._missing = [len(members) for members in incoming.jobs]
        self._coming = len(incoming.arrivals)
        arrivals = enumerate(incoming.arrivals)
        self._clock = Clock(
            [
                Event(arrival.time, EventKind.ARRIVAL, arrival_index)
                for arrival_index, arrival in arrivals
            ]
        )

    def run(self, on_instant: OnInstant = lambda _, __: None) -> History:
        """Let everything happen."""
        while self._clock and not self._is_over():
            for kind, events in self._clock.instant():
                subjects = [event.subject for event in events]
                self._happen(kind, [who for who in subjects if who is not None])
            # All that happens at one time is over before anybody is placed.
            if (
                self._is_due
                or self._decisions.at_once
                or self._is_full()
                or self._is_last()
            ):
                self._decide()
            if self._moves_are_due:
                self._rearrange()
            # Planned last, as it depends on who still waits, and on what has changed.
            self._plan(EventKind.DECISION, self._decisions.every, self._changed)
            move_times = self._room.move_times
            if move_times is not None:
                self._plan(
                    EventKind.REARRANGEMENT, move_times.every, self._may_move
                )
            counts = self._numbers
            instant = Instant(
                self._clock.now,
                counts[ArrivalState.PENDING],
                counts[ArrivalState.RUNNING],
            )
            self.history.instants.append(instant)
            on_instant(instant, self._placer)
        return self.history

    def _is_over(self) -> bool:
        return self._until is not None and self._clock.next_time > self._until

    def _is_full(self) -> bool:
        """Return whether so many have come that they are placed at once."""
        return (
            self._decisions.batch is not None
            and self._new >= self._decisions.batch
        )

    def _is_last(self) -> bool:
        """Return whether no more will come that a batch could wait for; others may leave, or lose patience."""
        return self._decisions.every is None and not self._coming

    def _happen(self, kind: EventKind, subjects: Sequence[int]) -> None:
        match kind:
            case EventKind.DEPARTURE:
                for arrival in subjects:
                    self._depart(arrival)
            case EventKind.ARRIVAL:
                for arrival in subjects:
                    self._arrive(arrival)
            case EventKind.IMPATIENCE:
                for job in subjects:
                    if job in self._queue:
                        self._refuse(job)
            case EventKind.DECISION:
                self._is_due = True
            case EventKind.REARRANGEMENT:
                self._moves_are_due = True

    def _depart(self, arrival: int) -> None:
        """Let somebody leave, unless somebody more important has taken its place meanwhile."""
        if self.history.stays[arrival].state is ArrivalState.RUNNING:
            self._placer.release(arrival)
            self._end(arrival, ArrivalState.DONE)
            self._queue.reopen()
            self._note_change()

    def _note_change(self) -> None:
        """Note that who waits may get a place now."""
        self._changed = self._may_move = True

    def _arrive(self, arrival: int) -> None:
        """Let somebody come; a job waits as soon as all of it is there."""
        time, job = self._clock.now, self._job_of[arrival]
        self.history.stays[arrival] = Stay(ArrivalState.PENDING, time)
        self._numbers[ArrivalState.PENDING] += 1
        self._new += 1
        self._coming -= 1
        self._missing[job] -= 1
        if self._missing[job]:
            return
        members = self._incoming.jobs[job]
        self._queue.enter(job, max(map(self._incoming.priority, members)), time)
        self._note_change()
        if any(self._is_hopeless(member) for member in members):
            self._refuse(job)
        elif self._patience is not None:
            self._clock.schedule(
                Event(time + self._patience, EventKind.IMPATIENCE, job)
            )

    def _is_hopeless(self, arrival: int) -> bool:
        demand = self._incoming.demand(arrival)
        return demand is not None and demand.is_defective

    def _refuse(self, job: int) -> None:
        self._queue.leave(job)
        for arrival in self._incoming.jobs[job]:
            self._end(arrival, ArrivalState.REFUSED)

    def _end(self, arrival: int, state: ArrivalState) -> None:
        stay = self.history.stays[arrival]
        self._numbers[stay.state] -= 1
        self._numbers[state] += 1
        stay.state, stay.ended = state, self._clock.now
        self._since.pop(arrival, None)

    def _decide(self) -> None:
        """Let those who wait have places, unless nothing has happened since that was tried."""
        self._is_due, self._new = False, 0
        if not (self._changed and len(self._queue)):
            return
        self._changed = False
        self._place()
        if self._room.preempt is not None and self._preempt(self._room.preempt):
            # What victims held is not always needed in full.
            self._queue.reopen()
            self._place()

    def _place(self) -> None:
        self.history.decided.append(self._clock.now)
        for job in self._placer.decide(self._queue):
            self._enter(job)

    def _enter(self, job: int) -> None:
        """Note that a job has got a place."""
        self._queue.leave(job)
        for arrival in self._incoming.jobs[job]:
            self._start(arrival)

    def _preempt(self, preempt: Preempt) -> bool:
        """Let those who wait take the place of less important ones, in order; returns whether anybody did."""
        hopeless: set[tuple[Hashable, int]] = set()
        preempted = False
        for job in self._queue.in_order():
            equal = self._placer.equal_jobs(job)
            [first, *_] = self._incoming.jobs[job]
            kind = equal, self._incoming.priority(first)
            if kind in hopeless:
                continue
            victims = preempt(job, self._since)
            if victims is None:
                if equal is not None:
                    hopeless.add(kind)
                continue
            preempted = True
            for victim in victims:
                self._end(victim, ArrivalState.PREEMPTED)
            self._enter(job)
        return preempted

    def _rearrange(self) -> None:
        """Let some move, if that gets others a place."""
        self._moves_are_due = self._may_move = False
        rearrange, times = self._room.rearrange, self._room.move_times
        if rearrange is None or times is None or not len(self._queue):
            return
        outcome = rearrange(self._queue.in_order(), times.most)
        for arrival, before in outcome.moved.items():
            self.history.moves.append(Moved(self._clock.now, arrival, before))
            stay = self.history.stays[arrival]
            stay.node = self._placer.node_of(arrival)
            stay.placement = self._placer.placement_of(arrival)
        self.history.restarts += outcome.restarts
        for job in outcome.admitted:
            self._enter(job)
        if outcome.moved or outcome.admitted:
            self._queue.reopen()
            self._note_change()

    def _start(self, arrival: int) -> None:
        stay, time = self.history.stays[arrival], self._clock.now
        self._numbers[stay.state] -= 1
        self._numbers[ArrivalState.RUNNING] += 1
        stay.state, stay.started, stay.node = (
            ArrivalState.RUNNING,
            time,
            self._placer.node_of(arrival),
        )
        stay.placement = self._placer.placement_of(arrival)
        self._since[arrival] = time
        duration = self._incoming.arrivals[arrival].duration
        if duration is not None:
            self._clock.schedule(
                Event(time + duration, EventKind.DEPARTURE, arrival)
            )

    def _plan(
        self, kind: EventKind, interval: int | None, changed: bool
    ) -> None:
        """Come back at the next multiple of an interval, if anything has changed or can have by then."""
        if interval is None or not (
            len(self._queue) and (changed or self._clock.has_news)
        ):
            return
        time = self._clock.now
        following = time - time % interval + interval
        if self._planned.get(kind, time) <= time:
            self._planned[kind] = following
            self._clock.schedule(Event(following, kind))
