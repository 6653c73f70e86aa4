"""Joint demands, their serving modes, and how demands are sorted into classes.

A mode says who is placed together, with which alternative and number of devices each.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import groupby, product
from math import prod
from typing import Final, NamedTuple

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    AlternativeIndex,
    Claim,
    ConstraintKind,
    Demand,
    DeviceIndex,
    NodeIndex,
    PoolState,
    Problem,
    Request,
    Scope,
)
from dralloc.problem.equivalence import claim_key
from dralloc.problem.indices import DemandIndex, grouped, indices, numbered
from dralloc.problem.inter_pod import OneDomain
from dralloc.problem.ledger import Ledger
from dralloc.solve.optimum.classes.demand_classes import (
    AttributeRule,
    DemandClass,
    DemandClasses,
    GangShare,
    ItemGroup,
    ItemType,
    Requirement,
    ServingMode,
)
from dralloc.solve.optimum.classes.numbering import DisjointSets
from dralloc.solve.optimum.stopping import Stop

__all__ = ["classify_demands", "granted_with"]

# ----------------------------------------------------------------------------
# *Joint demands* are demands that share claims and are therefore on one node, together
# with those that share nothing. A claim that several demands list is granted once, with
# one of them, and the others go where its devices can be used. A serving mode of a
# joint demand places some of its demands on one node, and asks there for the claims
# that they share and for all of their own. That covers every answer if
#
# - the demands list the same shared claims, and nobody else lists any of them, so that
#   no other demand is bound;
# - whatever serves those claims includes a device that can be used from one node alone
#   (see `dralloc.solve.optimum.division`), so that all who are placed are there;
# - a gang has all or none of them and needs all of its members, so that an admitted
#   gang has it placed as a whole;
# - no rule between pods and no constraint over several claims is about them, and
#   classes can express each alone.
#
# Which of equal demands are placed does not matter: the first ones. A demand that asks
# for nothing of its own, on any node where the others may go, comes along whenever one
# of them is placed, as that is worth more and takes nothing.
#
# *Allocation mode* ``All`` is, on nodes where *n* devices match and can be had, a
# request for *n* (`EveryDevice`).

_MOST_MODES: Final = 64
"""A joint demand with more serving modes is left to the per-device model."""

NodesByCount = Mapping[int, frozenset[int]]
"""The nodes where so many devices are all."""


class JointDemands:
    """Finds the joint demands of a problem, and which of them a gang binds together.

    Attributes
    ----------
    users
        Of the claims that several demands list, these demands.
    """

    def __init__(self, problem: Problem, stop: Stop) -> None:
        self.demands = problem.demands
        # A demand with a defect is never placed; in a gang it is for the per-device model to say what follows.
        self._able: list[DemandIndex] = []
        for index, demand in stop.hundreds(numbered(self.demands)):
            if demand.gang or not demand.is_defective:
                self._able.append(index)
        users = grouped(
            (claim.key, index)
            for index in self._able
            for claim in self.demands[index].claims
            if claim.requests
        )
        self.users: dict[ClaimKey, tuple[DemandIndex, ...]] = {}
        for key, demands in users.items():
            if len(demands) > 1:
                self.users[key] = tuple(demands)

    def blocks(self) -> Collection[list[DemandIndex]]:
        """Return the demands that gangs and shared claims bind together, in order."""
        sets = DisjointSets(indices(self.demands))
        for users in self.users.values():
            sets.unite_all(users)
        first_member: dict[str, DemandIndex] = {}
        for index in self._able:
            gang = self.demands[index].gang
            if gang:
                sets.unite(first_member.setdefault(gang, index), index)
        return sets.groups(self._able)

    def of(self, block: Sequence[DemandIndex]) -> list[tuple[DemandIndex, ...]]:
        """Return the joint demands of a block; none if its demands cannot be told apart like that."""
        joint_demands: dict[tuple[DemandIndex, ...], None] = {}
        for index in block:
            claims = self.demands[index].claims
            sharing = {
                self.users[claim.key]
                for claim in claims
                if claim.key in self.users
            }
            if len(sharing) > 1:
                return []
            joint_demand = sharing.pop() if sharing else (index,)
            joint_demands[joint_demand] = None
        nothing_is_shared = len(joint_demands) == len(block)
        if nothing_is_shared or self._is_whole(block):
            return list(joint_demands)
        return []

    def _is_whole(self, block: Sequence[DemandIndex]) -> bool:
        """Whether the demands are one gang that needs all of them, or are in no gang."""
        first = self.demands[block[0]]
        if first.quorum not in {None, len(block)}:
            return False
        return all(self.demands[index].gang == first.gang for index in block)


class _Option(NamedTuple):
    """An alternative of a request (its place), of devices with these attributes, and how many of them where."""

    pick: int
    spec: Alternative
    attributes: frozenset[str]
    device_count: int
    nodes: int = 0


class _GrantedRequest(NamedTuple):
    """A request of a claim, which has a number among those that are granted together."""

    number: int
    claim: Claim
    request: Request


class ServingModes:
    """Finds serving modes, and enters the requirements, item types and node sets of which they consist."""

    def __init__(
        self,
        problem: Problem,
        joint_demands: JointDemands,
        demand_classes: DemandClasses,
    ) -> None:
        self.problem = problem
        self.users = joint_demands.users
        self.demand_classes = demand_classes
        self._every_device = EveryDevice(problem)
        # By the identity of a selection of nodes, which the problem keeps alive: to hash it takes long.
        self._known_node_sets: dict[int, int] = {}
        self._demand_keys: dict[Hashable, int] = {}

    def number(self, demand: Demand) -> int:
        """Return a number for all that a demand asks for, and is worth."""
        # Lists inside of tuples: this runs once for each demand, and generators are slower.
        claims = tuple(
            [
                claim_key(self.problem.eligibility, claim)
                for claim in demand.claims
            ]
        )
        is_shared = tuple([claim.key in self.users for claim in demand.claims])
        namespace = demand.key.namespace
        if namespace not in self.demand_classes.with_budgets:
            namespace = ""
        key = demand.weight, self._nodes(demand), claims, is_shared, namespace
        return self._demand_keys.setdefault(key, len(self._demand_keys))

    def of(
        self, joint: Sequence[Demand], *, all_or_none: bool
    ) -> tuple[ServingMode, ...] | None:
        """Return the serving modes of a joint demand, the best ranks first; of those alike, the best.

        None if they are too many, or one of them cannot be expressed. ``all_or_none``: whether only all can be placed.
        """
        best: dict[Hashable, ServingMode] = {}
        mode_count = 0
        for positions in _subsets(self._runs(joint, all_or_none=all_or_none)):
            placed = [joint[position] for position in positions]
            requests = list(_granted_requests(placed))
            options: list[list[_Option]] = []
            for granted in requests:
                of_request = self._options(granted)
                if of_request is not None:
                    options.append(of_request)
            # Counted before any of them is made. A request that classes cannot express has no options here.
            mode_count += prod(map(len, options))
            if mode_count > _MOST_MODES or len(options) < len(requests):
                return None
            for chosen in product(*options):
                mode = self._mode(positions, placed, requests, chosen)
                if mode is None:
                    continue
                key = mode.requirement, positions
                if key not in best or mode.rank < best[key].rank:
                    best[key] = mode
        return tuple(
            sorted(best.values(), key=lambda mode: (mode.rank, mode.picks))
        )

    def _runs(
        self, joint: Sequence[Demand], *, all_or_none: bool
    ) -> list[tuple[int, bool]]:
        """Return how many demands are equal, and whether they always come along (see `_subsets`)."""
        same_nodes = len({self._nodes(demand) for demand in joint}) == 1
        runs = []
        for _, equal_demands in groupby(joint, self.number):
            equal = list(equal_demands)
            first = equal[0]
            asks_for_its_own = any(
                claim.requests and claim.key not in self.users
                for claim in first.claims
            )
            goes_anywhere = same_nodes or not self._nodes(first)
            comes_along = (
                goes_anywhere and not asks_for_its_own and len(joint) > 1
            )
            runs.append((len(equal), all_or_none or comes_along))
        return runs

    def _options(self, granted: _GrantedRequest) -> list[_Option] | None:
        """Return the options of a request; None if they cannot be expressed."""
        options: list[_Option] = []
        for pick, spec in enumerate(granted.request.alternatives):
            if spec.admin:
                return None
            attributes = frozenset(
                constraint.compared(spec.name)
                for constraint in granted.claim.constraints
                if constraint.covers(spec.name)
            )
            if spec.count:
                options.append(_Option(pick, spec, attributes, spec.count))
                continue
            # Allocation mode All.
            nodes_by_count = self._every_device.of(spec, attributes)
            if nodes_by_count is None:
                return None
            for count, nodes in nodes_by_count.items():
                node_set = self.demand_classes.node_sets.number(nodes)
                options.append(_Option(pick, spec, attributes, count, node_set))
        return options

    def _mode(
        self,
        positions: tuple[int, ...],
        placed: Sequence[Demand],
        requests: Sequence[_GrantedRequest],
        chosen: Sequence[_Option],
    ) -> ServingMode | None:
        """Return the mode with one option for each request; None if a claim would get too many devices."""
        results: Tally[int] = Tally()
        for granted, option in zip(requests, chosen, strict=True):
            results[granted.number] += option.device_count
        if max(results.values()) > MAX_RESULTS:
            return None
        node_sets = [self._nodes(demand) for demand in placed]
        node_sets += [option.nodes for option in chosen]
        nodes = self._common_nodes(node_sets)
        requirement = self._requirement(requests, chosen, nodes)
        picks = tuple(option.pick for option in chosen)
        rank = sum(option.spec.rank for option in chosen)
        shared = tuple(
            group_index
            for group_index, granted in enumerate(requests)
            if granted.claim.key in self.users
        )
        return ServingMode(requirement, picks, rank, positions, shared)

    def _requirement(
        self,
        requests: Sequence[_GrantedRequest],
        chosen: Sequence[_Option],
        nodes: int,
    ) -> int:
        """Return the number of what the chosen options ask of one node."""
        item_groups = []
        # A constraint over several claims is one rule, known by its scope; others end at their claim.
        covered: dict[
            Hashable, tuple[ConstraintKind, list[tuple[int, str]]]
        ] = {}
        for group_index, (granted, option) in enumerate(
            zip(requests, chosen, strict=True)
        ):
            item_type = self._item_type(option)
            item_groups.append(
                ItemGroup(granted.number, item_type, option.device_count)
            )
            for rule_number, constraint in enumerate(granted.claim.constraints):
                if constraint.covers(option.spec.name):
                    key = constraint.scope or (granted.number, rule_number)
                    attribute = constraint.compared(option.spec.name)
                    _, attributes = covered.setdefault(
                        key, (constraint.kind, [])
                    )
                    attributes.append((group_index, attribute))
        rules = []
        for kind, attributes in covered.values():
            # A rule over one device always holds.
            device_count = sum(
                item_groups[group_index].number for group_index, _ in attributes
            )
            if device_count > 1:
                rules.append(AttributeRule(kind, tuple(attributes)))
        requirement = Requirement(tuple(item_groups), tuple(rules), nodes)
        return self.demand_classes.requirements.number(requirement)

    def _item_type(self, option: _Option) -> int:
        alternative = option.spec.index
        key = (
            self.problem.eligibility.request_key(alternative),
            option.attributes,
        )
        item_type = ItemType(alternative, option.attributes)
        return self.demand_classes.types.number(item_type, key)

    def _nodes(self, demand: Demand) -> int:
        """Return the number of a demand's set of candidate nodes; 0 for all nodes."""
        if demand.nodes is None:
            return 0
        selection = id(demand.nodes)
        if selection not in self._known_node_sets:
            set_index = self.demand_classes.node_sets.number(
                frozenset(demand.nodes)
            )
            self._known_node_sets[selection] = set_index
        return self._known_node_sets[selection]

    def _common_nodes(self, node_sets: Iterable[int]) -> int:
        """Return the number of the set of nodes that are in all of these sets."""
        set_indices = set(node_sets) - {0}
        if not set_indices:
            return 0
        if len(set_indices) == 1:
            return set_indices.pop()
        sets = [
            self.demand_classes.node_sets[set_index]
            for set_index in set_indices
        ]
        common = frozenset.intersection(
            *(nodes for nodes in sets if nodes is not None)
        )
        return self.demand_classes.node_sets.number(common)


