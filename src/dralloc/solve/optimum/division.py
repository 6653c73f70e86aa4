"""Divides the demands by the way in which they are solved: over classes, by packing, or by the per-device model.

Claims for admin access come first: they take nothing from anybody, and are decided beside the model.
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
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

from dralloc.objects.choices import Options, Thresholds
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Claim, Demand, NodeIndex, Problem
from dralloc.problem.equivalence import claim_key
from dralloc.problem.indices import DemandIndex, grouped, indices, numbered
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.solve.optimum.candidates import (
    CandidateSite,
    CandidateSurvey,
    survey,
)
from dralloc.solve.optimum.classes.bins import Bin, BinClassifier, find_bins
from dralloc.solve.optimum.classes.budgeted_amounts import (
    BudgetedAmounts,
    budgeted_amounts,
)
from dralloc.solve.optimum.classes.component import with_tickets
from dralloc.solve.optimum.classes.count_model import Counted
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    DemandClasses,
)
from dralloc.solve.optimum.classes.divisible_flows import as_divisible_flow
from dralloc.solve.optimum.classes.domain_counts import (
    DomainCounts,
    bins_by_domain,
)
from dralloc.solve.optimum.classes.flow_supplies import (
    as_flow_source,
    flow_supplies,
)
from dralloc.solve.optimum.classes.numbering import DisjointSets
from dralloc.solve.optimum.classes.patterns import maximal_patterns
from dralloc.solve.optimum.classes.serving_modes import classify_demands
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.supplies import (
    DomainSupply,
    PatternSupply,
    Supply,
)
from dralloc.solve.optimum.classes.usable_devices import (
    UsableDevices,
    usable_devices,
)
from dralloc.solve.optimum.node_capabilities import NodeCapabilities
from dralloc.solve.optimum.packing.instance import (
    PackingInstance,
    as_packing_instance,
)
from dralloc.solve.optimum.selector_failures import summed_up
from dralloc.solve.optimum.sharing import touched
from dralloc.solve.optimum.stopping import Stop

__all__ = ["AdminClaims", "admin_claims", "divide"]

# ----------------------------------------------------------------------------
# Claims for admin access. It takes nothing, and nobody stands in its way (KEP-5018). So
# a claim for nothing else only says to which nodes its demand can go: those with
# devices that match. Wherever that is in the end, it gets the first of them in search
# order. A pod that looks after the devices of its node is then a pod without devices,
# and does not keep the others from being solved over classes.
#
# Left to the model are claims with several requests or with constraints, as their
# devices depend on each other, claims that several demands use, and those of demands
# that can go to devices with consumable capacity (KEP-5075): which of these ``All``
# leaves out depends on what others take, and what else their demand takes of them has
# to fit beside the claim. Where nothing else is asked for, that says nothing.

_Grants = Mapping[NodeIndex, tuple[Grant, ...]]
"""What a claim gets, by node; nodes where it gets nothing are no keys."""


class _AdminOffer(NamedTuple):
    """What a claim gets, and the nodes where that depends on more than the claim."""

    grants: _Grants
    open_nodes: frozenset[NodeIndex]


class _AdminOffers(NamedTuple):
    """What a claim gets if its demand asks for nothing else, and if it asks for something beside it."""

    alone: _AdminOffer
    beside_others: _AdminOffer

    def to(self, demand: Demand) -> _AdminOffer:
        """Return what the claim of a demand gets."""
        claims = [claim for claim in demand.claims if not claim.is_synthetic]
        return self.alone if len(claims) == 1 else self.beside_others


@dataclass(frozen=True, slots=True)
class AdminClaims:
    """The claims that are decided here, by demand and in the place of its claims, with None for the others.

    ``problem``: the problem without them. ``failures``: the selectors that failed.
    """

    problem: Problem
    decided: Mapping[DemandIndex, Sequence[_Grants | None]] = field(
        default_factory=dict
    )
    failures: tuple[AllocationError, ...] = ()

    def without(self, placements: Iterable[Placement]) -> tuple[Placement, ...]:
        """Placements in the whole problem without what these claims get."""
        without: list[Placement] = []
        for placement in placements:
            if placement.demand in self.decided:
                decided = self.decided[placement.demand]
                pairs = zip(placement.grants, decided, strict=True)
                grants = [
                    claim_grants
                    for claim_grants, decision in pairs
                    if decision is None
                ]
                placement = replace(placement, grants=tuple(grants))  # noqa: PLW2901
            without.append(placement)
        return tuple(without)

    def granted(self, solution: Solution) -> Solution:
        """The answer to the whole problem."""
        placements: list[Placement] = []
        for placement in solution.placements:
            if placement.demand in self.decided:
                merged = _merged(placement, self.decided[placement.demand])
                placement = replace(placement, grants=tuple(merged))  # noqa: PLW2901
            placements.append(placement)
        warnings = tuple(
            dict.fromkeys((*summed_up(self.failures), *solution.warnings))
        )
        return replace(
            solution, placements=tuple(placements), warnings=warnings
        )


def _merged(
    placement: Placement, decided: Sequence[_Grants | None]
) -> Iterator[tuple[Grant, ...]]:
    """The grants of all claims of a demand, in order: from the model, or as they were decided here."""
    from_model = iter(placement.grants)
    for by_node in decided:
        if by_node is None:
            yield next(from_model)
        else:
            yield by_node[placement.node]


def admin_claims(
    problem: Problem, stop: Stop, *, strict_cel: bool = False
) -> AdminClaims:
    """Decide the claims for admin access.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device is left out with a warning.
    Stopped
        It is time to stop.
    """
    asking = {
        demand_index: demand
        for demand_index, demand in numbered(problem.demands)
        if any(map(_is_for_admin, demand.claims)) and not demand.is_defective
    }
    if not asking:
        return AdminClaims(problem)
    # Also demands count in which a claim is under constraints over several claims, which its pods can differ in.
    users: Tally[ClaimKey] = Tally()
    for demand in problem.demands:
        users.update(claim.key for claim in demand.claims)
    key_of: dict[ClaimKey, Hashable] = {}
    for demand in asking.values():
        for claim in demand.claims:
            if users[claim.key] == 1 and _is_for_admin(claim):
                key_of[claim.key] = claim_key(problem.eligibility, claim)
    # Equal claims are asked about once.
    probes = _probes(problem, asking.values(), key_of)
    probe_problem = replace(problem, demands=tuple(probes.values()))
    probed = survey(probe_problem, strict_cel=strict_cel, stop=stop)
    offers: dict[Hashable, _AdminOffers] = {}
    for probe_index, key in zip(
        indices(probe_problem.demands), probes, strict=True
    ):
        offers[key] = _offers(probed.sites.get(probe_index, ()))
    reach = _NodesInReach(problem)
    decided: dict[DemandIndex, list[_Grants | None]] = {}
    demands = list(problem.demands)
    for demand_index, demand in asking.items():
        decided[demand_index] = []
        for claim in demand.claims:
            grants: _Grants | None = None
            if claim.key in key_of:
                offer = offers[key_of[claim.key]].to(demand)
                if not reach.any_of(demand_index, offer.open_nodes):
                    grants = offer.grants
            decided[demand_index].append(grants)
        demands[demand_index] = _without(problem, demand, decided[demand_index])
    without_claims = replace(problem, demands=tuple(demands))
    return AdminClaims(without_claims, decided, probed.failures)


def _is_for_admin(claim: Claim) -> bool:
    """Whether it is one request for admin access, which has no alternatives, without constraints."""
    if len(claim.requests) != 1 or claim.constraints:
        return False
    alternatives = claim.requests[0].alternatives
    return alternatives[0].admin and len(alternatives) == 1


def _probes(
    problem: Problem,
    asking: Iterable[Demand],
    key_of: Mapping[ClaimKey, Hashable],
) -> Mapping[Hashable, Demand]:
    """By key, a demand for the first of equal claims alone, which may go where any demand with such a claim may."""
    first: dict[Hashable, Claim] = {}
    nodes: dict[Hashable, set[int]] = defaultdict(set)
    for demand in asking:
        for claim in demand.claims:
            if claim.key in key_of:
                key = key_of[claim.key]
                first.setdefault(key, claim)
                if len(nodes[key]) < len(problem.nodes):
                    nodes[key].update(problem.candidate_nodes(demand))
    probes: dict[Hashable, Demand] = {}
    for key, claim in first.items():
        in_order = tuple(
            node for node in problem.all_nodes if node in nodes[key]
        )
        probes[key] = Demand(claim.key, (claim,), nodes=in_order)
    return probes


def _offers(sites: Sequence[CandidateSite]) -> _AdminOffers:
    """Return what a claim gets on each node."""
    anywhere: dict[NodeIndex, tuple[Grant, ...]] = {}
    without_capacity: dict[NodeIndex, tuple[Grant, ...]] = {}
    of_capacity: set[NodeIndex] = set()
    for site in sites:
        choice = site.requests[0][0]
        first = choice.candidates[: choice.count]
        grants = tuple(Grant(0, 0, candidate.device) for candidate in first)
        matching = (*choice.candidates, *choice.blocked)
        if any(candidate.charge.capacity for candidate in matching):
            of_capacity.add(site.node)
        else:
            without_capacity[site.node] = grants
        # Which devices ``All`` leaves out depends on what others take of their capacities.
        if choice.spec.count or site.node not in of_capacity:
            anywhere[site.node] = grants
    return _AdminOffers(
        _AdminOffer(anywhere, frozenset(of_capacity - anywhere.keys())),
        _AdminOffer(without_capacity, frozenset(of_capacity)),
    )


class _NodesInReach:
    """Tells where demands could go. Nodes are looked at only if somebody asks, as there may be many."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    @cached_property
    def _capabilities(self) -> NodeCapabilities:
        return NodeCapabilities(self._problem)

    def any_of(self, demand: DemandIndex, nodes: Set[NodeIndex]) -> bool:
        """Whether any of the nodes has devices enough for a demand."""
        if not nodes:
            return False
        capabilities = self._capabilities
        # Of nodes that are alike, one says enough.
        samples = {capabilities.node_types[node]: node for node in nodes}
        return any(
            capabilities.could_serve(node, demand) for node in samples.values()
        )


