"""Which demands are solved how: over classes, by packing, or by the per-device model.

Claims for admin access come first: they take nothing from anybody, and are decided beside the model.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from dralloc.objects.choices import Options, Thresholds
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Claim, Demand, Problem
from dralloc.problem.equivalence import claim_key
from dralloc.problem.grouping import grouped
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.solve.optimum.candidates import (
    CandidateSite,
    CandidateSurvey,
    summed_up,
    survey,
    touched,
)
from dralloc.solve.optimum.classes.bins import Bin, BinClassifier, find_bins
from dralloc.solve.optimum.classes.component import with_tickets
from dralloc.solve.optimum.classes.count_model import Counted
from dralloc.solve.optimum.classes.demand_classes import (
    BudgetedAmounts,
    DemandClass,
    DemandClasses,
    DisjointSets,
    ServingMode,
    UsableDevices,
    budgeted_amounts,
    usable_devices,
)
from dralloc.solve.optimum.classes.flows import (
    DomainCounts,
    as_divisible_flow,
    as_flow_source,
    bins_by_domain,
    flow_supplies,
)
from dralloc.solve.optimum.classes.serving_modes import classify_demands
from dralloc.solve.optimum.classes.state_space import (
    DomainSupply,
    PatternSupply,
    StateSpace,
    Supply,
    maximal_patterns,
)
from dralloc.solve.optimum.packing.instance import PackingInstance, as_packing_instance
from dralloc.solve.optimum.stopping import Stop

__all__ = ["AdminClaims", "admin_claims", "divide"]

# ----------------------------------------------------------------------------
# Claims for admin access, decided beside the model.
#
# Admin access takes nothing, and nobody stands in its way (KEP-5018). So a claim for
# nothing else only says to which nodes its demand can go: those with devices that
# match. Wherever that is in the end, it gets the first of them in search order. A pod
# that looks after the devices of its node is then a pod without devices, and does not
# keep the others from being solved over classes.
#
# Left to the model are claims with several requests or with constraints, as their
# devices depend on each other, claims that several demands use, and those for devices
# with consumable capacity: which of these ``All`` leaves out depends on what others
# take (KEP-5075).

_Grants = Mapping[int, tuple[Grant, ...]]
"""What a claim gets, by node; nodes where it gets nothing are no keys."""


@dataclass(frozen=True, slots=True)
class AdminClaims:
    """The claims that are decided here, by demand and in the place of its claims, with None for the others.

    ``problem``: the problem without them. ``failures``: the selectors that failed.
    """

    problem: Problem
    decided: Mapping[int, Sequence[_Grants | None]] = field(default_factory=dict)
    failures: tuple[AllocationError, ...] = ()

    def without(self, placements: Iterable[Placement]) -> tuple[Placement, ...]:
        """Placements in the whole problem without what these claims get."""
        return tuple(
            replace(one, grants=tuple(_left(one.grants, self.decided[one.demand])))
            if one.demand in self.decided
            else one
            for one in placements
        )

    def granted(self, solution: Solution) -> Solution:
        """The answer to the whole problem."""
        placements = (
            replace(one, grants=tuple(_merged(one, self.decided[one.demand])))
            if one.demand in self.decided
            else one
            for one in solution.placements
        )
        warnings = tuple(dict.fromkeys((*summed_up(self.failures), *solution.warnings)))
        return replace(solution, placements=tuple(placements), warnings=warnings)


def _left(
    grants: Sequence[tuple[Grant, ...]], decided: Sequence[_Grants | None]
) -> Iterator[tuple[Grant, ...]]:
    return (each for each, known in zip(grants, decided, strict=True) if known is None)


def _merged(
    placement: Placement, decided: Sequence[_Grants | None]
) -> Iterator[tuple[Grant, ...]]:
    others = iter(placement.grants)
    return (
        next(others) if known is None else known[placement.node] for known in decided
    )


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
        number: demand
        for number, demand in enumerate(problem.demands)
        if any(map(_is_for_admin, demand.claims)) and not demand.is_defective
    }
    if not asking:
        return AdminClaims(problem)
    # Also demands count in which a claim is under constraints over several claims, which its pods can differ in.
    users = Tally(claim.key for demand in problem.demands for claim in demand.claims)
    key_of = {
        claim.key: claim_key(problem.eligibility, claim)
        for demand in asking.values()
        for claim in demand.claims
        if users[claim.key] == 1 and _is_for_admin(claim)
    }
    probes = _probes(problem, asking.values(), key_of)
    found = survey(
        replace(problem, demands=tuple(probes.values())),
        strict_cel=strict_cel,
        stop=stop,
    )
    grants = {
        key: _grants(found.sites.get(number, ())) for number, key in enumerate(probes)
    }
    decided = {
        number: [
            grants[key_of[claim.key]] if claim.key in key_of else None
            for claim in demand.claims
        ]
        for number, demand in asking.items()
    }
    demands = [
        _without(problem, demand, decided[number]) if number in decided else demand
        for number, demand in enumerate(problem.demands)
    ]
    return AdminClaims(
        replace(problem, demands=tuple(demands)), decided, found.failures
    )


def _is_for_admin(claim: Claim) -> bool:
    """Whether it is one request for admin access, which has no alternatives, without constraints."""
    if len(claim.requests) != 1 or claim.constraints:
        return False
    alternatives = claim.requests[0].alternatives
    return alternatives[0].admin and len(alternatives) == 1


def _probes(
    problem: Problem, asking: Iterable[Demand], key_of: Mapping[ClaimKey, Hashable]
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
    return {
        key: Demand(
            claim.key,
            (claim,),
            nodes=tuple(node for node in problem.all_nodes if node in nodes[key]),
        )
        for key, claim in first.items()
    }


def _grants(sites: Sequence[CandidateSite]) -> _Grants | None:
    """What a claim gets on each node; None if that depends on what others take."""
    choices = {site.node: site.requests[0][0] for site in sites}
    mentioned = (
        each
        for choice in choices.values()
        for each in (*choice.candidates, *choice.blocked)
    )
    if any(each.charge.capacity for each in mentioned):
        return None
    return {
        node: tuple(
            Grant(0, 0, each.device) for each in choice.candidates[: choice.count]
        )
        for node, choice in choices.items()
    }


def _without(
    problem: Problem, demand: Demand, decided: Sequence[_Grants | None]
) -> Demand:
    """The demand without the claims of which it is known what they get, where they get it."""
    known = [each for each in decided if each is not None]
    before = problem.candidate_nodes(demand)
    nodes = tuple(node for node in before if all(node in each for each in known))
    claims = tuple(
        claim
        for claim, each in zip(demand.claims, decided, strict=True)
        if each is None
    )
    return replace(
        demand,
        claims=claims,
        nodes=demand.nodes if len(nodes) == len(before) else nodes,
    )


_MOST_SIZES: Final = 8
"""With more sizes of one capacity a flow is smaller than patterns."""


_FEW_CLASSES: Final = 100
"""So many classes are always worth a look."""

_LEAST_MEMBERS: Final = 2.5
"""With fewer members on average, more classes are not."""


@dataclass(frozen=True, slots=True)
class Division:
    """The components over classes, the demands that are left, and the selectors that failed.

    Parameters
    ----------
    counted
        Components whose bins have few patterns.
    packed
        Components whose bins have too many.
    left, failures
        For the per-device model; and for the user.
    """

    counted: tuple[Counted, ...]
    packed: tuple[PackingInstance, ...]
    left: tuple[int, ...]
    failures: tuple[AllocationError, ...]


def divide(
    problem: Problem,
    survey: Callable[[Sequence[int]], CandidateSurvey],
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
    options, stop, problem = options or Options(), stop or Stop(), with_tickets(problem)
    demand_classes = classify_demands(problem, stop)
    if not demand_classes.classes or _are_all_different(demand_classes):
        members = [member for each in demand_classes.classes for member in each.members]
        return Division(
            (), (), tuple(sorted((*demand_classes.unclassified, *members))), ()
        )
    usable = usable_devices(
        problem, demand_classes, stop, strict_cel=options.strict_cel
    )
    bins = find_bins(problem, demand_classes, usable, stop)
    classifier = BinClassifier(problem, demand_classes, usable)
    class_of = [classifier.enter(bin_) for bin_ in stop.hundreds(bins)]
    spaces = {
        id(each): StateSpace(each, usable.profiles, tuple(classifier.regions))
        for each in stop.each(classifier.classes.values())
    }
    unfit = {
        id(class_of[bin_])
        for bin_ in _unfit(problem, usable, bins, survey(demand_classes.unclassified))
    }
    amounts = (
        budgeted_amounts(problem, demand_classes, usable) if problem.budgets else {}
    )
    scattered = set(_scattered(problem, demand_classes, usable))
    counted: list[Counted] = []
    packed: list[PackingInstance] = []
    left = [*demand_classes.unclassified]
    for component in stop.each(
        _components(demand_classes, list(spaces.values()), stop)
    ):
        found = None
        apart = not scattered or scattered.isdisjoint(
            mode for each in component.classes for mode in each.modes
        )
        if apart and not any(
            id(space.bin_class) in unfit for space in component.spaces
        ):
            found = component.formulate(
                problem, demand_classes, options.thresholds, amounts, stop
            )
        if found is None:
            left += [member for each in component.classes for member in each.members]
        elif isinstance(found, Counted):
            counted.append(found)
        else:
            packed.append(found)
    if any(
        problem.demands[demand].key.namespace in demand_classes.with_budgets
        for demand in left
    ):
        # What a budget is about is decided at once.
        left += [
            demand for each in counted if each.has_budgets for demand in each.demands
        ]
        counted = [each for each in counted if not each.has_budgets]
    return Division(
        tuple(counted),
        tuple(packed),
        tuple(sorted(left)),
        tuple(usable.failures.values()),
    )


def _are_all_different(demand_classes: DemandClasses) -> bool:
    """Whether there are about as many classes as demands, so that nothing is won by counting."""
    members = sum(each.size for each in demand_classes.classes)
    return len(demand_classes.classes) > max(_FEW_CLASSES, members / _LEAST_MEMBERS)


def _unfit(
    problem: Problem,
    usable: UsableDevices,
    bins: Sequence[Bin],
    others: CandidateSurvey,
) -> Iterator[int]:
    """The bins that other demands reach into, and those of which not only sums of one version decide."""
    owners: dict[Hashable, int] = {}
    if not (others.sites or problem.several_versions or not problem.is_additive):
        return
    for number, bin_ in enumerate(bins):
        for device in bin_.devices:
            view = problem.devices[device]
            if others.sites:
                owners["slot", view.slot] = number
                drawn = chain(
                    (counter for counter, _ in view.consumes), usable.charged[device]
                )
                owners.update((("counter", counter), number) for counter in drawn)
            if view.slot in problem.several_versions or not view.is_additive:
                yield number
    for resource in touched(problem, others):
        if resource in owners:
            yield owners[resource]


def _scattered(
    problem: Problem, demand_classes: DemandClasses, usable: UsableDevices
) -> Iterator[ServingMode]:
    """The modes of joint demands that do not hold all of them on one node by what they share."""
    modes = [
        mode
        for each in demand_classes.classes
        if len(each.weights) > 1
        for mode in each.modes
    ]
    if not modes:
        return
    roaming = {
        usable.profile_of[device]
        for device in usable.order
        if len(usable.nodes_of[device]) > 1
        and not problem.devices[device].binds_to_node
    }
    types = {type_ for profile in roaming for type_, _ in usable.profiles[profile]}
    for mode in modes:
        item_groups = demand_classes.requirements[mode.requirement].item_groups
        if all(item_groups[place].type in types for place in mode.shared):
            yield mode


@dataclass(frozen=True, slots=True)
class _ClassComponent:
    classes: tuple[DemandClass, ...]
    spaces: tuple[StateSpace, ...]

    def formulate(
        self,
        problem: Problem,
        demand_classes: DemandClasses,
        thresholds: Thresholds,
        amounts: BudgetedAmounts,
        stop: Stop,
    ) -> Counted | PackingInstance | None:
        """The smallest formulation; None if there is none."""
        budgeted = {
            mode.requirement
            for each in self.classes
            if each.namespace
            for mode in each.modes
        }
        if not all(known.keys() >= budgeted for known in amounts.values()):
            return None
        if any(each.topology for each in self.classes):
            by_domain = self._by_domain(problem, demand_classes, thresholds, stop)
            supplied_by = None if by_domain is None else (by_domain,)
            return supplied_by and Counted(
                self.classes, supplied_by, demand_classes.requirements, amounts
            )
        supplied = self._supplied()
        supplies: list[Supply] = []
        sources = []
        # The largest bins first: they are the first to have too many patterns.
        for space in stop.each(sorted(self.spaces, key=lambda space: -space.size)):
            source = as_flow_source(space, demand_classes.requirements, supplied)
            if source and len(set(source.sizes.values())) > _MOST_SIZES:
                sources.append(source)
                continue
            patterns = maximal_patterns(
                space, demand_classes.requirements, supplied, thresholds.pattern_effort
            )
            if patterns is not None:
                supplies.append(PatternSupply(space, patterns))
            elif source:
                sources.append(source)
            else:
                few = thresholds.listed_amounts
                return as_packing_instance(
                    self.classes, self.spaces, demand_classes.requirements, few, stop
                )
        return Counted(
            self.classes,
            (*supplies, *flow_supplies(sources)),
            demand_classes.requirements,
            amounts,
        )

    def _supplied(self) -> Mapping[int, int]:
        """By requirement, how many demands can make use of it."""
        found: dict[int, int] = defaultdict(int)
        for each in self.classes:
            for mode in each.modes:
                found[mode.requirement] += each.size
        return found

    def _by_domain(
        self,
        problem: Problem,
        demand_classes: DemandClasses,
        thresholds: Thresholds,
        stop: Stop,
    ) -> DomainSupply | None:
        numbers = sorted({each.topology for each in self.classes if each.topology})
        parts = bins_by_domain(
            problem,
            [demand_classes.topologies[number] for number in numbers],
            self.spaces,
        )
        if parts is None:
            return None
        requirements, supplied = demand_classes.requirements, self._supplied()
        flow = as_divisible_flow(self.classes, parts, self.spaces, requirements)
        if flow is not None:
            return flow
        patterns = []
        for space in stop.each(self.spaces):
            found = maximal_patterns(
                space, requirements, supplied, thresholds.pattern_effort
            )
            if found is None:
                return None
            patterns.append(found)
        return DomainCounts(numbers, parts, self.spaces, patterns)


def _components(
    demand_classes: DemandClasses, spaces: Sequence[StateSpace], stop: Stop
) -> list[_ClassComponent]:
    """Demand classes with the bins that can serve them; gangs, and all that budgets are about, with each other.

    Modes and classes that nothing can serve are left out, and gangs that need members of such classes.
    """
    bins = len(demand_classes.requirements)
    sets = DisjointSets(bins + len(spaces))
    served = set()
    for number, space in enumerate(stop.each(spaces)):
        for requirement, spec in enumerate(demand_classes.requirements):
            if space.serves(spec):
                served.add(requirement)
                sets.unite(requirement, bins + number)
    usable = [
        replace(
            each, modes=tuple(mode for mode in each.modes if mode.requirement in served)
        )
        for each in demand_classes.classes
    ]
    hopeless = _hopeless_gangs(usable)
    kept = [
        each
        for each in usable
        if each.modes and not (each.gang and each.gang.gangs in hopeless)
    ]
    for each in kept:
        for mode in each.modes:
            sets.unite(each.modes[0].requirement, mode.requirement)
    first: dict[Hashable, int] = {}
    for each in kept:
        for link in (
            each.gang and ("gang", each.gang.gangs),
            each.namespace and "budgets",
        ):
            if link:
                sets.unite(
                    first.setdefault(link, each.modes[0].requirement),
                    each.modes[0].requirement,
                )
    classes = grouped((sets.find(each.modes[0].requirement), each) for each in kept)
    found = grouped(
        (sets.find(bins + number), space) for number, space in enumerate(spaces)
    )
    return [
        _ClassComponent(tuple(members), tuple(found[root]))
        for root, members in classes.items()
    ]


def _hopeless_gangs(classes: Sequence[DemandClass]) -> set[int]:
    """The classes of gangs that need more members than those that something can serve."""
    able: dict[int, int] = defaultdict(int)
    for each in classes:
        if each.gang and each.modes:
            able[each.gang.gangs] += each.gang.number
    return {
        each.gang.gangs
        for each in classes
        if each.gang
        and (
            not each.modes
            if each.gang.quorum is None
            else able[each.gang.gangs] < each.gang.quorum
        )
    }
