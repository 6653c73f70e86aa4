"""Which rules between pods have to do with each other, and who has to be known where pods move that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from networkx.utils import UnionFind

from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex, grouped, numbered
from dralloc.problem.inter_pod import InterPodRule
from dralloc.solve.recreate.rules import roles_beside_others
from dralloc.solve.recreate.units import MovableUnit

__all__ = ["RuleGroup", "RuleGroups"]

RuleGroup = int
"""The index of a group of rules."""


class RuleGroups:
    """Rules between pods in groups: rules that a demand, or a unit, has roles in are in the same group.

    What happens to the demands of one group is no matter to those of another one.
    """

    def __init__(self, problem: Problem, units: Iterable[MovableUnit]) -> None:
        forest: UnionFind[InterPodRule] = UnionFind()
        for demand in problem.demands:
            forest.union(*(role.rule for role in roles_beside_others(demand)))
        for unit in units:
            forest.union(*unit.rules)
        index_of: dict[InterPodRule, RuleGroup] = {}
        for rule in forest:
            index_of.setdefault(forest[rule], len(index_of))
        self._group_of: Mapping[InterPodRule, RuleGroup] = {
            rule: index_of[forest[rule]] for rule in forest
        }
        self._members = grouped(
            (self._group_of[rule], demand_index)
            for demand_index, demand in numbered(problem.demands)
            for rule in [role.rule for role in roles_beside_others(demand)][:1]
        )

    def of_unit(self, unit: MovableUnit) -> RuleGroup | None:
        """Return the group of a unit's rules; None if it has none."""
        return next((self._group_of[rule] for rule in unit.rules), None)

    def beside(
        self, problem: Problem, members: Iterable[DemandIndex]
    ) -> list[DemandIndex]:
        """Return all other demands with a role in a group in which one of these has a role."""
        members = set(members)
        groups = dict.fromkeys(
            self._group_of[role.rule]
            for demand in sorted(members)
            for role in roles_beside_others(problem.demands[demand])
        )
        return [
            demand
            for group in groups
            for demand in self._members[group]
            if demand not in members
        ]