def _without(
    problem: Problem, demand: Demand, decided: Sequence[_Grants | None]
) -> Demand:
    """The demand without the claims of which it is known what they get, where they get it."""
    before = problem.candidate_nodes(demand)
    nodes = tuple(before)
    claims = []
    for claim, by_node in zip(demand.claims, decided, strict=True):
        if by_node is None:
            claims.append(claim)
        else:
            nodes = tuple(node for node in nodes if node in by_node)
    if len(nodes) == len(before):
        return replace(demand, claims=tuple(claims))
    return replace(demand, claims=tuple(claims), nodes=nodes)


# ----------------------------------------------------------------------------
# The division. Demand classes and bin classes that have to do with each other form
# components, found over the classes: all bins of a class serve the same requirements.
# First of all, joint demands are left to the per-device model if what they share could
# be devices that several nodes can use. A component is left to it if
#
# - it shares a device or a counter with a demand that classes cannot express (see
#   `dralloc.solve.optimum.classes.demand_classes.DemandClasses`), or
# - generations of a pool disagree about one of its devices, or sums do not decide what
#   can be in use beside it, or
# - namespaces have budgets of what its requirements use, and that depends on which
#   devices serve them, or
# - gangs in it need a topology domain, and devices can be used from nodes of several
#   domains, or
# - it has bins with more patterns than can be listed, and a packing instance cannot
#   express it (see `dralloc.solve.optimum.packing.instance`).

