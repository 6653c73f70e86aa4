"""Bounds in the meantime: relaxations are climbed while components are solved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from typing import Final

from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.relax import Bound
from dralloc.solve.optimum.relax.component import Relaxable, take_over
from dralloc.solve.optimum.stopping import Cancelled, Stop

__all__ = ["bounds_in_turn", "climbing_on"]

_WORTHWHILE: Final = 0.005
"""While processors are needed for the search, rungs are climbed that are likely to bring so much, as a part of all
demands."""


@contextmanager
def climbing_on(
    components: Sequence[Relaxable], stop: Stop, patience: float = 0.0
) -> Iterator[None]:
    """Climb on while components are solved; what is proven by the end of the block counts.

    Meanwhile this thread has little to do, and what a linear program takes of a processor is much less than what it
    takes of the time.

    Parameters
    ----------
    patience
        Seconds until it begins; what has all tiers of the weight proven by then needs no other bound.
    """
    if not components:
        yield
        return
    is_over = Event()
    ending = Cancelled(lambda: bool(stop.cancelled))
    until = replace(stop, cancelled=ending)
    proven: list[tuple[Relaxable, Bound]] = []

    def climb() -> None:
        is_over.wait(patience)
        undecided = [
            component
            for component in components
            if not (until.reached() or _is_decided(component))
        ]
        proven.extend(bounds_in_turn(undecided, climb_and_look))

    def climb_and_look(component: Relaxable) -> Iterator[Bound]:
        return component.relaxation.climb_and_look(
            component, until, _WORTHWHILE
        )

    with ThreadPoolExecutor(max_workers=1) as threads:
        climbing = threads.submit(climb)
        try:
            yield
        finally:
            ending.cancel()
            is_over.set()
            wait([climbing])
    climbing.result()
    for component, bound in proven:
        take_over(component, bound)
    for component in components:
        component.relaxation.appraise(stop)


def bounds_in_turn(
    components: Iterable[Relaxable],
    climb: Callable[[Relaxable], Iterator[Bound]],
) -> Iterator[tuple[Relaxable, Bound]]:
    """Give out bounds of components, one of each in turn, so that none waits until all is proven of others.

    Parameters
    ----------
    climb
        Gives out better and better bounds of a component.
    """
    climbs = deque((component, climb(component)) for component in components)
    while climbs:
        component, bounds = climbs.popleft()
        bound = next(bounds, None)
        if bound is not None:
            climbs.append((component, bounds))
            yield component, bound


def _is_decided(component: Relaxable) -> bool:
    """Whether it is proven how much weight is placed."""
    return all(
        is_proven(component, level)
        for level, tier in enumerate(component.tiers)
        if tier.weights
    )
