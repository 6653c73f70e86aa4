"""Domain memory: how many equal demands fitted in a domain.

As many do again, as long as nothing there has changed; where every device is offered to one node only, that is as long
as no placement there is new.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from dralloc.problem import Demand, Problem
from dralloc.problem.inter_pod import Domains
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit.candidates import ClaimClass, ClaimClasses

__all__ = ["DomainMemory", "EqualDemands"]

EqualDemands = tuple[ClaimClass, int]
"""What they ask for, and where they may go: the identity of a selection of nodes, which the problem keeps alive."""


class DomainMemory:
    """The number of equal demands that fitted in a domain, and of placements that it had then."""

    def __init__(self, problem: Problem, claim_classes: ClaimClasses) -> None:
        self._problem = problem
        self._claim_classes = claim_classes
        self._placed: dict[int, Tally[str | None]] = defaultdict(Tally)
        self._seen: Tally[int] = Tally()
        self._fitting: dict[tuple[EqualDemands, int, str], tuple[int, int]] = {}

    def equal(self, members: Sequence[Demand]) -> EqualDemands | None:
        """Return the common class of a gang's members, if they are equal and only the gang's rule links them."""
        if not self._is_local:
            return None
        kinds = {
            (self._claim_classes.of(demand.claims), id(demand.nodes))
            for demand in members
        }
        if len(kinds) > 1:
            return None
        [(claim_class, nodes)] = kinds
        if claim_class is None or not claim_class.simple:
            return None
        if any(len(demand.roles) != 1 for demand in members):
            return None
        keys = [claim.key for demand in members for claim in demand.claims]
        shares_claims = len(set(keys)) < len(keys)
        return None if shares_claims else (claim_class, nodes)

    def fitting(
        self,
        equal: EqualDemands,
        domains: Domains,
        domain: str,
        placements: Sequence[Placement],
    ) -> int | None:
        """Return the number of them that fit in a domain; None if it is not known for these placements."""
        fitting, placed = self._fitting.get(
            (equal, id(domains), domain), (0, -1)
        )
        if placed == self._placed_in(domains, domain, placements):
            return fitting
        return None

    def enter(
        self,
        equal: EqualDemands,
        domains: Domains,
        domain: str,
        placements: Sequence[Placement],
        fitting: int,
    ) -> None:
        """Note how many fit."""
        placed = self._placed_in(domains, domain, placements)
        self._fitting[equal, id(domains), domain] = fitting, placed

    def _placed_in(
        self, domains: Domains, domain: str, placements: Sequence[Placement]
    ) -> int:
        """Return the number of placements in a domain; only new ones are counted."""
        tally, nodes = self._placed[id(domains)], self._problem.nodes
        seen = self._seen[id(domains)]
        if seen < len(placements):
            names = (
                nodes[placement.node].name for placement in placements[seen:]
            )
            tally.update(map(domains.get, names))
            self._seen[id(domains)] = len(placements)
        return tally[domain]

    @cached_property
    def _is_local(self) -> bool:
        """Whether every device is offered to one node only, in whatever version."""
        devices = self._problem.devices
        # A share of one version opens the others, so that more fits there than before.
        offered = [
            devices[device].slot
            for node in self._problem.nodes
            for device in node.devices()
        ]
        return len(set(offered)) == len(offered)