_MOST_SIZES: Final = 8
"""With more sizes of one capacity a flow is smaller than patterns."""


_FEW_CLASSES: Final = 100
"""So many classes are always worth a look."""

_LEAST_MEMBERS: Final = 2.5
"""With fewer members on average, more classes are not."""


@dataclass(frozen=True, slots=True)
class Division:
    """The components over classes, the demands for the per-device model, and the selectors that failed.

    Parameters
    ----------
    counted
        Components whose bins have few patterns.
    packed
        Components whose bins have too many.
    per_device
        Demands for the per-device model.
    failures
        For the user.
    """

    counted: tuple[Counted, ...]
    packed: tuple[PackingInstance, ...]
    per_device: tuple[DemandIndex, ...]
    failures: tuple[AllocationError, ...]


def divide(
    problem: Problem,
    survey: Callable[[Sequence[DemandIndex]], CandidateSurvey],
    options: Options | None = None,
    stop: Stop | None = None,
) -> Division:
    """Divide a problem.

    Parameters
    ----------
    survey
        Works out the candidates of demands that classes cannot express.
    options
        Of these ``strict_cel`` and the thresholds count.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set.
    Stopped
        It is time to stop.
    """
    options, stop = options or Options(), stop or Stop()
    problem = with_tickets(problem)
    demand_classes = classify_demands(problem, stop)
    if not demand_classes.classes or _are_all_different(demand_classes):
        demands = [
            *demand_classes.unclassified,
            *_members(demand_classes.classes),
        ]
        return Division((), (), tuple(sorted(demands)), ())
    usable = usable_devices(
        problem, demand_classes, stop, strict_cel=options.strict_cel
    )
    demand_classes = _without_scattered(problem, demand_classes, usable)
    bins = find_bins(problem, demand_classes, usable, stop)
    classifier = BinClassifier(problem, demand_classes, usable)
    class_of = [classifier.enter(bin_) for bin_ in stop.hundreds(bins)]
    regions = tuple(classifier.regions)
    spaces = [
        StateSpace(bin_class, usable.profiles, regions)
        for bin_class in stop.each(classifier.classes.values())
    ]
    by_model = survey(demand_classes.unclassified)
    unfit = {
        id(class_of[bin_]) for bin_ in _unfit(problem, usable, bins, by_model)
    }
    amounts: BudgetedAmounts = {}
    if problem.budgets:
        amounts = budgeted_amounts(problem, demand_classes, usable)
    counted: list[Counted] = []
    packed: list[PackingInstance] = []
    per_device = [*demand_classes.unclassified]
    for component in stop.each(_components(demand_classes, spaces, stop)):
        formulation = None
        if component.is_apart(unfit):
            formulation = component.formulate(
                problem, demand_classes, options.thresholds, amounts, stop
            )
        if formulation is None:
            per_device += _members(component.classes)
        elif isinstance(formulation, Counted):
            counted.append(formulation)
        else:
            packed.append(formulation)
    namespaces = {
        problem.demands[demand].key.namespace for demand in per_device
    }
    if not namespaces.isdisjoint(demand_classes.with_budgets):
        # What a budget is about is decided at once.
        for component_counted in counted:
            if component_counted.has_budgets:
                per_device += component_counted.demands
        counted = [
            component for component in counted if not component.has_budgets
        ]
    return Division(
        tuple(counted),
        tuple(packed),
        tuple(sorted(per_device)),
        tuple(usable.failures.values()),
    )


