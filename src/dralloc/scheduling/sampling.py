"""How many feasible nodes are enough, and where the search for them starts.

Source: ``numFeasibleNodesToFind`` in ``schedule_one.go`` of ``kubernetes/pkg/scheduler``. Upstream looks at nodes in
parallel, so that a few more than needed may be looked at; here, as with ``parallelism: 1``, none are.
"""

from __future__ import annotations

from typing import Final

__all__ = ["feasible_nodes_to_find"]

_LEAST_NODES: Final = 100
_LEAST_PERCENTAGE: Final = 5


def feasible_nodes_to_find(percentage: int, nodes: int) -> int:
    """How many feasible nodes are scored at most, of so many nodes.

    Parameters
    ----------
    percentage
        ``percentageOfNodesToScore``; 0 for one that falls from 50 for few nodes to 5 for many.
    """
    if nodes < _LEAST_NODES:
        return nodes
    share = percentage or max(50 - nodes // 125, _LEAST_PERCENTAGE)
    return max(nodes * share // 100, _LEAST_NODES)
