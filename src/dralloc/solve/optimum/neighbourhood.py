"""A neighbourhood of an answer as a problem of its own, and its way to the solver.

The demands of some blocks are freed: they are taken out of the answer, and asked for again on some nodes, with all that
the rest of the answer holds in use there. So each answer to this problem, beside the rest, is an answer to the whole:

- what one device, counter or capacity has to give is in the ledger, which knows what the rest takes;
- gangs, trees of gangs, shared claims and constraints over groups are within blocks, which are freed as a whole;
- of rules between pods, those of the rest that have a role in a rule of somebody freed *stand by*: they are asked for,
  too, without claims and on their own node only. An answer that loses one of them is not taken;
- of budgets, what the rest uses is used.

First the answer in hand, and which demands can only be decided together; then the neighbourhood, in which nodes and
demands are free; then the task, which is solved in this process or in another one.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from networkx.utils import UnionFind

from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.user_rules import Budget
from dralloc.problem import Charge, Demand, DeviceIndex, NodeIndex, Problem
from dralloc.problem.indices import DemandIndex, grouped, indices, numbered
from dralloc.problem.inter_pod import InterPodRule
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, charged_grants, spent
from dralloc.problem.subproblem import cut, places
from dralloc.solve.optimum.candidates import CandidateSite, survey
from dralloc.solve.optimum.component import build_for
from dralloc.solve.optimum.model import Model, equal_demands, in_order
from dralloc.solve.optimum.objective import Objective
from dralloc.solve.optimum.parallel import Excerpts
from dralloc.solve.optimum.rows import fix_cost
from dralloc.solve.optimum.search import as_few, minimise
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop, Stopped
from dralloc.solve.work import Excerpt

__all__ = [
    "Bonds",
    "ExtraRules",
    "Incumbent",
    "Neighbourhood",
    "NeighbourhoodTask",
    "WarmUp",
    "as_task",
    "neighbourhood",
]

# ----------------------------------------------------------------------------
# The answer in hand of a search, with what is in use beside it.


class Incumbent:
    """An answer to a problem that can be changed placement by placement.

    Attributes
    ----------
    placements
        By demand, of those that are placed.
    ledger
        What is in use with them.
    """

    def __init__(
        self, problem: Problem, placements: Iterable[Placement]
    ) -> None:
        self.problem = problem
        self.placements: dict[DemandIndex, Placement] = {}
        self.ledger = Ledger(problem)
        self._on_node: list[dict[DemandIndex, None]] = [
            {} for _ in problem.nodes
        ]
        for placement in placements:
            self.enter(placement)

    def enter(self, placement: Placement) -> None:
        """Add the placement of a demand that is not placed."""
        self.placements[placement.demand] = placement
        self._on_node[placement.node][placement.demand] = None
        for device, charge in self._charges(placement):
            self.ledger.enter(
                self.problem.devices[device],
                charge,
                share=self.problem.devices[device].shareable,
            )

    def withdraw(self, demand: DemandIndex) -> Placement:
        """Take out the placement of a demand, and return it."""
        placement = self.placements.pop(demand)
        del self._on_node[placement.node][demand]
        for device, charge in self._charges(placement):
            self.ledger.revoke(
                self.problem.devices[device],
                charge,
                share=self.problem.devices[device].shareable,
            )
        return placement

    @contextmanager
    def without(self, demands: Iterable[DemandIndex]) -> Iterator[None]:
        """Inside of the block, these demands are not placed."""
        withdrawn = [
            self.withdraw(demand)
            for demand in demands
            if demand in self.placements
        ]
        try:
            yield
        finally:
            for placement in withdrawn:
                self.enter(placement)

    def on_node(self, node: NodeIndex) -> Sequence[DemandIndex]:
        """The demands that are placed on a node."""
        return tuple(self._on_node[node])

    def in_order(self) -> tuple[Placement, ...]:
        """The placements in the order of the demands."""
        return tuple(
            self.placements[demand] for demand in sorted(self.placements)
        )

    def _charges(
        self, placement: Placement
    ) -> Iterator[tuple[DeviceIndex, Charge]]:
        for _, device, charge in charged_grants(self.problem, (placement,)):
            yield device, charge


# ----------------------------------------------------------------------------
# Which demands a search can only decide together, and which have to stand by while
# others move.


class Bonds:
    """What ties demands to each other beyond the nodes that they share.

    Parameters
    ----------
    together
        Further demands that have to be decided together.

    Attributes
    ----------
    blocks
        The demands in blocks: members of a gang or of a tree of gangs, users of a claim, and demands with a constraint
        in common are in the same block, and are freed together.
    block_of
        By demand, the index of its block.
    with_role
        By rule between pods, the demands that have a role in it. Those that stay where they are have to be known when
        others move.
    """

    def __init__(
        self, problem: Problem, together: Iterable[Sequence[DemandIndex]] = ()
    ) -> None:
        users = Tally(
            claim.key for demand in problem.demands for claim in demand.claims
        )
        forest: UnionFind[Hashable] = UnionFind()
        for number, demand in numbered(problem.demands):
            shared_claims = [
                ("claim", claim.key)
                for claim in demand.claims
                if users[claim.key] > 1
            ]
            scopes = [("scope", scope) for scope in demand.group_scopes]
            gang = [("gang", demand.placed_with)] if demand.placed_with else []
            forest.union(("demand", number), *shared_claims, *scopes, *gang)
        for members in together:
            forest.union(*(("demand", number) for number in members))
        blocks = grouped(
            (forest["demand", number], number)
            for number in indices(problem.demands)
        )
        self.blocks: Sequence[tuple[DemandIndex, ...]] = [
            tuple(block) for block in blocks.values()
        ]
        self.block_of: Mapping[DemandIndex, int] = {
            demand: index
            for index, block in enumerate(self.blocks)
            for demand in block
        }
        self.with_role: Mapping[InterPodRule, Sequence[DemandIndex]] = grouped(
            _roles(problem)
        )
        self._problem = problem
        self._allowed: dict[int, frozenset[int]] = {}

    def candidates(
        self, demand: DemandIndex, nodes: Set[NodeIndex]
    ) -> Set[NodeIndex]:
        """Those of the nodes that the demand may go to."""
        allowed = self._problem.demands[demand].nodes
        if allowed is None:
            return nodes
        # Demands with the same selection of nodes most often have the same object.
        if id(allowed) not in self._allowed:
            self._allowed[id(allowed)] = frozenset(allowed)
        return nodes & self._allowed[id(allowed)]


def _roles(problem: Problem) -> Iterator[tuple[InterPodRule, DemandIndex]]:
    for number, demand in numbered(problem.demands):
        for role in demand.roles:
            yield role.rule, number


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Demands that are freed, and where they can go.

    Parameters
    ----------
    excerpt
        The problem, in numbers of its own.
    freed
        The demands of the whole problem that it decides.
    standing_by
        Those that have to stay where they are.
    before
        The placements of those that are freed, in the numbers of the whole.
    hint
        How it is now, in numbers of the excerpt.
    """

    excerpt: Excerpt
    freed: Sequence[DemandIndex]
    standing_by: Collection[DemandIndex]
    before: tuple[Placement, ...]
    hint: tuple[Placement, ...]

    def after(
        self, placements: Iterable[Placement]
    ) -> tuple[Placement, ...] | None:
        """An answer to the excerpt as placements of those that are freed; None if somebody who stands by is lost."""
        outward = self.excerpt.outward(placements)
        placements_of_freed = [
            placement
            for placement in outward
            if placement.demand not in self.standing_by
        ]
        if len(outward) - len(placements_of_freed) < len(self.standing_by):
            return None
        return tuple(placements_of_freed)