def _members(classes: Iterable[DemandClass]) -> list[DemandIndex]:
    members: list[DemandIndex] = []
    for demand_class in classes:
        members += demand_class.members
    return members


def _are_all_different(demand_classes: DemandClasses) -> bool:
    """Whether there are about as many classes as demands, so that nothing is won by counting."""
    members = sum(demand_class.size for demand_class in demand_classes.classes)
    return len(demand_classes.classes) > max(
        _FEW_CLASSES, members / _LEAST_MEMBERS
    )


def _unfit(
    problem: Problem,
    usable: UsableDevices,
    bins: Sequence[Bin],
    by_model: CandidateSurvey,
) -> Iterator[int]:
    """The bins that demands of the exact model reach into, and those of which not only sums of one version decide."""
    owners: dict[Hashable, int] = {}
    if not (
        by_model.sites or problem.several_versions or not problem.is_additive
    ):
        return
    for bin_index, bin_ in enumerate(bins):
        for device in bin_.devices:
            view = problem.devices[device]
            if by_model.sites:
                owners["slot", view.slot] = bin_index
                consumed = (counter for counter, _ in view.consumes)
                for counter in chain(consumed, usable.charged[device]):
                    owners["counter", counter] = bin_index
            if view.slot in problem.several_versions or not view.is_additive:
                yield bin_index
    for resource in touched(problem, by_model):
        if resource in owners:
            yield owners[resource]


