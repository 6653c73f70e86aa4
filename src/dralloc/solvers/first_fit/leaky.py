"""The search with a defect of upstream's releases up to 1.36: what a scheduler of these releases answers.

A candidate that is refused for its taints or by a constraint leaves its counters reserved until the search of the node
ends, so that partitions which would fit may not be found (kubernetes/kubernetes#140436).
"""

from __future__ import annotations

from collections.abc import Sequence

from dralloc.problem import Claim, Device, Problem
from dralloc.solution import Grant
from dralloc.solvers.first_fit.ledger import SearchLedger
from dralloc.solvers.first_fit.search import DepthFirstSearch

__all__ = ["LeakySearch"]


class LeakySearch(DepthFirstSearch):
    """One attempt to allocate claims together on a node."""

    def __init__(self, problem: Problem, ledger: SearchLedger, claims: Sequence[Claim], node: int) -> None:
        super().__init__(problem, ledger, claims, node)
        self._leaked: list[Device] = []

    def run(self) -> tuple[tuple[Grant, ...], ...] | None:
        """DepthFirstSearch, and free in the end what nobody has."""
        try:
            return super().run()
        finally:
            for device in self._leaked:
                self._ledger.reserve(device, -1)

    def _refused(self, device: Device) -> None:
        if not self._ledger.is_open(device):
            self._ledger.reserve(device)
            self._leaked.append(device)
