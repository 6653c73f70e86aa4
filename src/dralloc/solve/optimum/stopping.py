"""The end of a search: one object says when, and is given down to all that takes time.

Whoever goes on in steps asks `Stop.reached`, or lets `Stop.check` raise `Stopped` for whoever has the best answer so
far; whoever lets a solver run gives it `Stop.seconds`. An exception in the middle of anything would leave things half
done, and gets lost where Python cannot raise one (in a destructor, in a callback out of C++): so a first Ctrl-C is only
remembered.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from threading import current_thread, main_thread
from time import perf_counter
from types import FrameType
from typing import Final, TypeVar

from dralloc.objects.choices import Options

__all__ = [
    "Cancelled",
    "Stop",
    "Stopped",
    "TooLarge",
    "ended_by_interrupts",
    "heeding_interrupts",
    "late_stop",
    "with_time_left",
]

T = TypeVar("T")
AnyOptions = TypeVar("AnyOptions", bound=Options)

_LEAST: Final = 0.01
"""Seconds that a run gets even when time is over."""

_LATE: Final = 1.0
_LATE_PART: Final = 0.025
"""So many seconds, or such a part of the limit, are left for what is asked about single nodes once it is over."""


class Stopped(Exception):  # noqa: N818 - it is none of the user's errors
    """Something was given up because a search should come to an end."""


class TooLarge(Stopped):
    """A model would have more decisions than memory has room for."""


class Cancelled:
    """A wish to stop: of a caller of `cancel`, or as the answer to a ``question`` that is asked each time."""

    def __init__(self, question: Callable[[], bool] = lambda: False) -> None:
        self._question = question
        self._said = False

    def __bool__(self) -> bool:
        return self._said or self._question()

    def cancel(self) -> None:
        """Say so."""
        self._said = True


@dataclass(frozen=True, slots=True)
class Stop:
    """A time to come to an end: when it is cancelled, or the time is over; by default there is all the time.

    ``end``: when, as `time.perf_counter` says it. ``effort``: how much work a run of a solver may take. 1 takes about a
    second, and always ends at the same point.
    """

    end: float = inf
    cancelled: Cancelled = field(default_factory=Cancelled)
    effort: float = inf

    @classmethod
    def after(
        cls, seconds: float | None, cancelled: Cancelled | None = None
    ) -> Stop:
        """After so many seconds; None for no limit."""
        end = inf if seconds is None else perf_counter() + seconds
        if cancelled is None:
            return cls(end)
        return cls(end, cancelled)

    def within(self, seconds: float) -> Stop:
        """Return a stop with a further limit, of seconds."""
        if seconds < self.seconds():
            return replace(self, end=perf_counter() + seconds)
        return self

    def limited(self, effort: float) -> Stop:
        """Return a stop with a further limit, of a solver's work."""
        return replace(self, effort=effort)

    def seconds(self) -> float:
        """Return the seconds that are left: 0 if the time is over, infinite if there is no end."""
        if self.cancelled:
            return 0.0
        return max(0.0, self.end - perf_counter())

    def reached(self) -> bool:
        """Whether to come to an end."""
        return self.seconds() <= 0

    def check(self) -> None:
        """Go on, or not.

        Raises
        ------
        Stopped
            It is time to come to an end.
        """
        if self.reached():
            raise Stopped

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Go on with one after the other, as `check` allows."""
        for item in items:
            self.check()
            yield item

    def hundreds(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items as `each` does, but ask only before every hundredth: for items that take microseconds."""
        for index, item in enumerate(items):
            if index % 100 == 0:
                self.check()
            yield item


def late_stop(stop: Stop, limit: float | None) -> Stop:
    """Return the end of what is asked about single nodes, shortly after that of a time limit."""
    return replace(stop, end=stop.end + max(_LATE, _LATE_PART * (limit or 0)))


def with_time_left(
    options: AnyOptions, stop: Stop, part: float = 1.0, least: float = _LEAST
) -> AnyOptions:
    """Return the options with what is left of the time as their limit, or with a part of it.

    So a question that takes several runs of a solver has one time limit. A run gets ``least`` seconds even when time is
    over.
    """
    seconds = stop.seconds()
    if seconds == inf:
        return options
    return replace(options, time_limit=max(least, part * seconds))


@contextmanager
def ended_by_interrupts() -> Iterator[Callable[[], None]]:
    """A Ctrl-C ends all of the block: `heeding_interrupts` would end one search of many, and the others go on.

    Only where that would heed it. What is yielded raises a ``KeyboardInterrupt`` if there was one, as a search that is
    interrupted may give its best answer so far all the same.
    """
    pressed = Cancelled()

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    if (
        current_thread() is not main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield check
        return

    def note(signal_number: int, frame: FrameType | None) -> None:
        pressed.cancel()
        signal.default_int_handler(signal_number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def heeding_interrupts() -> Iterator[Cancelled]:
    """A first Ctrl-C in the block is a reason to come to an end; a second one is a ``KeyboardInterrupt``.

    Only in the main thread, where signals arrive, and only where Ctrl-C would be a ``KeyboardInterrupt`` anyway: who
    has a handler of his own keeps it.
    """
    cancelled = Cancelled()
    if (
        current_thread() is not main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield cancelled
        return

    def remember(signal_number: int, frame: FrameType | None) -> None:
        if cancelled:
            signal.default_int_handler(signal_number, frame)
        cancelled.cancel()

    signal.signal(signal.SIGINT, remember)
    try:
        yield cancelled
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
