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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple, Protocol

from networkx.utils import UnionFind

from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.user_rules import Budget
from dralloc.problem import (
    Charge,
    CounterIndex,
    Demand,
    DeviceIndex,
    NodeIndex,
    Problem,
)
from dralloc.problem.indices import DemandIndex, grouped, indices, numbered
from dralloc.problem.inter_pod import InterPodRule
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import Eligibility
from dralloc.problem.solution import Placement, charged_grants, spent
from dralloc.problem.subproblem import cut, places
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.component import build_for
from dralloc.solve.optimum.model import Model, equal_demands, in_order
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.rows import fix_cost
from dralloc.solve.optimum.search import as_few, minimise, row_of_better
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop, Stopped
from dralloc.solve.work import Excerpt, PackedExcerpt, Parcel

__all__ = [
    "Bonds",
    "ExtraRules",
    "Incumbent",
    "Neighbourhood",
    "NeighbourhoodAnswer",
    "NeighbourhoodTask",
    "WarmUp",
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
    counters
        Its counters, by their numbers in the whole.
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
    counters: Sequence[CounterIndex]
    freed: Sequence[DemandIndex]
    standing_by: Collection[DemandIndex]
    before: tuple[Placement, ...]
    hint: tuple[Placement, ...]

    def packed(self, eligibility: Parcel[Eligibility]) -> PackedExcerpt:
        """The problem to be sent, given who may serve whom in the whole problem."""
        return PackedExcerpt.of(self.excerpt, self.counters, eligibility)

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
        excerpt,
        part.counters,
        freed,
        frozenset(stations),
        before,
        tuple(hint),
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


class NeighbourhoodAnswer(NamedTuple):
    """The outcome of a neighbourhood.

    Parameters
    ----------
    placements
        In numbers of its excerpt; None if there is nothing better than before, or nothing was found.
    failures
        Selectors that failed on a device, which was left out.
    """

    placements: Sequence[Placement] | None
    failures: Sequence[AllocationError] = ()


@dataclass(frozen=True, slots=True)
class NeighbourhoodTask:
    """What one run of the solver decides. It can be sent: everything in it is plain data.

    Parameters
    ----------
    packed
        The neighbourhood as a problem.
    hint
        How it is now, in numbers of the excerpt.
    tiers
        What counts, most important first.
    aim
        One of so many tiers, the first ones, has to become better, without loss in those before it.
    extra
        Rules beyond those of the problem.
    options
        Of these the seed counts, and whether selectors may fail.
    effort
        How much work of the solver it may take (see `Stop.effort`): so its answer does not depend on the clock.
    end
        When to give up all the same, in seconds since the epoch.
    """

    packed: PackedExcerpt
    hint: Sequence[Placement]
    tiers: Sequence[Objective]
    aim: int
    extra: ExtraRules | None
    options: Options
    effort: float
    end: float

    @without_garbage_collection()
    def run(self) -> NeighbourhoodAnswer:
        """Solve it.

        Raises
        ------
        AllocationError
            A selector failed on a device, and ``strict_cel`` is set.
        """
        seconds = self.end - time.time() if self.end < inf else None
        stop = Stop.after(seconds).limited(self.effort)
        problem = self.packed.unpacked()
        failures: Sequence[AllocationError] = ()
        placements = None
        with suppress(Stopped):
            candidates = survey(
                problem, strict_cel=self.options.strict_cel, stop=stop
            )
            failures = candidates.failures
            if candidates.sites:
                model = build_for(problem, candidates.sites, stop)
                if self.extra:
                    self.extra.add_to(model)
                placements = self._better(model, stop)
        return NeighbourhoodAnswer(placements, failures)

    def _better(self, model: Model, stop: Stop) -> Sequence[Placement] | None:
        """Find a better answer than the hint; None if there is none, or if it is not found with so much work.

        All tiers are one cost, as far as the numbers allow: for most neighbourhoods one run is enough.
        """
        if not self._ask_for_better(model):
            return None
        equals = equal_demands(model, stop)
        answer: Sequence[Placement] | None = None
        for cost in as_few([tier.terms(model) for tier in self.tiers]):
            model.hint(
                in_order(equals, self.hint if answer is None else answer)
            )
            outcome = minimise(
                model.cp,
                cost,
                self.options,
                stop,
                presolve=False,
                hint_is_answer=answer is not None,
            )
            values = outcome.values
            if values is None:
                break
            answer = _placements(model, values)
            reached = sum(
                factor * values[variable.index] for variable, factor in cost
            )
            fix_cost(model.cp, cost, reached, "tiers")
        return answer

    def _ask_for_better(self, model: Model) -> bool:
        """Rule out all that is no better than the hint, and return whether anything else can be.

        Most often there is nothing better. That is proven several times as fast as that the hint is one of the best in
        all tiers: most often a linear program says that there is no room for one demand more.
        """
        subset = DemandSubset(model.problem, list(model.sites), model.sites)
        aims = self.tiers[: self.aim]
        row, limit = row_of_better(
            [tier.terms(model) for tier in aims],
            [tier.cost(subset, self.hint) for tier in aims],
        )
        if limit < 0:
            return False
        fix_cost(model.cp, row, limit, "tiers")
        return True


def _placements(model: Model, values: Sequence[int]) -> Sequence[Placement]:
    return model.placements(lambda variable: values[variable.index])
