"""One attempt to schedule a pod: nodes are filtered, the feasible ones are scored.

First what is remembered of nodes for pods of one kind, and forgotten node by node as nodes change; then the attempt;
then a shorter way to the best feasible nodes, which looks for no devices on worse ones.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import groupby, takewhile
from random import Random
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    NamedTuple,
    Self,
    TypeVar,
    cast,
)

import numpy as np
from numpy.typing import NDArray

from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler.plugin import (
    Check,
    Cycle,
    Places,
    Plugin,
    Rejected,
    Rejection,
    RejectionColumn,
    Scores,
    Scoring,
    Verdicts,
    relative,
    unchanged,
)
from dralloc.solve.scheduler.plugins import PLUGINS
from dralloc.solve.scheduler.resource_plugins import DYNAMIC_RESOURCES
from dralloc.solve.scheduler.snapshot import NodeInfo, NodesAt

if TYPE_CHECKING:
    from dralloc.compile.pods import PodInfo
    from dralloc.solve.first_fit.plain import Found as Taken
    from dralloc.solve.scheduler.devices import Nomination
    from dralloc.solve.scheduler.snapshot import Snapshot

__all__ = [
    "Attempt",
    "Checks",
    "Memory",
    "Rehearsal",
    "all_feasible",
    "beside_nominated",
    "best_feasible",
    "best_known",
    "best_of",
    "checks_of",
    "feasible_nodes_to_find",
    "filtered",
    "first_rejection",
    "nominated_beside",
    "scored",
    "turned_away",
    "without",
]

# ----------------------------------------------------------------------------
# Memory. Most verdicts and scores of a node depend on the kind of the pod and on what
# is on the node alone. They hold until a pod comes or goes there, or a device that the
# node reaches is taken.

_CLAIMS_FILTER: Final = DYNAMIC_RESOURCES.name
"""The filter that looks at nothing of a pod but its claims."""

_FEW: Final = 8
"""Fewer nodes than this are asked about one by one."""

_MANY: Final = 32
"""Fewer are asked one by one where most of what is asked was answered before."""

T = TypeVar("T")

_Beside = tuple[int, tuple[ClaimKey, ...], Rejection | None]
"""The state of a node, the pods that are nominated for it, and what is against it beside them."""


@dataclass(eq=False)
class Memory:
    """Verdicts and scores for pods of one kind with equal claims.

    Parameters
    ----------
    size
        How many nodes there are.
    of_kind
        What is known whatever the claims are (see `PodKind.memo`): what plugins with a view of nodes say, which are
        asked once about nodes that look the same. None if they are to be asked again.
    of_claims
        What is known of claims whatever the pods are; None if claims and pods cannot be told apart.
    of_pods
        What is known of pods whatever their claims are; None if it is not kept, or if they cannot be told apart.
    is_kept
        Whether it is for several pods, so that it pays to know each node and to ask again where something changes.

    Notes
    -----
    ``failure``: the last attempt that found no node, after how many changes of the snapshot and among which nodes.
    ``answer_beside``: by position, in which state of the node and beside whom devices were asked about, and the answer.
    ``crowded_until``: after so many changes nodes may be few enough to be rated before anybody looks for devices.
    """

    size: int
    of_kind: dict[Hashable, Any] | None = None
    of_claims: Memory | None = None
    of_pods: Memory | None = None
    is_kept: bool = True
    failure: tuple[int, Places | None, Attempt | None] = (-1, None, None)
    crowded_until: int = 0
    answer_beside: dict[int, _Beside] = field(default_factory=dict)
    _seen: int = 0
    _states: Places | None = None
    _answers: dict[Hashable, Any] = field(default_factory=dict)
    _verdicts: dict[Hashable, Verdicts] = field(default_factory=dict)
    _scores: _LocalScores | None = None
    _ratings: _LocalScores | None = None

    def failed(self, within: Places | None) -> Attempt | None:
        """The last failure, if it was among the same nodes, and nothing has changed since."""
        changes, among, attempt = self.failure
        if changes == self._seen and among is within:
            return attempt
        return None

    def forget(self, snapshot: Snapshot) -> None:
        """Forget what is known about the nodes that are not as they were the last time."""
        for part in (self.of_claims, self.of_pods):
            if part is not None:
                part.forget(snapshot)
        changes, states = snapshot.changes, snapshot.states
        if self._seen == len(changes):
            return
        if not (self._verdicts or self._scores or self._ratings):
            self._seen, self._states = len(changes), states.copy()
            return
        if self._states is None:
            # What is known is from before the first change.
            self._states = np.zeros_like(states)
        recent = changes[self._seen :]
        self._seen = len(changes)
        if len(recent) < _FEW:
            # For few positions, columns take longer than to go through them.
            for position in recent:
                if states[position] != self._states[position]:
                    self._forget_at(position, states)
        else:
            changed = np.array(recent, np.intp)
            differs = states[changed] != self._states[changed]
            self._forget_at(changed[differs], states)

    def _forget_at(self, positions: int | Places, states: Places) -> None:
        """Forget what is known about nodes that have come into these states."""
        assert self._states is not None
        self._states[positions] = states[positions]
        for verdicts in self._verdicts.values():
            verdicts.forget(positions)
        for scores in (self._scores, self._ratings):
            if scores is not None:
                scores.forget(positions)

    def answer(
        self, plugin: Plugin, ask: Callable[[Cycle], T], cycle: Cycle
    ) -> T:
        """Return what the plugin's filter or score says: for equal pods the same, unless it looks around."""
        if plugin.looks_around:
            return ask(cycle)
        view, identity = plugin.view, cast("Hashable", ask)
        answers, is_shared = self._answers, False
        if plugin.reads is not None:
            # Whatever else the pods are.
            answers, is_shared = cycle.snapshot.answers, True
            identity = ask, _read_by(plugin, cycle)
        elif view is not None and self.of_kind is not None and self.is_kept:
            # Whatever the claims are.
            answers, is_shared = self.of_kind, True
        if identity not in answers:
            answers[identity] = ask(cycle)
            if view is not None and is_shared:
                # Nodes that look the same are asked about once.
                answers[identity] = _once(answers[identity], view)
        known_answer: T = answers[identity]
        return known_answer

    def once(self, question: str, ask: Callable[[], T]) -> T:
        """Return what is true of all pods that it is about, whatever is on nodes."""
        if question not in self._answers:
            self._answers[question] = ask()
        known_answer: T = self._answers[question]
        return known_answer

    def verdicts(self, filters: tuple[str, ...]) -> Verdicts:
        """The verdicts of some filters together, by name."""
        if self.of_claims is not None and filters == (_CLAIMS_FILTER,):
            return self.of_claims.verdicts(filters)
        if self.of_pods is not None and _CLAIMS_FILTER not in filters:
            return self.of_pods.verdicts(filters)
        if filters not in self._verdicts:
            self._verdicts[filters] = Verdicts(self.size)
        return self._verdicts[filters]

    @property
    def claims_beside(self) -> dict[int, _Beside]:
        """What devices say about positions beside nominated pods, whatever pods with such claims are asked for."""
        assert self.of_claims is not None
        return self.of_claims.answer_beside

    def scores(
        self, cycle: Cycle, plugins: Collection[Plugin], positions: Places
    ) -> dict[str, Scores]:
        """The weighted scores at some positions, all feasible ones, by those of the plugins that do not look around."""
        nodes = cycle.snapshot.nodes
        scores = self._local_scores(cycle, plugins).at(positions, nodes)
        if DYNAMIC_RESOURCES in plugins:
            of_claims = np.zeros(len(positions), np.int64)
            weight = _weight_of_choice(cycle)
            if weight:
                of_claims = weight * relative(self.ratings(cycle, positions))
            scores[_CLAIMS_FILTER] = of_claims
        return scores

    def independent_totals(
        self, cycle: Cycle, plugins: Iterable[Plugin], positions: Places
    ) -> Scores | None:
        """The sums of these scores, but for what all positions have in common; None if one depends on other positions.

        What alternatives of claims count for is left out: `ratings` tells of them.
        """
        nodes = cycle.snapshot.nodes
        if not self.is_kept:
            scorings = self._scorings(cycle, plugins)
            return _independent_totals_of(scorings.values(), positions, nodes)
        scores = self._local_scores(cycle, plugins)
        return scores.independent_totals(positions, nodes)

    def independent_total(
        self, cycle: Cycle, plugins: Iterable[Plugin], node: NodeInfo
    ) -> int:
        """The same sum of one node as it is now, whatever is known of it."""
        return self._local_scores(cycle, plugins).independent_total(node)

    def ratings(self, cycle: Cycle, positions: Places) -> Scores:
        """Return how good the alternatives are that the pod's claims get at some positions, which are feasible.

        Until a node changes, it is asked once for all pods with such claims.
        """
        memory = self.of_claims or self
        if memory._ratings is None:
            assert DYNAMIC_RESOURCES.score is not None
            scoring = DYNAMIC_RESOURCES.score(cycle)
            assert scoring is not None
            memory._ratings = _LocalScores(
                {_CLAIMS_FILTER: (scoring, 1)}, self.size
            )
        return memory._ratings.raw(positions, cycle.snapshot.nodes)

    def _local_scores(
        self, cycle: Cycle, plugins: Iterable[Plugin]
    ) -> _LocalScores:
        """The scores of everything but claims."""
        if self.of_pods is not None:
            return self.of_pods._local_scores(cycle, plugins)
        if self._scores is None:
            scorings = self._scorings(cycle, plugins)
            self._scores = _LocalScores(scorings, self.size)
        return self._scores

    def _scorings(
        self, cycle: Cycle, plugins: Iterable[Plugin]
    ) -> dict[str, tuple[Scoring, int]]:
        """Return what plugins that do not look around say of everything but claims, with weights."""
        scorings: dict[str, tuple[Scoring, int]] = {}
        for plugin in plugins:
            if plugin.score is None or plugin.looks_around:
                continue
            if plugin.name == _CLAIMS_FILTER:
                continue
            scoring = self.answer(plugin, plugin.score, cycle)
            if scoring is None:
                continue
            if plugin.reads is not None:
                key = plugin.name, "score", _read_by(plugin, cycle)
                scoring = _of_traits(scoring, cycle, key)
            scorings[plugin.name] = scoring, plugin.weight_in(cycle.profile)
        return scorings


