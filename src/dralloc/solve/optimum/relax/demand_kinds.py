"""What demands ask of a node, in the few words that a relaxation understands.

A demand needs amounts of its node, and for each of its requests one of some options: so many of an item, which is a
device of a type, or a bundle of devices that carry a common value. What is not understood is asked for by nobody. So
whatever a demand asks for here, it takes in every answer to the problem.

First the rows, which say what is limited; then what demands ask for; then amounts, which are CPU, memory and whatever
else nodes have beside devices.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, assert_never

import numpy as np
import numpy.typing as npt

from dralloc.problem import (
    Alternative,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    Problem,
    Request,
)
from dralloc.problem.equivalence import claim_key
from dralloc.problem.grouping import summed
from dralloc.problem.inter_pod import Domains, OneDomain
from dralloc.problem.ledger import Ledger
from dralloc.problem.supply import NODE_DRIVER
from dralloc.solve.optimum.classes.demand_classes import Listed
from dralloc.solve.optimum.stopping import Stop

__all__ = [
    "Amounts",
    "DemandKind",
    "DemandKinds",
    "Draws",
    "Integers",
    "Item",
    "Option",
    "ResourceRow",
    "Shape",
    "amounts_of",
    "demand_kinds_of",
]

# ----------------------------------------------------------------------------
# Rows: what is limited, and who draws on it.


class ResourceRow(NamedTuple):
    """Something that is limited, in nanos or in pieces.

    Parameters
    ----------
    node
        Where it is; -1 if several nodes draw on it.
    role
        Rows of equal role on several nodes are of the same kind.
    limit
        What answers draw on it at most.
    """

    node: int
    role: Hashable
    limit: int


Draws = tuple[tuple[int, int], ...]
"""Rows, or whatever else has a number, each with how much is taken of it."""


class ItemPart(NamedTuple):
    """So many devices of a type, with the attribute whose value they have in common with the rest; empty for none."""

    type: int
    number: int
    attribute: str


Item = tuple[ItemPart, ...]
"""One device of a type, or devices that carry a common value (``matchAttribute``)."""

Option = tuple[tuple[int, int], ...]
"""Items (indices) with how many are needed, all together; nothing, if it is not understood."""

Choice = tuple[Option, ...]
"""Of which one is needed."""

Shape = tuple[Choice, ...]
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
    members
        The demands.
    claims
        The synthetic alternative of each member; None if it takes nothing of its node.
    """

    shape: int
    weight: int
    nodes: int
    domains: int
    members: list[int] = field(default_factory=list)
    claims: list[int | None] = field(default_factory=list)


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
        The domains of nodes that gangs choose among; first those of gangs that do not.
    kinds
        What there is to place. Demands with a defect are in none.
    gangs
        The demands of each gang.
    """

    types: Listed[int] = field(default_factory=Listed)
    items: Listed[Item] = field(default_factory=Listed)
    shapes: Listed[Shape] = field(default_factory=Listed)
    node_sets: Listed[tuple[int, ...] | None] = field(
        default_factory=lambda: Listed([None])
    )
    domains: Listed[Domains] = field(default_factory=lambda: Listed([{}]))
    kinds: list[DemandKind] = field(default_factory=list)
    gangs: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that some item compares."""
        return frozenset(
            part.attribute for item in self.items for part in item if part.attribute
        )


def demand_kinds_of(problem: Problem, stop: Stop) -> DemandKinds:
    """Sort demands by what they ask for."""
    reader = _DemandReader(problem)
    wanted = reader.wanted
    # Of such a gang nobody is ever placed.
    hopeless = {
        demand.gang
        for demand in problem.demands
        if demand.is_defective and demand.quorum is None
    }
    kinds: dict[Hashable, DemandKind] = {}
    gangs: dict[str, list[int]] = defaultdict(list)
    for number, demand in enumerate(stop.hundreds(problem.demands)):
        if demand.is_defective or (demand.gang and demand.gang in hopeless):
            continue
        key = (
            reader.shape(demand),
            demand.weight,
            reader.nodes(demand),
            reader.domains(demand),
        )
        if key not in kinds:
            kinds[key] = DemandKind(*key)
        kinds[key].members.append(number)
        kinds[key].claims.append(_node_alternative(demand))
        if demand.gang:
            gangs[demand.gang].append(number)
    wanted.kinds, wanted.gangs = list(kinds.values()), gangs
    return wanted


def _node_alternative(demand: Demand) -> int | None:
    """What wanted the node itself, for amounts."""
    if not demand.claims or not demand.claims[0].is_synthetic:
        return None
    return demand.claims[0].requests[0].alternatives[0].index


