"""Jobs that wait, by priority and then by when they came; equal jobs stand one behind the other.

What did not fit for a job does not fit for an equal one until something is released. So of equal jobs one is tried, and
all of them are passed over from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

__all__ = ["WaitingQueue"]


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
