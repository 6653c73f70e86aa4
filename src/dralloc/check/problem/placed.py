"""An answer with every index looked up, and the rules about which demands are placed, and where.

Also what namespaces use, and what an answer says about itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Final, NamedTuple

from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import Quantity
from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    DemandIndex,
    Device,
    DeviceIndex,
    NodeIndex,
    ParentGroup,
    PoolState,
    Problem,
    SlotIndex,
)
from dralloc.problem.inter_pod import InterPodRule, Role
from dralloc.problem.solution import Grant, Placement, Solution, Status

__all__ = ["Award", "PlacedRole", "Use", "View", "amount"]

# ----------------------------------------------------------------------------
# What a solution says, with every index looked up and every sum built once.


class Use(NamedTuple):
    """A grant with everything looked up: a device, with its index, for an alternative of a claim's request.

    ``demand`` is the index of the demand in whose placement it is.
    """

    demand: DemandIndex
    claim: Claim
    request: int
    alternative: Alternative
    device_index: DeviceIndex
    device: Device
    charge: Charge | None

    def __str__(self) -> str:
        return f"claim {self.claim.key}: request {self.alternative.name}: device {self.device.id}"


class Award(NamedTuple):
    """All devices that one claim got with the placement of a demand on a node (both by index)."""

    demand: DemandIndex
    node: NodeIndex
    claim: Claim
    uses: tuple[Use, ...]

    def __str__(self) -> str:
        return f"claim {self.claim.key}"


class PlacedRole(NamedTuple):
    """A placed demand, by index, with its role in a rule and the name of its node."""

    demand: DemandIndex
    role: Role
    node: str


@dataclass(frozen=True)
class View:
    """A solution whose references are known to exist."""

    problem: Problem
    solution: Solution

    @cached_property
    def awards(self) -> tuple[Award, ...]:
        """By claim, what it got. A shared claim is only listed where it got something (see `sharing`)."""
        shared = {awards[0].claim.key for awards in self.sharing}
        return tuple(
            award
            for award in self.everything
            if award.uses
            or not award.claim.requests
            or award.claim.key not in shared
        )

    @cached_property
    def sharing(self) -> tuple[tuple[Award, ...], ...]:
        """By claim that several placed demands list, what it got with each of them: it should be with one."""
        listed: dict[ClaimKey, list[Award]] = defaultdict(list)
        for award in self.everything:
            listed[award.claim.key].append(award)
        return tuple(
            tuple(awards) for awards in listed.values() if _is_shared(awards)
        )

    @cached_property
    def everything(self) -> tuple[Award, ...]:
        """By placed demand and claim that it lists, what the claim got with it: of a shared one nothing, or all."""
        return tuple(
            award
            for placement in self.solution.placements
            for award in self._read(placement)
        )

    def _read(self, placement: Placement) -> Iterator[Award]:
        devices, eligibility, demand = (
            self.problem.devices,
            self.problem.eligibility,
            placement.demand,
        )
        for claim, grants in zip(
            self.problem.demands[demand].claims, placement.grants, strict=True
        ):
            uses = []
            for request, position, index in grants:
                alternative = claim.requests[request].alternatives[position]
                charge = eligibility.charge(alternative.index, index)
                uses.append(
                    Use(
                        demand,
                        claim,
                        request,
                        alternative,
                        index,
                        devices[index],
                        charge,
                    )
                )
            yield Award(demand, placement.node, claim, tuple(uses))

    @cached_property
    def by_slot(self) -> Mapping[SlotIndex, list[Use]]:
        """All grants of each physical device."""
        slots: dict[SlotIndex, list[Use]] = defaultdict(list)
        for award in self.awards:
            for use in award.uses:
                slots[use.device.slot].append(use)
        return slots

    @cached_property
    def roles(self) -> Mapping[InterPodRule, list[PlacedRole]]:
        """The placed demands with a role in each rule between pods."""
        members: dict[InterPodRule, list[PlacedRole]] = defaultdict(list)
        for placement in self.solution.placements:
            for role in self.problem.demands[placement.demand].roles:
                members[role.rule].append(
                    PlacedRole(
                        placement.demand,
                        role,
                        self.problem.nodes[placement.node].name,
                    )
                )
        return members

    def capacity_taken(
        self, slot: SlotIndex, name: str, uses: Iterable[Use]
    ) -> int:
        """Nanos of a shareable device's capacity that allocated claims and these grants of it take (KEP-5075)."""
        granted = (
            nanos
            for use in uses
            if use.device.shareable and use.charge is not None
            for charged, nanos in use.charge.capacity
            if charged == name
        )
        return self.problem.usage.consumed.get(slot, {}).get(name, 0) + sum(
            granted
        )

    @cached_property
    def opened(self) -> tuple[SlotIndex, ...]:
        """Slots that come into use: granted without admin access, and not shared by allocated claims already."""
        shares = self.problem.usage.shares
        slots = []
        for slot, uses in self.by_slot.items():
            holding = [use for use in uses if not use.alternative.admin]
            if holding and slot not in shares:
                slots.append(slot)
        return tuple(slots)

    @cached_property
    def in_force(self) -> tuple[DeviceIndex, ...]:
        """Devices that come into use, by index: each in the versions by which it can be opened.

        While a pool is updated, only one of the generations that nodes see has counters (slices with counters matter to
        every node, KEP-4815). A further share of a device in use asks for no counters, whatever version its node sees
        (upstream behaviour). So where some share is of a version without counters, the device is opened by that one;
        and nobody stands in another's way if such devices are opened last.
        """
        in_force: list[DeviceIndex] = []
        for slot in self.opened:
            versions = {
                use.device_index: use.device
                for use in self.by_slot[slot]
                if not use.alternative.admin
            }
            free = [
                index
                for index, device in versions.items()
                if device.is_opened_freely
            ]
            in_force += free or versions
        return tuple(in_force)

    @cached_property
    def offered(self) -> Mapping[NodeIndex, frozenset[DeviceIndex]]:
        """The devices in usable pools of each node with a placement."""
        nodes = {
            award.node: self.problem.nodes[award.node] for award in self.awards
        }
        offered = {}
        for index, node in nodes.items():
            usable = node.pools_in(PoolState.USABLE)
            offered[index] = frozenset(
                chain.from_iterable(pool.devices for pool in usable)
            )
        return offered


