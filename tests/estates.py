"""Problems in which some claims are allocated already and may move, and the best of it by trying everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations

from hypothesis import strategies as st

import brute_force
import strategies
from dralloc.names import ClaimKey
from dralloc.problem import Demand, Problem, Request
from dralloc.solution import Placement, holdings_of
from dralloc.whatif.moves import Estate, Resident, Way

__all__ = ["best_of_all", "estates"]

MUCH = 1000
"""More than all that is pending is worth."""


@st.composite
def estates(draw: st.DrawFn, *, admin: bool = False) -> Estate:
    """A small problem, some of whose demands have been placed anyhow; ``admin``: perhaps with admin access."""
    problem = draw(strategies.problems(max_demands=4, max_devices=5))
    if not admin:
        problem = replace(problem, demands=tuple(map(_without_admin, problem.demands)))
    demands = tuple(replace(demand, gang="") for demand in problem.demands)
    early = draw(st.sets(st.sampled_from(range(len(demands))), min_size=1))
    before = replace(problem, demands=tuple(demands[number] for number in sorted(early)))
    solution = draw(st.sampled_from(list(brute_force.solutions(before))[:200]))
    taken = {claim.key for one in solution.placements for claim in before.demands[one.demand].claims}
    others = tuple(
        demand
        for number, demand in enumerate(problem.demands)
        if number not in early and taken.isdisjoint(claim.key for claim in demand.claims)
    )
    return settled(before, solution.placements, others)


def _without_admin(demand: Demand) -> Demand:
    claims = tuple(replace(claim, requests=tuple(map(_plain, claim.requests))) for claim in demand.claims)
    return replace(demand, claims=claims)


def _plain(request: Request) -> Request:
    return replace(request, alternatives=tuple(replace(each, admin=False) for each in request.alternatives))


def settled(before: Problem, placements: Sequence[Placement], pending: tuple[Demand, ...]) -> Estate:
    """The placements as claims that are allocated."""
    residents: list[Resident] = []
    for placement in placements:
        holdings = list(holdings_of(before, placement))
        for claim, grants in zip(before.demands[placement.demand].claims, placement.grants, strict=True):
            own = tuple(one for one in holdings if one.claim == claim.key)
            plain = tuple(
                grant.device
                for grant in grants
                if not claim.requests[grant.request].alternatives[grant.alternative].admin
            )
            if own:
                residents.append(Resident(claim.key, placement.node, own, plain))
    base = replace(before, demands=pending)
    return Estate(base, tuple(residents), tuple(_ways(before, placements, residents)))


def _ways(before: Problem, placements: Sequence[Placement], residents: Sequence[Resident]) -> Iterator[Way]:
    numbers = {resident.key: number for number, resident in enumerate(residents)}
    users = [before.demands[placement.demand] for placement in placements]
    for number, unit in enumerate(_units(users, numbers)):
        for chosen in _subsets(unit):
            demands = [_moving(before, user, chosen, residents, numbers) for user in users]
            yield Way(chosen, tuple(demand for demand in demands if demand.claims), number)


def _units(users: Sequence[Demand], numbers: dict[ClaimKey, int]) -> list[list[int]]:
    units: list[set[int]] = []
    for user in users:
        mine = {numbers[claim.key] for claim in user.claims if claim.key in numbers}
        touching = [unit for unit in units if unit & mine]
        units = [unit for unit in units if not unit & mine] + ([mine.union(*touching)] if mine else [])
    return [sorted(unit) for unit in units]


def _subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(items, size) for size in range(1, len(items) + 1))


def _moving(
    before: Problem, user: Demand, chosen: tuple[int, ...], residents: Sequence[Resident], numbers: dict[ClaimKey, int]
) -> Demand:
    """What a user asks for whose chosen claims move, on the nodes from which it can use those that stay."""
    moving = tuple(claim for claim in user.claims if numbers.get(claim.key) in chosen)
    staying = [residents[numbers[claim.key]] for claim in user.claims if claim.key in numbers and claim not in moving]
    nodes = tuple(
        node
        for node in before.candidate_nodes(user)
        if all(before.usable_from(device, one.home, node) for one in staying for device in one.devices)
    )
    return replace(user, claims=moving, nodes=nodes, gang="")


def best_of_all(estate: Estate, most: int) -> tuple[int, int]:
    """The largest weight of moves, and of what is pending, with so many moves, and the fewest moves for it."""
    best = (-1, 0)
    for chosen in chain([()], _subsets(range(len(estate.residents)))):
        if len(chosen) <= most:
            weight = _admitted(estate, chosen)
            if weight is not None:
                best = max(best, (weight, -len(chosen)))
    return best[0], -best[1]


def _admitted(estate: Estate, chosen: tuple[int, ...]) -> int | None:
    """What can be placed of what is pending if exactly these move; None if they have nowhere to go."""
    found = [_way(estate, unit, chosen) for unit in {way.unit: None for way in estate.ways}]
    if None in found:
        return None
    ways = [way for way in found if way]
    moving = tuple(
        replace(demand, weight=MUCH, gang=f"way {number}") for number, way in enumerate(ways) for demand in way.demands
    )
    problem = estate.without(chosen).applied()
    weight, _ = brute_force.best(replace(problem, demands=(*moving, *estate.problem.demands)))
    moved = sum(way.weight for way in ways)
    return moved + weight % MUCH if weight >= MUCH * len(moving) else None


def _way(estate: Estate, unit: int, chosen: tuple[int, ...]) -> Way | tuple[()] | None:
    """The way in which just those of a unit move that are chosen: () if none of it is, None if there is no such way."""
    ways = [way for way in estate.ways if way.unit == unit]
    mine = sorted({number for way in ways for number in way.residents} & set(chosen))
    return next((way for way in ways if list(way.residents) == mine), None) if mine else ()
