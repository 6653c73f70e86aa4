"""Nodes that a pod selects, and nodes that it prefers. Source: ``framework/plugins/nodeaffinity/node_affinity.go``."""

from __future__ import annotations

from collections.abc import Sequence, Set
from operator import attrgetter
from typing import Final

from dralloc.api.node_selectors import names_of, selector_matches, term_matches
from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import Check, Plugin, Rejection, Scoring, relative

__all__ = ["NODE_AFFINITY"]

_NOT_SELECTED: Final = Rejection(("node(s) didn't match Pod's node affinity/selector",))
_CONFLICT: Final = Rejection(("pod affinity terms conflict",))
_NOT_ENFORCED: Final = Rejection(("node(s) didn't match scheduler-enforced node affinity",))


def _named(cycle: Cycle) -> Set[str] | None:
    """The nodes that the terms of required affinity name; None if one of them names none."""
    required = cycle.pod.kind.spec.required_nodes
    return None if required is None else names_of(required)


def _filter(cycle: Cycle) -> Check | Rejection | None:
    kind, added = cycle.pod.kind, cycle.profile.added_affinity.required
    if _named(cycle) == set():
        return _CONFLICT
    if not kind.spec.node_selector and kind.spec.required_nodes is None and added is None:
        return None

    def check(node: NodeInfo) -> Rejection | None:
        if added is not None and not selector_matches(added, node.node):
            return _NOT_ENFORCED
        return None if kind.may_run_on(node.node) else _NOT_SELECTED

    return check


def _score(cycle: Cycle, _: Sequence[NodeInfo]) -> Scoring | None:
    affinity = cycle.pod.kind.spec.affinity and cycle.pod.kind.spec.affinity.node_affinity
    terms = (*cycle.profile.added_affinity.preferred, *(affinity.preferred if affinity else ()))
    if not terms:
        return None
    return Scoring(lambda node: sum(one.weight for one in terms if term_matches(one.preference, node.node)), relative)


NODE_AFFINITY: Final = Plugin("NodeAffinity", _filter, _score, weight=2, view=attrgetter("place"), named=_named)