def _is_shared(awards: Sequence[Award]) -> bool:
    """Whether the awards of one claim are of several demands."""
    return len({award.demand for award in awards}) > 1


def amount(nanos: int) -> str:
    """An amount as Kubernetes prints it."""
    return str(Quantity(nanos))


# ----------------------------------------------------------------------------
# Rules about which demands are placed, and where; what namespaces use, and what an
# answer says about itself.


def unknown_references(problem: Problem, solution: Solution) -> Iterator[str]:
    """Every demand, node, claim, request, alternative and device exists."""
    for placement_index, placement in enumerate(solution.placements):
        if not 0 <= placement.demand < len(problem.demands):
            yield f"placement {placement_index}: there is no demand {placement.demand}, only {len(problem.demands)}"
        else:
            yield from _unknown_in_placement(problem, placement)


def _unknown_in_placement(
    problem: Problem, placement: Placement
) -> Iterator[str]:
    demand = problem.demands[placement.demand]
    if not 0 <= placement.node < len(problem.nodes):
        yield f"demand {demand.key}: there is no node {placement.node}, only {len(problem.nodes)}"
    if len(placement.grants) != len(demand.claims):
        yield f"demand {demand.key}: grants for {len(placement.grants)} claims, but it has {len(demand.claims)}"
        return
    for claim, grants in zip(demand.claims, placement.grants, strict=True):
        for grant in grants:
            yield from _unknown_in_grant(problem, claim, grant)


def _unknown_in_grant(
    problem: Problem, claim: Claim, grant: Grant
) -> Iterator[str]:
    if not 0 <= grant.device < len(problem.devices):
        yield f"claim {claim.key}: there is no device {grant.device}, only {len(problem.devices)}"
    if not 0 <= grant.request < len(claim.requests):
        yield f"claim {claim.key}: there is no request {grant.request}, only {len(claim.requests)}"
        return
    request = claim.requests[grant.request]
    if not 0 <= grant.alternative < len(request.alternatives):
        yield (
            f"claim {claim.key}: request {request.name}: there is no alternative {grant.alternative}, "
            f"only {len(request.alternatives)}"
        )