def _without_scattered(
    problem: Problem, demand_classes: DemandClasses, usable: UsableDevices
) -> DemandClasses:
    """Leave out the classes whose demands need not be on one node for what they share, and their gangs.

    Also a class that no bin can serve may be one: while no node holds all of its demands, several can.
    """
    joint = [
        demand_class
        for demand_class in demand_classes.classes
        if len(demand_class.weights) > 1
    ]
    if not joint:
        return demand_classes
    roaming_types = _roaming_types(problem, usable)
    scattered = [
        demand_class
        for demand_class in joint
        if _is_scattered(demand_class, demand_classes, roaming_types)
    ]
    if not scattered:
        return demand_classes
    scattered_ids = set(map(id, scattered))
    gangs = {
        demand_class.gang.gangs
        for demand_class in scattered
        if demand_class.gang
    }
    classes: list[DemandClass] = []
    unclassified = [*demand_classes.unclassified]
    for demand_class in demand_classes.classes:
        gang = demand_class.gang
        if id(demand_class) in scattered_ids or (gang and gang.gangs in gangs):
            unclassified += demand_class.members
        else:
            classes.append(demand_class)
    return replace(
        demand_classes, classes=classes, unclassified=sorted(unclassified)
    )


def _roaming_types(problem: Problem, usable: UsableDevices) -> set[int]:
    """Return the types of items that devices can be which several nodes can use."""
    roaming = {
        usable.profile_of[device]
        for device in usable.order
        if len(usable.nodes_of[device]) > 1
        and not problem.devices[device].binds_to_node
    }
    types: set[int] = set()
    for profile in roaming:
        types.update(type_ for type_, _ in usable.profiles[profile])
    return types


def _is_scattered(
    demand_class: DemandClass,
    demand_classes: DemandClasses,
    roaming_types: Set[int],
) -> bool:
    """Whether a mode of joint demands does not hold all of them on one node by what they share."""
    for mode in demand_class.modes:
        item_groups = demand_classes.requirements[mode.requirement].item_groups
        if all(
            item_groups[group_index].type in roaming_types
            for group_index in mode.shared
        ):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _ClassComponent:
    classes: tuple[DemandClass, ...]
    spaces: tuple[StateSpace, ...]

    def is_apart(self, unfit: Set[int]) -> bool:
        """Whether none of its bin classes (by id) is unfit."""
        return not any(id(space.bin_class) in unfit for space in self.spaces)

    def formulate(
        self,
        problem: Problem,
        demand_classes: DemandClasses,
        thresholds: Thresholds,
        amounts: BudgetedAmounts,
        stop: Stop,
    ) -> Counted | PackingInstance | None:
        """The smallest formulation; None if there is none."""
        requirements = demand_classes.requirements
        budgeted: set[int] = set()
        for demand_class in self.classes:
            if demand_class.namespace:
                budgeted.update(mode.requirement for mode in demand_class.modes)
        # What a requirement uses of a budget must not depend on who serves it.
        if not all(uses.keys() >= budgeted for uses in amounts.values()):
            return None
        if any(demand_class.topology for demand_class in self.classes):
            by_domain = self._by_domain(
                problem, demand_classes, thresholds, stop
            )
            if by_domain is None:
                return None
            return Counted(self.classes, (by_domain,), requirements, amounts)
        supplied = self._supplied()
        supplies: list[Supply] = []
        sources = []
        # The largest bins first: they are the first to have too many patterns.
        for space in stop.each(
            sorted(self.spaces, key=lambda space: -space.size)
        ):
            source = as_flow_source(space, requirements, supplied)
            if source and len(set(source.sizes.values())) > _MOST_SIZES:
                sources.append(source)
                continue
            patterns = maximal_patterns(
                space, requirements, supplied, thresholds.pattern_effort
            )
            if patterns is not None:
                supplies.append(PatternSupply(space, patterns))
            elif source:
                sources.append(source)
            else:
                return as_packing_instance(
                    self.classes,
                    self.spaces,
                    requirements,
                    thresholds.listed_patterns,
                    stop,
                )
        supplies += flow_supplies(sources)
        return Counted(self.classes, tuple(supplies), requirements, amounts)

    def _supplied(self) -> Mapping[int, int]:
        """By requirement, how many demands can make use of it."""
        users: dict[int, int] = defaultdict(int)
        for demand_class in self.classes:
            for mode in demand_class.modes:
                users[mode.requirement] += demand_class.size
        return users

    def _by_domain(
        self,
        problem: Problem,
        demand_classes: DemandClasses,
        thresholds: Thresholds,
        stop: Stop,
    ) -> DomainSupply | None:
        topology_indices = sorted(
            {demand_class.topology for demand_class in self.classes} - {0}
        )
        topologies = [
            demand_classes.topologies[topology] for topology in topology_indices
        ]
        parts = bins_by_domain(problem, topologies, self.spaces)
        if parts is None:
            return None
        requirements, supplied = demand_classes.requirements, self._supplied()
        flow = as_divisible_flow(self.classes, parts, self.spaces, requirements)
        if flow is not None:
            return flow
        patterns_of_spaces = []
        for space in stop.each(self.spaces):
            patterns = maximal_patterns(
                space, requirements, supplied, thresholds.pattern_effort
            )
            if patterns is None:
                return None
            patterns_of_spaces.append(patterns)
        return DomainCounts(
            topology_indices, parts, self.spaces, patterns_of_spaces
        )


