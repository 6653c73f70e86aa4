"""Policies beside first fit and the optimum: who comes next, and which node is best for him.

All of them place one demand after the other and search a node as first fit does. What differs is the order of the
demands and the choice of the node: two entries of a table, `dralloc.solvers.policies.table`.
"""

from __future__ import annotations

from dralloc.solvers.policies.table import POLICIES, Policy, place

__all__ = ["POLICIES", "Policy", "place"]
