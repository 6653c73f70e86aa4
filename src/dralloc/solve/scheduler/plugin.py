"""What a plugin of the scheduler is, and what it is told.

A plugin may filter nodes, and it may score those that are left. Source: ``k8s.io/kube-scheduler/framework``,
``interface.go``.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Container,
    Hashable,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass
from math import floor
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.pods import PodInfo
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.profile import Profile
from dralloc.solve.scheduler.snapshot import Snapshot
from dralloc.solve.scheduler.verdicts import Check, Rejection, RejectionColumn

if TYPE_CHECKING:
    from dralloc.solve.scheduler.devices import Devices, Nomination
    from dralloc.solve.scheduler.memory import Memory

__all__ = [
    "MAX_SCORE",
    "Cycle",
    "Plugin",
    "Scores",
    "Scoring",
    "relative",
    "rounded",
    "unchanged",
]

MAX_SCORE: Final = 100
"""The best score of a node (``MaxNodeScore``)."""

Scores = NDArray[np.int64]
"""Scores of feasible nodes, in their order."""


def unchanged(scores: Scores) -> Scores:
    """Scores that need no others beside them."""
    return scores


class Scoring(NamedTuple):
    """The ratings of a plugin for one pod: of each node by itself, and then of all feasible ones beside each other.

    ``column``: the scores of the nodes at some positions at once, if the plugin knows how to; None where it cannot.
    """

    score: Callable[[NodeInfo], int]
    normalise: Callable[[Scores], Scores] = unchanged
    column: Callable[[NDArray[np.intp]], Scores | None] = lambda _: None


class Cycle(NamedTuple):
    """One attempt to schedule a pod, as plugins are told of it.

    Parameters
    ----------
    classes
        Names of the device classes.
    memory
        What is known about nodes for pods of this kind with these claims.
    in_flight
        Claims whose allocation is decided but not yet known to the API server: their next user has to wait.
    in_placement
        Whether a group is tried in a part of the nodes.
    feasible
        The nodes that are to be scored, for plugins that look around.
    nominations
        Pods that are to come to nodes once others have left, by the position of the node.
    """

    pod: PodInfo
    profile: Profile
    snapshot: Snapshot
    devices: Devices
    classes: Container[str]
    memory: Memory
    in_flight: Set[ClaimKey] = frozenset()
    in_placement: bool = False
    feasible: Sequence[NodeInfo] = ()
    nominations: Mapping[int, Sequence[Nomination]] = MappingProxyType({})


@dataclass(frozen=True)
class Plugin:
    """A plugin with its default weight.

    Parameters
    ----------
    filter
        Looks at the pod: a check of nodes, a rejection of the pod as a whole, or None if it has nothing to say.
    looks_around
        Whether what it says about a node depends on the pods of other nodes.
    view
        All of a node that makes a difference for pods of one kind; None if these differ, or if it looks around.
    named
        Names of the only nodes that can be for the pod, or None for all; left out by a plugin that never knows.
    score
        Looks at the pod and the feasible nodes: a scoring, or None if it has nothing to say.
    reads
        All of the pod that makes a difference, if nothing of a node does that ever changes.
    column
        What the filter says about the nodes at some positions at once; None where it cannot.
    passing
        As ``column``, but only the positions of the nodes against which nothing is, which takes less time.
    rules_out
        As ``column``, but only what is known beforehand: the filter has to be asked about the nodes that pass.
    """

    name: str
    filter: Callable[[Cycle], Check | Rejection | None] | None = None
    score: Callable[[Cycle], Scoring | None] | None = None
    weight: int = 1
    looks_around: bool = False
    view: Callable[[NodeInfo], Hashable] | None = None
    named: Callable[[Cycle], Set[str] | None] | None = None
    reads: Callable[[Cycle], Hashable] | None = None
    column: (
        Callable[[Cycle, NDArray[np.intp]], RejectionColumn | None] | None
    ) = None
    passing: (
        Callable[[Cycle, NDArray[np.intp]], NDArray[np.intp] | None] | None
    ) = None
    rules_out: (
        Callable[[Cycle, NDArray[np.intp]], RejectionColumn | None] | None
    ) = None

    def weight_in(self, profile: Profile) -> int:
        """Return what its scores count for."""
        return profile.weights.get(self.name, self.weight)


def relative(scores: Scores) -> Scores:
    """Scores as shares of the best one, from 0 to `MAX_SCORE` (``DefaultNormalizeScore``)."""
    best = scores.max(initial=0)
    if not best:
        return scores
    shares: Scores = MAX_SCORE * scores // best
    return shares


def rounded(value: float) -> int:
    """The nearest integer, halves away from zero (``math.Round`` of a value that is not negative)."""
    below = floor(value)
    return below + (value - below >= 0.5)