def each_demand_once_in_order(view: View) -> Iterator[str]:
    """A demand is placed at most once; placements are in the order of the demands."""
    demands = view.problem.demands
    placed = [placement.demand for placement in view.solution.placements]
    for demand, times in Counter(placed).items():
        if times > 1:
            yield f"demand {demands[demand].key}: placed {times} times"
    for earlier, later in pairwise(placed):
        if earlier > later:
            yield f"demand {demands[later].key}: comes after demand {demands[earlier].key}, against their order"


def on_candidate_nodes(view: View) -> Iterator[str]:
    """A demand is placed on a node that it may go to."""
    # Many demands have the same tuple of nodes. It is kept beside its set, so that no other one gets its identity.
    sets: dict[int, tuple[tuple[NodeIndex, ...], frozenset[NodeIndex]]] = {}
    for placement in view.solution.placements:
        demand = view.problem.demands[placement.demand]
        if demand.nodes is None:
            continue
        if id(demand.nodes) not in sets:
            sets[id(demand.nodes)] = demand.nodes, frozenset(demand.nodes)
        _, among = sets[id(demand.nodes)]
        if placement.node not in among:
            names = ", ".join(
                view.problem.nodes[node].name for node in demand.nodes
            )
            yield f"demand {demand.key}: node {view.problem.nodes[placement.node].name} is not a candidate ({names})"


def gangs_have_their_quorum(view: View) -> Iterator[str]:
    """Of a gang as many demands are placed as it needs, or none."""
    sizes = Counter(
        demand.gang for demand in view.problem.demands if demand.gang
    )
    quorums = {demand.gang: demand.quorum for demand in view.problem.demands}
    demands = {placement.demand for placement in view.solution.placements}
    placed = Counter(view.problem.demands[demand].gang for demand in demands)
    for gang, size in sizes.items():
        quorum = quorums[gang]
        needed = size if quorum is None else quorum
        if 0 < placed[gang] < needed:
            least = "" if needed == size else f", at least {needed} are needed"
            yield f"gang {gang}: {placed[gang]} of {size} demands placed{least}"


def groups_have_their_quorum(view: View) -> Iterator[str]:
    """Below a group of groups something is placed only if enough of its children are admitted (KEP-6012)."""
    demands = (
        view.problem.demands[placement.demand]
        for placement in view.solution.placements
    )
    children: dict[ParentGroup, set[str]] = defaultdict(set)
    for demand in demands:
        if demand.parent is not None:
            child = demand.gang
            for group in demand.parent.upwards():
                children[group].add(child)
                child = group.name
    for group, admitted in children.items():
        if len(admitted - group.settled) < group.quorum:
            shortfall = f"{len(admitted - group.settled)} of its groups are admitted, {group.quorum} are needed"
            yield f"group {group.name}: {shortfall}"


def shared_claims_are_allocated_once(view: View) -> Iterator[str]:
    """A claim that several placed demands list is granted with one of them."""
    for awards in view.sharing:
        claim, demands = awards[0].claim, view.problem.demands
        granted = sorted({award.demand for award in awards if award.uses})
        if claim.requests and not granted:
            names = ", ".join(
                str(demands[award.demand].key) for award in awards
            )
            yield f"{awards[0]}: shared by {names}, but granted with none of them"
        if len(granted) > 1:
            names = ", ".join(str(demands[demand].key) for demand in granted)
            yield f"{awards[0]}: shared, but granted {len(granted)} times: with {names}"


def shared_claims_can_be_used(view: View) -> Iterator[str]:
    """A demand that lists a claim granted with another one is where all of its devices can be used."""
    for awards in view.sharing:
        for home in awards:
            for award in awards:
                for use in home.uses:
                    if not award.uses and not view.problem.usable_from(
                        use.device_index, home.node, award.node
                    ):
                        granted_on = view.problem.nodes[home.node].name
                        used_from = view.problem.nodes[award.node].name
                        demand = view.problem.demands[award.demand].key
                        yield (
                            f"{use}: granted on node {granted_on}, "
                            f"cannot be used from node {used_from} of demand {demand}"
                        )


