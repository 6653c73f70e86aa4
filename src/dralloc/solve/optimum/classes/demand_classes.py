"""Demand classes: the equivalence classes of demands up to their names, and the requirements that serve them.

Two demands are in one class if they have the same weight and candidate nodes, and if their claims are equal request by
request: alternatives of the same request class (the same answers for every device), rank and count, and constraints of
the same kind over the same attributes and positions. Exchanging two such demands in any answer gives an answer of the
same worth, so only how many of a class are placed has to be decided.

Demands that are bound to a node each are in one class, too, if they are equal but for their nodes. Demands of a gang
are in one class only with those of equal gangs: gangs that have as many demands of each class, and need as many. Of
equal gangs, too, only the number of admitted ones has to be decided. Gangs that must be in one domain of a topology
(KEP-5732) are equal only to those that choose among the same domains.

Demands that share claims are one *joint demand*, and classes are those of equal joint demands. Most joint demands are a
demand alone. A serving mode places some of a joint demand and picks one alternative per request (see
`dralloc.solve.optimum.classes.serving_modes`). What it asks of the inventory is a `Requirement`; modes of several
classes can have the same one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from dralloc.problem import AlternativeIndex, ConstraintKind
from dralloc.problem.indices import DemandIndex
from dralloc.problem.inter_pod import Domains
from dralloc.solve.optimum.classes.numbering import Listed
from dralloc.solve.optimum.rows import WeightTier

__all__ = [
    "AttributeRule",
    "DemandClass",
    "DemandClasses",
    "GangShare",
    "ItemGroup",
    "ItemType",
    "Requirement",
    "ServingMode",
]


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
        `dralloc.solve.optimum.admin_claims`), ``All`` of shared devices, demands for no device, or one that a share of
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
