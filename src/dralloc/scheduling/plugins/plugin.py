"""What a plugin of the scheduler is: it may filter nodes, and it may score those that are left.

Source: ``k8s.io/kube-scheduler/framework/interface.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.scheduling.nodes import NodeInfo

if TYPE_CHECKING:
    from dralloc.scheduling.cycle import Cycle

__all__ = ["MAX_SCORE", "Check", "Plugin", "Rejection", "Scores", "Scoring", "relative", "unchanged"]

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


Scores = NDArray[np.int64]
"""Scores of feasible nodes, in their order."""


def unchanged(scores: Scores) -> Scores:
    """Scores that need no normalisation."""
    return scores


class Scoring(NamedTuple):
    """How a plugin rates nodes for one pod: each by itself, and then all feasible ones beside each other."""

    score: Callable[[NodeInfo], int]
    normalise: Callable[[Scores], Scores] = unchanged


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
    """

    name: str
    filter: Callable[[Cycle], Check | Rejection | None] | None = None
    score: Callable[[Cycle, Sequence[NodeInfo]], Scoring | None] | None = None
    weight: int = 1
    looks_around: bool = False
    view: Callable[[NodeInfo], Hashable] | None = None
    named: Callable[[Cycle], Set[str] | None] | None = None


def relative(scores: Scores) -> Scores:
    """Scores as shares of the best one, from 0 to `MAX_SCORE` (``DefaultNormalizeScore``)."""
    best = scores.max(initial=0)
    return MAX_SCORE * scores // best if best else scores
