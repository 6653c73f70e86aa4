"""Demand classes, the requirements that serve them, and the devices that they can still get.

Demands that are equal up to names make a class, and all that is known of a class is asked once. A device is usable if
some class can still get it; what requirements use of counters and capacities with budgets is known beforehand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, NamedTuple, TypeVar

from dralloc.objects.errors import AllocationError
from dralloc.problem import (
    AlternativeIndex,
    Charge,
    ConstraintKind,
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    numbered,
)
from dralloc.problem.indices import DemandIndex, IndexT
from dralloc.problem.inter_pod import Domains
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import renumbered
from dralloc.problem.solution import amount_used
from dralloc.solve.optimum.rows import WeightTier
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "AttributeRule",
    "BudgetedAmounts",
    "DemandClass",
    "DemandClasses",
    "DisjointSets",
    "GangShare",
    "ItemGroup",
    "ItemType",
    "Listed",
    "Profile",
    "Requirement",
    "ServingMode",
    "UsableDevices",
    "budgeted_amounts",
    "usable_devices",
]

# ----------------------------------------------------------------------------
# Disjoint sets of indices, for inventories of a million devices.


class DisjointSets(Generic[IndexT]):
    """The indices from 0 on, given in order: each in a set of its own until sets are united."""

    def __init__(self, members: Iterable[IndexT]) -> None:
        self._parents = list(members)

    def find(self, member: IndexT) -> IndexT:
        """The smallest member of its set."""
        parents = self._parents
        root = member
        while parents[root] != root:
            root = parents[root]
        # Compress the path, so that the next look-up is short.
        while parents[member] != root:
            parents[member], member = root, parents[member]
        return root

    def unite(self, first: IndexT, second: IndexT) -> IndexT:
        """Join two sets; returns the smallest member."""
        first, second = self.find(first), self.find(second)
        if first > second:
            first, second = second, first
        self._parents[second] = first
        return first

    def unite_all(self, members: Iterable[IndexT]) -> None:
        """Join the sets of all of them."""
        root: IndexT | None = None
        for member in members:
            root = member if root is None else self.unite(root, member)

    def groups(self, members: Iterable[IndexT]) -> Collection[list[IndexT]]:
        """The members by their sets, in order."""
        sets: dict[IndexT, list[IndexT]] = defaultdict(list)
        for member in members:
            sets[self.find(member)].append(member)
        return sets.values()

    def copy(self) -> DisjointSets[IndexT]:
        """An independent copy."""
        return DisjointSets(self._parents)


T = TypeVar("T")


class Listed(list[T]):
    """Entries that have numbers: their places, found by a key that equal ones share (the entry itself by default)."""

    def __init__(self, entries: Iterable[T] = ()) -> None:
        super().__init__(entries)
        self._numbers: dict[Hashable, int] = {}

    def number(self, entry: T, key: Hashable = None) -> int:
        """The number of an entry, which comes last if it is new."""
        entry_index = self._numbers.setdefault(
            entry if key is None else key, len(self)
        )
        if entry_index == len(self):
            self.append(entry)
        return entry_index


# ----------------------------------------------------------------------------
# Demand classes: the equivalence classes of demands up to their names, and the
# requirements that serve them.
#
# Two demands are in one class if they have the same weight and candidate nodes, and if
# their claims are equal request by request: alternatives of the same request class (the
# same answers for every device), rank and count, and constraints of the same kind over
# the same attributes and positions. Exchanging two such demands in any answer gives an
# answer of the same worth, so only how many of a class are placed has to be decided.
#
# Demands that are bound to a node each are in one class, too, if they are equal but for
# their nodes. Demands of a gang are in one class only with those of equal gangs: gangs
# that have as many demands of each class, and need as many. Of equal gangs, too, only
# the number of admitted ones has to be decided. Gangs that must be in one domain of a
# topology (KEP-5732) are equal only to those that choose among the same domains.
#
# Demands that share claims are one *joint demand*, and classes are those of equal joint
# demands. Most joint demands are a demand alone. A serving mode places some of a joint
# demand and picks one alternative per request (see
# `dralloc.solve.optimum.classes.serving_modes`). What it asks of the inventory is a
# `Requirement`; modes of several classes can have the same one.


class ItemType(NamedTuple):
    """The type of a device: an alternative that it must match and that stands for its request class, and attributes."""

    alternative: AlternativeIndex
    attributes: frozenset[str]


class ItemGroup(NamedTuple):
    """The devices for one request of a claim: so many of a type (an index)."""

    claim: int
    type: int
    number: int


class AttributeRule(NamedTuple):
    """A constraint that at least two devices meet under.

    ``attributes``: by item group (its position) that it covers, the attribute that it compares.
    """

    kind: ConstraintKind
    attributes: tuple[tuple[int, str], ...]


class Requirement(NamedTuple):
    """Devices to be found on one node; ``nodes`` is the index of the set of nodes that will do, 0 for all."""

    item_groups: tuple[ItemGroup, ...]
    rules: tuple[AttributeRule, ...]
    nodes: int

    @property
    def devices(self) -> int:
        """The number of devices that it takes."""
        return sum(group.number for group in self.item_groups)


class ServingMode(NamedTuple):
    """A choice of one alternative for each request of all claims: requirement (an index), picks, the sum of the ranks.

    ``places``: which of the joint demand are placed. ``shared``: the item groups for claims that they share.
    """

    requirement: int
    picks: tuple[int, ...]
    rank: int
    places: tuple[int, ...] = (0,)
    shared: tuple[int, ...] = ()


class GangShare(NamedTuple):
    """The class of equal gangs (an index) that joint demands of a class belong to, and how many of them each gang has.

    ``quorum``: how many demands, of all classes, each gang needs; None for all.
    """

    gangs: int
    number: int
    quorum: int | None = None


@dataclass(frozen=True, slots=True)
class DemandClass:
    """An equivalence class of joint demands, in order; those of a gang follow each other.

    ``weights``: of the demands of each joint demand. ``namespace``: theirs, if it has a budget. ``topology``: of which
    each of their gangs is in one domain (an index), 0 for none.
    """

    weights: tuple[int, ...]
    modes: tuple[ServingMode, ...]
    joint_demands: list[tuple[DemandIndex, ...]] = field(default_factory=list)
    gang: GangShare | None = None
    namespace: str = ""
    topology: int = 0

    @property
    def size(self) -> int:
        """The number of joint demands."""
        return len(self.joint_demands)

    @property
    def members(self) -> list[DemandIndex]:
        """All demands of the class."""
        return [member for joint in self.joint_demands for member in joint]

    def missed_weight(
        self, tier: WeightTier, mode: ServingMode | None = None
    ) -> int:
        """The weight of what a mode does not place of a joint demand; of all of it without mode."""
        placed = mode.places if mode else ()
        return sum(
            tier.of(weight)
            for position, weight in enumerate(self.weights)
            if position not in placed
        )

    @property
    def least_rank(self) -> int:
        """The rank of the best mode that places all of a joint demand that has weight; 0 if there is none.

        What has no weight may be missed without anything lost.
        """
        counting = {
            position
            for position, weight in enumerate(self.weights)
            if weight > 0
        }
        ranks = [
            mode.rank for mode in self.modes if counting <= set(mode.places)
        ]
        return min(ranks, default=0) if counting else 0


@dataclass(slots=True)
class DemandClasses:
    """All demands, in equivalence classes.

    Parameters
    ----------
    classes
        Each with its members, in the order of their first.
    requirements, types
        What the indices in modes and item groups stand for.
    node_sets
        The sets of nodes that requirements refer to; None for all nodes.
    topologies
        The domains of nodes that gangs choose among; first those of gangs that do not.
    with_budgets
        The namespaces that have a budget.
    unclassified
        Demands that the classes cannot express: admin access that depends on others (see
        `dralloc.solve.optimum.division`), ``All`` of shared devices, demands for no device, or one that a share of
        another version can open, rules between pods but for gangs in one domain, constraints over claims of several
        pods or beside what is allocated, and gangs and joint demands with such members, or that fail their conditions.
    """

    classes: list[DemandClass] = field(default_factory=list)
    requirements: Listed[Requirement] = field(default_factory=Listed)
    types: Listed[ItemType] = field(default_factory=Listed)
    node_sets: Listed[frozenset[int] | None] = field(
        default_factory=lambda: Listed([None])
    )
    topologies: Listed[Domains] = field(default_factory=lambda: Listed([{}]))
    with_budgets: frozenset[str] = frozenset()
    unclassified: list[DemandIndex] = field(default_factory=list)


# ----------------------------------------------------------------------------
# The usable devices: those that some demand class can still get, and what each of them
# can serve.

_NOTHING = Charge()

_Numbered = tuple[int, tuple[CounterIndex, ...]]
"""The number of a profile, and the counters that a device charges by it."""

_NONE: Final[_Numbered] = (-1, ())

Profile = tuple[tuple[int, Charge], ...]
"""The item types that a device can serve, with what each takes of it; counters by their position in `charged`.