def _read_by(plugin: Plugin, cycle: Cycle) -> Hashable:
    """Return all of the pod that makes a difference for a plugin that looks at nothing of a node that changes."""
    reads = plugin.reads
    assert reads is not None
    return cycle.memory.once(f"{plugin.name} reads", lambda: reads(cycle))


def _has_choice(cycle: Cycle) -> bool:
    """Whether a claim of the pod has a request with alternatives."""
    return cycle.memory.once(
        "has a choice", lambda: cycle.devices.has_choice(cycle.pod)
    )


def _weight_of_choice(cycle: Cycle) -> int:
    """Return what the alternatives count for by which claims are served; nothing if there is no choice."""
    profile = cycle.profile
    if _CLAIMS_FILTER in profile.no_scores or not _has_choice(cycle):
        return 0
    return DYNAMIC_RESOURCES.weight_in(profile)


def _never_fails(cycle: Cycle) -> bool:
    """Whether it is certain that no search for the pod's claims ends with an error."""
    of_claims = cycle.memory.of_claims or cycle.memory
    return of_claims.once(
        "never fails", lambda: cycle.devices.never_fails(cycle.pod)
    )


def _of_traits(scoring: Scoring, cycle: Cycle, key: Hashable) -> Scoring:
    """The same scoring of what nodes are, asked once for all pods to which the same matters."""
    values = cycle.snapshot.columns.trait(key, scoring.score)
    return scoring._replace(column=lambda positions: values[positions])