def neighbourhood(
    incumbent: Incumbent,
    bonds: Bonds,
    blocks: Iterable[int],
    nodes: Collection[NodeIndex],
) -> Neighbourhood:
    """Free some blocks, for some nodes and those where the blocks' demands are now.

    Parameters
    ----------
    blocks
        Indices into the blocks of the bonds.
    nodes
        Where all of them may go.
    """
    problem = incumbent.problem
    freed = sorted(demand for block in blocks for demand in bonds.blocks[block])
    before = tuple(
        incumbent.placements[demand]
        for demand in freed
        if demand in incumbent.placements
    )
    homes = grouped(
        (bonds.block_of[placement.demand], placement.node)
        for placement in before
    )
    stations = {
        demand: incumbent.placements[demand].node
        for demand in _bystanders(incumbent, bonds, freed)
    }
    kept_nodes = sorted(
        {*nodes, *(placement.node for placement in before), *stations.values()}
    )

    inside = places(kept_nodes)
    demands_by_number: dict[DemandIndex, Demand] = {}
    for demand in freed:
        allowed = bonds.candidates(
            demand, {*nodes, *homes.get(bonds.block_of[demand], ())}
        )
        demands_by_number[demand] = replace(
            problem.demands[demand],
            nodes=tuple(inside[node] for node in sorted(allowed)),
        )
    rules = {
        role.rule for demand in freed for role in problem.demands[demand].roles
    }
    for demand, station in stations.items():
        demands_by_number[demand] = _standing_by(
            problem.demands[demand], inside[station], rules
        )

    demands = sorted(demands_by_number)
    with incumbent.without(freed):
        part = cut(
            problem,
            kept_nodes,
            demands=[demands_by_number[demand] for demand in demands],
            ledger=incumbent.ledger,
        )
        small = replace(part.problem, budgets=tuple(_budgets(incumbent)))
    excerpt = Excerpt(small, demands, part.nodes, part.devices)
    present = [
        *before,
        *(
            Placement(demand, station, ())
            for demand, station in stations.items()
        ),
    ]
    hint = excerpt.inward(
        sorted(present, key=lambda placement: placement.demand)
    )
    return Neighbourhood(
        excerpt, freed, frozenset(stations), before, tuple(hint)
    )


