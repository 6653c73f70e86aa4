"""Sorting demands into equivalence classes (see `dralloc.solve.optimum.classes.demand_classes`)."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterator, Sequence

from dralloc.problem import Demand, Problem, Scope
from dralloc.problem.inter_pod import OneDomain
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    DemandClasses,
    GangShare,
    ServingMode,
)
from dralloc.solve.optimum.classes.serving_modes import JointDemands, ServingModes
from dralloc.solve.optimum.stopping import Stop

__all__ = ["classify_demands"]


def classify_demands(problem: Problem, stop: Stop) -> DemandClasses:
    """Sort the demands into classes. Demands that can never be placed are left out."""
    return _DemandClassifier(problem, stop).demand_classes


class _DemandClassifier:
    def __init__(self, problem: Problem, stop: Stop) -> None:
        self.problem = problem
        self.demand_classes = DemandClasses(
            with_budgets=frozenset(budget.namespace for budget in problem.budgets)
        )
        self.updated_devices: list[int] = []
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

    def _lone_key(self, block: Sequence[int]) -> Hashable:
        """Return what decides about the class of a demand that nothing binds to others; None for any other."""
        demand = self.problem.demands[block[0]]
        if len(block) > 1 or demand.gang or demand.roles or not _is_plain(demand):
            return None
        return ((self._number(block[0]),), False), None

    def _enter(self, block: Sequence[int]) -> bool:
        """Put demands that gangs or shared claims bind together into classes, if classes can express them."""
        demands = [self.problem.demands[index] for index in block]
        joint_demands = self.joint_demands.of(block)
        topology = self._topology(demands)
        if not joint_demands or topology is None or not all(map(_is_plain, demands)):
            return False
        if self.updated_devices and any(map(self._gets_updated, demands)):
            return False
        shares_claims = len(joint_demands) < len(block)
        if shares_claims and any(map(_has_scopes, demands)):
            return False
        first = demands[0]
        is_gang = bool(first.gang)
        joint_demands = [self._in_order(joint) for joint in joint_demands]
        keys = [(tuple(map(self._number, joint)), is_gang) for joint in joint_demands]
        for key, joint in zip(keys, joint_demands, strict=True):
            if key not in self.modes:
                members = [self.problem.demands[index] for index in joint]
                self.modes[key] = self.serving_modes.of(members, whole=is_gang)
            if self.modes[key] is None:
                return False
        counts = Tally(keys)
        quorum = None if first.quorum == len(block) else first.quorum
        gang: int | None = None
        if is_gang:
            # Gangs are equal if they have as many joint demands of each kind, and need as many in the same domains.
            gang_key = frozenset(counts.items()), quorum, topology
            gang = self.gang_classes.setdefault(gang_key, len(self.gang_classes))
        for key, joint in zip(keys, joint_demands, strict=True):
            share = None if gang is None else GangShare(gang, counts[key], quorum)
            modes = self.modes[key] or ()
            demand_class = self._class((key, gang), modes, joint, share, topology)
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

    def _number(self, member: int) -> int:
        return self.serving_modes.number(self.problem.demands[member])

    def _in_order(self, joint: tuple[int, ...]) -> tuple[int, ...]:
        """Return the joint demand with equal demands after each other."""
        if len(joint) == 1:
            return joint
        return tuple(sorted(joint, key=lambda member: (self._number(member), member)))

    def _class(
        self,
        key: Hashable,
        modes: tuple[ServingMode, ...],
        joint: Sequence[int],
        gang: GangShare | None,
        topology: int,
    ) -> DemandClass:
        """Return the class of joint demands with a key."""
        if key not in self.classes:
            weights = tuple(self.problem.demands[member].weight for member in joint)
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
        constraint.scope for claim in demand.claims for constraint in claim.constraints
    )
