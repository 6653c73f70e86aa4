"""The plain run: every demand searches every node from the start, as upstream does.

Upstream looks at what devices take of nodes (KEP-5517) when its allocator has found devices, and so does this run: see
the footprints at the top.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import replace
from typing import Final

from dralloc.objects.errors import AllocationError, FatalError, NodeError
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    CounterIndex,
    Demand,
    DemandIndex,
    Device,
    DeviceIndex,
    Node,
    NodeIndex,
    ParentGroup,
    Problem,
    Scope,
    quorum_of,
)
from dralloc.problem.indices import grouped
from dralloc.problem.inter_pod import DomainLedger, Domains, OneDomain, Role
from dralloc.problem.ledger import Ledger
from dralloc.problem.node_footprints import before_footprints
from dralloc.problem.solution import Grant, Placement, served_by
from dralloc.problem.subproblem import open_claims
from dralloc.solve.first_fit.search import DepthFirstSearch
from dralloc.solve.first_fit.search_ledger import SearchLedger

__all__ = ["GrantsOfClaims", "PlaceAll", "PlainRun"]

# ----------------------------------------------------------------------------
# Footprints: what devices take of nodes (KEP-5517). If the node has too little of it,
# it is not for the demand, even if other devices took less. Source:
# ``calculateAndCheckNodeAllocatableResources`` of
# ``framework/plugins/dynamicresources``.

Amounts = tuple[tuple[CounterIndex, int], ...]
"""Amounts by counter."""

_UNKNOWN: Final[Amounts] = ((CounterIndex(-1), 0),)
"""Stands for what cannot be told: a device follows a capacity, and nothing may be consumed of any."""


class NodeFootprints:
    """The counters of nodes, as far as devices charge them.

    Parameters
    ----------
    problem
        In which devices take something of nodes.
    ledger
        Of the problem in which they do not (see `dralloc.problem.node_footprints.before_footprints`).
    """

    def __init__(self, problem: Problem, ledger: Ledger) -> None:
        self._problem = problem
        self._ledger = ledger
        self._of_nodes = problem.footprint_counters
        self._uniform: dict[Hashable, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._of_nodes)

    def are_uniform(self, claims: Sequence[Claim]) -> bool:
        """Whether all devices of a node that the claims can get there take the same of it.

        So if the node had too little of it for some of them, it never has enough for others.
        """
        if not self._of_nodes:
            return True
        for claim in claims:
            if claim.is_synthetic:
                continue
            for request in claim.requests:
                if len(request.alternatives) != 1:
                    return False
                if not self._is_uniform(request.alternatives[0]):
                    return False
        return True

    def _is_uniform(self, alternative: Alternative) -> bool:
        key = self._problem.eligibility.request_key(alternative.index)
        if key not in self._uniform:
            self._uniform[key] = alternative.count is not None and all(
                self._is_uniform_on(node, alternative)
                for node in self._problem.nodes
            )
        return self._uniform[key]

    def _is_uniform_on(self, node: Node, alternative: Alternative) -> bool:
        footprints = {
            self._footprint(alternative, device) for device in node.devices()
        }
        return len(footprints - {None}) <= 1 and _UNKNOWN not in footprints

    def _footprint(
        self, alternative: Alternative, device: DeviceIndex
    ) -> Amounts | None:
        """Return the amounts that a device takes of its node; None if the alternative cannot have it."""
        eligibility = self._problem.eligibility
        if eligibility.selects(alternative.index, device) is not True:
            return None
        charge = eligibility.charge(alternative.index, device)
        if charge is None:
            return _UNKNOWN
        return self._of_node(charge)

    def _of_node(self, charge: Charge) -> Amounts:
        return tuple(
            [entry for entry in charge.counters if entry[0] in self._of_nodes]
        )

    def fit(
        self, claims: Sequence[Claim], grants: Sequence[Sequence[Grant]]
    ) -> bool:
        """Whether nodes have what the devices take that claims get; the ledger knows of everything else.

        Raises
        ------
        FatalError
            A device follows a capacity, and nothing is consumed of any.
        """
        amounts: Counter[int] = Counter()
        for _, charge in self._charges(claims, grants):
            amounts.update(dict(charge.counters))
        return all(
            amount <= self._ledger.free[counter]
            for counter, amount in amounts.items()
        )

    def enter(
        self,
        claims: Sequence[Claim],
        grants: Sequence[Sequence[Grant]],
        sign: int,
    ) -> None:
        """Enter (1) or revoke (-1) what the devices of claims take."""
        for device, charge in self._charges(claims, grants):
            self._ledger.consume(device, charge, sign)

    def _charges(
        self, claims: Sequence[Claim], grants: Sequence[Sequence[Grant]]
    ) -> Iterator[tuple[Device, Charge]]:
        if not self._of_nodes:
            return
        for claim, alternative, grant in served_by(claims, grants):
            if claim.is_synthetic:
                continue
            device = self._problem.devices[grant.device]
            charge = self._problem.eligibility.charge(
                alternative.index, grant.device
            )
            if charge is None:
                message = "takes of its node for what is consumed of a capacity, but nothing is"
                raise FatalError(
                    f"claim {claim.key}, device {device.id.device}: {message}"
                )
            footprint = self._of_node(charge)
            if footprint and not alternative.admin:
                yield device, Charge(counters=footprint)


# ----------------------------------------------------------------------------
# The run.

GrantsOfClaims = tuple[tuple[Grant, ...], ...]
"""What each open claim of a demand gets."""

PlaceAll = Callable[[Sequence[DemandIndex]], None]
"""Places demands, or none of them if too few fit."""


class PlainRun:
    """A pass over the demands, without memory of what was tried."""

    def __init__(self, problem: Problem) -> None:
        self._problem = before_footprints(problem)
        self._ledger = SearchLedger(self._problem)
        self._footprints = NodeFootprints(problem, self._ledger)
        self._has_footprints = bool(self._footprints)
        self._domains = DomainLedger()
        self._allocated: dict[
            ClaimKey, tuple[NodeIndex, tuple[Grant, ...]]
        ] = {}
        self._placed: dict[Scope, dict[ClaimKey, Demand]] = defaultdict(dict)
        self.placements: list[Placement] = []
        self.errors: dict[int, AllocationError] = {}
        self.steps = 0
        self._chosen: tuple[tuple[OneDomain, str], ...] = ()
        self._nodes_in: dict[int, Mapping[str, str]] = {}
        # By topology and selection of nodes: the selected nodes by domain.
        self._parts: dict[
            tuple[int, int], Mapping[str, tuple[NodeIndex, ...]]
        ] = {}

    @property
    def ledger(self) -> SearchLedger:
        """The ledger of what is in use now."""
        return self._ledger

    def accept(self, placement: Placement) -> None:
        """Enter a placement that was found elsewhere, and that keeps every rule."""
        claims = self._problem.demands[placement.demand].claims
        eligibility = self._problem.eligibility
        granted = zip(claims, placement.grants, strict=True)
        for claim_index, (claim, grants) in enumerate(granted):
            for _, alternative, grant in served_by((claim,), (grants,)):
                charge = (
                    eligibility.charge(alternative.index, grant.device)
                    or Charge()
                )
                self._ledger.take(
                    grant.device, alternative, claim_index, charge
                )
        self._settle(placement.demand, placement.node, claims, placement.grants)

    def restore(self, placements: Sequence[Placement]) -> bool:
        """Enter placements of an earlier answer, or none of them if anything of them is not to be had any more.

        What devices have to do with each other is not looked at again.
        """
        before = len(self.placements)
        for placement in placements:
            if not self._is_restored(placement):
                self._give_back(before)
                return False
        return True

    def _is_restored(self, placement: Placement) -> bool:
        demand, node = self._problem.demands[placement.demand], placement.node
        name = self._problem.nodes[node].name
        if demand.nodes is not None and node not in demand.nodes:
            return False
        if demand.is_defective or not self._domains.allows(demand.roles, name):
            return False
        granted_elsewhere = [
            claim for claim in demand.claims if claim.key in self._allocated
        ]
        if granted_elsewhere and node not in self._reachable(demand):
            return False
        new = [
            (claim, grants)
            for claim, grants in zip(
                demand.claims, placement.grants, strict=True
            )
            if claim not in granted_elsewhere
        ]
        # In the earlier answer its devices came with another demand, and that one is not here.
        if any(claim.requests and not grants for claim, grants in new):
            return False
        claims = [claim for claim, _ in new]
        new_grants = tuple(grants for _, grants in new)
        devices = set(self._problem.nodes[node].devices())
        # Each device is taken before the next one is asked for. If one cannot be had, `_checked` gives all back.
        is_taken = all(
            self._is_taken(claim_index, claim, grant, devices)
            for claim_index, (claim, grants) in enumerate(new)
            for grant in grants
        )
        if self._checked(claims, new_grants if is_taken else None) is None:
            return False
        self._settle(placement.demand, node, claims, new_grants)
        return True

    def _is_taken(
        self,
        claim_index: int,
        claim: Claim,
        grant: Grant,
        devices: Set[DeviceIndex],
    ) -> bool:
        """Take one device for a claim, if it can be had."""
        problem, device_index = self._problem, grant.device
        # The claim may ask for something else than it did in the earlier answer.
        try:
            request = claim.requests[grant.request]
            alternative = request.alternatives[grant.alternative]
        except IndexError:
            return False
        eligibility, device = problem.eligibility, problem.devices[device_index]
        charge = eligibility.charge(alternative.index, device_index)
        if (
            device_index not in devices
            or eligibility.selects(alternative.index, device_index) is not True
            or not eligibility.admits(alternative.index, device_index)
            or charge is None
            or self._ledger.in_use(device, alternative, claim_index)
            or not self._ledger.has_capacity(device, charge)
            or not self._ledger.covers(device, alternative, charge)
        ):
            return False
        self._ledger.take(device_index, alternative, claim_index, charge)
        return True

    def place_together(self, members: Sequence[DemandIndex]) -> None:
        """Place as many of these demands as fit, one after the other; none of them if their quorum is not met.

        An error that ends the attempt for one member ends it for all (upstream's ``schedule_one_podgroup.go``).
        """
        parent = self._problem.demands[members[0]].parent
        if parent is None:
            self._place_gang(members)
        else:
            self._place_group(members, parent.root)

    def _place_gang(self, members: Sequence[DemandIndex]) -> None:
        # A rule about domains is the gang's, so the first member has it if any has.
        domain_rule: OneDomain | None = None
        for role in self._demand(members[0]).roles:
            if isinstance(role.rule, OneDomain) and role.carries:
                domain_rule = role.rule
                break
        self._place_in_best_domain(members, domain_rule, self._place_quorum)

    def _place_group(
        self, members: Sequence[DemandIndex], group: ParentGroup
    ) -> None:
        """Place the children of a group one after the other, in its best domain; none of them if too few fit.

        Source: KEP-6012, "Recursive Scheduling Cycle Execution", without preemption.
        """

        def place_children(members: Sequence[DemandIndex]) -> None:
            before = len(self.placements)
            admitted: set[str] = set()
            children = self._problem.children(group, members)
            for child, child_members in children.items():
                placed = len(self.placements)
                if isinstance(child, ParentGroup):
                    name = child.name
                    self._place_group(child_members, child)
                else:
                    name = child
                    self._place_gang(child_members)
                if len(self.placements) > placed:
                    admitted.add(name)
            if len(admitted - group.settled) < group.quorum:
                self._give_back(before)

        self._place_in_best_domain(members, group.rule, place_children)

    def _place_in_best_domain(
        self,
        members: Sequence[DemandIndex],
        rule: OneDomain | None,
        place_all: PlaceAll,
    ) -> None:
        """Try one domain after the other: where most fit, the first of these (upstream takes any of these).

        Source: the plugins ``topologyaware`` and ``podgrouppodscount``, without the score of ``noderesources``.
        """
        if rule is None:
            place_all(members)
            return
        before, best = len(self.placements), 0
        chosen: str | None = None
        role = Role(rule, carries=True, counts=True)
        for domain, node in self._domains_to_try(members, rule):
            if not self._domains.allows((role,), node):
                continue
            self._try_domain(members, rule, domain, place_all)
            placed = len(self.placements) - before
            if placed == len(members):
                return
            if placed > best:
                best, chosen = placed, domain
            if placed:
                self._give_back(before)
        if chosen is not None:
            self._try_domain(members, rule, chosen, place_all)

    def _try_domain(
        self,
        members: Sequence[DemandIndex],
        rule: OneDomain,
        domain: str,
        place_all: PlaceAll,
    ) -> None:
        outer = self._chosen
        self._chosen = (*outer, (rule, domain))
        place_all(members)
        self._chosen = outer

    def _domains_to_try(
        self, members: Sequence[DemandIndex], rule: OneDomain
    ) -> Iterable[tuple[str, str]]:
        """Return the domains that may hold some of the members, each with one of its nodes: here all there are."""
        del members
        return self._in_domains(rule.domains).items()

    def _in_domains(self, domains: Domains) -> Mapping[str, str]:
        """By domain one of its nodes, found once for all groups with the same topology."""
        # The rule keeps the domains alive, so nothing else can get their id.
        if id(domains) not in self._nodes_in:
            node_of = {domain: node for node, domain in domains.items()}
            self._nodes_in[id(domains)] = node_of
        return self._nodes_in[id(domains)]

    def _inside(self, demand: Demand, rule: OneDomain, domain: str) -> Demand:
        """The demand where it may only go to one domain; nothing is left for the rule to say then."""
        roles = tuple(role for role in demand.roles if role.rule is not rule)
        if len(roles) == len(demand.roles):
            return demand
        # The problem, and the parts here, keep selections of nodes alive.
        key = id(rule.domains), id(demand.nodes)
        if key not in self._parts:
            domain_of = rule.domains.get
            names = self._problem.nodes
            by_domain = grouped(
                (domain_of(names[node].name), node)
                for node in self._problem.candidate_nodes(demand)
            )
            self._parts[key] = {
                name: tuple(nodes)
                for name, nodes in by_domain.items()
                if name is not None
            }
        nodes = self._parts[key].get(domain, ())
        return replace(demand, nodes=nodes, roles=roles)

    def _place_quorum(self, members: Sequence[DemandIndex]) -> None:
        """Place the members in order; as soon as too many are missed, give the others back."""
        before = len(self.placements)
        demands = [self._problem.demands[member] for member in members]
        may_miss = len(members) - quorum_of(demands)
        for tried, member in enumerate(members, 1):
            self.place(member)
            missed = before + tried - len(self.placements)
            if missed > may_miss or (missed and self._is_fatal(member)):
                self._give_back(before)
                return

    def _give_back(self, before: int) -> None:
        """Release the placements from the given one on."""
        for placement in self.placements[before:]:
            self._release(placement)
        del self.placements[before:]

    def depart(self, placement: Placement) -> None:
        """Release a placement of whenever. Whoever keeps count of placements has taken it off there."""
        self._release(placement)

    def _demand(self, demand_index: DemandIndex) -> Demand:
        """A demand, in the domains that are chosen for its group and those above."""
        demand = self._problem.demands[demand_index]
        for rule, domain in self._chosen:
            demand = self._inside(demand, rule, domain)
        return demand

    def _is_fatal(self, demand: DemandIndex) -> bool:
        """Whether the attempt for a demand ended with an error that is about more than this demand."""
        return (
            isinstance(self.errors.get(demand), FatalError)
            and not self._problem.demands[demand].is_defective
        )

    def _release(self, placement: Placement) -> None:
        """Give back everything that a placement took."""
        demand = self._problem.demands[placement.demand]
        self._domains.enter(
            demand.roles, self._problem.nodes[placement.node].name, -1
        )
        for scope in demand.group_scopes:
            del self._placed[scope][demand.key]
        self._footprints.enter(demand.claims, placement.grants, -1)
        for claim, grants in zip(demand.claims, placement.grants, strict=True):
            # A claim without grants here was allocated for an earlier demand.
            if grants or not claim.requests:
                self._allocated.pop(claim.key, None)
        for _, alternative, grant in served_by(demand.claims, placement.grants):
            self._ledger.release(grant.device, alternative)

    def place(self, demand_index: DemandIndex) -> None:
        """Place a demand on the first node that can hold it, or note why that ended with an error."""
        demand = self._demand(demand_index)
        claims = self._open_claims(demand)
        for node in self._nodes(demand):
            try:
                grants = self._checked(claims, self._attempt(claims, node))
            except FatalError as error:
                self.errors[demand_index] = error
                return
            except NodeError as error:
                self.errors[demand_index] = error
                continue
            if grants is not None:
                self._settle(demand_index, node, claims, grants)
                return

    def _checked(
        self, claims: Sequence[Claim], grants: GrantsOfClaims | None
    ) -> GrantsOfClaims | None:
        """Return the result of a search, if nodes have the amounts that its devices take of them."""
        fits = False
        try:
            fits = grants is not None and self._footprints.fit(claims, grants)
        finally:
            # Also after an error: what the search took must not stay.
            if not fits:
                self._ledger.revert()
        return grants if fits else None

    def _open_claims(self, demand: Demand) -> list[Claim]:
        """The claims that no earlier demand has allocated."""
        return open_claims(self._problem, demand, self._allocated, self._placed)

    def _nodes(self, demand: Demand) -> Sequence[NodeIndex]:
        """The nodes that the demand may go to and that its allocated claims can be used from, in search order."""
        reachable = self._reachable(demand)
        if not demand.roles:
            return reachable
        names = self._problem.nodes
        return [
            node
            for node in reachable
            if self._domains.allows(demand.roles, names[node].name)
        ]

    def _reachable(self, demand: Demand) -> Sequence[NodeIndex]:
        allowed: frozenset[NodeIndex] | None = None
        for claim in demand.claims:
            if claim.key not in self._allocated:
                continue
            home, grants = self._allocated[claim.key]
            for grant in grants:
                reaching = self._problem.reaching(grant.device) | {home}
                allowed = reaching if allowed is None else allowed & reaching
        if allowed is None:
            return self._problem.candidate_nodes(demand)
        if demand.nodes is None:
            return sorted(allowed)
        return [node for node in demand.nodes if node in allowed]

    def _attempt(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> GrantsOfClaims | None:
        return self._run(
            DepthFirstSearch(self._problem, self._ledger, claims, node)
        )

    def _run(self, search: DepthFirstSearch) -> GrantsOfClaims | None:
        try:
            return search.run()
        finally:
            self.steps = search.steps

    def _settle(
        self,
        demand_index: DemandIndex,
        node: NodeIndex,
        claims: Sequence[Claim],
        grants: GrantsOfClaims,
    ) -> None:
        """Make permanent what the open claims of a demand get."""
        self._ledger.settle()
        if self._has_footprints:
            self._footprints.enter(claims, grants, 1)
        self.errors.pop(demand_index, None)
        granted: dict[ClaimKey, tuple[Grant, ...]] = {}
        for claim, claim_grants in zip(claims, grants, strict=True):
            granted[claim.key] = claim_grants
            self._allocated[claim.key] = node, claim_grants
        demand = self._problem.demands[demand_index]
        if demand.roles:
            self._domains.enter(demand.roles, self._problem.nodes[node].name)
        if self._problem.has_scopes:
            for scope in demand.group_scopes:
                self._placed[scope][demand.key] = demand
        all_grants = tuple(
            [granted.get(claim.key, ()) for claim in demand.claims]
        )
        self.placements.append(Placement(demand_index, node, all_grants))
