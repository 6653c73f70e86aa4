"""Policies beside first fit and the optimum: the order of the demands, and the best node for each.

All of them place one demand after the other and search a node as first fit does. What differs is the order of the
demands and the choice of the node: two entries of a table, `dralloc.solve.policies.table`. Users write their own by
the protocol of `dralloc.solve.policies.protocol`.
"""

from __future__ import annotations

from dralloc.solve.policies.protocol import (
    OfferedNode,
    OrderedPolicy,
    Policy,
    WaitingPod,
    policy_name,
)
from dralloc.solve.policies.table import POLICIES, place, way_of

__all__ = [
    "POLICIES",
    "OfferedNode",
    "OrderedPolicy",
    "Policy",
    "WaitingPod",
    "place",
    "policy_name",
    "way_of",
]
