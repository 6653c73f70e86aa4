"""Where to look next: nodes on which a kind of demand did not fit are not tried again.

Within a batch devices, capacities and counters only become scarcer, so that what did not fit on a node never will. Two
things let go of something: the search taking back a choice, which leaves no trace, and a gang that is given up, for
which `Walks.begin` and `Walks.take_back` restore what was known before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dralloc.errors import NodeError
from dralloc.problem import MAX_RESULTS, Demand, Problem
from dralloc.solvers.first_fit.kinds import Kind
from dralloc.solvers.first_fit.sites import Site, Sites

__all__ = ["Walk", "Walks"]


@dataclass(slots=True, eq=False)
class Walk:
    """How far one kind of demand has come on the nodes that it may go to.

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
    site
        What the node at the position offers.
    """

    kind: Kind
    nodes: Sequence[int]
    position: int = 0
    again: list[int] = field(default_factory=list)
    error: NodeError | None = None
    site: Site | None = None


class Walks:
    """All walks of a batch."""

    def __init__(self, problem: Problem, sites: Sites) -> None:
        self._problem = problem
        self._sites = sites
        self._walks: dict[Hashable, Walk] = {}
        self._before: dict[Hashable, Walk] | None = None

    def of(self, kind: Kind, demand: Demand) -> Walk:
        """The walk of a kind over the demand's nodes."""
        key = kind, demand.nodes
        walk = self._walks.get(key)
        if walk is None:
            walk = self._walks[key] = Walk(kind, self._problem.candidate_nodes(demand))
        if self._before is not None and key not in self._before:
            self._before[key] = replace(walk, again=list(walk.again), site=None)
        return walk

    def ahead(self, walk: Walk) -> Iterator[int]:
        """The nodes that are left to try. Going on after one of them says that the demand did not fit there."""
        yield from tuple(walk.again)
        while walk.position < len(walk.nodes):
            node = walk.nodes[walk.position]
            yield node
            if not self._for_good(walk, node):
                walk.again.append(node)
            walk.position += 1
            walk.site = None

    def begin(self) -> None:
        """Start to keep what is known, in case that what follows is taken back."""
        self._before = {}

    def keep(self) -> None:
        """What happened since `begin` stays."""
        self._before = None

    def take_back(self) -> None:
        """Know again what was known at `begin`."""
        self._walks.update(self._before or {})
        self._before = None

    def _for_good(self, walk: Walk, node: int) -> bool:
        """Whether a demand that did not fit on the node never will, nor end with an error there.

        ``All`` means fewer devices once shareable ones are full, and that can fit. With more than 32 devices in sight
        the search stops early, and could come across a failing selector or a violated ``All`` later.
        """
        kind, sites = walk.kind, self._sites
        if not sites.shrinks(node) or (kind.every and sites.has_shareable(node)):
            return False
        most = kind.most + (sites.size(node) if kind.every else 0)
        if most <= MAX_RESULTS:
            return True
        failing = walk.site is None or any(shelf.failing for shelf in walk.site.shelves.values())
        return not failing and not kind.every_constrained
