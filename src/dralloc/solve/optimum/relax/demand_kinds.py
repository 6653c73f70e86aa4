"""What demands ask of a node, in the few words that a relaxation understands.

A demand needs amounts of its node, and for each of its requests one of some options: so many of an item, which is a
device of a type, or a bundle of devices that carry a common value. What is not understood is asked for by nobody. Of a
claim that several demands use, each of them needs its part. So whatever some demands ask for here, they take no less in
every answer to the problem.

First the rows, which say what is limited; then what demands ask for beside amounts.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import (
    Collection,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field
from typing import Final, NamedTuple, assert_never

from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    NodeIndex,
    Problem,
    Request,
    numbered,
)
from dralloc.problem.equivalence import claim_key
from dralloc.problem.indices import DemandIndex, summed
from dralloc.problem.inter_pod import Domains, InterPodRule, OneDomain
from dralloc.solve.optimum.classes.numbering import Listed
from dralloc.solve.optimum.relax.claim_users import users_of_claims
from dralloc.solve.optimum.relax.domain_limits import (
    DomainLimit,
    domain_limits_of,
)
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "ALL_DEVICES",
    "DemandKind",
    "DemandKinds",
    "Draws",
    "Item",
    "ItemPart",
    "Option",
    "OptionSet",
    "ResourceRow",
    "Shape",
    "demand_kinds_of",
]

# ----------------------------------------------------------------------------
# Rows: what is limited, and who draws on it.


class ResourceRow(NamedTuple):
    """Something that is limited, in nanos or in pieces.

    Parameters
    ----------
    node
        Where it is; None if several nodes draw on it.
    role
        Rows of equal role on several nodes are of the same kind.
    limit
        What answers draw on it at most.
    name
        What it is called in every problem of a cluster, as far as that can be said.
    owner
        The slot of the device, or the counter set, of which it is what is left; None of anything else.
    """

    node: NodeIndex | None
    role: Hashable
    limit: int
    name: Hashable
    owner: Hashable = None


Draws = tuple[tuple[int, int], ...]
"""Rows, or whatever else has a number, each with how much is taken of it."""


ALL_DEVICES: Final = 0
"""Stands for the number of devices that a node has (allocation mode ``All``)."""


class ItemPart(NamedTuple):
    """So many devices of a type.

    ``attribute``: that whose value they have in common with the rest, or of which no two of them have the same; empty
    for none.
    """

    type: int
    device_count: int
    attribute: str
    is_distinct: bool = False


Item = tuple[ItemPart, ...]
"""One device of a type, all that a node has, or devices that carry a common value, or different ones."""

Option = tuple[tuple[int, int], ...]
"""Items (indices) with how many are needed, all together; nothing, if it is not understood."""


class OptionSet(NamedTuple):
    """Options of which one is needed, by so many demands together at most: by each of them for its part.

    ``ranks``: by option, the least rank of the alternatives that are one (KEP-4816).
    """

    options: tuple[Option, ...]
    ranks: tuple[int, ...] = (0,)
    sharers: int = 1

    @property
    def is_fixed(self) -> bool:
        """Whether there is no choice, and nobody to share with."""
        return len(self.options) == self.sharers == 1


Shape = tuple[OptionSet, ...]
"""Of which every one is needed."""


@dataclass(slots=True)
class DemandKind:
    """Demands that differ in nothing but the amounts that they take of their nodes.

    Parameters
    ----------
    shape
        What they ask for beside these: an index.
    weight
        What placing one of them is worth.
    nodes
        The nodes that they may go to: an index.
    domains
        The domains of nodes, in one of which all of the gang's demands have to be: an index; 0 if there are none.
    domain_limits
        How many of them a domain holds at most: indices.
    members
        The demands.
    claims
        The synthetic alternative of each member; None if it takes nothing of its node.
    """

    shape: int
    weight: int
    nodes: int
    domains: int
    domain_limits: tuple[int, ...]
    members: list[DemandIndex] = field(default_factory=list)
    claims: list[AlternativeIndex | None] = field(default_factory=list)


@dataclass(slots=True)
class DemandKinds:
    """All demands.

    Parameters
    ----------
    types
        By index, an alternative that stands for all those with the same answers about every device.
    items, shapes
        What the indices in shapes and kinds stand for.
    node_sets
        The nodes that demands may go to; first all of them.
    domains
        The domains of nodes that gangs and users of a claim choose among; first those of all who do not.
    domain_limits
        What rules between pods say about how many demands a domain holds.
    kinds
        What there is to place. Demands with a defect are in none.
    gangs
        The demands of each gang, and users of a claim (`dralloc.solve.optimum.relax.claim_users`).
    """

    types: Listed[AlternativeIndex] = field(default_factory=Listed)
    items: Listed[Item] = field(default_factory=Listed)
    shapes: Listed[Shape] = field(default_factory=Listed)
    node_sets: Listed[tuple[int, ...] | None] = field(
        default_factory=lambda: Listed([None])
    )
    domains: Listed[Domains] = field(default_factory=lambda: Listed([{}]))
    domain_limits: Sequence[DomainLimit] = ()
    kinds: list[DemandKind] = field(default_factory=list)
    gangs: Mapping[Hashable, Sequence[DemandIndex]] = field(
        default_factory=dict
    )

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that some item compares."""
        return frozenset(
            part.attribute
            for item in self.items
            for part in item
            if part.attribute
        )


