"""An ordered plan: every step with what it needs, checked against what is held at that moment.

First the order of moves: as few of them as possible give up what they hold before they have something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from dralloc.ask.context.context import Context
from dralloc.ask.context.offers import Offers
from dralloc.ask.whatif.moves.migration import (
    Migration,
    MoveOption,
    PodThere,
    broken,
    counting,
)
from dralloc.check import check, violations
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, DemandIndex, DeviceIndex, NodeIndex, Problem
from dralloc.problem.ledger import Holding
from dralloc.problem.solution import Placement, Solution, holdings_of

__all__ = [
    "Action",
    "MigrationStep",
    "Move",
    "Order",
    "all_at_once",
    "can_follow",
    "find_order",
    "gains",
    "replay",
    "shortest_order",
    "steps_of",
]

# ----------------------------------------------------------------------------
# The order of moves: as few of them as possible give up what they hold before they
# have something else.


class Phase(NamedTuple):
    """Something happens to some moves: they ``stop`` (give up what they hold), ``start`` (get what is new), or both.

    ``as_one``: they start together with all that comes after, because none of them can start by itself.
    """

    moves: tuple[int, ...]
    stops: bool = False
    starts: bool = False
    as_one: bool = False


class Order(NamedTuple):
    """Phases in order, how many moves stop before they start, and whether no order needs fewer."""

    phases: tuple[Phase, ...]
    restarts: int
    proven: bool


_Fits = Callable[[frozenset[int], frozenset[int], int], bool]
"""Whether a move can get what it will hold, once some moves are done and some are stopped."""


def shortest_order(move_count: int, fits: _Fits, exhaustive: int = 6) -> Order:
    """The order of so many moves with the fewest restarts.

    A move takes what it will hold beside what it holds. If that is impossible it has to stop first. If no move can
    start by itself after all have stopped, those that are left start together: one that asks for all devices (KEP-5075)
    can depend on who fills the others. Of up to ``exhaustive`` moves every order is considered; of more, one is built
    step by step.
    """
    phases = (
        _search(move_count, fits)
        if move_count <= exhaustive
        else tuple(_greedy(move_count, fits))
    )
    restarts = sum(len(phase.moves) for phase in phases if phase.stops)
    proven = move_count <= exhaustive or not restarts
    return Order(
        _joined(phases),
        restarts,
        proven and not any(phase.as_one for phase in phases),
    )


def all_at_once(move_count: int) -> Order:
    """The order in which all of so many moves stop, and then start together."""
    all_moves = tuple(range(move_count))
    return Order(
        (
            Phase(all_moves, stops=True),
            Phase(all_moves, starts=True, as_one=True),
        ),
        move_count,
        False,
    )


def _search(move_count: int, fits: _Fits) -> tuple[Phase, ...]:
    """Fewest stops first, and of those what has come farthest."""
    # Dijkstra over who is done and who is stopped. What is held follows from these alone,
    # so the first path to a state is as good as any.
    all_moves, ties = frozenset(range(move_count)), count()
    heap: list[
        tuple[int, int, int, frozenset[int], frozenset[int], tuple[Phase, ...]]
    ] = []
    heappush(heap, (0, 0, next(ties), frozenset(), frozenset(), ()))
    seen: set[tuple[frozenset[int], frozenset[int]]] = set()
    while heap:
        stops, _, _, done, stopped, path = heappop(heap)
        # The cheapest path that is complete: no order needs fewer stops.
        if done == all_moves:
            return path
        if (done, stopped) in seen:
            continue
        seen.add((done, stopped))
        for move in sorted(all_moves - done):
            if fits(done, stopped, move):
                entry = (*path, Phase((move,), starts=True))
                heappush(
                    heap,
                    (
                        stops,
                        -len(done) - 1,
                        next(ties),
                        done | {move},
                        stopped - {move},
                        entry,
                    ),
                )
            if move not in stopped:
                entry = (*path, Phase((move,), stops=True))
                heappush(
                    heap,
                    (
                        stops + 1,
                        -len(done),
                        next(ties),
                        done,
                        stopped | {move},
                        entry,
                    ),
                )
    # Even after all have stopped, nobody could start by itself.
    return all_at_once(move_count).phases


def _greedy(move_count: int, fits: _Fits) -> Iterator[Phase]:
    """Let each claim move that can; if none can, the next one stops."""
    done: frozenset[int] = frozenset()
    stopped: frozenset[int] = frozenset()
    while len(done) < move_count:
        waiting = [move for move in range(move_count) if move not in done]
        for move in waiting:
            if fits(done, stopped, move):
                yield Phase((move,), starts=True)
                done, stopped = done | {move}, stopped - {move}
                break
        else:
            running = [move for move in waiting if move not in stopped]
            if not running:
                yield Phase(tuple(waiting), starts=True, as_one=True)
                return
            yield Phase((running[0],), stops=True)
            stopped |= {running[0]}


def _joined(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """A stop with the start that follows at once is one phase."""
    joined: list[Phase] = []
    for phase in phases:
        if (
            joined
            and joined[-1].stops
            and not joined[-1].starts
            and joined[-1].moves == phase.moves
        ):
            joined[-1] = phase._replace(stops=True)
        else:
            joined.append(phase)
    return tuple(joined)


class Action(StrEnum):
    """The action of a step.

    ``MOVE``: holds the new devices, then gives the old ones back. ``STOP``: gives the old ones back. ``START``: takes
    the new ones after a stop. ``RESTART``: a stop and the start at once. ``ADMIT``: what was pending is placed.
    """

    MOVE = "move"
    STOP = "stop"
    START = "start"
    RESTART = "restart"
    ADMIT = "admit"


@dataclass(frozen=True, slots=True)
class Move:
    """An option that is taken, with where its demands go: one placement for each, by its index in the option.

    ``demands``: those of the option under names of their own, so that old and new are told apart.
    """

    option: MoveOption
    demands: tuple[Demand, ...]
    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """A step of a plan.

    Parameters
    ----------
    moves
        Who moves; more than one if they can only start together.
    demands, placements
        What is placed with the step, and where.
    """

    action: Action
    moves: tuple[Move, ...] = ()
    demands: tuple[Demand, ...] = ()
    placements: tuple[Placement, ...] = ()


def gains(
    demands: Iterable[Demand], placements: Iterable[Placement]
) -> Iterator[tuple[ClaimKey, NodeIndex, tuple[DeviceIndex, ...]]]:
    """Yield the new allocation of each claim of some demands, in order: its key, the node, and the devices by index."""
    for demand, placement in zip(demands, placements, strict=True):
        for claim, grants in zip(demand.claims, placement.grants, strict=True):
            if not claim.is_synthetic and (grants or not claim.requests):
                yield (
                    claim.key,
                    placement.node,
                    tuple(grant.device for grant in grants),
                )


def find_order(migration: Migration, moves: Sequence[Move]) -> Order:
    """The order of the moves with the fewest restarts."""
    offers = Offers(migration.problem.eligibility)

    def fits(
        done: frozenset[int], stopped: frozenset[int], move_index: int
    ) -> bool:
        # Who is done or has stopped has given the old devices back. The move itself holds its own, unless it has
        # stopped.
        gone = [
            holder
            for earlier in done | stopped
            for holder in migration.holders_of(moves[earlier].option)
        ]
        ledger, present = migration.without(gone), migration.there(gone)
        for earlier in sorted(done):
            move = moves[earlier]
            ledger.hold(
                _taken(migration.problem, move.demands, move.placements)
            )
            present += _come(migration.problem, move.demands, move.placements)
        context = Context(migration.problem, offers, ledger)
        return not broken(
            context,
            counting(moves[move_index].demands, present),
            moves[move_index].placements,
        )

    return shortest_order(len(moves), fits)


def _come(
    problem: Problem, demands: Sequence[Demand], placements: Sequence[Placement]
) -> list[PodThere]:
    """The pods that are there with some placements."""
    return [
        (demands[placement.demand].roles, problem.nodes[placement.node].name)
        for placement in placements
    ]


def _taken(
    problem: Problem, demands: Sequence[Demand], placements: Sequence[Placement]
) -> Iterator[Holding]:
    with_demands = replace(problem, demands=tuple(demands))
    for placement in placements:
        yield from holdings_of(with_demands, placement)


def steps_of(
    order: Order,
    moves: Sequence[Move],
    admitted: Sequence[tuple[Demand, Placement]],
) -> tuple[MigrationStep, ...]:
    """The plan: the moves in order, then whatever is admitted, in one step."""
    steps = []
    stopped: set[int] = set()
    for phase in order.phases:
        chosen = tuple(moves[index] for index in phase.moves)
        demands = tuple(demand for move in chosen for demand in move.demands)
        placements = _numbered(
            placement for move in chosen for placement in move.placements
        )
        action = _action(phase, stopped)
        steps.append(
            MigrationStep(
                action, chosen, *((demands, placements) if phase.starts else ())
            )
        )
        stopped.update(phase.moves if phase.stops else ())
    return _with_admitted(
        steps, admitted, as_one=any(phase.as_one for phase in order.phases)
    )


def _with_admitted(
    steps: list[MigrationStep],
    admitted: Sequence[tuple[Demand, Placement]],
    *,
    as_one: bool,
) -> tuple[MigrationStep, ...]:
    if not admitted:
        return tuple(steps)
    demands, placed = zip(*admitted, strict=True)
    if not as_one:
        return (
            *steps,
            MigrationStep(Action.ADMIT, (), demands, _numbered(placed)),
        )
    last = steps[-1]
    placements = _numbered((*last.placements, *placed))
    return (
        *steps[:-1],
        replace(last, demands=(*last.demands, *demands), placements=placements),
    )


def _action(phase: Phase, stopped: set[int]) -> Action:
    if phase.stops:
        return Action.RESTART if phase.starts else Action.STOP
    return Action.START if stopped.issuperset(phase.moves) else Action.MOVE


def _numbered(placements: Iterable[Placement]) -> tuple[Placement, ...]:
    return tuple(
        replace(placement, demand=DemandIndex(index))
        for index, placement in enumerate(placements)
    )


def replay(migration: Migration, steps: Sequence[MigrationStep]) -> None:
    """Go through the steps, and let the checker look at each beside everything that is held at that moment.

    Raises
    ------
    CheckError
        A step breaks a rule.
    """
    for problem, step in _moments(migration, steps):
        check(problem, Solution(step.placements))


def can_follow(migration: Migration, steps: Sequence[MigrationStep]) -> bool:
    """Whether no step breaks a rule beside everything that is held at that moment."""
    return not any(
        violations(problem, Solution(step.placements))
        for problem, step in _moments(migration, steps)
    )


def _moments(
    migration: Migration, steps: Sequence[MigrationStep]
) -> Iterator[tuple[Problem, MigrationStep]]:
    """Each step in which something is placed, with what it finds."""
    ledger, gone = migration.ledger.copy(), set[int]()
    come: list[PodThere] = []
    for step in steps:
        leaving = migration.leaving(move.option for move in step.moves)
        holders = {
            holder
            for move in step.moves
            for holder in migration.holders_of(move.option)
        }
        # Who stops gives back what it holds before anything is placed; who moves does so afterwards.
        if step.action in {Action.STOP, Action.RESTART}:
            ledger.release(leaving)
            gone |= holders
        if step.placements:
            demands = counting(step.demands, (*migration.there(gone), *come))
            yield replace(ledger.applied(), demands=demands), step
            ledger.hold(
                _taken(migration.problem, step.demands, step.placements)
            )
            come += _come(migration.problem, step.demands, step.placements)
        # Where this was done before, nothing is left under the old names. New holdings have names of their own.
        ledger.release(leaving)
        gone |= holders
