"""Demand classes that are solved together, on their way through the tiers.

Demands that can go to one node only, such as pods of a DaemonSet, are demands of one class here.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Charge,
    Demand,
    DemandIndex,
    DeviceIndex,
    Problem,
    numbered,
)
from dralloc.problem.equivalence import claim_key
from dralloc.problem.problem import Overlay
from dralloc.problem.solution import Placement
from dralloc.problem.supply import Capacity
from dralloc.solve.optimum.classes.count_model import Counted, CountModel
from dralloc.solve.optimum.classes.demand_classes import DemandClass
from dralloc.solve.optimum.objective import (
    ALTERNATIVES,
    DemandSubset,
    Objective,
)
from dralloc.solve.optimum.relax.component import (
    ComponentRelaxation,
    count_bound,
)
from dralloc.solve.optimum.rows import Term, fix_cost
from dralloc.solve.optimum.search import Watch, minimise
from dralloc.solve.optimum.stopping import Stop

__all__ = ["BestOfClasses", "CountedComponent", "with_tickets"]

# ----------------------------------------------------------------------------
# Tickets: demands that can go to one node only, such as pods of a DaemonSet, as demands
# of one class.
#
# Such demands differ by their nodes alone, and so would nodes by who is bound to them:
# every node would be a class of its own. But nodes with equal demands bound to them can
# be exchanged together with these. So a demand is freed from its node, and asks for a
# *ticket* in its place: one more consumable capacity of the synthetic device that each
# node has (see `dralloc.problem.node_claims`). A node has as many tickets of a kind as
# demands of that kind are bound to it. In every answer to that, each node serves at
# most as many of a kind as are bound to it, and all who go there are equal but for
# their names: in the end they exchange these, and everybody is at home (`_at_home`).


class _TicketRequest(NamedTuple):
    """An alternative that wants a ticket, and beside it asks for the same as another one."""

    alternative: AlternativeIndex
    ticket: str


def with_tickets(problem: Problem) -> Problem:
    """The problem in which demands that are bound to nodes ask for tickets; the same one if they are on one node."""
    bound = _bound(problem)
    if len(set(map(_home, bound.values()))) < 2:
        return problem
    kinds: dict[Hashable, int] = {}
    asks: dict[AlternativeIndex, _TicketRequest] = {}
    held: dict[int, Tally[str]] = defaultdict(Tally)
    demands, devices = list(problem.demands), list(problem.devices)
    lowest = min(
        _node_request(demand).index
        for demand in problem.demands
        if _asks_its_node(demand)
    )
    for demand_index, demand in bound.items():
        claims = tuple(
            claim_key(problem.eligibility, claim) for claim in demand.claims
        )
        key = claims, demand.weight, demand.key.namespace
        kind = kinds.setdefault(key, len(kinds))
        node_request = _node_request(demand)
        # An alternative of its own for each kind, with an index that nobody else has.
        index = AlternativeIndex(lowest - 1 - kind)
        request = _TicketRequest(node_request.index, f"ticket {kind}")
        asks.setdefault(index, request)
        (node,) = demand.nodes or ()
        # The pool that stands for the node is the last of its pools.
        node_device = problem.nodes[node].pools[-1].devices[0]
        held[node_device][request.ticket] += 1
        demands[demand_index] = _freed(
            demand, replace(node_request, index=index)
        )
    for device, tickets in held.items():
        capacity = dict(devices[device].capacity)
        for name, count in tickets.items():
            capacity[name] = Capacity(name, count)
        devices[device] = replace(devices[device], capacity=capacity)
    tickets_of = {
        device: frozenset(tickets) for device, tickets in held.items()
    }
    eligibility = _Tickets(problem.eligibility, asks, tickets_of)
    return replace(
        problem,
        demands=tuple(demands),
        devices=tuple(devices),
        eligibility=eligibility,
    )


def _at_home(
    problem: Problem,
    classes: Iterable[DemandClass],
    placements: Iterable[Placement],
) -> list[Placement]:
    """The placements after demands of one class that are bound to different nodes have gone to their own."""
    class_of: dict[DemandIndex, int] = {}
    waiting: dict[tuple[int, int | None], list[DemandIndex]] = defaultdict(list)
    for class_index, demand_class in enumerate(classes):
        homes = {
            member: _home(problem.demands[member])
            for member in demand_class.members
        }
        # Nothing but tickets makes lone demands with different nodes one class.
        if len(demand_class.weights) == 1 and len(set(homes.values())) > 1:
            for member, home in sorted(homes.items(), reverse=True):
                class_of[member] = class_index
                waiting[class_index, home].append(member)
    moved: list[Placement] = []
    for placement in placements:
        if placement.demand in class_of:
            at_node = waiting[class_of[placement.demand], placement.node]
            placement = replace(placement, demand=at_node.pop())  # noqa: PLW2901
        moved.append(placement)
    return sorted(moved, key=lambda placement: placement.demand)


def _home(demand: Demand) -> int | None:
    """The only node that the demand may go to; None if it may go to others, too."""
    if demand.nodes is not None and len(demand.nodes) == 1:
        return demand.nodes[0]
    return None


def _bound(problem: Problem) -> Mapping[int, Demand]:
    """The demands that are bound to one node by nothing but their own rules, and take something of it."""
    candidates: dict[int, Demand] = {}
    for demand_index, demand in numbered(problem.demands):
        if _home(demand) is None or not _asks_its_node(demand):
            continue
        # One with a defect is never placed: its ticket would be for others, who are not at home there.
        if demand.is_defective:
            continue
        if not (demand.gang or demand.parent or demand.roles):
            candidates[demand_index] = demand
    if not candidates:
        return candidates
    users: Tally[ClaimKey] = Tally()
    for demand in problem.demands:
        users.update(_claim_keys(demand))
    # A claim that two demands use ties them together.
    shared = {key for key, user_count in users.items() if user_count > 1}
    return {
        demand_index: demand
        for demand_index, demand in candidates.items()
        if shared.isdisjoint(_claim_keys(demand))
    }


def _claim_keys(demand: Demand) -> list[ClaimKey]:
    return [claim.key for claim in demand.claims]


def _asks_its_node(demand: Demand) -> bool:
    return bool(demand.claims) and demand.claims[0].is_synthetic


def _node_request(demand: Demand) -> Alternative:
    return demand.claims[0].requests[0].alternatives[0]


def _freed(demand: Demand, alternative: Alternative) -> Demand:
    """The demand without its node, and with this alternative in its synthetic claim."""
    synthetic, *device_claims = demand.claims
    request = replace(synthetic.requests[0], alternatives=(alternative,))
    claims = (replace(synthetic, requests=(request,)), *device_claims)
    return replace(demand, nodes=None, claims=claims)


@dataclass(eq=False)
class _Tickets(Overlay):
    """The answers about devices, and those about tickets.

    ``asks``: by alternative that wants a ticket. ``held``: by synthetic device, the tickets that it has.
    """

    asks: Mapping[AlternativeIndex, _TicketRequest]
    held: Mapping[int, frozenset[str]]

    def _asked(self, alternative: AlternativeIndex) -> _TicketRequest:
        """Return the alternative that it stands for, and its ticket; an empty one for none."""
        return self.asks.get(alternative) or _TicketRequest(alternative, "")

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        """As in `Eligibility`."""
        base_alternative, ticket = self._asked(alternative)
        if ticket and ticket not in self.held.get(device, ()):
            return False
        return self.base.selects(base_alternative, device)

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        """As in `Eligibility`."""
        return self.base.admits(self._asked(alternative).alternative, device)

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """As in `Eligibility`."""
        base_alternative, ticket = self._asked(alternative)
        charge = self.base.charge(base_alternative, device)
        if charge and ticket:
            return replace(charge, capacity=(*charge.capacity, (ticket, 1)))
        return charge

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        """As in `Eligibility`."""
        base_alternative, ticket = self._asked(alternative)
        key = self.base.request_key(base_alternative)
        return (key, ticket) if ticket else key

    def device_key(self, device: DeviceIndex) -> Hashable:
        """As in `Eligibility`."""
        key, tickets = self.base.device_key(device), self.held.get(device)
        return (key, tickets) if tickets else key


# ----------------------------------------------------------------------------
# The component: the best answer, and what is proven.

Names = Callable[[], Iterable[Placement]]
"""Gives names to an answer: which demand goes where."""


class BestOfClasses:
    """A `dralloc.solve.optimum.component.Component` over classes: answers are counts until names are asked for.

    ``subset``: the demands, without sites. ``placements``: an answer to begin with.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        classes: Sequence[DemandClass],
        placements: Sequence[Placement],
    ) -> None:
        self.subset = subset
        self.tiers = tiers
        self.size = len(subset.demands)
        self.bounds = [0] * len(tiers)
        self.relaxation = ComponentRelaxation(subset, tiers)
        self._costs = [tier.cost(subset, placements) for tier in tiers]
        self._least_rank = sum(
            demand_class.least_rank * demand_class.size
            for demand_class in classes
        )
        self._classes = classes
        self._names: Names | None = None
        self.placements = tuple(placements)
        names = [tier.name for tier in tiers]
        self._ranks = names.index(ALTERNATIVES)
        self._raise_bound(0, 0)

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The best answer."""
        if self._names:
            # Names cost time, so they are given when somebody asks.
            placements = _at_home(
                self.subset.problem, self._classes, self._names()
            )
            self.placements = tuple(placements)
        return self._placements

    @placements.setter
    def placements(self, placements: tuple[Placement, ...]) -> None:
        self._placements, self._names = placements, None

    def cost(self, level: int) -> int:
        """Return what the best answer costs in a tier."""
        return self._costs[level]

    def consider(self, placements: Sequence[Placement]) -> None:
        """Take an answer over if it is better."""
        costs = [tier.cost(self.subset, placements) for tier in self.tiers]
        self._learn(costs, lambda: placements)

    def _learn(self, costs: Sequence[int], names: Names) -> bool:
        """Keep an answer if it is the best."""
        if list(costs) >= self._costs:
            return False
        self._costs, self._names = list(costs), names
        self._raise_bound(0, 0)
        count_bound(self)
        return True

    def _raise_bound(self, level: int, bound: int) -> None:
        """No answer costs less in a tier; with all placed that has weight, each of that has at least its best rank."""
        self.bounds[level] = max(self.bounds[level], bound)
        for cost, tier in zip(self._costs, self.tiers, strict=True):
            if tier.weights and cost:
                return
        self.bounds[self._ranks] = max(
            self.bounds[self._ranks], self._least_rank
        )


class CountedComponent(BestOfClasses):
    """Demand classes that are counted, as `BestOfClasses`."""

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        counted: Counted,
        placements: Sequence[Placement],
    ) -> None:
        super().__init__(subset, tiers, counted.classes, placements)
        self.counted = counted
        self._fixed = 0
        self._known_terms: dict[int, Sequence[Term]] = {}

    def improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed."""
        counts = self._counts
        # Tiers before these were fixed in the model by earlier calls.
        for fixed in range(self._fixed, level):
            name = f"tier {self.tiers[fixed].name}"
            fix_cost(counts.cp, self._terms(fixed), self.cost(fixed), name)
        self._fixed = level
        outcome = minimise(counts.cp, self._terms(level), options, stop, watch)
        self._raise_bound(level, outcome.bound)
        if outcome.values is None:
            return
        values = outcome.values
        # Names cost time: they are given once, and only if a tier counts by them or somebody asks.
        named = lru_cache(maxsize=1)(
            lambda: counts.placements(self.subset.problem, values)
        )
        costs = []
        for tier_index, tier in enumerate(self.tiers):
            if tier.by_names:
                costs.append(tier.cost(self.subset, named()))
            else:
                costs.append(self._count(tier_index, values))
        self._learn(costs, named)

    @cached_property
    def _counts(self) -> CountModel:
        return CountModel(self.counted, self.subset.problem.budgets)

    def _terms(self, level: int) -> Sequence[Term]:
        """Return the terms of a tier's cost; auxiliary variables are added once."""
        if level not in self._known_terms:
            counted = self.tiers[level].counted
            assert counted
            self._known_terms[level] = counted(self._counts)
        return self._known_terms[level]

    def _count(self, level: int, values: Sequence[int]) -> int:
        count = self.tiers[level].count
        if count:
            return count(self._counts, values)
        terms = self._terms(level)
        return sum(
            factor * values[variable.index] for variable, factor in terms
        )