def _granted_requests(demands: Sequence[Demand]) -> Iterator[_GrantedRequest]:
    """Yield the requests of demands on one node, those of shared claims once: with the first that lists them."""
    claim_index = 0
    for demand, is_granted in zip(demands, granted_with(demands), strict=True):
        for claim, granted_here in zip(demand.claims, is_granted, strict=True):
            if granted_here:
                for request in claim.requests:
                    yield _GrantedRequest(claim_index, claim, request)
                claim_index += 1


def granted_with(demands: Iterable[Demand]) -> Iterator[list[bool]]:
    """Yield for each demand on a node which of its claims are granted with it: those that none before it lists."""
    listed: set[ClaimKey] = set()
    for demand in demands:
        yield [claim.key not in listed for claim in demand.claims]
        listed.update(claim.key for claim in demand.claims)


def _subsets(runs: Sequence[tuple[int, bool]]) -> Iterator[tuple[int, ...]]:
    """Yield which demands may be placed: of each run of equal ones all or the first few, but not none altogether.

    Each run is given by its length, and whether its demands always come along.
    """
    ranges = []
    for length, always in runs:
        fewest = length if always else 0
        ranges.append(range(fewest, length + 1))
    for counts in product(*ranges):
        positions: list[int] = []
        start = 0
        for (length, _), count in zip(runs, counts, strict=True):
            positions += range(start, start + count)
            start += length
        if positions:
            yield tuple(positions)


