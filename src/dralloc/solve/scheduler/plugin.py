"""What a plugin of the scheduler is, what it is told, and what it says against nodes.

A profile says which plugins run, with which weights and arguments. A plugin may filter nodes, and it may score those
that are left. Its verdicts become the message that says why a pod has no node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import floor
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.pods import CPU, MEMORY, PodInfo
from dralloc.objects.api import NodeAffinity, TopologySpreadConstraint
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.snapshot import Snapshot

if TYPE_CHECKING:
    from dralloc.solve.scheduler.devices import Devices, Nomination
    from dralloc.solve.scheduler.memory import Memory

__all__ = [
    "FEW_NODES",
    "MANY_NODES",
    "MAX_SCORE",
    "SYSTEM_CONSTRAINTS",
    "Check",
    "Cycle",
    "Places",
    "Plugin",
    "Profile",
    "Rejected",
    "Rejection",
    "RejectionColumn",
    "Scores",
    "Scoring",
    "Shape",
    "Strategy",
    "Verdicts",
    "fit_error",
    "refused",
    "relative",
    "rounded",
    "unchanged",
]

# ----------------------------------------------------------------------------
# Profiles. Source: ``apis/config/v1/defaults.go`` and ``default_plugins.go`` of
# ``kubernetes/pkg/scheduler``.

_DEFAULT_SCHEDULER: Final = "default-scheduler"

SYSTEM_CONSTRAINTS: Final = (
    TopologySpreadConstraint(
        max_skew=3,
        topology_key=HOSTNAME_LABEL,
        when_unsatisfiable="ScheduleAnyway",
    ),
    TopologySpreadConstraint(
        max_skew=5,
        topology_key="topology.kubernetes.io/zone",
        when_unsatisfiable="ScheduleAnyway",
    ),
)

Shape = tuple[tuple[int, int], ...]
"""A broken line: percentages in use, with the scores at these points."""


class Strategy(StrEnum):
    """A strategy by which NodeResourcesFit rates what is left on a node."""

    LEAST = "LeastAllocated"
    MOST = "MostAllocated"
    RATIO = "RequestedToCapacityRatio"


@dataclass(frozen=True)
class Profile:
    """The profile of a KubeSchedulerConfiguration for the pods of one scheduler name.

    Parameters
    ----------
    no_filters, no_scores
        Names of plugins that do not filter, or do not score.
    weights
        Weights by plugin, where they are not the default ones.
    looks_at_once
        Whether several nodes are looked at at a time (``parallelism``, by default 16), so that they are found in no
        order.
    percentage
        ``percentageOfNodesToScore``; 0 for the default, which depends on the number of nodes.
    scored_resources
        Weights of the resources that NodeResourcesFit rates.
    ignored_resources, ignored_groups
        Extended resources that NodeResourcesFit does not look at, by name and by domain.
    balanced_resources
        The resources that NodeResourcesBalancedAllocation looks at.
    hard_affinity_weight
        What required affinity of other pods to a pod counts for.
    spread_by_system
        Whether the default constraints of PodTopologySpread are the system's.
    """

    name: str = _DEFAULT_SCHEDULER
    no_filters: frozenset[str] = frozenset()
    no_scores: frozenset[str] = frozenset()
    weights: Mapping[str, int] = field(default_factory=dict)
    looks_at_once: bool = True
    percentage: int = 0
    strategy: Strategy = Strategy.LEAST
    shape: Shape = ()
    scored_resources: Mapping[str, int] = field(
        default_factory=lambda: {CPU: 1, MEMORY: 1}
    )
    ignored_resources: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()
    balanced_resources: tuple[str, ...] = (CPU, MEMORY)
    added_affinity: NodeAffinity = field(default_factory=NodeAffinity)
    hard_affinity_weight: int = 1
    ignores_preferences_of_others: bool = False
    default_constraints: tuple[TopologySpreadConstraint, ...] = (
        SYSTEM_CONSTRAINTS
    )
    spread_by_system: bool = True

    def ignores(self, resource: str) -> bool:
        """Whether NodeResourcesFit does not look at a resource."""
        return (
            resource in self.ignored_resources
            or resource.partition("/")[0] in self.ignored_groups
        )


# ----------------------------------------------------------------------------
# Plugins, and what they are told. Source: ``k8s.io/kube-scheduler/framework``,
# ``interface.go``.

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
    """The rejections of some nodes, all at once.

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