def _once(answer: Any, view: Callable[[NodeInfo], Hashable]) -> Any:
    """The same check or scoring, asked once for nodes that look the same."""
    match answer:
        case None | Rejection():
            return answer
        case Scoring():
            return answer._replace(score=_once(answer.score, view))
    answers: dict[Hashable, Any] = {}

    def asked(node: NodeInfo) -> Any:
        seen = view(node)
        if seen not in answers:
            answers[seen] = answer(node)
        return answers[seen]

    return asked


class _LocalScores:
    """The scores by plugins that do not look around, until a node changes.

    Parameters
    ----------
    scorings
        By plugin, with its weight.
    """

    def __init__(
        self, scorings: Mapping[str, tuple[Scoring, int]], size: int
    ) -> None:
        self._scorings = scorings
        self._values = {name: np.zeros(size, np.int64) for name in scorings}
        self._known = np.zeros(size, np.bool_)
        # What is normalised is relative to the other feasible nodes. The totals are of the others.
        self._relative = {
            name
            for name, (scoring, _) in scorings.items()
            if scoring.normalise is not unchanged
        }
        self._totals = np.zeros(size, np.int64)
        # Most often many plugins have nothing to say about any node: what they add is worked out once.
        self._varying: set[str] = set()
        nothing = np.zeros(size, np.int64)
        self._unvaried = {
            name: weight * scoring.normalise(nothing)
            for name, (scoring, weight) in scorings.items()
        }

    def raw(self, positions: Places, nodes: Sequence[NodeInfo]) -> Scores:
        """The scores by the first plugin at some positions, each by itself and without weight."""
        self._ask_for(positions, nodes)
        first_values = next(iter(self._values.values()))
        return first_values[positions]

    def forget(self, positions: int | Places) -> None:
        """Forget the scores at these positions."""
        self._known[positions] = False

    def at(
        self, positions: Places, nodes: Sequence[NodeInfo]
    ) -> dict[str, Scores]:
        """The scores by plugin at some positions, all feasible ones."""
        self._ask_for(positions, nodes)
        scores: dict[str, Scores] = {}
        for name, (scoring, weight) in self._scorings.items():
            if name in self._varying:
                values = self._values[name][positions]
                scores[name] = weight * scoring.normalise(values)
            else:
                scores[name] = self._unvaried[name][: len(positions)]
        return scores

    def independent_totals(
        self, positions: Places, nodes: Sequence[NodeInfo]
    ) -> Scores | None:
        """See `Memory.independent_totals`."""
        self._ask_for(positions, nodes)
        if self._relative & self._varying:
            return None
        totals: Scores = self._totals[positions]
        return totals

    def independent_total(self, node: NodeInfo) -> int:
        """See `Memory.independent_total`."""
        return sum(
            weight * scoring.score(node)
            for scoring, weight in self._scorings.values()
            if scoring.normalise is unchanged
        )

    def _ask_for(self, positions: Places, nodes: Sequence[NodeInfo]) -> None:
        """Know the scores at these positions."""
        unknown = positions[~self._known[positions]]
        if not len(unknown):
            return
        if len(unknown) < _MANY:
            # Most of them look as others did that were asked about.
            for position in unknown.tolist():
                self._ask_about(nodes[position])
            return
        self._totals[unknown] = 0
        for name, (scoring, weight) in self._scorings.items():
            scores = _scores_at(scoring, unknown, nodes)
            self._values[name][unknown] = scores
            if name not in self._relative:
                self._totals[unknown] += weight * scores
            if name not in self._varying and np.count_nonzero(scores):
                self._varying.add(name)
        self._known[unknown] = True

    def _ask_about(self, node: NodeInfo) -> None:
        """Know the scores of one node."""
        total = 0
        for name, (scoring, weight) in self._scorings.items():
            score = scoring.score(node)
            self._values[name][node.place] = score
            if name not in self._relative:
                total += weight * score
            if score:
                self._varying.add(name)
        self._totals[node.place] = total
        self._known[node.place] = True


def _scores_at(
    scoring: Scoring, positions: Places, nodes: Sequence[NodeInfo]
) -> Scores:
    """The scores at some positions, each by itself."""
    scores = None
    if len(positions) >= _FEW:
        scores = scoring.column(positions)
    if scores is None:
        asked = [nodes[position] for position in positions.tolist()]
        scores = np.array(list(map(scoring.score, asked)), np.int64)
    return scores


def _independent_totals_of(
    scorings: Iterable[tuple[Scoring, int]],
    positions: Places,
    nodes: Sequence[NodeInfo],
) -> Scores | None:
    """See `Memory.independent_totals`: for a pod that is alone in its kind, so that nothing is kept."""
    totals = np.zeros(len(positions), np.int64)
    for scoring, weight in scorings:
        scores = _scores_at(scoring, positions, nodes)
        if scoring.normalise is unchanged:
            totals += weight * scores
        elif np.count_nonzero(scores):
            return None
    return totals


# ----------------------------------------------------------------------------
# The attempt.

_LEAST_NODES: Final = 100
_LEAST_PERCENTAGE: Final = 5

Checks = Sequence[tuple[Plugin, Check]]
"""Plugins with what they say about nodes, in their order."""


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


def checks_of(cycle: Cycle) -> Iterator[tuple[Plugin, Check | Rejection]]:
    """Yield what the filters have to say about the pod; a rejection is the last of them."""
    for plugin in PLUGINS:
        if plugin.filter is None or plugin.name in cycle.profile.no_filters:
            continue
        answer = cycle.memory.answer(plugin, plugin.filter, cycle)
        if answer is not None:
            yield plugin, answer
        if isinstance(answer, Rejection):
            return


