"""Moves of worth that first fit finds while everybody still holds what they have: often that is the best already."""

from __future__ import annotations

from dataclasses import replace

from dralloc.check import violations
from dralloc.problem import Problem
from dralloc.solution import Placement, Solution, Status, Tier
from dralloc.solvers.first_fit import first_fit
from dralloc.whatif.moves.migration import Migration, MoveOption
from dralloc.whatif.moves.migration_problem import MigrationProblem

__all__ = ["greedy_moves"]


def greedy_moves(whole: MigrationProblem) -> Solution | None:
    """An answer in which whoever is worth it moves in the cheapest way, as far as first fit finds room.

    It is optimal if all of them move with their first alternatives, and nothing is pending. None if no move is of
    worth, if moves are limited, or if the answer breaks a rule once everybody has left.
    """
    migration, chosen = whole.migration, _cheapest(whole.migration)
    if not chosen or migration.problem.demands or whole.exchange.most is not None:
        return None
    demands = tuple(demand for number in chosen for demand in whole.demands_of(number))
    numbers = [whole.leads[number] + place for number in chosen for place in range(len(whole.demands_of(number)))]
    before = replace(migration.ledger.applied(), demands=demands)
    placed = [replace(one, demand=numbers[one.demand]) for one in first_fit(before).placements]
    taken = {one.demand for one in placed}
    moving = [option for number, option in chosen.items() if whole.leads[number] in taken]
    stays = whole.staying(mover for option in moving for mover in option.movers)
    answer = Solution(tuple(sorted((*stays, *placed), key=lambda one: one.demand)))
    if violations(whole.problem, answer):
        return None
    if len(moving) < len(chosen) or _rank(whole.problem, answer.placements):
        return answer
    weight = sum(option.weight for option in moving)
    moves = sum(len(option.movers) for option in moving)
    tiers = Tier("weight", weight, weight), Tier("moves", moves, moves, -1), Tier("alternatives", 0, 0, -1)
    return replace(answer, status=Status.OPTIMAL, tiers=tiers)


def _cheapest(migration: Migration) -> dict[int, MoveOption]:
    """For each group that is worth moving the option, by index, that moves the fewest claims."""
    best: dict[int, tuple[int, MoveOption]] = {}
    for number, option in enumerate(migration.move_options):
        known = best.setdefault(option.group, (number, option))
        if len(option.movers) < len(known[1].movers):
            best[option.group] = number, option
    return {number: option for number, option in best.values() if option.weight}


def _rank(problem: Problem, placements: tuple[Placement, ...]) -> int:
    """The sum of the ranks of all grants: 0 if everybody has the first alternative."""
    claims = (
        (claim, grants)
        for one in placements
        for claim, grants in zip(problem.demands[one.demand].claims, one.grants, strict=True)
    )
    return sum(
        claim.requests[grant.request].alternatives[grant.alternative].rank
        for claim, grants in claims
        for grant in grants
    )