So devices have one profile if they differ in nothing but which counters they charge by request: those of their own
nodes (KEP-5517), or of their own GPUs (KEP-5941).
"""


@dataclass(slots=True)
class UsableDevices:
    """The devices in the order in which nodes are searched.

    Parameters
    ----------
    profiles
        What devices can serve, each answer once.
    profile_of
        By device: the index of its profile; -1 if it can serve nothing.
    charged
        By device: the counters that its profile charges by request.
    nodes_of
        By device: the nodes that reach it.
    order
        The usable devices, in search order.
    failures
        Selectors that failed on a device, by message.
    """

    profiles: Listed[Profile] = field(default_factory=Listed)
    profile_of: list[int] = field(default_factory=list)
    charged: list[tuple[CounterIndex, ...]] = field(default_factory=list)
    nodes_of: list[tuple[NodeIndex, ...]] = field(default_factory=list)
    order: list[DeviceIndex] = field(default_factory=list)
    failures: dict[str, AllocationError] = field(default_factory=dict)

    def charges(self, device: DeviceIndex) -> Profile:
        """The item types that a device can serve, with what each takes of the problem's counters."""
        return _named(
            self.profiles[self.profile_of[device]], self.charged[device]
        )


def usable_devices(
    problem: Problem,
    demand_classes: DemandClasses,
    stop: Stop,
    *,
    strict_cel: bool = False,
) -> UsableDevices:
    """Find the usable devices.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device does not match.
    """
    return _UsabilityCheck(problem, demand_classes, strict_cel, stop).usable