def _bystanders(
    incumbent: Incumbent, bonds: Bonds, freed: Iterable[DemandIndex]
) -> list[DemandIndex]:
    """Those that are placed, are not freed, and have a role in a rule in which somebody freed has one."""
    moving = set(freed)
    rules = dict.fromkeys(
        role.rule
        for demand in moving
        for role in incumbent.problem.demands[demand].roles
    )
    affected = dict.fromkeys(
        demand for rule in rules for demand in bonds.with_role[rule]
    )
    return [
        demand
        for demand in affected
        if demand not in moving and demand in incumbent.placements
    ]


def _standing_by(
    demand: Demand, node: NodeIndex, rules: Collection[InterPodRule]
) -> Demand:
    """A demand that holds what it holds, stays where it is, and still has its roles in these rules."""
    roles = tuple(role for role in demand.roles if role.rule in rules)
    return demand.by_itself(claims=(), nodes=(node,), roles=roles)


def _budgets(incumbent: Incumbent) -> Iterator[Budget]:
    """The budgets with what the answer uses of them used."""
    problem = incumbent.problem
    uses = {
        resource: spent(problem, incumbent.placements.values(), resource)
        for resource in {budget.resource for budget in problem.budgets}
    }
    for budget in problem.budgets:
        yield replace(
            budget,
            used=budget.used + uses[budget.resource].get(budget.namespace, 0),
        )


# ----------------------------------------------------------------------------
# A neighbourhood on its way to the solver, in this process or in another one.


