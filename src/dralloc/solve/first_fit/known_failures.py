"""Nodes that need not be tried again: they cannot hold a demand, for what is known of them.

Two looks at all nodes at once rule most of them out: what they have left of CPU, memory and the like, and how many
devices requests can get at most. What a failed search has seen rules out the rest, until something there changes.

Within a batch devices, capacities and counters only become scarcer, so that what did not fit on a node never will. Two
things let go of something: the search taking back a choice, which leaves no trace, and a gang that is given up. What
was learnt since then is forgotten (`KnownFailures.take_back`).

Demands may all differ in what they take of CPU and memory; of devices most want one of a few things. So the two are
kept apart. What a node has left of CPU and memory is compared with what the demand takes, for all nodes at once. Of the
devices it is known for each class of claims on which nodes they are hopeless: too few devices are free for one of the
requests, or a search had no solution.

A node that is passed over must not have ended the attempt with an error. A search meets one in three places: a request
for all devices, a claim with more requests than there may be results, and a selector that fails on a device. Classes
with one of the first two, and nodes with the third, are only passed over if a search was there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import MAX_RESULTS, Alternative, Claim, NodeIndex, Problem
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    CandidateList,
    ClaimClass,
    NodeCandidates,
    Place,
    places,
)
from dralloc.solve.first_fit.free_amounts import NOTHING, WantedAmounts
from dralloc.solve.first_fit.free_devices import DeviceBound, FreeDevices
from dralloc.solve.first_fit.search_ledger import SearchLedger

__all__ = ["KnownFailures", "Prospects"]

_STEPS: Final = 3
"""How many nodes are looked at one after the other before all are: most often an equal demand fits where the last did,
or on the next node."""

Mask = NDArray[np.bool_]
Places = NDArray[np.intp]


@dataclass(slots=True, eq=False)
class Bounds:
    """The requests of a class, beside how many devices each node has for it at most.

    Parameters
    ----------
    choices
        For each request the bounds of its alternatives, with how many devices they ask for.
    sums
        The same for all requests together that have no choice, each bound once.
    dedicated
        By node, whether sums count: no device there serves two requests.
    failing
        By node, whether a selector fails on some device there, so that bounds say nothing about it.
    counted
        Where an alternative with each of the bounds is among the claims for devices.
    """

    choices: Sequence[Sequence[tuple[DeviceBound, int]]]
    sums: Sequence[tuple[DeviceBound, int]]
    dedicated: Mask
    failing: Mask
    counted: Mapping[Place, tuple[Alternative, DeviceBound]]

    def may_serve(self, node: NodeIndex) -> bool:
        """Whether a node may have enough for each of the requests, and for all of them together."""
        if self.failing[node]:
            return True
        for request in self.choices:
            if not any(
                bound.obtainable[node] >= count for bound, count in request
            ):
                return False
        if not self.dedicated[node]:
            return True
        return all(
            bound.obtainable[node] >= count for bound, count in self.sums
        )

    def serving(self, *, in_use: bool) -> Mask:
        """The same of all nodes: with what is in use, or as if nothing was."""
        served = np.ones(len(self.failing), np.bool_)
        for request in self.choices:
            enough = [
                bound.devices(in_use=in_use) >= count
                for bound, count in request
            ]
            served &= np.logical_or.reduce(enough)
        for bound, count in self.sums:
            served &= (bound.devices(in_use=in_use) >= count) | ~self.dedicated
        return served | self.failing


@dataclass(slots=True, eq=False)
class Prospects:
    """The nodes on which a class of claims may still fit, as far as devices are concerned.

    ``hopeful``: by node. ``bounds``: None as long as nobody asked, or if a search may end with an error.
    """

    claim_class: ClaimClass
    hopeful: Mask
    bounds: Bounds | None = None


class KnownFailures:
    """Failures that are known in a batch.

    Parameters
    ----------
    placements
        Those that count now.
    """

    def __init__(
        self,
        problem: Problem,
        ledger: SearchLedger,
        index: CandidateIndex,
        placements: Sequence[Placement],
    ) -> None:
        self._problem = problem
        self._index = index
        self._placements = placements
        self._free = FreeDevices(problem, ledger, index)
        self._prospects: dict[ClaimClass, Prospects] = {}
        # By bound those who ask for its devices.
        self._asking: dict[int, list[Prospects]] = defaultdict(list)
        self._rows: dict[int, tuple[Sequence[int], Places]] = {}
        self._interned: dict[tuple[int, ...], Places] = {}
        # How many nodes at the start of a row are known to be too little.
        self._passed: dict[tuple[Hashable, Hashable, int], int] = defaultdict(
            int
        )
        # By row where in it each node is; behind its end if it is not there.
        self._positions: dict[int, Places] = {}
        # What was known before, of what was learnt with so many placements; None where nothing is taken back.
        self._journal: list[tuple[int, Any, Any, Any]] | None = None

    def of(self, claim_class: ClaimClass) -> Prospects:
        """Return the known failures of a class."""
        prospects = self._prospects.get(claim_class)
        if prospects is None:
            hopeful = np.ones(len(self._problem.nodes), np.bool_)
            prospects = self._prospects[claim_class] = Prospects(
                claim_class, hopeful
            )
        return prospects

    # Questions.

    def hopeful(self, claim_class: ClaimClass, claims: Sequence[Claim]) -> Mask:
        """By node, whether a class may still fit there, as far as that is known of the devices."""
        prospects = self.of(claim_class)
        self._ask_bounds(prospects, claims)
        return prospects.hopeful

    def is_safe(self, claim_class: ClaimClass, claims: Sequence[Claim]) -> bool:
        """Whether it is certain that no search for a class ends with an error."""
        prospects = self.of(claim_class)
        self._ask_bounds(prospects, claims)
        return (
            prospects.bounds is not None and not prospects.bounds.failing.any()
        )

    def ahead(
        self,
        prospects: Prospects,
        claims: Sequence[Claim],
        amounts: WantedAmounts,
        nodes: Sequence[NodeIndex],
    ) -> Iterator[NodeIndex]:
        """The nodes of these that may hold a demand, in order. Going on after one of them says that it did not fit."""
        if prospects.claim_class.may_ask_too_much:
            # The error comes first, whatever the node lacks.
            amounts = NOTHING
        hopeful, row = prospects.hopeful, self._row(nodes)
        scan = prospects, amounts, id(row)
        first = self._passed[scan]
        # Nodes before are too little for good, as long as none was met that is not.
        passing, devices_alone = True, amounts is NOTHING
        behind = min(first + _STEPS, len(nodes))
        for position in range(first, behind):
            node = nodes[position]
            if hopeful[node] and (devices_alone or amounts.may_suffice(node)):
                yield node
                passing = passing and not hopeful[node]
            if passing:
                self._set(self._passed, scan, position + 1)
        if behind == len(nodes):
            return
        for position in self._hopeful(prospects, claims, amounts, row[behind:]):
            if passing:
                self._set(self._passed, scan, behind + position)
            node = nodes[behind + position]
            yield node
            passing = passing and not hopeful[node]
        if passing:
            self._set(self._passed, scan, len(nodes))

    def nodes_that_may_hold(
        self,
        prospects: Prospects,
        claims: Sequence[Claim],
        amounts: WantedAmounts,
        nodes: Sequence[NodeIndex],
    ) -> Sequence[NodeIndex]:
        """Return the nodes of these that may hold a demand: all that `ahead` could give out."""
        if prospects.claim_class.may_ask_too_much:
            amounts = NOTHING
        hopeful = self._hopeful(prospects, claims, amounts, self._row(nodes))
        return [nodes[position] for position in hopeful]

    def _hopeful(
        self,
        prospects: Prospects,
        claims: Sequence[Claim],
        amounts: WantedAmounts,
        row: Places,
    ) -> Sequence[int]:
        """Return the positions of the nodes that may hold a demand."""
        self._ask_bounds(prospects, claims)
        mask: Mask = prospects.hopeful[row]
        amounts.narrow(mask, row)
        positions: list[int] = mask.nonzero()[0].tolist()
        return positions

    def _row(self, nodes: Sequence[NodeIndex]) -> Places:
        """The nodes as an array, the same one for equal nodes."""
        if id(nodes) not in self._rows:
            row = self._interned.setdefault(
                tuple(nodes), np.array(nodes, np.intp)
            )
            if id(row) not in self._positions:
                positions = np.full(len(self._problem.nodes), len(row), np.intp)
                positions[row] = np.arange(len(row))
                self._positions[id(row)] = positions
            # The nodes are kept, lest something else gets their id.
            self._rows[id(nodes)] = nodes, row
        return self._rows[id(nodes)][1]

    def _ask_bounds(
        self, prospects: Prospects, claims: Sequence[Claim]
    ) -> None:
        """Give up the nodes that have too few devices for some request, if that was not asked before."""
        if (
            prospects.bounds is not None
            or prospects.claim_class.may_ask_too_much
        ):
            return
        bounds = prospects.bounds = self._bounds(claims)
        # What gangs have taken for the time being does not count, as they may give it back.
        prospects.hopeful &= bounds.serving(in_use=self._journal is None)
        for _, bound in bounds.counted.values():
            self._asking[id(bound)].append(prospects)

    def _bounds(self, claims: Sequence[Claim]) -> Bounds:
        requests: dict[tuple[int, int], list[tuple[DeviceBound, int]]] = (
            defaultdict(list)
        )
        sums: dict[int, tuple[DeviceBound, int]] = {}
        counted: dict[int, tuple[Place, Alternative, DeviceBound]] = {}
        failing = np.zeros(len(self._problem.nodes), np.bool_)
        on_devices = claims[_node_claims(claims) :]
        for location, alternative in places(on_devices):
            claim, request, _ = location
            if alternative.count is None:
                continue
            bound = self._free.bound(alternative)
            requests[claim, request].append((bound, alternative.count))
            # Places with the same bound have the same candidates: to count them, one place is enough.
            counted.setdefault(id(bound), (location, alternative, bound))
            failing |= bound.failing
            no_choice = (
                len(on_devices[claim].requests[request].alternatives) == 1
            )
            # A sum has only what is certain. Which alternative serves a request with a choice is not, and admin access
            # can have what others hold.
            if no_choice and not alternative.admin:
                _, count_so_far = sums.get(id(bound), (bound, 0))
                sums[id(bound)] = bound, count_so_far + alternative.count
        at_places = {
            location: (alternative, bound)
            for location, alternative, bound in counted.values()
        }
        return Bounds(
            list(requests.values()),
            list(sums.values()),
            self._free.dedicated,
            failing,
            at_places,
        )

    # Entries.

    def enter(
        self,
        prospects: Prospects,
        claims: Sequence[Claim],
        candidates: NodeCandidates,
    ) -> None:
        """Know that the devices of a node do not do for claims of a class, and why."""
        node, bounds = candidates.node, prospects.bounds
        if not self._index.shrinks(node):
            return
        if bounds is not None and not bounds.failing[node]:
            before = _node_claims(claims)
            for (claim, request, choice), counted in bounds.counted.items():
                alternative, bound = counted
                # A count only helps if another class asks for the same devices, too.
                if bound.obtainable[node] and len(self._asking[id(bound)]) > 1:
                    listed = candidates.lists[claim + before, request, choice]
                    self._count(bound, alternative, listed, node)
        if not prospects.hopeful[node]:
            return
        if self._is_for_good(prospects.claim_class, candidates):
            self._set(prospects.hopeful, node, False)

    def give_up(self, prospects: Prospects, node: NodeIndex) -> None:
        """Know that a class never fits on a node; it does not ask for too much."""
        if self._index.shrinks(node):
            self._set(prospects.hopeful, node, False)

    def _count(
        self,
        bound: DeviceBound,
        alternative: Alternative,
        listed: CandidateList,
        node: NodeIndex,
    ) -> None:
        """Count the devices that can still be had, and give up the node for demands that need more."""
        obtainable = self._free.count(alternative, listed)
        if obtainable == bound.obtainable[node]:
            return
        self._set(bound.obtainable, node, obtainable)
        for prospects in self._asking[id(bound)]:
            if not prospects.hopeful[node] or not prospects.bounds:
                continue
            if not prospects.bounds.may_serve(node):
                self._set(prospects.hopeful, node, False)

    def _is_for_good(
        self, claim_class: ClaimClass, candidates: NodeCandidates
    ) -> bool:
        """Whether a demand that did not fit on the node never will, nor end with an error there.

        ``All`` means fewer devices once shareable ones are full, and that can fit. With more than 32 devices in sight
        the search stops early, and could come across a failing selector or a violated ``All`` later.
        """
        node = candidates.node
        if claim_class.asks_all and self._index.has_shareable(node):
            return False
        most_results = claim_class.most_devices
        if claim_class.asks_all:
            most_results += self._index.size(node)
        if most_results <= MAX_RESULTS:
            return True
        failing = any(listed.failing for listed in candidates.lists.values())
        return not failing and not claim_class.constrains_all

    # What is given back.

    def reopen(self, nodes: Sequence[NodeIndex]) -> None:
        """Forget what was learnt about these nodes, as something has been released there, however long ago it came."""
        node_indices = np.array(nodes, np.intp)
        self._free.forget(node_indices)
        for prospects in self._prospects.values():
            bounds = prospects.bounds
            prospects.hopeful[node_indices] = [
                bounds is None or bounds.may_serve(node) for node in nodes
            ]
        first_in = {
            row: int(positions[node_indices].min())
            for row, positions in self._positions.items()
        }
        for scan, passed in self._passed.items():
            _, _, row = scan
            self._passed[scan] = min(passed, first_in[row])

    def begin(self) -> None:
        """Start to note what is learnt, in case that placements are given back."""
        self._journal = []

    def end(self) -> None:
        """End the journal: the failures that were learnt stay known."""
        self._journal = None

    def take_back(self, placed: int) -> None:
        """Forget what was learnt when there were more placements than so many, as those behind are given back."""
        while self._journal and self._journal[-1][0] > placed:
            _, container, key, value = self._journal.pop()
            container[key] = value

    def _set(self, container: Any, key: Any, value: Any) -> None:
        """Learn something, and note what it replaces if it may have to be forgotten."""
        if self._journal is not None:
            self._journal.append(
                (len(self._placements), container, key, container[key])
            )
        container[key] = value


def _node_claims(claims: Sequence[Claim]) -> int:
    """Return the number of claims before those for devices: 1 if the demand takes something of its node, too."""
    return int(bool(claims) and claims[0].is_synthetic)
