"""What demands ask for when they look for a node.

A claim that several demands of a unit use is allocated with the first of them that is placed. The others do not ask for
it any more; but they have to go where its devices can be used.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dralloc.objects.names import ClaimKey
from dralloc.problem import Claim, DemandIndex, NodeIndex, Problem
from dralloc.solve.recreate.devices import DeviceWish, NodeDevices, Site
from dralloc.solve.recreate.rules import roles_beside_others
from dralloc.solve.recreate.units import MovableUnit

__all__ = ["Applicant", "Applicants", "SharedNodes"]

SharedNodes = dict[ClaimKey, frozenset[NodeIndex]]
"""By claim that is allocated, the nodes from which all of its devices can be used."""


@dataclass(frozen=True, slots=True, eq=False)
class Applicant:
    """A demand that looks for a node.

    Parameters
    ----------
    demand
        Its index in the problem.
    wish
        The class of what it asks for.
    claims
        Its claims; those that are allocated already ask for nothing.
    allowed
        The nodes that it may go to; None for all.
    has_rules
        Whether it has a role in rules between pods that are not about its gang alone.
    """

    demand: DemandIndex
    wish: DeviceWish
    claims: Sequence[Claim]
    allowed: frozenset[NodeIndex] | None
    has_rules: bool


class Applicants:
    """The demands of units, as they look for nodes.

    Units are left out of which first fit knows no class for some claims.

    Parameters
    ----------
    devices
        Knows the classes.

    Attributes
    ----------
    unit_of
        By demand, its unit.
    """

    def __init__(
        self,
        problem: Problem,
        devices: NodeDevices,
        units: Iterable[MovableUnit],
    ) -> None:
        self._problem = problem
        self._devices = devices
        users = Tally(
            claim.key for demand in problem.demands for claim in demand.claims
        )
        self._shared = {key for key, count in users.items() if count > 1}
        # Demands with the same selection of nodes most often have the same object.
        self._selections: dict[int, frozenset[NodeIndex]] = {}
        self.unit_of: dict[DemandIndex, MovableUnit] = {}
        self._applicants: dict[DemandIndex, Applicant] = {}
        # What demands ask for while some of their claims are allocated.
        self._remaining: dict[
            tuple[DemandIndex, frozenset[ClaimKey]],
            tuple[DeviceWish, Sequence[Claim]],
        ] = {}
        for unit in units:
            self._learn(unit)

    def _learn(self, unit: MovableUnit) -> None:
        applicants: list[Applicant] = []
        for member in unit.members:
            demand = self._problem.demands[member]
            wish = self._devices.class_of(demand.claims)
            if wish is None:
                return
            allowed = self._selection(demand.nodes)
            applicants.append(
                Applicant(
                    member,
                    wish,
                    demand.claims,
                    allowed,
                    has_rules=bool(roles_beside_others(demand)),
                )
            )
        for applicant in applicants:
            self.unit_of[applicant.demand] = unit
            self._applicants[applicant.demand] = applicant

    def _selection(
        self, nodes: Sequence[NodeIndex] | None
    ) -> frozenset[NodeIndex] | None:
        if nodes is None:
            return None
        if id(nodes) not in self._selections:
            self._selections[id(nodes)] = frozenset(nodes)
        return self._selections[id(nodes)]

    def __getitem__(self, demand: DemandIndex) -> Applicant:
        """Return a demand none of whose claims is allocated."""
        return self._applicants[demand]

    def beside(self, demand: DemandIndex, allocated: SharedNodes) -> Applicant:
        """Return a demand some of whose claims may be allocated."""
        applicant = self._applicants[demand]
        keys = [
            claim.key for claim in applicant.claims if claim.key in allocated
        ]
        if not keys:
            return applicant
        wish, claims = self._asked_beside(applicant, frozenset(keys))
        nodes = frozenset.intersection(*(allocated[key] for key in keys))
        if applicant.allowed is not None:
            nodes &= applicant.allowed
        return replace(applicant, wish=wish, claims=claims, allowed=nodes)

    def _asked_beside(
        self, applicant: Applicant, allocated: frozenset[ClaimKey]
    ) -> tuple[DeviceWish, Sequence[Claim]]:
        """Return what is asked for beside claims that are allocated."""
        key = applicant.demand, allocated
        if key not in self._remaining:
            claims = tuple(
                [
                    replace(claim, requests=(), constraints=())
                    if claim.key in allocated
                    else claim
                    for claim in applicant.claims
                ]
            )
            wish = self._devices.class_of(claims)
            # There is a class for more of its claims.
            assert wish is not None
            self._remaining[key] = wish, claims
        return self._remaining[key]

    def allocate(
        self, applicant: Applicant, site: Site, allocated: SharedNodes
    ) -> None:
        """Enter the claims that are allocated with a demand at a site, if others use them as well."""
        for claim, grants in zip(
            applicant.claims, site.way.grants, strict=True
        ):
            if claim.key in self._shared and claim.key not in allocated:
                nodes = frozenset(self._problem.all_nodes)
                for grant in grants:
                    reaching = self._problem.reaching(grant.device)
                    nodes &= reaching | {site.node}
                allocated[claim.key] = nodes