class _DemandReader:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.wanted = DemandKinds()
        listed = Tally(
            claim.key for demand in problem.demands for claim in demand.claims
        )
        self._shared = {key for key, times in listed.items() if times > 1}
        self._choices: dict[Hashable, tuple[Choice, ...]] = {}
        self._shapes: dict[Hashable, int] = {}
        self._domains: dict[int, int] = {}

    def shape(self, demand: Demand) -> int:
        """What it asks for beside amounts. A claim that others list too may be granted with one of them."""
        claims = [
            claim
            for claim in demand.claims
            if not claim.is_synthetic and claim.key not in self._shared
        ]
        keys = tuple([claim_key(self.problem.eligibility, claim) for claim in claims])
        if keys not in self._shapes:
            choices = [choice for claim in claims for choice in self._of_claim(claim)]
            self._shapes[keys] = self.wanted.shapes.number(_merged(choices))
        return self._shapes[keys]

    def nodes(self, demand: Demand) -> int:
        """The number of the nodes that it may go to."""
        if demand.nodes is None:
            return 0
        return self.wanted.node_sets.number(demand.nodes)

    def domains(self, demand: Demand) -> int:
        """The number of the domains among which its gang chooses one."""
        rules = [
            role.rule
            for role in demand.roles
            if role.carries and isinstance(role.rule, OneDomain)
        ]
        if not rules or not demand.gang:
            return 0
        domains = rules[0].domains
        # Gangs have rules of their own, most often about the same domains.
        if id(domains) not in self._domains:
            key = "domains", *sorted(domains.items())
            self._domains[id(domains)] = self.wanted.domains.number(domains, key)
        return self._domains[id(domains)]

    def _of_claim(self, claim: Claim) -> Iterator[Choice]:
        """A choice for each request, or for several that have to agree."""
        waiting = {request.name: request for request in claim.requests}
        for constraint in claim.constraints:
            together = [
                request
                for request in waiting.values()
                if _is_covered(constraint, request)
            ]
            specs = [request.alternatives[0] for request in together]
            if _is_bundle(constraint, specs):
                yield (((self._item(specs, constraint), 1),),)
                for request in together:
                    del waiting[request.name]
        for request in waiting.values():
            yield tuple(
                dict.fromkeys(self._option(one) for one in request.alternatives)
            )

    def _item(self, specs: Sequence[Alternative], constraint: Constraint) -> int:
        parts = summed(
            ((self._type(one), constraint.compared(one.name)), one.count or 1)
            for one in specs
        )
        item = tuple(
            sorted(
                ItemPart(type_, number, attribute)
                for (type_, attribute), number in parts.items()
            )
        )
        return self.wanted.items.number(item)

    def _option(self, spec: Alternative) -> Option:
        """Admin access takes nothing that others could not have; how many ``All`` are is not said."""
        if spec.admin or spec.count is None:
            return ()
        return (
            (
                self.wanted.items.number((ItemPart(self._type(spec), 1, ""),)),
                spec.count,
            ),
        )

    def _type(self, spec: Alternative) -> int:
        return self.wanted.types.number(
            spec.index, self.problem.eligibility.request_key(spec.index)
        )


def _is_covered(constraint: Constraint, request: Request) -> bool:
    """Whether the constraint is about the devices for the request, which leaves no choice."""
    return len(request.alternatives) == 1 and constraint.covers(
        request.alternatives[0].name
    )


def _is_bundle(constraint: Constraint, specs: Sequence[Alternative]) -> bool:
    """Whether all devices for the requests carry a common value, and at least two do.

    A single device need not carry any value that others can have.
    """
    match constraint.kind:
        case ConstraintKind.MATCH:
            if constraint.scope:
                return False
        case ConstraintKind.DISTINCT:
            # Devices that differ need not be found together.
            return False
        case _:
            assert_never(constraint.kind)
    if any(one.admin or one.count is None for one in specs):
        return False
    return sum(one.count or 0 for one in specs) > 1


def _merged(choices: Sequence[Choice]) -> Shape:
    """The same with all that leaves no choice as one."""
    fixed = summed(pair for choice in choices if len(choice) == 1 for pair in choice[0])
    others = [choice for choice in choices if len(choice) > 1]
    if fixed:
        return ((tuple(sorted(fixed.items())),), *others)
    return tuple(others)


# ----------------------------------------------------------------------------
# CPU, memory and whatever else nodes have beside devices, and what demands take of it.

Integers = npt.NDArray[np.int64]

_MOST_KINDS: Final = 64
"""Of more kinds of nodes than this it is not asked what demands take of them."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What nodes have beside devices.

    Parameters
    ----------
    names
        Of what.
    rows
        For each name by node: the row; none if there is no end of it.
    asked
        By synthetic alternative: what it takes, by name.
    """

    names: Sequence[str]
    rows: Sequence[Mapping[int, int]]
    asked: Mapping[int, Mapping[str, int]]


def amounts_of(
    problem: Problem, wanted: DemandKinds, ledger: Ledger, rows: list[ResourceRow]
) -> Amounts:
    """Enter a row for each amount that a node has an end of.

    Notes
    -----
    A synthetic alternative takes the same of a name wherever there is an end of it. If it did not, the least would
    count. What it takes in counters (KEP-5517) is left out.
    """
    homes: dict[Hashable, list[tuple[int, int]]] = {}
    for node, seen in enumerate(problem.nodes):
        for device in seen.pools[-1].devices if seen.pools else ():
            if problem.devices[device].id.driver == NODE_DRIVER:
                homes.setdefault(problem.eligibility.device_key(device), []).append(
                    (node, device)
                )
    if len(homes) > _MOST_KINDS:
        homes = {}
    alternatives = sorted(
        {claim for kind in wanted.kinds for claim in kind.claims if claim is not None}
    )
    samples = [members[0][1] for members in homes.values()]
    asked = {
        alternative: _least(problem, alternative, samples)
        for alternative in alternatives
    }
    names = sorted({name for amounts in asked.values() for name in amounts})
    rows_of: dict[str, dict[int, int]] = {name: {} for name in names}
    for node, device in sorted(pair for members in homes.values() for pair in members):
        view = problem.devices[device]
        for name in view.capacity:
            if name in rows_of:
                rows_of[name][node] = len(rows)
                rows.append(
                    ResourceRow(
                        node, ("amount", name), max(0, ledger.capacity_left(view, name))
                    )
                )
    return Amounts(names, [rows_of[name] for name in names], asked)


def _least(
    problem: Problem, alternative: int, devices: Sequence[int]
) -> Mapping[str, int]:
    """What the alternative takes of the devices that have an end of it, at least."""
    found: dict[str, int] = {}
    for device in devices:
        charge = problem.eligibility.charge(alternative, device)
        for name, amount in charge.capacity if charge else ():
            found[name] = min(amount, found.get(name, amount))
    return found
