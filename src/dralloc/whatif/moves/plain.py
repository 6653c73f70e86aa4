"""Moves of worth that first fit finds while everybody still holds what they have: often that is the best already."""

from __future__ import annotations

from dataclasses import replace

from dralloc.check import violations
from dralloc.problem import Problem
from dralloc.solution import Placement, Solution, Status, Tier
from dralloc.solvers.first_fit import first_fit
from dralloc.whatif.moves.exchange import Cast

__all__ = ["plainly"]


def plainly(cast: Cast) -> Solution | None:
    """An answer in which whoever is worth it moves in the cheapest way, as far as first fit finds room.

    It is optimal if all of them move with their first alternatives, and nothing is pending. None if no move is of
    worth, if moves are limited, or if the answer breaks a rule once everybody has left.
    """
    estate = cast.estate
    ways = _cheapest(cast)
    if not ways or estate.problem.demands or cast.exchange.most is not None:
        return None
    demands = tuple(demand for way in ways for demand in cast.demands_of(way))
    before = replace(estate.ledger.applied(), demands=demands)
    numbers = [cast.leads[way] + place for way in ways for place in range(len(estate.ways[way].demands))]
    placed = [replace(one, demand=numbers[one.demand]) for one in first_fit(before).placements]
    taken = {one.demand for one in placed}
    moving = [way for way in ways if cast.leads[way] in taken]
    stays = cast.stays(number for way in moving for number in estate.ways[way].residents)
    answer = Solution(tuple(sorted((*stays, *placed), key=lambda one: one.demand)))
    if violations(cast.problem, answer):
        return None
    return _judged(cast, answer, ways, moving)


def _cheapest(cast: Cast) -> list[int]:
    """For each unit that is worth moving the way that moves the fewest claims."""
    best: dict[int, int] = {}
    for number, way in enumerate(cast.estate.ways):
        known = best.setdefault(way.unit, number)
        if len(way.residents) < len(cast.estate.ways[known].residents):
            best[way.unit] = number
    return [number for number in best.values() if cast.estate.ways[number].weight]


def _judged(cast: Cast, answer: Solution, ways: list[int], moving: list[int]) -> Solution:
    """The answer, with its tiers if nothing can be better."""
    estate = cast.estate
    if len(moving) < len(ways) or _rank(cast.problem, answer.placements):
        return answer
    weight = sum(estate.ways[way].weight for way in ways)
    moves = sum(len(estate.ways[way].residents) for way in ways)
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
