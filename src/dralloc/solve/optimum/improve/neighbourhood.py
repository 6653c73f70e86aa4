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

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from dralloc.objects.user_rules import Budget
from dralloc.problem import NodeIndex, Problem, SlotIndex
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.solution import Placement, spent
from dralloc.problem.subproblem import PartInUse
from dralloc.solve.backends import Parcel
from dralloc.solve.excerpt import Cutting
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent

__all__ = ["Neighbourhood", "neighbourhood"]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Demands that are freed, and where they can go.

    All numbers are those of the whole problem.

    Parameters
    ----------
    cutting
        Where to cut it out as a problem of its own.
    freed
        The demands that it decides.
    standing_by
        Those that have to stay where they are.
    before
        The placements of those that are freed.
    present
        How it is now: the same, and those that stand by.
    """

    cutting: Cutting
    freed: Sequence[DemandIndex]
    standing_by: Collection[DemandIndex]
    before: tuple[Placement, ...]
    present: tuple[Placement, ...]

    def after(
        self, placements: Sequence[Placement]
    ) -> tuple[Placement, ...] | None:
        """Of an answer, the placements of those that are freed; None if somebody who stands by is lost."""
        placements_of_freed = [
            placement
            for placement in placements
            if placement.demand not in self.standing_by
        ]
        if len(placements) - len(placements_of_freed) < len(self.standing_by):
            return None
        return tuple(placements_of_freed)


def neighbourhood(  # noqa: PLR0913 - the answer, and what changes of it
    whole: Parcel[Problem],
    incumbent: Incumbent,
    bonds: Bonds,
    blocks: Iterable[int],
    nodes: Collection[NodeIndex],
    withheld: Set[SlotIndex] = frozenset(),
) -> Neighbourhood:
    """Free some blocks, for some nodes and those where the blocks' demands are now.

    Parameters
    ----------
    whole
        The problem of the incumbent.
    blocks
        Indices into the blocks of the bonds.
    nodes
        Where all of them may go.
    withheld
        Devices that none of them may have, and none of them has.
    """
    problem = incumbent.problem
    freed = sorted(demand for block in blocks for demand in bonds.blocks[block])
    before = tuple(
        incumbent.placements[demand]
        for demand in freed
        if demand in incumbent.placements
    )
    # A block may stay where it is, so each of its demands may go where any of them stands.
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

    allowed = {
        demand: sorted(
            bonds.candidates(
                demand, {*nodes, *homes.get(bonds.block_of[demand], ())}
            )
        )
        for demand in freed
    }
    # In use is what the rest has: what the freed ones hold themselves is open to them.
    with incumbent.without(freed):
        cutting = Cutting(
            whole,
            sorted((*freed, *stations)),
            kept_nodes,
            PartInUse.of(problem, kept_nodes, incumbent.ledger, withheld),
            allowed,
            stations,
            tuple(_budgets(incumbent)),
        )
    # Those that stand by have no claims in the excerpt, and so no grants.
    present = [
        *before,
        *(
            Placement(demand, station, ())
            for demand, station in stations.items()
        ),
    ]
    return Neighbourhood(
        cutting,
        freed,
        frozenset(stations),
        before,
        tuple(sorted(present, key=lambda placement: placement.demand)),
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


def _budgets(incumbent: Incumbent) -> Iterator[Budget]:
    """The budgets with what the answer uses of them used."""
    problem = incumbent.problem
    resources = {budget.resource for budget in problem.budgets}
    uses = {
        resource: spent(problem, incumbent.placements.values(), resource)
        for resource in resources
    }
    for budget in problem.budgets:
        yield replace(
            budget,
            used=budget.used + uses[budget.resource].get(budget.namespace, 0),
        )
