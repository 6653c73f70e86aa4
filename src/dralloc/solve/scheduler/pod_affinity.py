"""The plugin for affinity: pods that want to be near to others, or away from them.

Source: ``framework/plugins/interpodaffinity`` (``filtering.go``, ``scoring.go``) of ``kubernetes/pkg/scheduler``.
Scores are normalised with float64 as upstream does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from dralloc.compile.pods import PodKind
from dralloc.compile.pods.selectors import Term
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import (
    MAX_SCORE,
    Cycle,
    Plugin,
    Scores,
    Scoring,
)
from dralloc.solve.scheduler.snapshot import Snapshot, Tally
from dralloc.solve.scheduler.verdicts import Check, Rejection

__all__ = ["INTER_POD_AFFINITY"]

_NOT_NEAR: Final = Rejection(
    ("node(s) didn't match pod affinity rules",), eased=True
)
_NOT_AWAY: Final = Rejection(
    ("node(s) didn't match pod anti-affinity rules",), resolvable=True
)
_NOT_WANTED: Final = Rejection(
    ("node(s) didn't satisfy existing pods anti-affinity rules",),
    resolvable=True,
)


def _filter_by_affinity(cycle: Cycle) -> Check | None:
    kind, snapshot = cycle.pod.kind, cycle.snapshot
    unwanted = [
        tally
        for _, tally in _carried(snapshot, "required_anti_affinity", kind)
        if tally.counts
    ]
    if (
        not unwanted
        and not kind.required_affinity
        and not kind.required_anti_affinity
    ):
        return None
    near = [
        _meant(snapshot, kind.required_affinity, term.topology_key)
        for term in kind.required_affinity
    ]
    away = [
        _meant(snapshot, (term,), term.topology_key)
        for term in kind.required_anti_affinity
    ]
    # The first of pods that want to be near to each other may go anywhere.
    nobody_there = not any(tally.counts for tally in near)
    first = nobody_there and _means(kind.required_affinity, kind)

    def check(node: NodeInfo) -> Rejection | None:
        for tally in near:
            if tally.topology_key not in node.labels:
                return _NOT_NEAR
            if not first and not tally.on(node):
                return _NOT_NEAR
        if any(tally.on(node) for tally in away):
            return _NOT_AWAY
        if any(tally.on(node) for tally in unwanted):
            return _NOT_WANTED
        return None

    return check


def _score_affinity(cycle: Cycle) -> Scoring | None:
    kind, snapshot, profile = cycle.pod.kind, cycle.snapshot, cycle.profile
    if profile.ignores_preferences_of_others and not kind.preferred:
        return None
    # What the pod prefers, and what pods on nodes require or prefer with it.
    weights: list[tuple[Tally, int]] = []
    for term in kind.preferred:
        tally = _meant(snapshot, (term,), term.topology_key)
        weights.append((tally, term.weight))
    for _, tally in _carried(snapshot, "required_affinity", kind):
        weights.append((tally, profile.hard_affinity_weight))
    for term, tally in _carried(snapshot, "preferred", kind):
        weights.append((tally, term.weight))
    weighed = [
        (tally, weight) for tally, weight in weights if tally.counts and weight
    ]
    if not weighed:
        return None

    def score(node: NodeInfo) -> int:
        return sum(tally.on(node) * weight for tally, weight in weighed)

    return Scoring(score, _stretched)


def _stretched(scores: Scores) -> Scores:
    """The worst becomes 0, the best `MAX_SCORE`."""
    above: Scores = scores - scores.min()
    span = above.max()
    if not span:
        return above
    stretched: Scores = (float(MAX_SCORE) * (above / float(span))).astype(
        np.int64
    )
    return stretched


def _carried(
    snapshot: Snapshot, sort: str, kind: PodKind
) -> Iterator[tuple[Term, Tally]]:
    """The terms of pods on nodes that mean the kind, with the number of pods that have them."""
    for term, tally in snapshot.carried[sort].items():
        if kind.is_meant_by(term):
            yield term, tally


def _meant(
    snapshot: Snapshot, terms: tuple[Term, ...], topology_key: str
) -> Tally:
    """The pods that all of the terms of a pod mean."""
    return snapshot.tally(
        ("meant", terms), topology_key, partial(_means, terms)
    )


def _means(terms: tuple[Term, ...], kind: PodKind) -> bool:
    """Whether all of the terms mean the kind; of no terms, none does.

    A selector of namespaces that holds for a namespace without labels means every namespace, as upstream looks up the
    labels of namespaces before, and has none at hand when it comes to the pods.
    """
    return bool(terms) and all(
        kind.is_meant_by(term) or term.matches(kind.namespace, {}, kind.labels)
        for term in terms
    )


INTER_POD_AFFINITY: Final = Plugin(
    "InterPodAffinity",
    _filter_by_affinity,
    _score_affinity,
    weight=2,
    looks_around=True,
)