class _UsabilityCheck:
    def __init__(
        self,
        problem: Problem,
        demand_classes: DemandClasses,
        strict_cel: bool,
        stop: Stop,
    ) -> None:
        self.problem = problem
        self.demand_classes = demand_classes
        self.types = demand_classes.types
        self.strict_cel = strict_cel
        self.ledger = Ledger(problem)
        self.narrows = any(
            item_type.attributes for item_type in demand_classes.types
        )
        self.by_key: dict[Hashable, _Numbered] = {}
        self.narrowed: dict[tuple[int, tuple[str, ...]], _Numbered] = {}
        self.charges: list[bool] = []
        devices = len(problem.devices)
        self.usable = UsableDevices(
            profile_of=[-1] * devices,
            charged=[()] * devices,
            nodes_of=[()] * devices,
        )
        for device in stop.hundreds(self._seen()):
            profile, charged = self._profile(device)
            if profile >= 0:
                self.usable.profile_of[device] = profile
                self.usable.charged[device] = charged
                self.usable.order.append(device)

    def _seen(self) -> list[DeviceIndex]:
        """Every device that some node reaches, in search order; enters the nodes that reach it."""
        nodes_of, seen = self.usable.nodes_of, []
        for node, view in numbered(self.problem.nodes):
            # One tuple for all devices of a node: there may be a million of them.
            node_alone = (node,)
            for device in view.devices():
                if not self.problem.on_node(device, node):
                    continue
                if nodes_of[device]:
                    nodes_of[device] += node_alone
                else:
                    nodes_of[device] = node_alone
                    seen.append(device)
        return seen

    def _profile(self, device: DeviceIndex) -> _Numbered:
        view = self.problem.devices[device]
        if not self.ledger.is_free(view):
            return _NONE
        profile = self._matching(device)
        if profile != _NONE and self.narrows:
            profile = self._with_attributes(profile, device)
        profile_index, _ = profile
        if profile_index < 0:
            return profile
        if self.charges[profile_index]:
            return self._with_room(profile, device)
        if view.consumes and not self.ledger.has_counters(view, _NOTHING):
            return _NONE
        return profile

    def _matching(self, device: DeviceIndex) -> _Numbered:
        """The profile, found once for devices that are equal to every selector; errors are those of each device."""
        key = self.problem.eligibility.device_key(device)
        if key in self.by_key:
            return self.by_key[key]
        offers, failed = self._answers(device)
        profile = self._number(offers)
        if not failed:
            self.by_key[key] = profile
        return profile

    def _answers(self, device: DeviceIndex) -> tuple[Profile, bool]:
        eligibility, profile, failed = self.problem.eligibility, [], False
        for type_, (alternative, _) in enumerate(self.types):
            selected = eligibility.selects(alternative, device)
            if isinstance(selected, AllocationError):
                failed = True
                if not self._is_required(type_, device):
                    continue
                if self.strict_cel:
                    raise selected
                self.usable.failures[str(selected)] = selected
            elif selected and eligibility.admits(alternative, device):
                charge = eligibility.charge(alternative, device)
                if charge is not None:
                    profile.append(
                        (type_, Charge(charge.capacity, charge.counters))
                    )
        return tuple(profile), failed

    def _is_required(self, type_: int, device: DeviceIndex) -> bool:
        """Whether something of the type may go where the device is."""
        for requirement in self.demand_classes.requirements:
            types = [group.type for group in requirement.item_groups]
            if type_ not in types:
                continue
            nodes = self.demand_classes.node_sets[requirement.nodes]
            if nodes is None or not nodes.isdisjoint(
                self.usable.nodes_of[device]
            ):
                return True
        return False

    def _number(self, offers: Iterable[tuple[int, Charge]]) -> _Numbered:
        """The number of a profile, of whichever counters, and these in the order in which it charges them."""
        counter_positions: dict[CounterIndex, CounterIndex] = {}
        profile = tuple(
            [
                (type_, _with_places(charge, counter_positions))
                for type_, charge in offers
            ]
        )
        if not profile:
            return _NONE
        profile_index = self.usable.profiles.number(profile)
        if profile_index == len(self.charges):
            charges = any(
                charge.capacity or charge.counters for _, charge in profile
            )
            self.charges.append(charges)
        return profile_index, tuple(counter_positions)

    def _with_attributes(
        self, numbered: _Numbered, device: DeviceIndex
    ) -> _Numbered:
        """Return the profile without the types whose constraints name attributes that the device lacks."""
        profile_index, charged = numbered
        attributes = self.problem.devices[device].attributes
        key = profile_index, tuple(attributes)
        if key not in self.narrowed:
            offers = [
                (type_, charge)
                for type_, charge in self.usable.profiles[profile_index]
                if self.types[type_].attributes <= attributes.keys()
            ]
            self.narrowed[key] = self._number(offers)
        narrowed, positions = self.narrowed[key]
        return narrowed, tuple([charged[position] for position in positions])

    def _with_room(self, numbered: _Numbered, device: DeviceIndex) -> _Numbered:
        """Return the profile without the types for which there is too little free."""
        (profile_index, charged), view = numbered, self.problem.devices[device]
        profile = self.usable.profiles[profile_index]
        offers = [
            (type_, charge)
            for type_, charge in _named(profile, charged)
            if self.ledger.fits(view, charge)
        ]
        if len(offers) == len(profile):
            return numbered
        return self._number(offers)


