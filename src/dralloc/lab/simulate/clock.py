"""The clock: what happens when, in one order for every run.

At one time departures come before arrivals, as what is released is there for who arrives, and decisions come last.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from heapq import heapify, heappop, heappush
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

__all__ = ["Clock", "Event", "EventKind"]


class EventKind(IntEnum):
    """What happens, in the order in which it does at one time."""

    DEPARTURE = 0
    ARRIVAL = 1
    IMPATIENCE = 2
    DECISION = 3


class Event(NamedTuple):
    """Something that happens to an arrival, or to a job of several, by number; a decision is about nobody."""

    time: int
    kind: EventKind
    subject: int = -1


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
        self.now = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def next_time(self) -> int:
        """When the next event happens."""
        return self._heap[0].time

    def schedule(self, event: Event) -> None:
        """Let something happen, now or later."""
        heappush(self._heap, event)

    def instant(self) -> Iterator[tuple[EventKind, list[Event]]]:
        """All that happens at the next time, by kind in order; what is scheduled for now meanwhile comes afterwards."""
        self.now = self._heap[0].time
        due: list[Event] = []
        while self._heap and self._heap[0].time == self.now:
            due.append(heappop(self._heap))
        for kind, events in groupby(due, key=attrgetter("kind")):
            yield kind, list(events)