def demand_kinds_of(problem: Problem, stop: Stop) -> DemandKinds:
    """Sort demands by what they ask for."""
    reader = _DemandReader(problem)
    # Of such a gang nobody is ever placed.
    hopeless = {
        demand.gang
        for demand in problem.demands
        if demand.is_defective and demand.quorum is None
    }
    common_rules = _common_rules(problem)
    limits = domain_limits_of(problem)
    kinds: dict[Hashable, DemandKind] = {}
    gangs: dict[Hashable, list[DemandIndex]] = defaultdict(list)
    users_of = {
        member: users
        for users in users_of_claims(problem)
        for member in users.members
    }
    for index, demand in stop.hundreds(numbered(problem.demands)):
        if demand.is_defective or (demand.gang and demand.gang in hopeless):
            continue
        users = users_of.get(index)
        domains = (
            users.domains
            if users
            else _domains_of_gang(demand, common_rules.get(demand.gang, ()))
        )
        key = (
            reader.shape(demand),
            demand.weight,
            reader.nodes(demand),
            reader.domain_choice(domains),
            tuple(limits.of_demand.get(index, ())),
        )
        if key not in kinds:
            kinds[key] = DemandKind(*key)
        kinds[key].members.append(index)
        kinds[key].claims.append(_node_alternative(demand))
        if demand.gang:
            gangs[demand.gang].append(index)
        elif users:
            gangs["users", users.members].append(index)
    demand_kinds = reader.demand_kinds
    demand_kinds.kinds = list(kinds.values())
    demand_kinds.domain_limits = limits.limits
    demand_kinds.gangs = gangs
    return demand_kinds


def _node_alternative(demand: Demand) -> AlternativeIndex | None:
    """The alternative that asks the node itself for amounts, if any."""
    if not demand.claims or not demand.claims[0].is_synthetic:
        return None
    return demand.claims[0].requests[0].alternatives[0].index


def _common_rules(problem: Problem) -> Mapping[str, Set[InterPodRule]]:
    """Return, by gang, the rules of one domain that all of its members carry.

    Members with different rules need not be in the same domain, even if both rules are about the same domains.
    """
    common: dict[str, Set[InterPodRule]] = {}
    for demand in problem.demands:
        carried = {
            role.rule
            for role in demand.roles
            if role.carries and isinstance(role.rule, OneDomain)
        }
        if demand.gang:
            common[demand.gang] = common.get(demand.gang, carried) & carried
    return common


def _domains_of_gang(
    demand: Demand, common_rules: Collection[InterPodRule]
) -> Domains | None:
    """The domains among which the gang of a demand chooses one; None if it needs none."""
    for role in demand.roles:
        if isinstance(role.rule, OneDomain) and role.rule in common_rules:
            return role.rule.domains
    return None


