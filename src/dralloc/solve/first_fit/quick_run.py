"""The quick run, with a fast path for simple demands: one claim that asks once for some devices, without constraints.

It gives the answers of the plain one without trying again what is known to fail: in nodes
(`dralloc.solve.first_fit.known_failures`), and in domains that have held as many equal demands before
(`dralloc.solve.first_fit.domain_memory`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence, Set
from functools import cached_property
from itertools import islice

from dralloc.objects.errors import FatalError, NodeError
from dralloc.problem import (
    Alternative,
    Claim,
    Demand,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    PoolState,
    Problem,
    numbered,
    quorum_of,
)
from dralloc.problem.inter_pod import OneDomain
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    CandidateList,
    ClaimClass,
    ClaimClasses,
    NodeCandidates,
    failure,
)
from dralloc.solve.first_fit.domain_memory import DomainMemory, EqualDemands
from dralloc.solve.first_fit.free_amounts import (
    NOTHING,
    FreeAmounts,
    WantedAmounts,
)
from dralloc.solve.first_fit.known_failures import KnownFailures, Prospects
from dralloc.solve.first_fit.plain import GrantsOfClaims, PlaceAll, PlainRun
from dralloc.solve.first_fit.pruned import DEAD_ENDS, PrunedSearch
from dralloc.solve.first_fit.search import INVALID_POOLS, nothing_on
from dralloc.solve.first_fit.search_ledger import SearchLedger

__all__ = ["QuickRun"]


class QuickRun(PlainRun):
    """A pass over the demands that passes over nodes which are known to have too little."""

    def __init__(self, problem: Problem, dead_ends: int = DEAD_ENDS) -> None:
        super().__init__(problem)
        self._dead_ends = dead_ends
        self._claim_classes = ClaimClasses(self._problem)
        self._index = CandidateIndex(self._problem)
        self._failures = KnownFailures(
            self._problem, self._ledger, self._index, self.placements
        )
        self._amounts = FreeAmounts(self._problem, self._ledger)
        # They come first in each demand that has one.
        self._has_node_claims = any(
            demand.claims and demand.claims[0].is_synthetic
            for demand in self._problem.demands
        )
        self._memory = DomainMemory(self._problem, self._claim_classes)
        self._candidates_of: dict[Hashable, NodeCandidates] = {}
        self._equal: EqualDemands | None = None
        self._quorum = 0
        self._given_back = 0

    # Gangs.

    def place_together(self, members: Sequence[DemandIndex]) -> None:
        """Place as in the plain run; what was known before stays true where placements are given back."""
        first = self._problem.demands[members[0]]
        if not (first.gang or first.roles):
            self.place(members[0])
            return
        self._failures.begin()
        super().place_together(members)
        self._failures.end()

    def _place_in_best_domain(
        self,
        members: Sequence[DemandIndex],
        rule: OneDomain | None,
        place_all: PlaceAll,
    ) -> None:
        demands = [self._problem.demands[member] for member in members]
        keys = {claim.key for demand in demands for claim in demand.claims}
        self._equal, self._quorum = None, quorum_of(demands)
        # What devices take of nodes differs from device to device, also for equal
        # demands; who needs an allocated claim is bound to its nodes; and a gang that
        # is too few is given back before anybody fails to fit.
        if (
            rule is not None
            and self._quorum <= len(members)
            and not self._footprints
            and demands[0].parent is None
            and self._allocated.keys().isdisjoint(keys)
        ):
            self._equal = self._memory.equal(demands)
        super()._place_in_best_domain(members, rule, place_all)

    def _domains_to_try(
        self, members: Sequence[DemandIndex], rule: OneDomain
    ) -> Iterator[tuple[str, str]]:
        """Leave out the domains in which no node may hold any of the members: trying them would change nothing.

        Whoever of them is placed first is placed beside nothing else of the group, so what nodes have now decides.
        """
        every_domain = iter(super()._domains_to_try(members, rule))
        # As long as there is room, the first domain is most often enough.
        yield from islice(every_domain, 1)
        nodes = self._nodes_that_may_hold_any(members)
        promising = {
            rule.domains.get(self._problem.nodes[node].name) for node in nodes
        }
        for domain, node_name in every_domain:
            if domain in promising:
                yield domain, node_name

    def _nodes_that_may_hold_any(
        self, members: Sequence[DemandIndex]
    ) -> Set[NodeIndex]:
        """Return the nodes that some of these demands may fit on, as things are; all if that is not known."""
        every_node = frozenset(self._problem.all_nodes)
        # Whoever fits nowhere may have to be told of invalid pools.
        if self._invalid:
            return every_node
        nodes: set[NodeIndex] = set()
        asked: set[Hashable] = set()
        for member in members:
            demand = self._demand(member)
            claims = self._open_claims(demand)
            claim_class = self._class_to_place(claims)
            if claim_class is None:
                return every_node
            wanted, reachable = self._wanted(claims), self._reachable(demand)
            # Members of a gang are most often equal.
            question = claim_class, id(wanted), id(reachable)
            if question not in asked:
                asked.add(question)
                nodes.update(
                    self._failures.nodes_that_may_hold(
                        self._failures.of(claim_class),
                        claims,
                        wanted,
                        reachable,
                    )
                )
        return nodes

    def _try_domain(
        self,
        members: Sequence[DemandIndex],
        rule: OneDomain,
        domain: str,
        place_all: PlaceAll,
    ) -> None:
        """Try as in the plain run, unless it is known that too few of equal members fit."""
        equal, placements, before = (
            self._equal,
            self.placements,
            len(self.placements),
        )
        if equal is None or not self.errors.keys().isdisjoint(members):
            super()._try_domain(members, rule, domain, place_all)
            return
        fitted = self._memory.fitting(equal, rule.domains, domain, placements)
        if fitted is not None and fitted < self._quorum:
            return
        self._given_back = 0
        super()._try_domain(members, rule, domain, place_all)
        # Given back in between: as many as that fit, and no more.
        if len(placements) == before and self.errors.keys().isdisjoint(members):
            fitted = self._given_back
            self._memory.enter(equal, rule.domains, domain, placements, fitted)

    def _give_back(self, before: int) -> None:
        self._given_back = len(self.placements) - before
        super()._give_back(before)
        self._failures.take_back(before)
        self._candidates_of.clear()

    def depart(self, placement: Placement) -> None:
        """Depart as in the plain run, and forget what was known of the nodes behind it."""
        super().depart(placement)
        nodes = self._changed_by(placement)
        self._failures.reopen(nodes)
        self._memory = DomainMemory(self._problem, self._claim_classes)
        self._candidates_of = {
            kind: candidates
            for kind, candidates in self._candidates_of.items()
            if candidates.node not in nodes
        }

    def _changed_by(self, placement: Placement) -> Sequence[NodeIndex]:
        """The node of a placement, and all others that see its devices."""
        pools = set()
        for grants in placement.grants:
            for grant in grants:
                pools.add(self._problem.devices[grant.device].id.pool_id)
        nodes = {placement.node}
        for pool in pools:
            nodes.update(self._problem.seeing(pool))
        return sorted(nodes)

    # One demand.

    def place(self, demand_index: DemandIndex) -> None:
        """Place a demand on the first node that can hold it, or note why that ended with an error."""
        demand = self._demand(demand_index)
        claims = self._open_claims(demand)
        claim_class = self._class_to_place(claims)
        if claim_class is None:
            super().place(demand_index)
            return
        prospects, nodes = (
            self._failures.of(claim_class),
            self._reachable(demand),
        )
        amounts = self._wanted(claims)
        for node in self._failures.ahead(prospects, claims, amounts, nodes):
            if demand.roles and not self._is_allowed(demand, node):
                continue
            try:
                grants = self._found_at(claims, prospects, node)
            except FatalError as error:
                self.errors[demand_index] = error
                return
            if grants is not None:
                self._settle(demand_index, node, claims, grants)
                return
        # Invalid pools were passed over on the way: they are an error only where the demand fits nowhere.
        self._note_invalid(demand_index, demand, claims, nodes)

    def _class_to_place(self, claims: Sequence[Claim]) -> ClaimClass | None:
        """The class that knows its nodes: of the claims for devices alone, unless these take something of nodes."""
        if self._has_footprints or not self._has_node_claims:
            return self._claim_classes.of(claims)
        node_claims = 1 if claims and claims[0].is_synthetic else 0
        return self._claim_classes.of(claims[node_claims:])

    def _wanted(self, claims: Sequence[Claim]) -> WantedAmounts:
        if not (self._has_node_claims and claims and claims[0].is_synthetic):
            return NOTHING
        return self._amounts.wanted(claims[0])

    def _is_allowed(self, demand: Demand, node: NodeIndex) -> bool:
        return self._domains.allows(
            demand.roles, self._problem.nodes[node].name
        )

    def _found_at(
        self, claims: Sequence[Claim], prospects: Prospects, node: NodeIndex
    ) -> GrantsOfClaims | None:
        """Return the grants of claims on a node; if there are none for want of devices, this is remembered."""
        claim_class = prospects.claim_class
        has_amounts = not self._has_node_claims or self._has_amounts(
            claims, node
        )
        if not (has_amounts or claim_class.may_ask_too_much):
            if self._has_footprints:
                # Then the class is about amounts, too.
                self._failures.give_up(prospects, node)
            return None
        candidates = self._candidates_at(claim_class, claims, node)
        try:
            searched = self._attempt_at(candidates, claims, claim_class)
        except NodeError:
            searched = None
        grants = searched
        if self._has_footprints:
            grants = self._checked(claims, searched)
        if not has_amounts or grants is not None:
            return grants
        # Where a node had too little for what devices take of it, other devices may take less.
        if searched is None or self._footprints.are_uniform(claims):
            self._failures.enter(prospects, claims, candidates)
        return None

    def _has_amounts(self, claims: Sequence[Claim], node: NodeIndex) -> bool:
        """Whether the node has what the claims take of it beside devices."""
        if not (claims and claims[0].is_synthetic):
            return True
        [alternative] = claims[0].alternatives()
        for device in self._index.of_node(node):
            charge = self._problem.eligibility.charge(alternative.index, device)
            if charge and self._ledger.fits(
                self._problem.devices[device], charge
            ):
                return True
        return False

    def _candidates_at(
        self, claim_class: ClaimClass, claims: Sequence[Claim], node: NodeIndex
    ) -> NodeCandidates:
        """Return the candidates of the node; kept for the next demand of the class, most often on the same node."""
        kind = claim_class, len(claims)
        candidates = self._candidates_of.get(kind)
        if candidates is None or candidates.node != node:
            candidates = self._candidates_of[kind] = self._index.on(
                claims, node
            )
        return candidates

    def _note_invalid(
        self,
        demand_index: int,
        demand: Demand,
        claims: Sequence[Claim],
        nodes: Sequence[NodeIndex],
    ) -> None:
        """Note that a demand which fits nowhere might have, if it was not for an invalid pool of some node."""
        if not self._invalid:
            return
        for node in nodes:
            allowed = not demand.roles or self._is_allowed(demand, node)
            if node in self._invalid and allowed and self._lacks(claims, node):
                self.errors[demand_index] = NodeError(INVALID_POOLS)

    def _lacks(self, claims: Sequence[Claim], node: NodeIndex) -> bool:
        """Whether a search finds nothing on a node with an invalid pool, where the claims do not fit.

        It may have found devices of which the node lacks what they take of it. Then the pool is not to blame.
        """
        if not self._has_footprints:
            return True
        try:
            self._attempt(claims, node)
        except NodeError:
            return True
        finally:
            self._ledger.revert()
        return False

    @cached_property
    def _invalid(self) -> frozenset[int]:
        """The nodes with an invalid pool."""
        nodes = numbered(self._problem.nodes)
        return frozenset(
            node_index
            for node_index, node in nodes
            if any(node.pools_in(PoolState.INVALID))
        )

    def _settle(
        self,
        demand_index: DemandIndex,
        node: NodeIndex,
        claims: Sequence[Claim],
        grants: GrantsOfClaims,
    ) -> None:
        super()._settle(demand_index, node, claims, grants)
        if self._has_node_claims:
            self._amounts.refresh(node)

    def _release(self, placement: Placement) -> None:
        super()._release(placement)
        if self._has_node_claims:
            self._amounts.refresh(placement.node)

    def _attempt(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> GrantsOfClaims | None:
        return self._search(self._index.on(claims, node), claims)

    def _attempt_at(
        self,
        candidates: NodeCandidates,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
    ) -> GrantsOfClaims | None:
        if not claim_class.simple:
            return self._search(candidates, claims)
        grants: list[tuple[Grant, ...]] = []
        steps = 1
        try:
            for claim_index, claim in enumerate(claims):
                [alternative] = claim.requests[0].alternatives
                listed = candidates.lists[claim_index, 0, 0]
                devices = _take_first(
                    self._problem,
                    self._ledger,
                    alternative,
                    listed,
                    for_good=self._index.shrinks(candidates.node),
                )
                if devices is None:
                    nothing_on(self._problem.nodes[candidates.node])
                    return None
                grants.append(
                    tuple([Grant(0, 0, device) for device in devices])
                )
                steps += 2 + len(devices)
        except _Undecided:
            return self._search(candidates, claims)
        # What the plain search counts: the demand, each claim's request, each device, and what comes after them.
        self.steps = steps + bool(alternative.name.sub)
        return tuple(grants)

    def _search(
        self, candidates: NodeCandidates, claims: Sequence[Claim]
    ) -> GrantsOfClaims | None:
        search = PrunedSearch(
            self._problem, self._ledger, claims, candidates, self._dead_ends
        )
        return self._run(search)


class _Undecided(Exception):  # noqa: N818 - not an error
    """Whether the demand fits depends on which of the devices are taken together: the answer takes a search."""


def _take_first(
    problem: Problem,
    ledger: SearchLedger,
    alternative: Alternative,
    listed: CandidateList,
    *,
    for_good: bool,
) -> tuple[DeviceIndex, ...] | None:
    """Take the first devices that can be had: the first solution of the search, if its first descent succeeds.

    Parameters
    ----------
    for_good
        Whether what cannot be had now never can (see `CandidateIndex.shrinks`).

    Returns
    -------
    tuple or None
        The devices; None, with nothing taken, if there are too few.

    Raises
    ------
    AllocationError
        A selector fails on a device that the search reaches.
    _Undecided
        The descent failed, and counters were in the way of devices behind others: other choices could succeed.
    """
    devices_taken: list[DeviceIndex] = []
    first, blocked = listed.start, False
    for position in range(listed.start, len(listed.devices)):
        device_index = listed.devices[position]
        device = problem.devices[device_index]
        if ledger.in_use(device, alternative, 0):
            continue
        if device_index in listed.failing:
            ledger.revert()
            raise failure(problem, alternative, device_index)
        charge = problem.eligibility.charge(alternative.index, device_index)
        assert charge is not None
        if not ledger.has_capacity(device, charge):
            continue
        if not ledger.covers(device, alternative, charge):
            blocked = blocked or bool(devices_taken)
            continue
        ledger.take(device_index, alternative, 0, charge)
        if not devices_taken:
            first = position
        devices_taken.append(device_index)
        if len(devices_taken) == alternative.count:
            # What is before the first device was in use, or did not fit.
            if for_good:
                listed.start = first
            return tuple(devices_taken)
    ledger.revert()
    if blocked:
        raise _Undecided
    return None