# ----------------------------------------------------------------------------
# How nodes are asked: one by one, or many at once by columns of what plugins look at.

FEW_NODES: Final = 8
"""Fewer nodes than this are asked about one by one: columns would take longer."""

MANY_NODES: Final = 32
"""Fewer are asked one by one where most of what is asked was answered before."""

# ----------------------------------------------------------------------------
# Verdicts: what is against nodes, by their positions in the scheduler's order, and how
# the scheduler says why a pod has no node. Source of the words: ``FitError`` in
# ``framework/types.go`` of ``kubernetes/pkg/scheduler``.

Places = NDArray[np.intp]
"""Nodes by their positions in the scheduler's order."""

_UNKNOWN: Final = 0
_PASSES: Final = 1
"""Verdicts; higher ones stand for a rejection each."""


class Verdicts:
    """The verdicts of filters about each node, as far as they were asked."""

    def __init__(self, size: int) -> None:
        self.codes = np.zeros(size, np.int64)
        self.rejections: list[Rejection] = []
        self._known: dict[Rejection | None, int] = {None: _PASSES}

    def copy(self) -> Verdicts:
        """The same, to enter more."""
        verdicts = Verdicts(0)
        verdicts.codes = self.codes.copy()
        verdicts.rejections = list(self.rejections)
        verdicts._known = dict(self._known)
        return verdicts

    def ask_for(
        self, ask: Check, window: Places, nodes: Sequence[NodeInfo], enough: int
    ) -> None:
        """Know the positions of a window up to the first feasible one that is not needed."""
        while True:
            unknown = self.unknown(window, enough)
            for position in unknown[: enough + 1].tolist():
                self.enter(position, ask(nodes[position]))
            # Those that pass only make the search shorter.
            if len(unknown) <= enough + 1:
                return

    def ask_about(
        self, ask: Check, positions: Places, nodes: Sequence[NodeInfo]
    ) -> None:
        """Know some positions that were not known."""
        for position in positions.tolist():
            self.enter(position, ask(nodes[position]))

    def unknown(self, window: Places, enough: int) -> Places:
        """The positions of a window that are not known, up to the first feasible one that is not needed."""
        codes = self.codes[window]
        end = _end((codes == _PASSES).nonzero()[0], len(window), enough)
        unknown: Places = window[(codes[:end] == _UNKNOWN).nonzero()[0]]
        return unknown

    def found(self, window: Places, enough: int) -> tuple[Places, Places]:
        """The first feasible positions of a window, and all others up to the first feasible one that is not needed."""
        codes = self.codes[window]
        (feasible,) = (codes == _PASSES).nonzero()
        end = _end(feasible, len(window), enough)
        (rejected,) = (codes[:end] > _PASSES).nonzero()
        return window[feasible[:enough]], window[rejected]

    def enter_column(self, positions: Places, column: RejectionColumn) -> None:
        """Know what is against some positions; those against which nothing is stay as they are."""
        (against,) = column.codes.nonzero()
        if not len(against):
            return
        codes = np.array(
            [_UNKNOWN, *map(self._code_of, column.rejections)], np.int64
        )
        self.codes[positions[against]] = codes[column.codes[against]]

    def enter_passing(self, positions: Places) -> None:
        """Know that nothing is against some positions."""
        self.codes[positions] = _PASSES

    def enter_known(self, positions: Places, verdicts: Verdicts) -> None:
        """Know what other verdicts say about some positions."""
        codes = np.array(
            [_UNKNOWN, _PASSES, *map(self._code_of, verdicts.rejections)],
            np.int64,
        )
        self.codes[positions] = codes[verdicts.codes[positions]]

    def open(self, window: Places) -> Places:
        """The positions of a window that are not known."""
        unknown: Places = window[self.codes[window] == _UNKNOWN]
        return unknown

    def not_rejected(self, window: Places) -> Places:
        """The positions of a window against which nothing is known to be."""
        passing: Places = window[self.codes[window] <= _PASSES]
        return passing

    def forget(self, positions: int | Places) -> None:
        """Forget what is against these positions."""
        self.codes[positions] = _UNKNOWN

    def ask(self, ask: Check, node: NodeInfo) -> Rejection | None:
        """Return what is against one node."""
        if self.codes[node.place] == _UNKNOWN:
            self.enter(node.place, ask(node))
        code = int(self.codes[node.place])
        if code == _PASSES:
            return None
        return self.rejections[code - _PASSES - 1]

    def enter(self, position: int, rejection: Rejection | None) -> None:
        """Know what is against one node."""
        self.codes[position] = self._code_of(rejection)

    def _code_of(self, rejection: Rejection | None) -> int:
        if rejection is not None and rejection not in self._known:
            self.rejections.append(rejection)
            self._known[rejection] = _PASSES + len(self.rejections)
        return self._known[rejection]