class _DemandReader:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.demand_kinds = DemandKinds()
        # Who has a defect is never placed, and shares nothing.
        self._sharers = Tally(
            claim.key
            for demand in problem.demands
            if not demand.is_defective
            for claim in demand.claims
        )
        self._shapes: dict[Hashable, int] = {}
        self._domains: dict[int, int] = {}
        self._node_sets: dict[int, int] = {}

    def shape(self, demand: Demand) -> int:
        """Return what it asks for beside amounts.

        A claim is granted once for all who use it, to whom it is a part each: whoever of them are placed, their parts
        are no more than the whole. They are all where the same devices are within reach.
        """
        claims = [claim for claim in demand.claims if not claim.is_synthetic]
        keys = tuple(
            [
                (
                    claim_key(self.problem.eligibility, claim),
                    self._sharers[claim.key],
                )
                for claim in claims
            ]
        )
        if keys not in self._shapes:
            choices = [
                choice for claim in claims for choice in self._of_claim(claim)
            ]
            self._shapes[keys] = self.demand_kinds.shapes.number(
                _merged(choices)
            )
        return self._shapes[keys]

    def nodes(self, demand: Demand) -> int:
        """The number of the nodes that it may go to."""
        if demand.nodes is None:
            return 0
        # The problem keeps selections of nodes alive; to hash one takes long.
        selection = id(demand.nodes)
        if selection not in self._node_sets:
            node_set = self.demand_kinds.node_sets.number(demand.nodes)
            self._node_sets[selection] = node_set
        return self._node_sets[selection]

    def domain_choice(self, domains: Domains | None) -> int:
        """The number of the domains of which one is chosen; None if none is."""
        if domains is None:
            return 0
        # Gangs have rules of their own, most often about the same domains.
        if id(domains) not in self._domains:
            key = "domains", *sorted(domains.items())
            domain_choice = self.demand_kinds.domains.number(domains, key)
            self._domains[id(domains)] = domain_choice
        return self._domains[id(domains)]

    def _of_claim(self, claim: Claim) -> Iterator[OptionSet]:
        """A choice for each request, or for several that have to agree."""
        sharers = self._sharers[claim.key]
        waiting = {request.name: request for request in claim.requests}
        for constraint in claim.constraints:
            together = [
                request
                for request in waiting.values()
                if _is_covered(constraint, request)
            ]
            specs = [request.alternatives[0] for request in together]
            if _are_bound(constraint, specs):
                bundle = ((self._item(specs, constraint), 1),)
                yield OptionSet((bundle,), sharers=sharers)
                for request in together:
                    del waiting[request.name]
        for request in waiting.values():
            ranks: dict[Option, int] = {}
            for spec in request.alternatives:
                ranks.setdefault(self._option(spec), spec.rank)
            yield OptionSet(tuple(ranks), tuple(ranks.values()), sharers)

    def _item(
        self, specs: Sequence[Alternative], constraint: Constraint
    ) -> int:
        counts = summed(
            (
                (self._type(spec), constraint.compared(spec.name)),
                spec.count or 1,
            )
            for spec in specs
        )
        is_distinct = constraint.kind is ConstraintKind.DISTINCT
        # Sorted, so that the same bundle is the same item whoever asks for it.
        parts = sorted(
            ItemPart(type_, count, attribute, is_distinct)
            for (type_, attribute), count in counts.items()
        )
        return self.demand_kinds.items.number(tuple(parts))

    def _option(self, spec: Alternative) -> Option:
        """Admin access takes nothing that others could not have."""
        if spec.admin:
            return ()
        count, times = (
            (ALL_DEVICES, 1) if spec.count is None else (1, spec.count)
        )
        part = ItemPart(self._type(spec), count, "")
        item = self.demand_kinds.items.number((part,))
        return ((item, times),)

    def _type(self, spec: Alternative) -> int:
        key = self.problem.eligibility.request_key(spec.index)
        return self.demand_kinds.types.number(spec.index, key)


def _is_covered(constraint: Constraint, request: Request) -> bool:
    """Whether the constraint is about the devices for the request, which leaves no choice."""
    return len(request.alternatives) == 1 and constraint.covers(
        request.alternatives[0].name
    )


def _are_bound(constraint: Constraint, specs: Sequence[Alternative]) -> bool:
    """Whether devices for the requests, at least two, all carry a common value; or those for one, each another one.

    A single device need not carry any value that others can have.
    """
    if constraint.scope:
        return False
    match constraint.kind:
        case ConstraintKind.MATCH:
            pass
        case ConstraintKind.DISTINCT:
            # How several requests share values out is left out.
            if len(specs) > 1:
                return False
        case _:
            assert_never(constraint.kind)
    if any(spec.admin or spec.count is None for spec in specs):
        return False
    return sum(spec.count or 0 for spec in specs) > 1


def _merged(choices: Sequence[OptionSet]) -> Shape:
    """The same with all that leaves no choice as one."""
    fixed = summed(
        pair
        for choice in choices
        if choice.is_fixed
        for pair in choice.options[0]
    )
    open_choices = [choice for choice in choices if not choice.is_fixed]
    if fixed:
        return OptionSet((tuple(sorted(fixed.items())),)), *open_choices
    return tuple(open_choices)