def nothing_with_a_defect(view: View) -> Iterator[str]:
    """A claim that can never be allocated is not; an alternative with a defect spoils it even if another one is picked.

    Upstream's allocator validates every request and subrequest of a claim before it looks at a device.
    """
    # Also of a claim that another demand allocates: the defect can be of this demand alone.
    for award in view.everything:
        if award.claim.defect:
            yield f"{award}: allocated in spite of its defect: {award.claim.defect}"
        for alternative in award.claim.alternatives():
            if alternative.defect:
                yield f"{award}: request {alternative.name}: allocated in spite of its defect: {alternative.defect}"


# ----------------------------------------------------------------------------
# Rules about what namespaces use, and about what an answer says about itself.

SENSES: Final = {"weight": 1, "alternatives": -1}
"""The tiers that can be worked out from the answer, with their senses."""


def caps_are_kept(view: View) -> Iterator[str]:
    """A namespace uses no more than its cap; one that has more already gets nothing."""
    for budget in view.problem.budgets:
        amount_taken = _taken(view, budget.resource)[budget.namespace]
        if (
            budget.most is not None
            and amount_taken
            and budget.used + amount_taken > budget.most
        ):
            sums = f"{amount(amount_taken)} taken beside {amount(budget.used)}, at most {amount(budget.most)}"
            yield f"namespace {budget.namespace}: {budget.resource}: {sums}"


def fairness_is_true(view: View) -> Iterator[str]:
    """Tier ``fairness-i`` is what the i poorest namespaces use together."""
    sharing = [budget for budget in view.problem.budgets if budget.fair]
    if sharing:
        amounts = _taken(view, sharing[0].resource)
        uses = sorted(
            budget.used + amounts[budget.namespace] for budget in sharing
        )
        values = {
            f"fairness-{namespace_count}": sum(uses[:namespace_count])
            for namespace_count in range(1, len(uses) + 1)
        }
        for tier in view.solution.tiers:
            if tier.name not in values:
                continue
            if tier.value != values[tier.name]:
                yield f"tier {tier.name}: value {tier.value}, but the placements have {values[tier.name]}"
            # The more the poorest have, the fairer it is.
            if tier.sense != 1:
                yield f"tier {tier.name}: sense {tier.sense}"


def values_are_true(view: View) -> Iterator[str]:
    """Tier ``weight`` is the weight of all placed demands, ``alternatives`` the sum of the ranks that serve them."""
    ranks = {
        (award.claim.key, use.request): use.alternative.rank
        for award in view.awards
        for use in award.uses
    }
    weights = (
        view.problem.demands[placement.demand].weight
        for placement in view.solution.placements
    )
    values = {"weight": sum(weights), "alternatives": sum(ranks.values())}
    for tier in view.solution.tiers:
        if tier.name in values and tier.value != values[tier.name]:
            yield f"tier {tier.name}: value {tier.value}, but the placements have {values[tier.name]}"


def bounds_and_status_agree(view: View) -> Iterator[str]:
    """A bound is not worse than the value, and an optimal answer has reached every bound."""
    for tier in view.solution.tiers:
        if tier.sense != SENSES.get(
            tier.name, tier.sense
        ) or tier.sense not in (1, -1):
            yield f"tier {tier.name}: sense {tier.sense}"
        elif (tier.bound - tier.value) * tier.sense < 0:
            yield f"tier {tier.name}: value {tier.value} is beyond the bound {tier.bound} (sense {tier.sense})"
        if view.solution.status is Status.OPTIMAL and not tier.proven:
            yield f"tier {tier.name}: status {Status.OPTIMAL}, but value {tier.value} and bound {tier.bound} differ"


def _taken(view: View, resource: str) -> Counter[str]:
    """Return the amounts that the grants use, by namespace."""
    amounts: Counter[str] = Counter()
    for award in view.awards:
        for use in award.uses:
            if not use.alternative.admin:
                amounts[award.claim.key.namespace] += _of(view, use, resource)
    return amounts


def _of(view: View, use: Use, resource: str) -> int:
    """Counters of that name, if the device draws on any, or else the capacity of that name."""
    by_request = use.charge.counters if use.charge else ()
    draws = (
        by_request if use.device.shareable else use.device.consumes + by_request
    )
    named = [
        nanos
        for counter, nanos in draws
        if view.problem.counters[counter].id.counter == resource
    ]
    if named:
        return sum(named)
    if use.device.shareable:
        return dict(use.charge.capacity).get(resource, 0) if use.charge else 0
    return (
        use.device.capacity[resource].total
        if resource in use.device.capacity
        else 0
    )
