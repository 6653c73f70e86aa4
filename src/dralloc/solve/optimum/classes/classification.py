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
from dralloc.solve.optimum.classes.joint_demands import JointDemands
from dralloc.solve.optimum.classes.serving_modes import ServingModes
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
        self.updated = [
            device
            for slot in problem.opened_freely
            for device in problem.versions[slot]
        ]
        self.with_role = Tally(
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
            each for each in self.classes.values() if each.modes or each.gang
        ]

    def _lone_key(self, block: Sequence[int]) -> Hashable:
        """For a demand that nothing binds to others, the key that decides about its class; None for any other."""
        demand = self.problem.demands[block[0]]
        if len(block) > 1 or demand.gang or demand.roles or not _is_plain(demand):
            return None
        return ((self._number(block[0]),), False), None

    def _enter(self, block: Sequence[int]) -> bool:
        """Put demands that gangs or shared claims bind together into classes, if classes can express them."""
        demands = [self.problem.demands[index] for index in block]
        found = self.joint_demands.of(block)
        topology = self._topology(demands)
        if not found or topology is None or not all(map(_is_plain, demands)):
            return False
        if self.updated and any(map(self._gets_updated, demands)):
            return False
        if len(found) < len(block) and any(
            scope for demand in demands for scope in _scopes(demand)
        ):
            return False
        first, whole = demands[0], bool(demands[0].gang)
        joint = [self._in_order(each) for each in found]
        keys = [(tuple(map(self._number, each)), whole) for each in joint]
        for key, each in zip(keys, joint, strict=True):
            if key not in self.modes:
                self.modes[key] = self.serving_modes.of(
                    [self.problem.demands[one] for one in each], whole=whole
                )
            if self.modes[key] is None:
                return False
        gang, shares = None, Tally(keys)
        quorum = None if first.quorum == len(block) else first.quorum
        if whole:
            same = frozenset(shares.items()), quorum, topology
            gang = self.gang_classes.setdefault(same, len(self.gang_classes))
        for key, each in zip(keys, joint, strict=True):
            share = None if gang is None else GangShare(gang, shares[key], quorum)
            self._class(
                (key, gang), self.modes[key] or (), each, share, topology
            ).joint_demands.append(each)
        return True

    def _topology(self, block: Sequence[Demand]) -> int | None:
        """The number of the topology of which they need one domain (KEP-5732), 0 for none; None for any other rule.

        The rule must be a gang's own: all members carry it, and nobody else has to do with it.
        """
        roles = {role for demand in block for role in demand.roles}
        if not roles:
            return 0
        [role, *others] = roles
        own = (
            sum(len(demand.roles) for demand in block)
            == self.with_role[role.rule]
            == len(block)
        )
        if others or not (
            own and block[0].gang and role.carries and isinstance(role.rule, OneDomain)
        ):
            return None
        # Gangs of a cluster with the same label have the same object.
        return self.demand_classes.topologies.number(
            role.rule.domains, id(role.rule.domains)
        )

    def _gets_updated(self, demand: Demand) -> bool:
        """Whether it may get a device of a pool that is being updated which others can open for it."""
        selects, indices = (
            self.problem.eligibility.selects,
            [one.index for one in demand.alternatives()],
        )
        return any(
            selects(index, device) is True
            for index in indices
            for device in self.updated
        )

    def _number(self, member: int) -> int:
        return self.serving_modes.number(self.problem.demands[member])

    def _in_order(self, joint: tuple[int, ...]) -> tuple[int, ...]:
        """Equal demands after each other."""
        return (
            joint
            if len(joint) == 1
            else tuple(sorted(joint, key=lambda member: (self._number(member), member)))
        )

    def _class(
        self,
        key: Hashable,
        modes: tuple[ServingMode, ...],
        joint: Sequence[int],
        gang: GangShare | None,
        topology: int,
    ) -> DemandClass:
        """The class of joint demands with a key."""
        if key not in self.classes:
            weights = tuple(self.problem.demands[member].weight for member in joint)
            namespace = self.problem.demands[joint[0]].key.namespace
            budgeted = (
                namespace if namespace in self.demand_classes.with_budgets else ""
            )
            self.classes[key] = DemandClass(
                weights, modes, [], gang, budgeted, topology
            )
        return self.classes[key]


def _is_plain(demand: Demand) -> bool:
    """Whether classes can express it. Without a gang it has no defect (see `JointDemands`)."""
    return (
        any(claim.requests for claim in demand.claims)
        and demand.parent is None
        and not any(scope and (scope.group or scope.held) for scope in _scopes(demand))
        and not (demand.gang and demand.is_defective)
    )


def _scopes(demand: Demand) -> Iterator[Scope | None]:
    return (
        constraint.scope for claim in demand.claims for constraint in claim.constraints
    )