class ExtraRules(Protocol):
    """Rules about who is placed instead of whom. They can be sent, and name demands in no numbers."""

    @property
    def is_limited(self) -> bool:
        """Whether they limit a sum over all demands."""

    def together(self, problem: Problem) -> Iterable[Sequence[DemandIndex]]:
        """The demands that have to be decided together."""

    def beside(
        self, problem: Problem, placements: Iterable[Placement]
    ) -> ExtraRules:
        """The rules for others, beside these placements."""

    def add_to(self, model: Model) -> None:
        """Add the rules to a model, as far as they are about its demands."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Has a process import what neighbourhoods need before there are any."""

    def run(self) -> None:
        """Use the solver, which is imported when it is used first."""
        cp_model.CpModel()


@dataclass(frozen=True, slots=True)
class NeighbourhoodTask:
    """What one run of the solver decides. It can be sent: everything in it is plain data.

    Parameters
    ----------
    excerpt
        Those demands of the neighbourhood that have anywhere to go, with all that they could touch.
    sites
        By demand of the excerpt, where it could go.
    hint
        How it is now, in numbers of the excerpt.
    tiers
        What counts, most important first.
    extra
        Rules beyond those of the problem.
    options
        Of these the seed counts.
    effort
        How much work of the solver it may take (see `Stop.effort`): so its answer does not depend on the clock.
    end
        When to give up all the same, in seconds since the epoch.
    failures
        Selectors that failed on a device, which is left out.
    """

    excerpt: Excerpt
    sites: Mapping[DemandIndex, tuple[CandidateSite, ...]]
    hint: Sequence[Placement]
    tiers: Sequence[Objective]
    extra: ExtraRules | None
    options: Options
    effort: float
    end: float
    failures: tuple[AllocationError, ...]

    @without_garbage_collection()
    def run(self) -> tuple[Placement, ...] | None:
        """Solve it; None if there is no answer that is better than the hint.

        All tiers are one cost, as far as the numbers allow: for most neighbourhoods one run is enough.
        """
        stop = Stop.after(
            self.end - time.time() if self.end < inf else None
        ).limited(self.effort)
        problem = self.excerpt.problem
        answer: Sequence[Placement] | None = None
        try:
            model = build_for(problem, self.sites, stop)
            if self.extra:
                self.extra.add_to(model)
            equals = equal_demands(model, stop)
            for cost in as_few([tier.terms(model) for tier in self.tiers]):
                model.hint(
                    in_order(equals, self.hint if answer is None else answer)
                )
                outcome = minimise(
                    model.cp, cost, self.options, stop, presolve=False
                )
                values = outcome.values
                if values is None:
                    break
                answer = _placements(model, values)
                fix_cost(
                    model.cp,
                    cost,
                    sum(
                        factor * values[variable.index]
                        for variable, factor in cost
                    ),
                    "tiers",
                )
        except Stopped:
            return None
        return None if answer is None else tuple(self.excerpt.outward(answer))


def _placements(model: Model, values: Sequence[int]) -> Sequence[Placement]:
    return model.placements(lambda variable: values[variable.index])


def as_task(  # noqa: PLR0913 - what to solve, and how
    area: Neighbourhood,
    tiers: Sequence[Objective],
    extra: ExtraRules | None,
    options: Options,
    effort: float,
    stop: Stop,
) -> NeighbourhoodTask | None:
    """A neighbourhood as a part for the solver; None if nobody in it has anywhere to go.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set.
    Stopped
        It is time to stop.
    """
    candidates = survey(
        area.excerpt.problem, strict_cel=options.strict_cel, stop=stop
    )
    if not candidates.sites:
        return None
    excerpt, inside = Excerpts(area.excerpt.problem).of_sites(candidates.sites)
    end = inf if stop.seconds() == inf else time.time() + stop.seconds()
    return NeighbourhoodTask(
        excerpt,
        inside,
        excerpt.inward(area.hint),
        tiers,
        extra,
        options,
        effort,
        end,
        candidates.failures,
    )
