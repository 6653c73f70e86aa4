"""What a plugin of the scheduler is, and what it is told: it may filter nodes, and it may score those that are left.

Source: ``k8s.io/kube-scheduler/framework/interface.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence, Set
from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.pods.kinds import PodInfo
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.profile import Profile
from dralloc.solve.scheduler.snapshot import Snapshot

if TYPE_CHECKING:
    from dralloc.solve.scheduler.devices import Devices
    from dralloc.solve.scheduler.memory import Memory

__all__ = [
    "MAX_SCORE",
    "Check",
    "Cycle",
    "Plugin",
    "Rejection",
    "RejectionColumn",
    "Scores",
    "Scoring",
    "relative",
    "rounded",
    "unchanged",
]

MAX_SCORE: Final = 100
"""The best score of a node (``MaxNodeScore``)."""


class Rejection(NamedTuple):
    """Why a node, or every node, is not for a pod.

    Parameters
    ----------
    resolvable
        Whether fewer pods on the node could change that, so that preemption looks at it.
    eased
        Whether more pods on nodes could change that, so that the pod is tried again.
    """

    reasons: tuple[str, ...]
    resolvable: bool = False
    eased: bool = False


Check = Callable[[NodeInfo], Rejection | None]
"""Says what is against a node; None if nothing is."""


class RejectionColumn(NamedTuple):
    """What is against some nodes, all at once.

    Parameters
    ----------
    codes
        By node, 0 if nothing is, or the place of a rejection, counted from 1.
    """

    codes: NDArray[np.int64]
    rejections: Sequence[Rejection]


Scores = NDArray[np.int64]
"""Scores of feasible nodes, in their order."""


def unchanged(scores: Scores) -> Scores:
    """Scores that need no others beside them."""
    return scores


class Scoring(NamedTuple):
    """How a plugin rates nodes for one pod: each by itself, and then all feasible ones beside each other.

    ``column``: the scores of the nodes at some places at once, if the plugin knows how to; None where it cannot.
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
        What the filter says about the nodes at some places at once; None where it cannot.
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
    column: Callable[[Cycle, NDArray[np.intp]], RejectionColumn | None] | None = None
    rules_out: Callable[[Cycle, NDArray[np.intp]], RejectionColumn | None] | None = None

    def weight_in(self, profile: Profile) -> int:
        """What its scores count for."""
        return profile.weights.get(self.name, self.weight)


def relative(scores: Scores) -> Scores:
    """Scores as shares of the best one, from 0 to `MAX_SCORE` (``DefaultNormalizeScore``)."""
    best = scores.max(initial=0)
    return MAX_SCORE * scores // best if best else scores


def rounded(value: float) -> int:
    """The nearest integer, halves away from zero (``math.Round`` of a value that is not negative)."""
    whole = floor(value)
    return whole + (value - whole >= 0.5)
