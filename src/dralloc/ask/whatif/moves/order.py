"""The order of moves: as few of them as possible give up what they hold before they have something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

__all__ = ["Order", "Phase", "all_at_once", "shortest_order"]


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


def shortest_order(number: int, fits: _Fits, exhaustive: int = 6) -> Order:
    """The order of so many moves with the fewest restarts.

    A move takes what it will hold beside what it holds. If that is impossible it has to stop first. If no move can
    start by itself after all have stopped, those that are left start together: one that asks for all devices (KEP-5075)
    can depend on who fills the others. Of up to ``exhaustive`` moves every order is considered; of more, one is built
    step by step.
    """
    phases = (
        _search(number, fits) if number <= exhaustive else tuple(_greedy(number, fits))
    )
    restarts = sum(len(phase.moves) for phase in phases if phase.stops)
    proven = number <= exhaustive or not restarts
    return Order(
        _joined(phases), restarts, proven and not any(phase.as_one for phase in phases)
    )


def all_at_once(number: int) -> Order:
    """The order in which all of so many moves stop, and then start together."""
    every = tuple(range(number))
    return Order(
        (Phase(every, stops=True), Phase(every, starts=True, as_one=True)),
        number,
        False,
    )


def _search(number: int, fits: _Fits) -> tuple[Phase, ...]:
    """Fewest stops first, and of those what has come farthest."""
    every, ties = frozenset(range(number)), count()
    heap: list[
        tuple[int, int, int, frozenset[int], frozenset[int], tuple[Phase, ...]]
    ] = []
    heappush(heap, (0, 0, next(ties), frozenset(), frozenset(), ()))
    seen: set[tuple[frozenset[int], frozenset[int]]] = set()
    while heap:
        stops, _, _, done, stopped, path = heappop(heap)
        if done == every:
            return path
        if (done, stopped) in seen:
            continue
        seen.add((done, stopped))
        for move in sorted(every - done):
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
                    (stops + 1, -len(done), next(ties), done, stopped | {move}, entry),
                )
    return all_at_once(number).phases


def _greedy(number: int, fits: _Fits) -> Iterator[Phase]:
    """Whoever can move does; if nobody can, the next one stops."""
    done: frozenset[int] = frozenset()
    stopped: frozenset[int] = frozenset()
    while len(done) < number:
        waiting = [move for move in range(number) if move not in done]
        able = next((move for move in waiting if fits(done, stopped, move)), None)
        if able is not None:
            yield Phase((able,), starts=True)
            done, stopped = done | {able}, stopped - {able}
            continue
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
