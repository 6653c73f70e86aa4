"""First fit for many demands: in order, each on the first node that can hold all of its claims.

The quick run gives the answers of the plain one without trying again what is known to fail: in nodes
(`dralloc.solve.first_fit.known_failures`), and in domains that have held as many equal demands before. `first_fit`
chooses between the two.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from functools import cached_property, partial
from itertools import groupby, islice
from math import inf

from dralloc.objects.errors import FatalError, NodeError
from dralloc.objects.limits import without_garbage_collection
from dralloc.problem import (
    Alternative,
    Claim,
    Demand,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    PoolState,
    Problem,
    indices,
    numbered,
    quorum_of,
)
from dralloc.problem.inter_pod import Domains, OneDomain
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    CandidateList,
    ClaimClass,
    ClaimClasses,
    NodeCandidates,
    failure,
)
from dralloc.solve.first_fit.known_failures import (
    NOTHING,
    FreeAmounts,
    KnownFailures,
    Prospects,
    WantedAmounts,
)
from dralloc.solve.first_fit.plain import GrantsOfClaims, PlaceAll, PlainRun
from dralloc.solve.first_fit.pruned import DEAD_ENDS, PrunedSearch
from dralloc.solve.first_fit.search import (
    INVALID_POOLS,
    SearchLedger,
    nothing_on,
)
from dralloc.solve.work import phase

__all__ = [
    "QuickRun",
    "completed",
    "completed_by_weight",
    "first_fit",
    "place_all",
]

# ----------------------------------------------------------------------------
# Domain memory: how many equal demands fitted in a domain. As many do again, as long as
# nothing there has changed; where every device is offered to one node only, that is as
# long as no placement there is new.

EqualDemands = tuple[ClaimClass, int]
"""What they ask for, and where they may go: the identity of a selection of nodes, which the problem keeps alive."""


class DomainMemory:
    """The number of equal demands that fitted in a domain, and of placements that it had then."""

    def __init__(self, problem: Problem, claim_classes: ClaimClasses) -> None:
        self._problem = problem
        self._claim_classes = claim_classes
        self._placed: dict[int, Tally[str | None]] = defaultdict(Tally)
        self._seen: Tally[int] = Tally()
        self._fitting: dict[tuple[EqualDemands, int, str], tuple[int, int]] = {}

    def equal(self, members: Sequence[Demand]) -> EqualDemands | None:
        """Return the common class of a gang's members, if they are equal and only the gang's rule links them."""
        if not self._is_local:
            return None
        kinds = {
            (self._claim_classes.of(demand.claims), id(demand.nodes))
            for demand in members
        }
        if len(kinds) > 1:
            return None
        [(claim_class, nodes)] = kinds
        if claim_class is None or not claim_class.simple:
            return None
        if any(len(demand.roles) != 1 for demand in members):
            return None
        keys = [claim.key for demand in members for claim in demand.claims]
        shares_claims = len(set(keys)) < len(keys)
        return None if shares_claims else (claim_class, nodes)

    def fitting(
        self,
        equal: EqualDemands,
        domains: Domains,
        domain: str,
        placements: Sequence[Placement],
    ) -> int | None:
        """Return the number of them that fit in a domain; None if it is not known for these placements."""
        fitting, placed = self._fitting.get(
            (equal, id(domains), domain), (0, -1)
        )
        if placed == self._placed_in(domains, domain, placements):
            return fitting
        return None

    def enter(
        self,
        equal: EqualDemands,
        domains: Domains,
        domain: str,
        placements: Sequence[Placement],
        fitting: int,
    ) -> None:
        """Note how many fit."""
        placed = self._placed_in(domains, domain, placements)
        self._fitting[equal, id(domains), domain] = fitting, placed

    def _placed_in(
        self, domains: Domains, domain: str, placements: Sequence[Placement]
    ) -> int:
        """Return the number of placements in a domain; only new ones are counted."""
        tally, nodes = self._placed[id(domains)], self._problem.nodes
        seen = self._seen[id(domains)]
        if seen < len(placements):
            names = (
                nodes[placement.node].name for placement in placements[seen:]
            )
            tally.update(map(domains.get, names))
            self._seen[id(domains)] = len(placements)
        return tally[domain]

    @cached_property
    def _is_local(self) -> bool:
        """Whether every device is offered to one node only."""
        offered = [
            device for node in self._problem.nodes for device in node.devices()
        ]
        return len(set(offered)) == len(offered)


# ----------------------------------------------------------------------------
# The quick run, with a fast path for simple demands: one claim that asks once for some
# devices, without constraints.


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
        self._note_invalid(demand_index, demand, nodes)

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
        self, demand_index: int, demand: Demand, nodes: Sequence[NodeIndex]
    ) -> None:
        """Note that a demand which fits nowhere might have, if it was not for an invalid pool of some node."""
        if not self._invalid:
            return
        for node in nodes:
            allowed = not demand.roles or self._is_allowed(demand, node)
            if node in self._invalid and allowed:
                self.errors[demand_index] = NodeError(INVALID_POOLS)

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
                    self._problem, self._ledger, alternative, listed
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
) -> tuple[DeviceIndex, ...] | None:
    """Take the first devices that can be had: the first solution of the search, if its first descent succeeds.

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
            # What is before the first device was in use, or did not fit, for good.
            listed.start = first
            return tuple(devices_taken)
    ledger.revert()
    if blocked:
        raise _Undecided
    return None


# ----------------------------------------------------------------------------
# First fit.


