"""Pods that want to be near to others, or away from them.

Source: ``framework/plugins/interpodaffinity`` (``filtering.go``, ``scoring.go``). Scores are normalised with float64 as
upstream does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from dralloc.compile.pods.kinds import PodKind
from dralloc.compile.pods.selectors import Term
from dralloc.solve.scheduler.nodes import NodeInfo
from dralloc.solve.scheduler.plugin import (
    MAX_SCORE,
    Check,
    Cycle,
    Plugin,
    Rejection,
    Scores,
    Scoring,
)
from dralloc.solve.scheduler.snapshot import Snapshot, Tally

__all__ = ["INTER_POD_AFFINITY"]

_NOT_NEAR: Final = Rejection(("node(s) didn't match pod affinity rules",), eased=True)
_NOT_AWAY: Final = Rejection(
    ("node(s) didn't match pod anti-affinity rules",), resolvable=True
)
_NOT_WANTED: Final = Rejection(
    ("node(s) didn't satisfy existing pods anti-affinity rules",), resolvable=True
)


def _filter(cycle: Cycle) -> Check | None:
    kind, snapshot = cycle.pod.kind, cycle.snapshot
    unwanted = [
        tally
        for _, tally in _carried(snapshot, "required_anti_affinity", kind)
        if tally.counts
    ]
    if not unwanted and not kind.required_affinity and not kind.required_anti_affinity:
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
    first = not any(tally.counts for tally in near) and _means(
        kind.required_affinity, kind
    )

    def check(node: NodeInfo) -> Rejection | None:
        if any(
            tally.topology_key not in node.labels or not (first or tally.on(node))
            for tally in near
        ):
            return _NOT_NEAR
        if any(tally.on(node) for tally in away):
            return _NOT_AWAY
        return _NOT_WANTED if any(tally.on(node) for tally in unwanted) else None

    return check


def _score(cycle: Cycle) -> Scoring | None:
    kind, snapshot, profile = cycle.pod.kind, cycle.snapshot, cycle.profile
    if profile.ignores_preferences_of_others and not kind.preferred:
        return None
    own = [
        (_meant(snapshot, (term,), term.topology_key), term.weight)
        for term in kind.preferred
    ]
    hard = [
        (tally, profile.hard_affinity_weight)
        for _, tally in _carried(snapshot, "required_affinity", kind)
    ]
    soft = [
        (tally, term.weight) for term, tally in _carried(snapshot, "preferred", kind)
    ]
    weighed = [
        (tally, weight)
        for tally, weight in (*own, *hard, *soft)
        if tally.counts and weight
    ]
    if not weighed:
        return None
    return Scoring(
        lambda node: sum(tally.on(node) * weight for tally, weight in weighed),
        _stretched,
    )


def _stretched(scores: Scores) -> Scores:
    """The worst becomes 0, the best `MAX_SCORE`."""
    above = scores - scores.min()
    span = above.max()
    stretched: Scores = (
        (float(MAX_SCORE) * (above / float(span))).astype(np.int64) if span else above
    )
    return stretched


def _carried(
    snapshot: Snapshot, sort: str, kind: PodKind
) -> Iterator[tuple[Term, Tally]]:
    """The terms of pods on nodes that mean the kind, with the number of pods that have them."""
    return (
        (term, tally)
        for term, tally in snapshot.carried[sort].items()
        if kind.is_meant_by(term)
    )


def _meant(snapshot: Snapshot, terms: tuple[Term, ...], topology_key: str) -> Tally:
    """The pods that all of the terms of a pod mean."""
    return snapshot.tally(("meant", terms), topology_key, partial(_means, terms))


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
    "InterPodAffinity", _filter, _score, weight=2, looks_around=True
)
