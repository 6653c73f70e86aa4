"""How many equal demands fitted in a domain: as many do again, as long as nothing there has changed.

Where every device is offered to one node only, that is as long as no placement there is new.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from dralloc.problem import Demand, Problem
from dralloc.problem.inter_pod import Domains
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit.claim_classes import ClaimClass, ClaimClasses

__all__ = ["DomainMemory", "EqualDemands"]

EqualDemands = tuple[ClaimClass, tuple[int, ...] | None]
"""What they ask for, and where they may go."""


class DomainMemory:
    """How many equal demands fitted in a domain, and how many placements it had then."""

    def __init__(self, problem: Problem, claim_classes: ClaimClasses) -> None:
        self._problem = problem
        self._claim_classes = claim_classes
        self._placed: dict[int, Tally[str | None]] = defaultdict(Tally)
        self._seen: Tally[int] = Tally()
        self._fitting: dict[tuple[EqualDemands, int, str], tuple[int, int]] = {}

    def equal(self, members: Sequence[Demand]) -> EqualDemands | None:
        """What the members of a gang are, if they are equal and have nothing to do with each other but for the rule."""
        keys = [claim.key for demand in members for claim in demand.claims]
        found = {
            (self._claim_classes.of(demand.claims), demand.nodes) for demand in members
        }
        [(claim_class, nodes), *others] = found
        alone = len(set(keys)) == len(keys) and all(
            len(demand.roles) == 1 for demand in members
        )
        if (
            others
            or not alone
            or claim_class is None
            or not claim_class.simple
            or not self._is_local
        ):
            return None
        return claim_class, nodes

    def fitting(
        self,
        equal: EqualDemands,
        domains: Domains,
        domain: str,
        placements: Sequence[Placement],
    ) -> int | None:
        """How many of them fit in a domain; None if that is not known for these placements."""
        fitting, placed = self._fitting.get((equal, id(domains), domain), (0, -1))
        return fitting if placed == self._number(domains, domain, placements) else None

    def enter(
        self,
        equal: EqualDemands,
        domains: Domains,
        domain: str,
        placements: Sequence[Placement],
        fitting: int,
    ) -> None:
        """Note how many fit."""
        self._fitting[equal, id(domains), domain] = (
            fitting,
            self._number(domains, domain, placements),
        )

    def _number(
        self, domains: Domains, domain: str, placements: Sequence[Placement]
    ) -> int:
        """The placements in a domain."""
        tally, nodes, seen = (
            self._placed[id(domains)],
            self._problem.nodes,
            self._seen[id(domains)],
        )
        if seen < len(placements):
            tally.update(
                domains.get(nodes[each.node].name) for each in placements[seen:]
            )
            self._seen[id(domains)] = len(placements)
        return tally[domain]

    @cached_property
    def _is_local(self) -> bool:
        """Whether every device is offered to one node only."""
        offered = [device for node in self._problem.nodes for device in node.devices()]
        return len(set(offered)) == len(offered)