def _components(
    demand_classes: DemandClasses, spaces: Sequence[StateSpace], stop: Stop
) -> list[_ClassComponent]:
    """Demand classes with the bins that can serve them; gangs, and all that budgets are about, with each other.

    Modes and classes that nothing can serve are left out, and gangs that need members of such classes.
    """
    bins = len(demand_classes.requirements)
    sets = DisjointSets(range(bins + len(spaces)))
    served = set()
    for space_index, space in enumerate(stop.each(spaces)):
        for requirement, spec in enumerate(demand_classes.requirements):
            if space.may_serve(spec):
                served.add(requirement)
                sets.unite(requirement, bins + space_index)
    servable: list[DemandClass] = []
    for demand_class in demand_classes.classes:
        modes = tuple(
            mode for mode in demand_class.modes if mode.requirement in served
        )
        servable.append(replace(demand_class, modes=modes))
    hopeless = _hopeless_gangs(servable)
    classes: list[DemandClass] = []
    for demand_class in servable:
        gang = demand_class.gang
        if demand_class.modes and not (gang and gang.gangs in hopeless):
            classes.append(demand_class)
    # A class stands in the set of its requirements; what links classes unites their sets.
    first: dict[Hashable, int] = {}
    for demand_class in classes:
        requirement = demand_class.modes[0].requirement
        sets.unite_all(mode.requirement for mode in demand_class.modes)
        if demand_class.gang:
            link: Hashable = ("gang", demand_class.gang.gangs)
            sets.unite(first.setdefault(link, requirement), requirement)
        if demand_class.namespace:
            sets.unite(first.setdefault("budgets", requirement), requirement)
    classes_by_root = grouped(
        (sets.find(demand_class.modes[0].requirement), demand_class)
        for demand_class in classes
    )
    spaces_by_root = grouped(
        (sets.find(bins + space_index), space)
        for space_index, space in enumerate(spaces)
    )
    return [
        _ClassComponent(tuple(members), tuple(spaces_by_root[root]))
        for root, members in classes_by_root.items()
    ]


def _hopeless_gangs(classes: Sequence[DemandClass]) -> set[int]:
    """The classes of gangs that need more members than those that something can serve."""
    able: dict[int, int] = defaultdict(int)
    for demand_class in classes:
        if demand_class.gang and demand_class.modes:
            able[demand_class.gang.gangs] += demand_class.gang.number
    hopeless: set[int] = set()
    for demand_class in classes:
        gang = demand_class.gang
        if gang is None:
            continue
        too_few = able[gang.gangs] < (gang.quorum or 0)
        if too_few or (gang.quorum is None and not demand_class.modes):
            hopeless.add(gang.gangs)
    return hopeless
