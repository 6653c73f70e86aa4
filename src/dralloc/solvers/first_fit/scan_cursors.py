"""Where a scan of the nodes goes on: those on which an equal demand did not fit are not tried again.

Within a batch devices, capacities and counters only become scarcer, so that what did not fit on a node never will. Two
things let go of something: the search taking back a choice, which leaves no trace, and a gang that is given up, for
which `ScanCursors.begin` and `ScanCursors.take_back` restore what was known before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dralloc.errors import NodeError
from dralloc.problem import MAX_RESULTS, Demand, Problem
from dralloc.solvers.first_fit.candidates import CandidateIndex, NodeCandidates
from dralloc.solvers.first_fit.claim_classes import ClaimClass

__all__ = ["ScanCursor", "ScanCursors"]


@dataclass(slots=True, eq=False)
class ScanCursor:
    """How far one class of demands has come on the nodes that it may go to.

    Parameters
    ----------
    nodes
        In search order.
    position
        How many of them are done with: it does not fit there.
    again
        Those before the position on which it may fit some day.
    error
        The error of a node on which it does not fit.
    candidates
        What the node at the position offers.
    """

    claim_class: ClaimClass
    nodes: Sequence[int]
    position: int = 0
    again: list[int] = field(default_factory=list)
    error: NodeError | None = None
    candidates: NodeCandidates | None = None


class ScanCursors:
    """All cursors of a batch."""

    def __init__(self, problem: Problem, index: CandidateIndex) -> None:
        self._problem = problem
        self._index = index
        self._cursors: dict[Hashable, ScanCursor] = {}
        self._before: dict[Hashable, ScanCursor] | None = None

    def of(self, claim_class: ClaimClass, demand: Demand) -> ScanCursor:
        """The cursor of a class over the demand's nodes."""
        key = claim_class, demand.nodes
        cursor = self._cursors.get(key)
        if cursor is None:
            cursor = self._cursors[key] = ScanCursor(claim_class, self._problem.candidate_nodes(demand))
        if self._before is not None and key not in self._before:
            self._before[key] = replace(cursor, again=list(cursor.again), candidates=None)
        return cursor

    def ahead(self, cursor: ScanCursor) -> Iterator[int]:
        """The nodes that are left to try. Going on after one of them says that the demand did not fit there."""
        yield from tuple(cursor.again)
        while cursor.position < len(cursor.nodes):
            node = cursor.nodes[cursor.position]
            yield node
            if not self._for_good(cursor, node):
                cursor.again.append(node)
            cursor.position += 1
            cursor.candidates = None

    def begin(self) -> None:
        """Start to keep what is known, in case that what follows is taken back."""
        self._before = {}

    def keep(self) -> None:
        """What happened since `begin` stays."""
        self._before = None

    def take_back(self) -> None:
        """Know again what was known at `begin`."""
        self._cursors.update(self._before or {})
        self._before = None

    def _for_good(self, cursor: ScanCursor, node: int) -> bool:
        """Whether a demand that did not fit on the node never will, nor end with an error there.

        ``All`` means fewer devices once shareable ones are full, and that can fit. With more than 32 devices in sight
        the search stops early, and could come across a failing selector or a violated ``All`` later.
        """
        claim_class, index = cursor.claim_class, self._index
        if not index.shrinks(node) or (claim_class.every and index.has_shareable(node)):
            return False
        most = claim_class.most + (index.size(node) if claim_class.every else 0)
        if most <= MAX_RESULTS:
            return True
        failing = cursor.candidates is None or any(listed.failing for listed in cursor.candidates.lists.values())
        return not failing and not claim_class.every_constrained
