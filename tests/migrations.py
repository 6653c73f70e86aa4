"""Problems in which some claims are allocated already and may move, and the best of it by trying everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations

from hypothesis import strategies as st

import brute_force
import strategies
from dralloc.ask.whatif.moves import Migration, MovableClaim, MoveOption
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem, Request, numbered
from dralloc.problem.solution import Placement, holdings_of

__all__ = ["best_of_all", "migrations"]

MUCH = 1000
"""More than all that is pending is worth."""


@st.composite
def migrations(draw: st.DrawFn, *, admin: bool = False) -> Migration:
    """A small problem, some of whose demands have been placed anyhow; ``admin``: perhaps with admin access."""
    problem = draw(strategies.problems(max_demands=4, max_devices=5))
    if not admin:
        problem = replace(
            problem, demands=tuple(map(_without_admin, problem.demands))
        )
    demands = tuple(replace(demand, gang="") for demand in problem.demands)
    early = draw(st.sets(st.sampled_from(range(len(demands))), min_size=1))
    before = replace(
        problem,
        demands=tuple(demands[demand_index] for demand_index in sorted(early)),
    )
    solution = draw(st.sampled_from(list(brute_force.solutions(before))[:200]))
    taken = {
        claim.key
        for placement in solution.placements
        for claim in before.demands[placement.demand].claims
    }
    others = tuple(
        demand
        for demand_index, demand in numbered(problem.demands)
        if demand_index not in early
        and taken.isdisjoint(claim.key for claim in demand.claims)
    )
    return settled(before, solution.placements, others)


def _without_admin(demand: Demand) -> Demand:
    claims = tuple(
        replace(claim, requests=tuple(map(_plain, claim.requests)))
        for claim in demand.claims
    )
    return replace(demand, claims=claims)


def _plain(request: Request) -> Request:
    return replace(
        request,
        alternatives=tuple(
            replace(alternative, admin=False)
            for alternative in request.alternatives
        ),
    )


def settled(
    before: Problem,
    placements: Sequence[Placement],
    pending: tuple[Demand, ...],
) -> Migration:
    """The placements as claims that are allocated."""
    movers: list[MovableClaim] = []
    for placement in placements:
        holdings = list(holdings_of(before, placement))
        for claim, grants in zip(
            before.demands[placement.demand].claims,
            placement.grants,
            strict=True,
        ):
            own = tuple(
                holding for holding in holdings if holding.claim == claim.key
            )
            greedy = tuple(
                grant.device
                for grant in grants
                if not claim.requests[grant.request]
                .alternatives[grant.alternative]
                .admin
            )
            if own:
                movers.append(
                    MovableClaim(claim.key, placement.node, own, greedy)
                )
    base = replace(before, demands=pending)
    return Migration(
        base, tuple(movers), tuple(_move_options(before, placements, movers))
    )


def _move_options(
    before: Problem,
    placements: Sequence[Placement],
    movers: Sequence[MovableClaim],
) -> Iterator[MoveOption]:
    mover_indices = {
        mover.key: mover_index for mover_index, mover in enumerate(movers)
    }
    users = [before.demands[placement.demand] for placement in placements]
    for group_index, group in enumerate(_units(users, mover_indices)):
        for chosen in _subsets(group):
            demands = [
                _moving(before, user, chosen, movers, mover_indices)
                for user in users
            ]
            yield MoveOption(
                chosen,
                tuple(demand for demand in demands if demand.claims),
                group_index,
            )


def _units(
    users: Sequence[Demand], mover_indices: dict[ClaimKey, int]
) -> list[list[int]]:
    groups: list[set[int]] = []
    for user in users:
        mine = {
            mover_indices[claim.key]
            for claim in user.claims
            if claim.key in mover_indices
        }
        touching = [group for group in groups if group & mine]
        groups = [group for group in groups if not group & mine] + (
            [mine.union(*touching)] if mine else []
        )
    return [sorted(group) for group in groups]


def _subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(
        combinations(items, size) for size in range(1, len(items) + 1)
    )


def _moving(
    before: Problem,
    user: Demand,
    chosen: tuple[int, ...],
    movers: Sequence[MovableClaim],
    mover_indices: dict[ClaimKey, int],
) -> Demand:
    """What a user asks for whose chosen claims move, on the nodes from which it can use those that stay."""
    moving = tuple(
        claim for claim in user.claims if mover_indices.get(claim.key) in chosen
    )
    staying = [
        movers[mover_indices[claim.key]]
        for claim in user.claims
        if claim.key in mover_indices and claim not in moving
    ]
    nodes = tuple(
        node
        for node in before.candidate_nodes(user)
        if all(
            before.usable_from(device, mover.home, node)
            for mover in staying
            for device in mover.devices
        )
    )
    return replace(user, claims=moving, nodes=nodes, gang="")


def best_of_all(migration: Migration, most: int) -> tuple[int, int]:
    """The largest weight of moves, and of what is pending, with so many moves, and the fewest moves for it."""
    best = (-1, 0)
    for chosen in chain([()], _subsets(range(len(migration.movers)))):
        if len(chosen) <= most:
            weight = _admitted(migration, chosen)
            if weight is not None:
                best = max(best, (weight, -len(chosen)))
    return best[0], -best[1]


def _admitted(migration: Migration, chosen: tuple[int, ...]) -> int | None:
    """What can be placed of what is pending if exactly these move; None if they have nowhere to go."""
    options = [
        _option(migration, group, chosen)
        for group in {option.group: None for option in migration.move_options}
    ]
    if None in options:
        return None
    move_options = [option for option in options if option]
    moving = tuple(
        replace(demand, weight=MUCH, gang=f"option {option_index}")
        for option_index, option in enumerate(move_options)
        for demand in option.demands
    )
    problem = migration.without(chosen).applied()
    weight, _ = brute_force.best(
        replace(problem, demands=(*moving, *migration.problem.demands))
    )
    moved = sum(option.weight for option in move_options)
    return moved + weight % MUCH if weight >= MUCH * len(moving) else None


def _option(
    migration: Migration, group: int, chosen: tuple[int, ...]
) -> MoveOption | tuple[()] | None:
    """The option in which just the chosen ones of a group move: () if none of it is chosen, None if there is none."""
    move_options = [
        option for option in migration.move_options if option.group == group
    ]
    mine = sorted(
        {
            mover_index
            for option in move_options
            for mover_index in option.movers
        }
        & set(chosen)
    )
    return (
        next(
            (option for option in move_options if list(option.movers) == mine),
            None,
        )
        if mine
        else ()
    )
