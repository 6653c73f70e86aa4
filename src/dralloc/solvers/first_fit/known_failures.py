"""What need not be tried again: nodes on which an equal demand did not fit, and domains that are too small for a gang.

Within a batch devices, capacities and counters only become scarcer, so that what did not fit on a node never will. Two
things let go of something: the search taking back a choice, which leaves no trace, and a gang that is given up, for
which `ScanCursors.begin` and `ScanCursors.take_back` restore what was known before.

Of equal demands, placed one after the other, as many fit in a domain as did the last time, as long as nothing there has
changed. Where every device is offered to one node only, that is as long as no placement there is new.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dralloc.errors import NodeError
from dralloc.problem import MAX_RESULTS, Demand, Problem
from dralloc.problem.inter_pod import Domains
from dralloc.solution import Placement
from dralloc.solvers.first_fit.candidates import CandidateIndex, NodeCandidates
from dralloc.solvers.first_fit.claim_classes import ClaimClass, ClaimClasses

__all__ = ["DomainMemory", "EqualDemands", "ScanCursor", "ScanCursors"]


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


EqualDemands = tuple[ClaimClass, tuple[int, ...] | None]
"""What they ask for, and where they may go."""


class DomainMemory:
    """How many equal demands fitted in a domain, and how many placements it had then."""

    def __init__(self, problem: Problem, claim_classes: ClaimClasses) -> None:
        self._problem = problem
        self._claim_classes = claim_classes
        self._placed: dict[int, Tally[str | None]] = defaultdict(Tally)
        self._seen: Tally[int] = Tally()
        self._fitting: dict[tuple[EqualDemands, int, str], tuple[int, int]] = {}

    def equal(self, members: Sequence[Demand]) -> EqualDemands | None:
        """What the members of a gang are, if they are equal and have nothing to do with each other but for the rule."""
        keys = [claim.key for demand in members for claim in demand.claims]
        found = {(self._claim_classes.of(demand.claims), demand.nodes) for demand in members}
        [(claim_class, nodes), *others] = found
        alone = len(set(keys)) == len(keys) and all(len(demand.roles) == 1 for demand in members)
        if others or not alone or claim_class is None or not claim_class.simple or not self._is_local:
            return None
        return claim_class, nodes

    def fitting(
        self, equal: EqualDemands, domains: Domains, domain: str, placements: Sequence[Placement]
    ) -> int | None:
        """How many of them fit in a domain; None if that is not known for these placements."""
        fitting, placed = self._fitting.get((equal, id(domains), domain), (0, -1))
        return fitting if placed == self._number(domains, domain, placements) else None

    def enter(
        self, equal: EqualDemands, domains: Domains, domain: str, placements: Sequence[Placement], fitting: int
    ) -> None:
        """Note how many fit."""
        self._fitting[equal, id(domains), domain] = fitting, self._number(domains, domain, placements)

    def _number(self, domains: Domains, domain: str, placements: Sequence[Placement]) -> int:
        """The placements in a domain."""
        tally, nodes, seen = self._placed[id(domains)], self._problem.nodes, self._seen[id(domains)]
        if seen < len(placements):
            tally.update(domains.get(nodes[each.node].name) for each in placements[seen:])
            self._seen[id(domains)] = len(placements)
        return tally[domain]

    @cached_property
    def _is_local(self) -> bool:
        """Whether every device is offered to one node only."""
        offered = [device for node in self._problem.nodes for device in node.devices()]
        return len(set(offered)) == len(offered)