# ----------------------------------------------------------------------------
# Nominations: where pods are nominated for nodes, the filters are asked once more, as if
# these were there.

_NOMINATED_PODS: Final = Plugin("NominatedPods", looks_around=True)
"""Stands for the filters beside pods that are nominated for a node."""


def beside_nominated(cycle: Cycle, checks: Checks) -> Checks:
    """The filters once more, as one check; none if no node has nominations that go before the pod."""
    if not _nominated_places(cycle):
        return ()
    check = partial(_asked_beside, cycle, _together(checks))
    return ((_NOMINATED_PODS, check),)


def turned_away(
    cycle: Cycle, checks: Checks, window: Places
) -> Mapping[int, Rejection] | None:
    """What is against positions of a window for nothing but nominations; None if that is not only about the node.

    The other filters look at each node by itself, and none ends with an error. So nodes may be asked in any order, and
    a node that is turned away is one that any filter rejects.
    """
    nominated = _nominated_places(cycle)
    if not nominated:
        return {}
    if not _come_apart(cycle, checks):
        return None
    in_window = np.zeros(len(cycle.snapshot.nodes), np.bool_)
    in_window[window] = True
    *node_checks, (_, claims_check) = checks
    node_check = _together(node_checks)
    beside = cycle.memory.claims_beside
    of_nodes, served = _verdicts_apart(cycle, checks)
    rejections: dict[int, Rejection] = {}
    for position in nominated:
        node = cycle.snapshot.nodes[position]
        # Pods with such claims have asked about the devices of the node before.
        if (
            not in_window[position]
            or served.ask(claims_check, node) is not None
        ):
            continue
        if of_nodes.ask(node_check, node) is not None:
            continue
        nominations = nominated_beside(cycle.nominations, cycle.pod, position)
        rejection = _asked_among(nominations, node_check, node)
        if rejection is None:
            # What is kept for the same pods on a node that is as it was.
            state = int(cycle.snapshot.states[position])
            whose = tuple(nomination.pod.key for nomination in nominations)
            if beside.get(position, ())[:2] != (state, whose):
                with cycle.devices.beside(nominations):
                    beside[position] = state, whose, claims_check(node)
            _, _, rejection = beside[position]
        if rejection is not None:
            rejections[position] = rejection
    return rejections


def _asked_among(
    nominations: Sequence[Nomination], check: Check, node: NodeInfo
) -> Rejection | None:
    """Return what a check that looks at nothing but the node has against it with nominated pods there."""
    for nomination in nominations:
        node.add(nomination.pod)
    try:
        return check(node)
    finally:
        for nomination in nominations:
            node.remove(nomination.pod)


def _nominated_places(cycle: Cycle) -> list[int]:
    """The positions of nodes with nominations that go before the pod."""
    return [
        position
        for position in cycle.nominations
        if nominated_beside(cycle.nominations, cycle.pod, position)
    ]


def _asked_beside(
    cycle: Cycle, check: Check, node: NodeInfo
) -> Rejection | None:
    """Return what is against a node once the pods of no lower priority are there that are nominated for it.

    Source: ``RunFilterPluginsWithNominatedPods`` of ``kubernetes/pkg/scheduler``.
    """
    nominations = nominated_beside(cycle.nominations, cycle.pod, node.place)
    if not nominations:
        return None
    before = cycle.snapshot.states_at((node.place,))
    for nomination in nominations:
        cycle.snapshot.add(nomination.pod, node)
    try:
        with cycle.devices.beside(nominations):
            return check(node)
    finally:
        # Also if an error ends the attempt.
        for nomination in nominations:
            cycle.snapshot.remove(nomination.pod, node)
        cycle.snapshot.restore(before)


def nominated_beside(
    nominations: Mapping[int, Sequence[Nomination]],
    pod: PodInfo,
    position: int,
) -> list[Nomination]:
    """Return the nominations for a node that go before another pod: those of pods that are not less important."""
    return [
        nomination
        for nomination in nominations.get(position, ())
        if nomination.pod.key != pod.key
        and nomination.pod.kind.priority >= pod.kind.priority
    ]


def first_rejection(
    checks: Sequence[Check], node: NodeInfo
) -> Rejection | None:
    """Return what is against a node, as the first of the filters says."""
    for check in checks:
        rejection = check(node)
        if rejection is not None:
            return rejection
    return None


