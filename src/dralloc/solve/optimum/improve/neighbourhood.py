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

from dralloc.objects.user_rules import Budget
from dralloc.problem import CounterIndex, Demand, NodeIndex
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.inter_pod import InterPodRule
from dralloc.problem.problem import Eligibility
from dralloc.problem.solution import Placement, spent
from dralloc.problem.subproblem import cut, places
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent
from dralloc.solve.work import Excerpt, PackedExcerpt, Parcel

__all__ = ["Neighbourhood", "neighbourhood"]


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