class EveryDevice:
    """Allocation mode ``All`` over classes: on nodes where *n* devices match and can be had, it is a request for *n*.

    So such a request has one option for each number, on the nodes where so many match: who gets *n* of *n* devices has
    all of them, and leaves none to others (KEP-4381). Nodes with a pool that is not usable, or with a device that
    matches but cannot be had, have no option. Devices with consumable capacity are not covered: of those, full ones can
    be left out, which depends on others (KEP-5075).
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._ledger = Ledger(problem)
        self._known: dict[Hashable, NodesByCount | None] = {}

    def of(
        self, spec: Alternative, attributes: frozenset[str]
    ) -> NodesByCount | None:
        """Return the options of an alternative for devices with these attributes; None if it is not covered."""
        key = self.problem.eligibility.request_key(spec.index), attributes
        if key not in self._known:
            self._known[key] = self._options(spec.index, attributes)
        return self._known[key]

    def _options(
        self, alternative: AlternativeIndex, attributes: frozenset[str]
    ) -> NodesByCount | None:
        nodes_by_count: dict[int, set[int]] = defaultdict(set)
        for node in self.problem.all_nodes:
            count = self._count(alternative, attributes, node)
            if count is None:
                return None
            nodes_by_count[count].add(node)
        return {
            count: frozenset(nodes)
            for count, nodes in sorted(nodes_by_count.items())
            if count
        }

    def _count(
        self,
        alternative: AlternativeIndex,
        attributes: frozenset[str],
        node: NodeIndex,
    ) -> int | None:
        """Return the number of devices that are all on a node; 0 if they cannot be had, None if others decide that."""
        eligibility = self.problem.eligibility
        view = self.problem.nodes[node]
        if any(pool.state is not PoolState.USABLE for pool in view.pools):
            return 0
        count = 0
        some_cannot_be_had = False
        for index in view.devices():
            if not self.problem.on_node(index, node):
                continue
            device = self.problem.devices[index]
            is_selected = eligibility.selects(alternative, index)
            if isinstance(is_selected, AllocationError):
                return None
            charge = (
                eligibility.charge(alternative, index) if is_selected else None
            )
            if charge is None or not self._ledger.has_capacity(device, charge):
                continue
            if charge.capacity:
                return None
            count += 1
            can_be_had = (
                self._ledger.is_free(device)
                and eligibility.admits(alternative, index)
                and attributes <= device.attributes.keys()
                and self._ledger.has_counters(device, charge)
            )
            some_cannot_be_had |= not can_be_had
        return 0 if some_cannot_be_had else count


# ----------------------------------------------------------------------------
# Classification: demands are sorted into equivalence classes.


def classify_demands(problem: Problem, stop: Stop) -> DemandClasses:
    """Sort the demands into classes. Demands that can never be placed are left out."""
    return _DemandClassifier(problem, stop).demand_classes


class _DemandClassifier:
    def __init__(self, problem: Problem, stop: Stop) -> None:
        self.problem = problem
        self.demand_classes = DemandClasses(
            with_budgets=frozenset(
                budget.namespace for budget in problem.budgets
            )
        )
        self.updated_devices: list[DeviceIndex] = []
        for slot in problem.opened_freely:
            self.updated_devices += problem.versions[slot]
        # By rule between pods, how many demands have to do with it.
        self.role_counts = Tally(
            role.rule for demand in problem.demands for role in demand.roles
        )
        self.joint_demands = JointDemands(problem, stop)
        self.serving_modes = ServingModes(
            problem, self.joint_demands, self.demand_classes
        )
        self.modes: dict[Hashable, tuple[ServingMode, ...] | None] = {}
        self.classes: dict[Hashable, DemandClass] = {}
        self.gang_classes: dict[Hashable, int] = {}
        for block in stop.hundreds(self.joint_demands.blocks()):
            key = self._lone_key(block)
            if key in self.classes:
                self.classes[key].joint_demands.append((block[0],))
            elif not self._enter(block):
                self.demand_classes.unclassified += block
        # No mode could ever serve the others, and no gang waits for them.
        self.demand_classes.classes = [
            demand_class
            for demand_class in self.classes.values()
            if demand_class.modes or demand_class.gang
        ]

    def _lone_key(self, block: Sequence[DemandIndex]) -> Hashable:
        """Return the key that decides the class of a demand that nothing links to others; None for any other demand."""
        demand = self.problem.demands[block[0]]
        if (
            len(block) > 1
            or demand.gang
            or demand.roles
            or not _is_plain(demand)
        ):
            return None
        return ((self._number(block[0]),), False), None

    def _enter(self, block: Sequence[DemandIndex]) -> bool:
        """Put demands that gangs or shared claims bind together into classes, if classes can express them."""
        demands = [self.problem.demands[index] for index in block]
        joint_demands = self.joint_demands.of(block)
        topology = self._topology(demands)
        if (
            not joint_demands
            or topology is None
            or not all(map(_is_plain, demands))
        ):
            return False
        if self.updated_devices and any(map(self._gets_updated, demands)):
            return False
        shares_claims = len(joint_demands) < len(block)
        if shares_claims and any(map(_has_scopes, demands)):
            return False
        first = demands[0]
        is_gang = bool(first.gang)
        joint_demands = [self._in_order(joint) for joint in joint_demands]
        keys = [
            (tuple(map(self._number, joint)), is_gang)
            for joint in joint_demands
        ]
        for key, joint in zip(keys, joint_demands, strict=True):
            if key not in self.modes:
                members = [self.problem.demands[index] for index in joint]
                self.modes[key] = self.serving_modes.of(
                    members, all_or_none=is_gang
                )
            if self.modes[key] is None:
                return False
        counts = Tally(keys)
        quorum = None if first.quorum == len(block) else first.quorum
        gang: int | None = None
        if is_gang:
            # Gangs are equal if they have as many joint demands of each kind, and need as many in the same domains.
            gang_key = frozenset(counts.items()), quorum, topology
            gang = self.gang_classes.setdefault(
                gang_key, len(self.gang_classes)
            )
        for key, joint in zip(keys, joint_demands, strict=True):
            share = (
                None if gang is None else GangShare(gang, counts[key], quorum)
            )
            modes = self.modes[key] or ()
            demand_class = self._class(
                (key, gang), modes, joint, share, topology
            )
            demand_class.joint_demands.append(joint)
        return True

    def _topology(self, block: Sequence[Demand]) -> int | None:
        """Return the number of the topology of which they need one domain (KEP-5732).

        0 if they need none; None for any other rule between pods.

        The rule must be a gang's own: all members carry it, and nobody else has to do with it.
        """
        roles = {role for demand in block for role in demand.roles}
        if not roles:
            return 0
        if len(roles) > 1 or not block[0].gang:
            return None
        (role,) = roles
        if not (role.carries and isinstance(role.rule, OneDomain)):
            return None
        own_roles = sum(len(demand.roles) for demand in block)
        if not own_roles == self.role_counts[role.rule] == len(block):
            return None
        # Gangs of a cluster with the same label have the same object.
        domains = role.rule.domains
        return self.demand_classes.topologies.number(domains, id(domains))

    def _gets_updated(self, demand: Demand) -> bool:
        """Whether it may get a device of a pool that is being updated which others can open for it."""
        selects = self.problem.eligibility.selects
        return any(
            selects(alternative.index, device) is True
            for alternative in demand.alternatives()
            for device in self.updated_devices
        )

    def _number(self, member: DemandIndex) -> int:
        return self.serving_modes.number(self.problem.demands[member])

    def _in_order(
        self, joint: tuple[DemandIndex, ...]
    ) -> tuple[DemandIndex, ...]:
        """Return the joint demand with equal demands after each other."""
        if len(joint) == 1:
            return joint
        return tuple(
            sorted(joint, key=lambda member: (self._number(member), member))
        )

    def _class(
        self,
        key: Hashable,
        modes: tuple[ServingMode, ...],
        joint: Sequence[DemandIndex],
        gang: GangShare | None,
        topology: int,
    ) -> DemandClass:
        """Return the class of joint demands with a key."""
        if key not in self.classes:
            weights = tuple(
                self.problem.demands[member].weight for member in joint
            )
            namespace = self.problem.demands[joint[0]].key.namespace
            if namespace not in self.demand_classes.with_budgets:
                namespace = ""
            self.classes[key] = DemandClass(
                weights, modes, [], gang, namespace, topology
            )
        return self.classes[key]


def _is_plain(demand: Demand) -> bool:
    """Whether classes can express it. Without a gang it has no defect (see `JointDemands`)."""
    asks_for_devices = any(claim.requests for claim in demand.claims)
    if not asks_for_devices or demand.parent is not None:
        return False
    for scope in _scopes(demand):
        if scope and (scope.group or scope.held):
            return False
    return not (demand.gang and demand.is_defective)


def _has_scopes(demand: Demand) -> bool:
    """Whether a constraint over several claims is about it."""
    return any(_scopes(demand))


def _scopes(demand: Demand) -> Iterator[Scope | None]:
    """Yield the scope of each constraint; None for one that ends at its claim."""
    return (
        constraint.scope
        for claim in demand.claims
        for constraint in claim.constraints
    )