def feasible_nodes_to_find(percentage: int, nodes: int) -> int:
    """Return how many feasible nodes are scored at most, of so many nodes (``numFeasibleNodesToFind``).

    Upstream looks at nodes in parallel, so that a few more than needed may be looked at; here, as with
    ``parallelism: 1``, none are.

    Parameters
    ----------
    percentage
        ``percentageOfNodesToScore``; 0 for one that falls from 50 for few nodes to 5 for many.
    """
    if nodes < _LEAST_NODES:
        return nodes
    share = percentage or max(50 - nodes // 125, _LEAST_PERCENTAGE)
    return max(nodes * share // 100, _LEAST_NODES)


def filtered(
    cycle: Cycle,
    checks: Checks,
    window: Places,
    enough: int,
    away: Mapping[int, Rejection],
) -> tuple[Places, Places, Verdicts]:
    """The first feasible nodes of a window, the others that were looked at, and what is against these.

    The search ends with the first feasible node that is not needed any more.

    Parameters
    ----------
    away
        See `turned_away`.
    """
    verdicts = _verdicts(cycle, checks, without(window, away), enough)
    if away:
        verdicts = verdicts.copy()
        for position, rejection in away.items():
            verdicts.enter(position, rejection)
    return (*verdicts.found(window, enough), verdicts)


def without(window: Places, away: Mapping[int, Rejection]) -> Places:
    """The positions of a window that are not turned away."""
    if not away:
        return window
    others: Places = window[~np.isin(window, list(away))]
    return others


def _verdicts(
    cycle: Cycle, checks: Checks, window: Places, enough: int
) -> Verdicts:
    """Know what is against the positions of a window, up to the first feasible one that is not needed.

    Checks in a row that look at nothing but the node are asked again only where something has changed.
    """
    nodes = cycle.snapshot.nodes
    verdicts = _kept(cycle, checks)
    if verdicts is None:
        verdicts = Verdicts(len(nodes))
    elif len(verdicts.unknown(window, enough)) < _MANY:
        verdicts.ask_for(_sharing(cycle, checks), window, nodes, enough)
        return verdicts
    if _come_apart(cycle, checks):
        of_nodes, served = _known_apart(cycle, checks, window)
        passing = of_nodes.not_rejected(window)
        served.ask_for(checks[-1][1], passing, nodes, enough)
        if verdicts is not served:
            verdicts.enter_known(window, of_nodes)
            verdicts.enter_known(passing, served)
        return verdicts
    checks = _checked_at_once(cycle, checks, window, verdicts)
    if checks and not any(plugin.looks_around for plugin, _ in checks):
        remembered, unknown = _known(cycle, checks), verdicts.open(window)
        _ruled_out(cycle, checks, unknown, remembered)
        remembered.ask_for(_together(checks), unknown, nodes, enough)
        if remembered is not verdicts:
            verdicts.enter_known(unknown, remembered)
    else:
        steps: list[Check] = []
        for looks_around, group in groupby(checks, key=_looks_around):
            row = list(group)
            step = _together(row)
            if not looks_around:
                step = partial(_known(cycle, row).ask, step)
            steps.append(step)
        verdicts.ask_for(partial(first_rejection, steps), window, nodes, enough)
    return verdicts


def _kept(cycle: Cycle, checks: Checks) -> Verdicts | None:
    """What is known of all checks together; None if it is not kept for other pods, or if other nodes matter."""
    if not cycle.memory.is_kept:
        return None
    for plugin, _ in checks:
        if plugin.looks_around:
            return None
    return _known(cycle, checks)


def _sharing(cycle: Cycle, checks: Checks) -> Check:
    """Return what is against a node; what is said is kept for equal pods and equal claims, if possible."""
    if not _come_apart(cycle, checks):
        return _together(checks)
    of_nodes, served = _verdicts_apart(cycle, checks)
    *node_checks, (_, claims_check) = checks
    ask_node = partial(of_nodes.ask, _together(node_checks))
    ask_devices = partial(served.ask, claims_check)
    return partial(first_rejection, [ask_node, ask_devices])


def _looks_around(entry: tuple[Plugin, Check]) -> bool:
    plugin, _ = entry
    return plugin.looks_around


def _checked_at_once(
    cycle: Cycle, checks: Checks, window: Places, verdicts: Verdicts
) -> Checks:
    """The checks that are left once the first of them were asked about all nodes at once, as far as they can be."""
    traits, others = _traits_and_others(checks)
    if traits:
        unknown = verdicts.open(window)
        verdicts.enter_column(unknown, _traits_column(cycle, traits, unknown))
    for position, (plugin, _) in enumerate(others):
        unknown = verdicts.open(window)
        column = plugin.column and plugin.column(cycle, unknown)
        if column is None:
            return others[position:]
        verdicts.enter_column(unknown, column)
    return ()


def _traits_and_others(checks: Checks) -> tuple[Checks, Checks]:
    """The first checks, which look at nothing of a node that changes, and the others."""
    traits = list(takewhile(_looks_at_traits, checks))
    return traits, checks[len(traits) :]


def _looks_at_traits(entry: tuple[Plugin, Check]) -> bool:
    plugin, _ = entry
    return plugin.reads is not None


def _ruled_out(
    cycle: Cycle, checks: Checks, positions: Places, verdicts: Verdicts
) -> None:
    """Know what the only check that remains is certain to have against nodes, without asking it."""
    if len(checks) != 1:
        return
    unknown = verdicts.open(positions)
    [(plugin, _)] = checks
    if len(unknown) < _FEW or plugin.rules_out is None:
        return
    column = plugin.rules_out(cycle, unknown)
    if column is not None:
        verdicts.enter_column(unknown, column)


def _traits_column(
    cycle: Cycle, checks: Checks, positions: Places
) -> RejectionColumn:
    """Return what the first of some checks has against nodes for what they are."""
    codes = _codes_of_traits(cycle, checks)[positions]
    return RejectionColumn(codes, list(cycle.snapshot.rejections))


def _codes_of_traits(cycle: Cycle, checks: Checks) -> Places:
    """By position what the first of some checks says, worked out once for all pods to which the same matters."""
    key = tuple(
        [(plugin.name, _read_by(plugin, cycle)) for plugin, _ in checks]
    )

    def first_codes() -> Places:
        codes = np.zeros(len(cycle.snapshot.nodes), np.int64)
        for plugin, check in checks:
            codes = np.where(codes, codes, _trait_codes(cycle, plugin, check))
        return codes

    return cycle.snapshot.columns.once(key, first_codes)


def _trait_codes(cycle: Cycle, plugin: Plugin, check: Check) -> Places:
    """By position what a check says that looks at nothing of a node that changes."""
    rejections = cycle.snapshot.rejections

    def code(node: NodeInfo) -> int:
        rejection = check(node)
        if rejection is None:
            return 0
        return rejections.setdefault(rejection, 1 + len(rejections))

    key = plugin.name, _read_by(plugin, cycle)
    return cycle.snapshot.columns.trait(key, code)


def _known(cycle: Cycle, checks: Checks) -> Verdicts:
    return cycle.memory.verdicts(tuple(plugin.name for plugin, _ in checks))


def _together(checks: Checks) -> Check:
    """Return what is against a node, as the first of several says."""
    return partial(first_rejection, [check for _, check in checks])


def scored(
    cycle: Cycle, positions: Places, feasible: Sequence[NodeInfo]
) -> Mapping[str, Scores]:
    """The weighted scores of feasible nodes, by plugin."""
    plugins = [
        plugin
        for plugin in PLUGINS
        if plugin.score and plugin.name not in cycle.profile.no_scores
    ]
    weighted = cycle.memory.scores(cycle, plugins, positions)
    cycle = cycle._replace(feasible=feasible)
    for plugin in plugins:
        if plugin.score is None or not plugin.looks_around:
            continue
        scoring = plugin.score(cycle)
        if scoring is not None:
            scores = np.array(
                [scoring.score(node) for node in feasible], np.int64
            )
            weight = plugin.weight_in(cycle.profile)
            weighted[plugin.name] = weight * scoring.normalise(scores)
    return weighted


# ----------------------------------------------------------------------------
# The best nodes first, without looking for devices on worse ones. An attempt asks every
# node for devices that passes the other filters, and one of the best is taken. Most of
# these searches are about nodes that are not taken. Nodes can be rated first, and asked
# for devices from the best one down, if
#
# - not more nodes are left than are scored at most, so that an attempt looks at all of
#   them, whoever has devices;
# - every filter that looks at other nodes, too, knows of all nodes at once what is
#   against them;
# - no score depends on which other nodes are feasible, but for that of alternatives of
#   claims: it is a share of the best that is had anywhere, and nobody has more than the
#   first alternative of each request;
# - no search for devices can end with an error, which would end the attempt.

_SCORING: Final = tuple(plugin for plugin in PLUGINS if plugin.score)


def best_known(
    cycle: Cycle, checks: Checks, window: Places, enough: int
) -> tuple[Places, int] | None:
    """The positions of the best feasible nodes of a window, if hardly any has to be asked, and how many were looked at.

    None if many have to be asked, if no node is feasible, or if scores depend on which other nodes are.
    """
    verdicts = _kept(cycle, checks)
    if verdicts is None:
        return None
    unknown = verdicts.unknown(window, enough)
    if len(unknown) >= _MANY:
        return None
    if len(unknown):
        check = cycle.memory.once("check", lambda: _sharing(cycle, checks))
        verdicts.ask_about(check, unknown, cycle.snapshot.nodes)
    feasible, rejected = verdicts.found(window, enough)
    if not len(feasible):
        return None
    evaluated = len(feasible) + len(rejected)
    # Upstream does not score a node that is alone.
    if len(feasible) == 1:
        return feasible, evaluated
    best = best_of(cycle, feasible)
    return None if best is None else (best, evaluated)


def best_of(cycle: Cycle, feasible: Places) -> Places | None:
    """The best of several feasible positions; None if other scores than those of claims depend on all of them."""
    totals = _independent_totals(cycle, feasible)
    if totals is None:
        return None
    weight = _weight_of_choice(cycle)
    if weight:
        ratings = cycle.memory.ratings(cycle, feasible)
        totals = totals + weight * relative(ratings)
    best: Places = feasible[totals == totals.max()]
    return best


class _FilterParts(NamedTuple):
    """The filters of an attempt, by what they look at.

    Parameters
    ----------
    of_nodes
        Look at each node by itself, and at no devices.
    around
        Look at other nodes, too, and know of many nodes at once what is against them.
    claims
        Looks for devices, on each node by itself and without errors.
    beside
        Asks once more beside the pods that are nominated for a node, if there are such.
    """

    of_nodes: Checks
    around: Sequence[Plugin]
    claims: tuple[Plugin, Check]
    beside: Check | None = None

    @classmethod
    def of(cls, cycle: Cycle, checks: Checks) -> Self | None:
        """The parts of an attempt; None if its filters do not come apart like that."""
        beside: Check | None = None
        if checks and checks[-1][0] is _NOMINATED_PODS:
            *checks, (_, beside) = checks
        if not _ends_with_claims(cycle, checks):
            return None
        of_nodes = [entry for entry in checks[:-1] if not _looks_around(entry)]
        around = [plugin for plugin, _ in checks if plugin.looks_around]
        if any(plugin.column is None for plugin in around):
            return None
        return cls(of_nodes, around, checks[-1], beside)


def best_feasible(
    cycle: Cycle, checks: Checks, window: Places, enough: int
) -> Places | None:
    """The positions of the best feasible nodes of a window, in order; None if nodes cannot be rated first, or none is.

    Parameters
    ----------
    enough
        How many feasible nodes are scored at most.
    """
    memory, changes = cycle.memory, len(cycle.snapshot.changes)
    if changes < memory.crowded_until:
        return None
    parts = _FilterParts.of(cycle, checks)
    if parts is None:
        return None
    candidates, served = _candidates(cycle, parts, window)
    if not 0 < len(candidates) <= enough:
        # A change rules out one node at most.
        memory.crowded_until = changes + len(candidates) - enough
        return None
    totals = _independent_totals(cycle, candidates)
    if totals is None:
        return None
    if _weight_of_choice(cycle):
        return _best_with_choice(cycle, parts, candidates, totals, served)
    for total in _falling(totals):
        tied = _served(cycle, parts, candidates[totals == total], served)
        if len(tied):
            return tied
    return None


def _best_with_choice(
    cycle: Cycle,
    parts: _FilterParts,
    candidates: Places,
    totals: Scores,
    served: Verdicts,
) -> Places | None:
    """As `best_feasible`, where alternatives of claims count beside the totals of candidates.

    Once some node has the first alternative of each request, it is known what the others are relative to, and no node
    with a smaller total can be better than this one.
    """
    most = cycle.devices.most_worth(cycle.pod)
    positions: list[Places] = []
    totals_there: list[Scores] = []
    ratings: list[Scores] = []
    for total in _falling(totals):
        tied = _served(cycle, parts, candidates[totals == total], served)
        if not len(tied):
            continue
        positions.append(tied)
        totals_there.append(np.full(len(tied), total))
        ratings.append(cycle.memory.ratings(cycle, tied))
        if ratings[-1].max() == most:
            break
    if not positions:
        return None
    shares = relative(np.concatenate(ratings))
    sums = np.concatenate(totals_there) + _weight_of_choice(cycle) * shares
    best = np.concatenate(positions)[sums == sums.max()]
    in_order: Places = candidates[np.isin(candidates, best)]
    return in_order


def _falling(totals: Scores) -> list[int]:
    """Return each total that there is, the best first."""
    return sorted(set(totals.tolist()), reverse=True)


def _scoring(cycle: Cycle) -> Sequence[Plugin]:
    """The plugins that score nodes for the pod."""
    return [
        plugin
        for plugin in _SCORING
        if plugin.name not in cycle.profile.no_scores
    ]


def _independent_totals(cycle: Cycle, positions: Places) -> Scores | None:
    """The totals at some positions, but for what all have in common; None if one of them depends on other nodes.

    What alternatives of claims count for is left out.
    """
    plugins = _scoring(cycle)
    for plugin in plugins:
        if (
            plugin.looks_around
            and plugin.score
            and plugin.score(cycle) is not None
        ):
            return None
    return cycle.memory.independent_totals(cycle, plugins, positions)


def all_feasible(cycle: Cycle, checks: Checks, window: Places) -> Places | None:
    """The positions of all feasible nodes of a window; None if claims are not looked at apart from everything else."""
    if not _come_apart(cycle, checks):
        return None
    parts = _FilterParts(checks[:-1], (), checks[-1])
    candidates, served = _candidates(cycle, parts, window)
    return _served(cycle, parts, candidates, served)


def _come_apart(cycle: Cycle, checks: Checks) -> bool:
    """Whether each node is looked at by itself, its devices last, and nothing there ends with an error."""
    if any(plugin.looks_around for plugin, _ in checks):
        return False
    return _ends_with_claims(cycle, checks)


def _ends_with_claims(cycle: Cycle, checks: Checks) -> bool:
    """Whether devices are looked at last, and for nothing but the claims, and no search for them ends with an error."""
    if not checks or cycle.memory.of_claims is None:
        return False
    last_plugin, _ = checks[-1]
    return last_plugin.name == _CLAIMS_FILTER and _never_fails(cycle)


def _candidates(
    cycle: Cycle, parts: _FilterParts, window: Places
) -> tuple[Places, Verdicts]:
    """The positions that nothing is known to be against, and what is known about devices.

    Nodes whose devices are known not to do are left out first: mostly these are the most.
    """
    served = _served_to(cycle)
    _ruled_out(cycle, [parts.claims], window, served)
    candidates = served.not_rejected(window)
    passing: Places | None = None
    if not cycle.memory.is_kept:
        passing = _passing_at_once(cycle, parts.of_nodes, candidates)
    if passing is None:
        of_nodes = _known(cycle, parts.of_nodes)
        _know_nodes(cycle, parts.of_nodes, candidates, of_nodes)
        passing = of_nodes.not_rejected(candidates)
    candidates = passing
    for plugin in parts.around:
        assert plugin.column is not None
        column = plugin.column(cycle, candidates)
        assert column is not None
        candidates = candidates[column.codes == 0]
    return candidates, served


def _passing_at_once(
    cycle: Cycle, checks: Checks, positions: Places
) -> Places | None:
    """The positions against which none of some checks is; None if not all can be asked about many nodes at once."""
    traits, others = _traits_and_others(checks)
    passing: Places | None = positions
    if traits:
        passing = positions[_codes_of_traits(cycle, traits)[positions] == 0]
    for plugin, _ in others:
        if passing is None or plugin.passing is None:
            return None
        passing = plugin.passing(cycle, passing)
    return passing


def _known_apart(
    cycle: Cycle, checks: Checks, window: Places
) -> tuple[Verdicts, Verdicts]:
    """What everything but devices has against the positions of a window, and what is known of devices at the others."""
    of_nodes, served = _verdicts_apart(cycle, checks)
    _know_nodes(cycle, checks[:-1], window, of_nodes)
    _ruled_out(cycle, checks[-1:], of_nodes.not_rejected(window), served)
    return of_nodes, served


def _know_nodes(
    cycle: Cycle, checks: Checks, window: Places, verdicts: Verdicts
) -> None:
    """Know what checks that look at each node by itself, and at no devices, have against the positions of a window."""
    unknown = verdicts.open(window)
    if len(unknown) >= _FEW:
        checks = _checked_at_once(cycle, checks, unknown, verdicts)
    if checks:
        unknown = verdicts.open(unknown)
        verdicts.ask_about(_together(checks), unknown, cycle.snapshot.nodes)
    else:
        verdicts.enter_passing(verdicts.open(unknown))


def _verdicts_apart(cycle: Cycle, checks: Checks) -> tuple[Verdicts, Verdicts]:
    """What is known of everything but devices, and of devices."""
    return _known(cycle, checks[:-1]), _served_to(cycle)


def _served_to(cycle: Cycle) -> Verdicts:
    """What is known of devices for the pod's claims."""
    assert cycle.memory.of_claims is not None
    return cycle.memory.of_claims.verdicts((_CLAIMS_FILTER,))


def _served(
    cycle: Cycle, parts: _FilterParts, positions: Places, served: Verdicts
) -> Places:
    """Those of some positions that have devices for the claims, also beside nominated pods."""
    nodes = cycle.snapshot.nodes
    _, check = parts.claims
    served.ask_about(check, served.open(positions), nodes)
    with_devices = served.not_rejected(positions)
    if parts.beside is None:
        return with_devices
    remaining = [
        position
        for position in with_devices.tolist()
        if parts.beside(nodes[position]) is None
    ]
    return np.array(remaining, np.intp)


# ----------------------------------------------------------------------------
# Rehearsals. A group is tried in each domain, and what is tried is taken back. Where
# nothing that its pods meet on a node depends on other nodes, and the pods are equal,
# it is enough to know of each node how it is rated with none of them on it, with one,
# with two, and so on, and how many of them get devices there: nobody is bound.


class Rehearsal:
    """What equal pods meet on nodes to which they come one after the other.

    Parameters
    ----------
    cycle
        Of one of the pods.
    feasible
        The positions that are feasible for the first of them.
    totals
        Their totals, but for what all of them have in common.
    """

    def __init__(
        self, cycle: Cycle, checks: Checks, feasible: Places, totals: Scores
    ) -> None:
        self._cycle = cycle
        self._check = _together(checks[:-1])
        self._wanted_on = cycle.devices.wanted(cycle.pod)
        self._plugins = _scoring(cycle)
        self._totals = dict(
            zip(feasible.tolist(), totals.tolist(), strict=True)
        )
        self._is_nominated = frozenset(_nominated_places(cycle))
        # What alternatives count for, relative to the best of the feasible nodes.
        self._weight_of_claims = _weight_of_choice(cycle)

    @classmethod
    def of(cls, cycle: Cycle, checks: Checks, feasible: Places) -> Self | None:
        """The rehearsal of pods in parts of the nodes; None if more than what is on a node matters there."""
        kind = cycle.pod.kind
        meets_others = (
            kind.host_ports
            or kind.required_affinity
            or kind.required_anti_affinity
            or kind.preferred
        )
        if meets_others:
            return None
        totals = _independent_totals(cycle, feasible)
        return None if totals is None else cls(cycle, checks, feasible, totals)

    def covers(self, within: Places) -> bool:
        """Whether the pods can be rehearsed among these nodes, all of which an attempt looks at."""
        if len(within) >= _LEAST_NODES:
            return False
        devices, nodes = self._cycle.devices, self._cycle.snapshot.nodes
        # What is on the other nodes, or comes to them, changes nothing: none of the pods goes there.
        return all(
            position not in self._is_nominated
            and devices.are_alone(nodes[position])
            for position in within.tolist()
            if position in self._totals
        )

    def nodes(
        self,
        pods: Sequence[ClaimKey],
        window: Places,
        choose: Callable[[Attempt], NodeInfo],
    ) -> dict[ClaimKey, NodeInfo]:
        """The nodes that the pods choose, in order, up to the first that has none: then no other has."""
        totals = {
            position: self._totals[position]
            for position in window.tolist()
            if position in self._totals
        }
        earlier = dict.fromkeys(totals, 0)
        chosen: dict[ClaimKey, NodeInfo] = {}
        for key in pods:
            tied = self._best(totals, earlier)
            if not tied:
                break
            best = NodesAt(self._cycle.snapshot.nodes, np.array(tied, np.intp))
            node = chosen[key] = choose(Attempt(key, best, len(window)))
            if len(chosen) == len(pods):
                # Nobody comes to the node after the last one.
                break
            earlier[node.place] += 1
            total = self._total(node, earlier[node.place])
            if total is None:
                del totals[node.place]
            else:
                totals[node.place] = total
        return chosen

    def _best(
        self, totals: dict[int, int], earlier: Mapping[int, int]
    ) -> list[int]:
        """The best positions with devices for one more pod; those without are left out from now on."""
        rated = totals
        if self._weight_of_claims:
            # Which alternatives are had on one node counts on the others.
            for position in self._full(list(totals), earlier):
                del totals[position]
            rated = self._with_claims(totals, earlier)
        while rated:
            best = max(rated.values())
            tied = [
                position for position, total in rated.items() if total == best
            ]
            full = self._full(tied, earlier)
            if not full:
                return tied
            for position in full:
                del totals[position]
        return []

    def _full(
        self, positions: Iterable[int], earlier: Mapping[int, int]
    ) -> list[int]:
        """Those of some positions that have no devices for one more pod."""
        return [
            position
            for position in positions
            if self._get(position, earlier) is None
        ]

    def _get(self, position: int, earlier: Mapping[int, int]) -> Taken | None:
        """Return what the claims of one more pod get at a position."""
        node = self._cycle.snapshot.nodes[position]
        return self._cycle.devices.get_again(
            self._wanted_on(node), node, earlier[position]
        )

    def _with_claims(
        self, totals: Mapping[int, int], earlier: Mapping[int, int]
    ) -> dict[int, int]:
        """The totals with what the alternatives count for that the pod would get."""
        ratings = [self._rating(position, earlier) for position in totals]
        scores = self._weight_of_claims * relative(np.array(ratings, np.int64))
        return {
            position: total + score
            for (position, total), score in zip(
                totals.items(), scores.tolist(), strict=True
            )
        }

    def _rating(self, position: int, earlier: Mapping[int, int]) -> int:
        """Return how good the alternatives are that one more pod gets at a position; it gets some."""
        grants = self._get(position, earlier)
        assert grants is not None
        open_claims = self._wanted_on(self._cycle.snapshot.nodes[position])
        grants_by_claim = open_claims.granting(grants)
        return self._cycle.devices.worth(self._cycle.pod, grants_by_claim)

    def _total(self, node: NodeInfo, earlier: int) -> int | None:
        """The total of a node with so many of the pods on it; None if one more is refused there."""
        pod = self._cycle.pod
        for _ in range(earlier):
            node.add(pod)
        try:
            if self._check(node) is not None:
                return None
            return self._cycle.memory.independent_total(
                self._cycle, self._plugins, node
            )
        finally:
            for _ in range(earlier):
                node.remove(pod)