def _end(feasible: Places, size: int, enough: int) -> int:
    """Where a search ends: with the first feasible position that is one too many."""
    return int(feasible[enough]) if len(feasible) > enough else size


_NOWHERE: Final = np.array([], np.intp)
_NONE: Final = Verdicts(0)


class Rejected(Mapping[NodeInfo, Rejection]):
    """The rejections of nodes, worked out when somebody asks; of none by default."""

    def __init__(
        self,
        nodes: Sequence[NodeInfo] = (),
        positions: Places = _NOWHERE,
        verdicts: Verdicts = _NONE,
    ) -> None:
        self._nodes, self._places = nodes, positions
        self._codes = verdicts.codes[positions]
        self._rejections = verdicts.rejections

    @cached_property
    def _found(self) -> dict[NodeInfo, Rejection]:
        pairs = zip(self._places.tolist(), self._codes.tolist(), strict=True)
        return {
            self._nodes[position]: self._rejections[code - _PASSES - 1]
            for position, code in pairs
        }

    def __getitem__(self, node: NodeInfo) -> Rejection:
        return self._found[node]

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._places)

    @cached_property
    def tally(self) -> Mapping[Rejection, int]:
        """The number of nodes that each rejection is against."""
        counts = np.bincount(self._codes)[_PASSES + 1 :].tolist()
        return {
            rejection: count
            for rejection, count in zip(self._rejections, counts, strict=False)
            if count
        }

    def resolvable(self) -> Sequence[NodeInfo]:
        """The nodes for which fewer pods there could make a difference."""
        return [
            self._nodes[position]
            for position in self.resolvable_places().tolist()
        ]

    def resolvable_places(self) -> Places:
        """Their positions."""
        of_rejections = [rejection.resolvable for rejection in self._rejections]
        # By code: what is unknown or passes is no rejection.
        resolvable = np.array([False, False, *of_rejections], np.bool_)
        positions: Places = self._places[resolvable[self._codes]]
        return positions


def fit_error(
    nodes: int,
    rejections: Mapping[Rejection, int],
    absent: str = "",
    after: str = "",
) -> str:
    """The message for a pod.

    Parameters
    ----------
    nodes
        How many there are.
    rejections
        What is against nodes, with the number of these.
    absent
        What is against the nodes for which there is none of these.
    after
        What preemption has to say.
    """
    reasons: Counter[str] = Counter()
    for rejection, count in rejections.items():
        for reason in rejection.reasons:
            reasons[reason] += count
    unseen = nodes - sum(rejections.values())
    if absent and unseen:
        reasons[absent] += unseen
    # Upstream sorts the texts, so "10 ..." stands before "2 ...".
    texts = sorted(f"{count} {reason}" for reason, count in reasons.items())
    return _sentence(nodes, texts, after)


def refused(nodes: int, rejection: Rejection, after: str) -> str:
    """The message for a pod that no node could help."""
    return _sentence(nodes, rejection.reasons, after)


def _sentence(nodes: int, reasons: Sequence[str], after: str) -> str:
    against = f"{', '.join(reasons)}." if reasons else ""
    parts = (f"0/{nodes} nodes are available:", against, after)
    return " ".join(filter(None, parts))