@without_garbage_collection()
def first_fit(
    problem: Problem, *, pruning: bool = True, dead_ends: int = DEAD_ENDS
) -> Solution:
    """Place the demands one after the other; what one gets is in use for the next.

    A fatal error ends the attempt for that demand. After an error of one node the next node is tried, and the last such
    error is kept if no node fits (upstream's scheduler plugin). A gang is placed where its first member stands, one
    member after the other; if fewer of them fit than it needs, none of them is placed.

    Parameters
    ----------
    pruning
        Whether to leave out what cannot change the answer: nodes that failed for an equal demand, and the hopeless
        parts of a search. Without, ``steps`` of the solution counts as upstream does.
    dead_ends
        After so many of them an attempt asks whether it can come to anything at all.
    """
    timings: dict[str, float] = {}
    with phase(timings, "first fit"):
        run = QuickRun(problem, dead_ends) if pruning else PlainRun(problem)
        return place_all(run, problem, indices(problem.demands), timings)


@without_garbage_collection()
def completed(problem: Problem, placements: Iterable[Placement]) -> Solution:
    """Place, by first fit, the demands that an earlier answer does not place, beside those that it places.

    Who has a place there keeps it if all of it is still to be had; a gang if all of its places are, and they are
    enough. All others come after them; but whoever finds no room comes before all who weigh less, and some of these
    lose their places, if that is worth more.

    Parameters
    ----------
    placements
        The earlier answer, in the numbers of the problem, of which some may be impossible by now.
    """
    timings: dict[str, float] = {}
    with phase(timings, "first fit"):
        units = _together(problem, indices(problem.demands))
        earlier = {placement.demand: placement for placement in placements}
        answer = _beside(problem, units, earlier, timings)
        placed = {placement.demand for placement in answer.placements}
        in_vain = [unit for unit in units if placed.isdisjoint(unit)]
        heaviest_of = partial(_heaviest, problem)
        lightest = min(map(heaviest_of, units), default=0)
        if all(heaviest_of(unit) == lightest for unit in in_vain):
            return answer
        others = _by_weight(problem, answer.placements, timings)
        return max(answer, others, key=partial(_worth, problem))


def completed_by_weight(
    problem: Problem, placements: Iterable[Placement]
) -> Solution:
    """Place all demands in turn, the heaviest first: where an earlier answer has them, if that is still to be had.

    So nobody stands in the way of who weighs more.

    Parameters
    ----------
    placements
        The earlier answer, in the numbers of the problem.
    """
    timings: dict[str, float] = {}
    with phase(timings, "first fit"):
        return _by_weight(problem, placements, timings)


def _by_weight(
    problem: Problem,
    placements: Iterable[Placement],
    timings: dict[str, float],
) -> Solution:
    heaviest_first = sorted(
        _together(problem, indices(problem.demands)),
        key=partial(_heaviest, problem),
        reverse=True,
    )
    earlier = {placement.demand: placement for placement in placements}
    return _beside(problem, heaviest_first, earlier, timings, in_turn=True)


def _beside(
    problem: Problem,
    units: Sequence[Sequence[DemandIndex]],
    earlier: Mapping[DemandIndex, Placement],
    timings: dict[str, float],
    *,
    in_turn: bool = False,
) -> Solution:
    """Place those without a place beside those who have one: after all of these, or when all as heavy have theirs."""
    run = QuickRun(problem)
    turns = [list(units)]
    if in_turn:
        by_weight = groupby(units, partial(_heaviest, problem))
        turns = [list(equal) for _, equal in by_weight]
    for turn in turns:
        coming: list[DemandIndex] = []
        for members in turn:
            present = [
                earlier[member] for member in members if member in earlier
            ]
            if not (
                _is_whole(problem, members, present) and run.restore(present)
            ):
                coming += members
        place_all(run, problem, coming, timings)
    return place_all(run, problem, (), timings)


def _heaviest(problem: Problem, members: Iterable[DemandIndex]) -> int:
    """Return what the heaviest of those who are placed together weighs."""
    return max(problem.demands[member].weight for member in members)


def _worth(problem: Problem, answer: Solution) -> int:
    return sum(
        problem.demands[placement.demand].weight
        for placement in answer.placements
    )


def _is_whole(
    problem: Problem,
    members: Sequence[DemandIndex],
    present: Sequence[Placement],
) -> bool:
    """Return whether so many of those that are placed together are placed that the others need not be."""
    demands = [problem.demands[member] for member in members]
    if any(demand.parent for demand in demands):
        return len(present) == len(members)
    return bool(present) and len(present) >= quorum_of(demands)


def _together(
    problem: Problem, order: Iterable[DemandIndex]
) -> list[list[DemandIndex]]:
    """Return the demands that are placed together, by the first of them."""
    members_of: dict[object, list[DemandIndex]] = {}
    for demand in order:
        gang = problem.demands[demand].placed_with or demand
        members_of.setdefault(gang, []).append(demand)
    return list(members_of.values())


def place_all(
    run: PlainRun,
    problem: Problem,
    order: Iterable[DemandIndex],
    timings: dict[str, float],
    seconds: Callable[[], float] = lambda: inf,
) -> Solution:
    """Place the demands in this order; gangs, and trees of gangs, stand where the first of their members does.

    Parameters
    ----------
    seconds
        Tells how many seconds are left; without any, the demands that are still to come are not placed.
    """
    for members in _together(problem, order):
        if seconds() <= 0:
            break
        run.place_together(members)
    placements = tuple(
        sorted(run.placements, key=lambda placement: placement.demand)
    )
    return Solution(
        placements, errors=run.errors, timings=timings, steps=run.steps
    )
