"""The quick way: the answers of the plain one, without trying again what is known to fail."""

from __future__ import annotations

from collections.abc import Sequence

from dralloc.errors import FatalError, NodeError
from dralloc.problem import Claim, Demand, Problem
from dralloc.solution import Grant
from dralloc.solvers.first_fit.kinds import Kind, Kinds
from dralloc.solvers.first_fit.plain import Found, PlainRun
from dralloc.solvers.first_fit.pruned import PrunedSearch
from dralloc.solvers.first_fit.sites import Site, Sites
from dralloc.solvers.first_fit.straight import Undecided, take_straight
from dralloc.solvers.first_fit.walks import Walks

__all__ = ["QuickRun"]


class QuickRun(PlainRun):
    """One pass over the demands: equal ones go on where the last of them stopped."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._kinds = Kinds(problem)
        self._sites = Sites(problem)
        self._walks = Walks(problem, self._sites)

    def place_together(self, members: Sequence[int]) -> None:
        """Place all of these demands, or none of them."""
        if len(members) == 1:
            self.place(members[0])
            return
        self._walks.begin()
        before = len(self.placements)
        super().place_together(members)
        if len(self.placements) == before:
            self._walks.take_back()
        else:
            self._walks.keep()

    def place(self, number: int) -> None:
        """Place a demand on the first node that can hold it, or note why that ended with an error."""
        demand = self._problem.demands[number]
        claims = self._open_claims(demand)
        kind = self._kinds.of(claims) if len(claims) == len(demand.claims) else None
        if kind is None:
            super().place(number)
        else:
            self._walk(number, demand, claims, kind)

    def _walk(self, number: int, demand: Demand, claims: Sequence[Claim], kind: Kind) -> None:
        walk = self._walks.of(kind, demand)
        for node in self._walks.ahead(walk):
            if walk.site is None or walk.site.node != node:
                walk.site = self._sites.site(claims, node)
            try:
                found = self._attempt_at(walk.site, claims, kind)
            except FatalError as error:
                self.errors[number] = error
                return
            except NodeError as error:
                walk.error = error
                continue
            if found is not None:
                self._settle(number, node, claims, found)
                return
        if walk.error is not None:
            self.errors[number] = walk.error

    def _attempt(self, claims: Sequence[Claim], node: int) -> Found | None:
        return self._search(self._sites.site(claims, node), claims)

    def _attempt_at(self, site: Site, claims: Sequence[Claim], kind: Kind) -> Found | None:
        if not kind.simple:
            return self._search(site, claims)
        alternative = claims[0].requests[0].alternatives[0]
        try:
            devices = take_straight(self._problem, self._ledger, alternative, site.shelves[0, 0, 0])
        except Undecided:
            return self._search(site, claims)
        if devices is not None:
            # What the plain search counts: the demand, its request, each device, what comes after request and claim.
            self.steps = 3 + bool(alternative.name.sub) + len(devices)
            return (tuple([Grant(0, 0, device) for device in devices]),)
        if self._sites.is_invalid(site.node):
            raise NodeError("invalid resource pools were encountered")
        return None

    def _search(self, site: Site, claims: Sequence[Claim]) -> Found | None:
        search = PrunedSearch(self._problem, self._ledger, claims, site)
        try:
            return search.run()
        finally:
            self.steps = search.steps
