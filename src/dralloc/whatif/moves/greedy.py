"""Moves of worth that first fit finds while everybody still holds what they have: often that is the best already."""

from __future__ import annotations

from dataclasses import replace

from dralloc.check import violations
from dralloc.problem import Problem
from dralloc.solution import Placement, Solution, Status, Tier
from dralloc.solvers.first_fit import first_fit
from dralloc.whatif.moves.migration_problem import MigrationProblem

__all__ = ["greedy_moves"]


def greedy_moves(whole: MigrationProblem) -> Solution | None:
    """An answer in which whoever is worth it moves in the cheapest way, as far as first fit finds room.

    It is optimal if all of them move with their first alternatives, and nothing is pending. None if no move is of
    worth, if moves are limited, or if the answer breaks a rule once everybody has left.
    """
    migration = whole.migration
    move_options = _cheapest(whole)
    if not move_options or migration.problem.demands or whole.exchange.most is not None:
        return None
    demands = tuple(demand for option in move_options for demand in whole.demands_of(option))
    before = replace(migration.ledger.applied(), demands=demands)
    numbers = [
        whole.leads[option] + place
        for option in move_options
        for place in range(len(migration.move_options[option].demands))
    ]
    placed = [replace(one, demand=numbers[one.demand]) for one in first_fit(before).placements]
    taken = {one.demand for one in placed}
    moving = [option for option in move_options if whole.leads[option] in taken]
    stays = whole.staying(number for option in moving for number in migration.move_options[option].movers)
    answer = Solution(tuple(sorted((*stays, *placed), key=lambda one: one.demand)))
    if violations(whole.problem, answer):
        return None
    return _judged(whole, answer, move_options, moving)


def _cheapest(whole: MigrationProblem) -> list[int]:
    """For each group that is worth moving the option that moves the fewest claims."""
    best: dict[int, int] = {}
    for number, option in enumerate(whole.migration.move_options):
        known = best.setdefault(option.group, number)
        if len(option.movers) < len(whole.migration.move_options[known].movers):
            best[option.group] = number
    return [number for number in best.values() if whole.migration.move_options[number].weight]


def _judged(whole: MigrationProblem, answer: Solution, move_options: list[int], moving: list[int]) -> Solution:
    """The answer, with its tiers if nothing can be better."""
    migration = whole.migration
    if len(moving) < len(move_options) or _rank(whole.problem, answer.placements):
        return answer
    weight = sum(migration.move_options[option].weight for option in move_options)
    moves = sum(len(migration.move_options[option].movers) for option in move_options)
    tiers = Tier("weight", weight, weight), Tier("moves", moves, moves, -1), Tier("alternatives", 0, 0, -1)
    return replace(answer, status=Status.OPTIMAL, tiers=tiers)


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
