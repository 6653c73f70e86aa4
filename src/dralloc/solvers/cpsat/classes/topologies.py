"""Topologies of which gangs are in one domain each (KEP-5732), as far as classes can express that."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from dralloc.problem import Demand, Problem
from dralloc.problem.inter_pod import Domains, OneDomain

__all__ = ["Topologies"]


class Topologies:
    """Finds out for demands that are placed together whether they need a domain, and of what.

    Attributes
    ----------
    listed
        The domains of nodes to choose among; the first stands for no need of one.
    """

    def __init__(self, problem: Problem) -> None:
        self.listed: list[Domains] = [{}]
        self._numbers: dict[int, int] = {}
        self._with_role = Tally(role.rule for demand in problem.demands for role in demand.roles)

    def of(self, block: Sequence[Demand]) -> int | None:
        """The number of the topology, 0 for none; None if there are other rules between pods about them.

        The rule must be a gang's own: all members carry it, and nobody else has to do with it.
        """
        roles = {role for demand in block for role in demand.roles}
        if not roles:
            return 0
        [role, *others] = roles
        own = sum(len(demand.roles) for demand in block) == self._with_role[role.rule] == len(block)
        if others or not (own and block[0].gang and role.carries and isinstance(role.rule, OneDomain)):
            return None
        return self._number(role.rule.domains)

    def _number(self, domains: Domains) -> int:
        """Gangs of a cluster with the same label have the same object."""
        number = self._numbers.setdefault(id(domains), len(self.listed))
        if number == len(self.listed):
            self.listed.append(domains)
        return number
