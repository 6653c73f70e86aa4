"""The outcome of an attempt to schedule a pod: the feasible nodes with their scores, or what is against each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.verdicts import Places, Rejected

__all__ = ["Attempt"]


@dataclass(frozen=True)
class Attempt:
    """The outcome of an attempt.

    Parameters
    ----------
    feasible
        The nodes that were found, in order. With more than one they are scored, if not only the best were looked for.
    evaluated
        How many nodes were looked at.
    scores
        Weighted scores by plugin, each in the order of the feasible nodes.
    rejected
        What is against each other node that was looked at.
    message
        The scheduler's words, if no node is feasible.
    is_error
        Whether the attempt ended with an error, which no node could have helped.
    has_victims
        Whether some node would be feasible if pods of lower priority were evicted.
    """

    pod: ClaimKey
    feasible: Sequence[NodeInfo] = ()
    evaluated: int = 0
    scores: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    rejected: Rejected = field(default_factory=Rejected)
    message: str = ""
    is_error: bool = False
    has_victims: bool = False

    @property
    def may_be_helped(self) -> bool:
        """Whether it could go otherwise once more pods are bound: they may be company, or allocate a shared claim."""
        return any(rejection.eased for rejection in self.rejected.tally)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """The sum of the scores of each feasible node."""
        totals = np.zeros(len(self.feasible), np.int64)
        for scores in self.scores.values():
            totals += scores
        return totals

    @property
    def best(self) -> Sequence[NodeInfo]:
        """The feasible nodes with the best total."""
        return [self.feasible[index] for index in self._tied]

    @property
    def chosen(self) -> NodeInfo:
        """The node that the scheduler takes, of the best ones, if nodes were found in order.

        Scores are put into a heap (``nodeScoreHeap``), whose top is taken. On the way there a node only gives way to a
        strictly better one below it, and of two equal ones below it to the left one. So among the best nodes it is the
        first that is met when the heap, as an implicit tree, is gone through from parents to children. The heap knows
        random numbers for ties, but as of 1.36 they all are 0 unless there are extenders.
        """
        tied = self._tied
        first = int(_turns_in_heap(len(self.feasible))[tied].argmin())
        return self.feasible[int(tied[first])]

    def drawn(self, random: Random) -> NodeInfo:
        """The node that the scheduler takes, of the best ones, if nodes were found in no order: any of them."""
        if not self.scores:
            return random.choice(self.feasible)
        return self.feasible[int(random.choice(self._tied))]

    @cached_property
    def _tied(self) -> Places:
        if not self.scores:
            return np.arange(len(self.feasible))
        best: NDArray[np.bool_] = self.totals == self.totals.max(initial=0)
        return best.nonzero()[0]


@lru_cache(maxsize=64)
def _turns_in_heap(size: int) -> NDArray[np.intp]:
    """Return when each position of a heap is met, from parents to children and from left to right."""
    paths = sorted(range(size), key=lambda position: f"{position + 1:b}"[1:])
    turns = np.empty(size, np.intp)
    turns[paths] = np.arange(size)
    return turns
