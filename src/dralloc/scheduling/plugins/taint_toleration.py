"""Taints of nodes: some keep pods away, others make nodes worse.

Source: ``framework/plugins/tainttoleration/taint_toleration.go``.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from dralloc.api.tolerating import all_tolerated, tolerates
from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import MAX_SCORE, Check, Plugin, Rejection, Scoring, relative

__all__ = ["TAINT_TOLERATION"]

_PREFER_NOT: Final = "PreferNoSchedule"
_TAINTED: Final = Rejection(("node(s) had untolerated taint(s)",))


def _filter(cycle: Cycle) -> Check:
    tolerations = cycle.pod.kind.spec.tolerations
    return lambda node: None if all_tolerated(node.node.spec.taints, tolerations) else _TAINTED


def _score(cycle: Cycle, _: Sequence[NodeInfo]) -> Scoring:
    tolerations = [one for one in cycle.pod.kind.spec.tolerations if one.effect in ("", _PREFER_NOT)]

    def intolerable(node: NodeInfo) -> int:
        taints = (taint for taint in node.node.spec.taints if taint.effect == _PREFER_NOT)
        return sum(not any(tolerates(one, taint) for one in tolerations) for taint in taints)

    return Scoring(intolerable, lambda counts: MAX_SCORE - relative(counts))


TAINT_TOLERATION: Final = Plugin("TaintToleration", _filter, _score, weight=3, view=attrgetter("place"))