def _named(profile: Profile, charged: Sequence[CounterIndex]) -> Profile:
    """The profile with the counters themselves."""
    if not charged:
        return profile
    counter_at = {
        CounterIndex(position): counter
        for position, counter in enumerate(charged)
    }
    named = []
    for type_, charge in profile:
        counters = renumbered(charge.counters, counter_at)
        named.append((type_, replace(charge, counters=counters)))
    return tuple(named)


def _with_places(
    charge: Charge, counter_positions: dict[CounterIndex, CounterIndex]
) -> Charge:
    """The charge with the positions of its counters, where new ones come last."""
    if not charge.counters:
        return charge
    counters = []
    for counter, amount in charge.counters:
        position = counter_positions.setdefault(
            counter, CounterIndex(len(counter_positions))
        )
        counters.append((position, amount))
    return replace(charge, counters=tuple(counters))


# ----------------------------------------------------------------------------
# Budgets: what requirements use of counters and capacities that namespaces have budgets
# of.

BudgetedAmounts = Mapping[str, Mapping[int, int]]
"""By resource and requirement: what one serving uses, in nanos. A requirement is left out if that depends on which
devices serve it."""


def budgeted_amounts(
    problem: Problem, demand_classes: DemandClasses, usable: UsableDevices
) -> BudgetedAmounts:
    """Return the use of each budgeted resource by each requirement (see `dralloc.problem.solution`)."""
    resources = sorted({budget.resource for budget in problem.budgets})
    budgeted: dict[str, dict[int, int]] = {}
    for resource in resources:
        amounts_of_type = _by_type(problem, usable, resource)
        amounts: dict[int, int] = {}
        for requirement_index, requirement in enumerate(
            demand_classes.requirements
        ):
            total = _amount(requirement, amounts_of_type)
            if total is not None:
                amounts[requirement_index] = total
        budgeted[resource] = amounts
    return budgeted


def _amount(
    requirement: Requirement, amounts_of_type: Mapping[int, set[int]]
) -> int | None:
    """Return the use of one serving; None if it depends on the devices that serve it."""
    total = 0
    for group in requirement.item_groups:
        amounts = amounts_of_type.get(group.type, set())
        if len(amounts) > 1:
            return None
        total += group.number * sum(amounts)
    return total


def _by_type(
    problem: Problem, usable: UsableDevices, resource: str
) -> Mapping[int, set[int]]:
    """By item type: the amounts that one item uses on the devices that can be it."""
    names = [counter.id.counter for counter in problem.counters]
    amounts: dict[int, set[int]] = defaultdict(set)
    seen = set()
    for device in usable.order:
        view, profile = problem.devices[device], usable.profile_of[device]
        consumed = tuple(
            [(names[counter], amount) for counter, amount in view.consumes]
        )
        capacity = view.capacity.get(resource)
        charged = tuple([names[counter] for counter in usable.charged[device]])
        key = (
            profile,
            view.shareable,
            capacity.total if capacity else None,
            consumed,
            charged,
        )
        if key in seen:
            continue
        seen.add(key)
        for type_, charge in usable.charges(device):
            amount = amount_used(resource, view, charge, problem.counters)
            amounts[type_].add(amount)
    return amounts
