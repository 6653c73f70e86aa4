"""A neighbourhood of an answer as a problem of its own.

The demands of some blocks are freed: they are taken out of the answer, and asked for again on some nodes, with all that
the rest of the answer holds in use there. So each answer to this problem, beside the rest, is an answer to the whole:

- what one device, counter or capacity has to give is in the ledger, which knows what the rest takes;
- gangs, trees of gangs, shared claims and constraints over groups are within blocks, which are freed as a whole;
- of rules between pods, those of the rest that have a role in a rule of somebody freed *stand by*: they are asked for,
  too, without claims and on their own node only. An answer that loses one of them is not taken;
- of budgets, what the rest uses is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dralloc.objects.budget import Budget
from dralloc.problem import Demand
from dralloc.problem.grouping import grouped
from dralloc.problem.inter_pod import InterPodRule
from dralloc.problem.solution import Placement
from dralloc.problem.spending import spent
from dralloc.problem.subproblem import cut, places
from dralloc.solve.excerpt import Excerpt
from dralloc.solve.optimum.improve.bonds import Bonds
from dralloc.solve.optimum.improve.incumbent import Incumbent

__all__ = ["Neighbourhood", "neighbourhood"]


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
    freed: Sequence[int]
    standing_by: Collection[int]
    before: tuple[Placement, ...]
    hint: tuple[Placement, ...]

    def after(self, placements: Iterable[Placement]) -> tuple[Placement, ...] | None:
        """An answer to the excerpt as placements of those that are freed; None if somebody who stands by is lost."""
        outward = self.excerpt.outward(placements)
        kept = [
            placement
            for placement in outward
            if placement.demand not in self.standing_by
        ]
        if len(outward) - len(kept) < len(self.standing_by):
            return None
        return tuple(kept)


def neighbourhood(
    incumbent: Incumbent, bonds: Bonds, blocks: Iterable[int], nodes: Collection[int]
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
        (bonds.block_of[placement.demand], placement.node) for placement in before
    )
    stations = {
        demand: incumbent.placements[demand].node
        for demand in _bystanders(incumbent, bonds, freed)
    }
    kept_nodes = sorted(
        {*nodes, *(placement.node for placement in before), *stations.values()}
    )

    inside = places(kept_nodes)
    asked: dict[int, Demand] = {}
    for demand in freed:
        allowed = bonds.candidates(
            demand, {*nodes, *homes.get(bonds.block_of[demand], ())}
        )
        asked[demand] = replace(
            problem.demands[demand],
            nodes=tuple(inside[node] for node in sorted(allowed)),
        )
    rules = {role.rule for demand in freed for role in problem.demands[demand].roles}
    for demand, station in stations.items():
        asked[demand] = _standing_by(problem.demands[demand], inside[station], rules)

    demands = sorted(asked)
    with incumbent.without(freed):
        part = cut(
            problem,
            kept_nodes,
            demands=[asked[demand] for demand in demands],
            ledger=incumbent.ledger,
        )
        small = replace(part.problem, budgets=tuple(_budgets(incumbent)))
    excerpt = Excerpt(small, demands, part.nodes, part.devices)
    present = [
        *before,
        *(Placement(demand, station, ()) for demand, station in stations.items()),
    ]
    hint = excerpt.inward(sorted(present, key=lambda placement: placement.demand))
    return Neighbourhood(excerpt, freed, frozenset(stations), before, tuple(hint))


def _bystanders(incumbent: Incumbent, bonds: Bonds, freed: Iterable[int]) -> list[int]:
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


def _standing_by(demand: Demand, node: int, rules: Collection[InterPodRule]) -> Demand:
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
            budget, used=budget.used + uses[budget.resource].get(budget.namespace, 0)
        )
