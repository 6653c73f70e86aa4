"""Caps of what namespaces may use: the part of an answer that keeps them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from networkx.utils import UnionFind

from dralloc.problem import DemandIndex, Problem
from dralloc.problem.all_devices import lacks_a_device, passed_over
from dralloc.problem.inter_pod import (
    Arrival,
    DomainLedger,
    InterPodRule,
    can_come_in_turn,
)
from dralloc.problem.ledger import Ledger
from dralloc.problem.requests import demands_kept_together
from dralloc.problem.solution import Placement, charged_grants, spent

__all__ = ["within_caps"]


def within_caps(
    problem: Problem, placements: Sequence[Placement]
) -> list[Placement]:
    """Return as many placements as the caps allow, in order; of gangs and of those that share claims all or none.

    Left out is also who does not come without those that are: whoever needs their company, or as many elsewhere; and
    whose claim for all devices passed over one that has room without them.
    """
    room = {
        (budget.resource, budget.namespace): budget.left
        for budget in problem.budgets
        if budget.left is not None
    }
    if not room:
        return list(placements)
    resources = dict.fromkeys(resource for resource, _ in room)
    affordable: list[list[Placement]] = []
    for together in _together(problem, placements):
        uses = {
            (resource, namespace): use
            for resource in resources
            for namespace, use in spent(problem, together, resource).items()
            if (resource, namespace) in room
        }
        if all(use <= room[capped] for capped, use in uses.items()):
            for capped, use in uses.items():
                room[capped] -= use
            affordable.append(together)
    admitted = list(chain.from_iterable(affordable))
    if len(admitted) < len(placements):
        admitted = list(chain.from_iterable(_standing(problem, affordable)))
    return sorted(admitted, key=lambda placement: placement.demand)


def _standing(
    problem: Problem, blocks: Sequence[Sequence[Placement]]
) -> Sequence[Sequence[Placement]]:
    """Return the blocks that stand without those that were left out: by rules between pods, and with all devices."""
    standing = _coming(problem, blocks)
    # Who is left out makes room, in which others may lack a device; and nobody comes for the sake of who is gone.
    while lacking := _lacking_a_device(problem, standing):
        complete = [
            block
            for block_index, block in enumerate(standing)
            if block_index not in lacking
        ]
        standing = _coming(problem, complete)
    return standing


def _lacking_a_device(
    problem: Problem, blocks: Sequence[Sequence[Placement]]
) -> set[int]:
    """Return the places of blocks with a claim for all devices that passed over one with room beside all others."""
    passing_over = [
        (block_index, placement)
        for block_index, block in enumerate(blocks)
        for placement in block
        if any(passed_over(problem, placement))
    ]
    if not passing_over:
        return set()
    ledger = Ledger(problem)
    for _, device, charge in charged_grants(
        problem, chain.from_iterable(blocks)
    ):
        view = problem.devices[device]
        ledger.enter(view, charge, share=view.shareable)
    lacking: set[int] = set()
    for block_index, placement in passing_over:
        own = [
            (problem.devices[device], charge)
            for _, device, charge in charged_grants(problem, [placement])
        ]
        for view, charge in own:
            ledger.revoke(view, charge, share=view.shareable)
        if lacks_a_device(problem, placement, ledger):
            lacking.add(block_index)
        for view, charge in own:
            ledger.enter(view, charge, share=view.shareable)
    return lacking


def _coming(
    problem: Problem, blocks: Iterable[Sequence[Placement]]
) -> Sequence[Sequence[Placement]]:
    """Return the blocks that rules between pods let come; not those that never may."""
    blocks = tuple(blocks)
    coming = list(_coming_in_turn(problem, blocks))
    if len(coming) < len(blocks):
        came = {placement.demand for block in coming for placement in block}
        tied = _tied(problem, blocks, came)
        # In another order, or one by one, they may all come: members of a block may need others of it.
        if can_come_in_turn(_arrivals(problem, tied)):
            return blocks
    return coming


def _tied(
    problem: Problem,
    blocks: Iterable[Sequence[Placement]],
    came: Collection[DemandIndex],
) -> list[Placement]:
    """Return the placements that rules tie, over others or not, to those that did not come."""
    placements = list(chain.from_iterable(blocks))
    forest: UnionFind[InterPodRule] = UnionFind()
    rules_of = {
        placement.demand: [
            role.rule for role in problem.demands[placement.demand].roles
        ]
        for placement in placements
    }
    for rules in rules_of.values():
        forest.union(*rules)
    concerned = {
        forest[rule]
        for demand, rules in rules_of.items()
        if demand not in came
        for rule in rules
    }
    return [
        placement
        for placement in placements
        if any(forest[rule] in concerned for rule in rules_of[placement.demand])
    ]


def _coming_in_turn(
    problem: Problem, blocks: Iterable[Sequence[Placement]]
) -> Iterator[Sequence[Placement]]:
    """Give out blocks, each as a whole, as soon as rules let them come after those before."""
    ledger = DomainLedger()
    # Who runs was there before everybody else.
    waiting = sorted(blocks, key=lambda block: not _runs(problem, block))
    while True:
        still_waiting: list[Sequence[Placement]] = []
        for block in waiting:
            if _may_come(problem, ledger, block):
                yield block
            else:
                still_waiting.append(block)
        if len(still_waiting) == len(waiting):
            break
        waiting = still_waiting


def _runs(problem: Problem, block: Iterable[Placement]) -> bool:
    """Whether any of a block stands for a pod that runs."""
    demands = [problem.demands[placement.demand] for placement in block]
    return any(role.runs for demand in demands for role in demand.roles)


def _may_come(
    problem: Problem, ledger: DomainLedger, block: Iterable[Placement]
) -> bool:
    """Let all of a block come, one after the other, or none of them."""
    arrivals = [
        (demand.roles, node) for demand, node in _arrivals(problem, block)
    ]
    for present, (roles, node) in enumerate(arrivals):
        if not ledger.allows(roles, node):
            for earlier_roles, earlier_node in arrivals[:present]:
                ledger.enter(earlier_roles, earlier_node, -1)
            return False
        ledger.enter(roles, node)
    return True


def _arrivals(
    problem: Problem, placements: Iterable[Placement]
) -> list[Arrival]:
    return [
        (
            problem.demands[placement.demand],
            problem.nodes[placement.node].name,
        )
        for placement in placements
    ]


def _together(
    problem: Problem, placements: Sequence[Placement]
) -> list[list[Placement]]:
    """Placements that are only kept together: those of a gang, and those with a claim in common."""
    placement_of = {placement.demand: placement for placement in placements}
    blocks = demands_kept_together(
        (demand, problem.demands[demand]) for demand in placement_of
    )
    return [[placement_of[demand] for demand in block] for block in blocks]
