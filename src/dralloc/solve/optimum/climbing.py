"""Bounds in the meantime: relaxations are climbed while components are solved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from threading import Event
from typing import Final

from dralloc.solve.optimum.answered import is_proven
from dralloc.solve.optimum.beside import Companion
from dralloc.solve.optimum.relax import Bound
from dralloc.solve.optimum.relax.component import Relaxable, take_over
from dralloc.solve.optimum.stopping import Stop

__all__ = ["Climb", "bounds_in_turn"]

_WORTHWHILE: Final = 0.005
"""While processors are needed for the search, rungs are climbed that are likely to bring so much, as a part of all
demands."""

_LISTEN: Final = 0.05
"""Seconds until it is asked again whether to stop."""


class Climb:
    """Relaxations of components that are climbed in a thread, while the components are solved in a block of statements.

    Meanwhile the thread of the block has little to do, and what a linear program takes of a processor is much less than
    what it takes of the time. What is proven by the end of the block counts, and before that where it is taken over.

    Parameters
    ----------
    stop
        When to end, if the block has not ended before.
    patience
        Seconds until it begins; what has all tiers of the weight proven by then needs no other bound.
    before_search
        Until then nobody needs the processors for a search: rungs are climbed that are likely to end by then, whatever
        they bring. None if there is a search from the beginning.
    """

    def __init__(
        self,
        components: Sequence[Relaxable],
        stop: Stop,
        *,
        patience: float = 0.0,
        before_search: Stop | None = None,
    ) -> None:
        self._components = components
        self._stop = stop
        self._patience = patience
        self._before_search = before_search
        self._is_prepared = Event()
        self._is_over = Event()

    def __enter__(self) -> Climb:
        self._thread = Companion(self._bounds, self._stop)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._is_over.set()
        self._thread.end()
        if error is None:
            self._thread.result()
        self.take_over()
        for component in self._components:
            component.relaxation.appraise(self._stop)

    def wait_before_search(self) -> Iterator[None]:
        """Wait until the search should begin; give out a turn each time when something has been proven."""
        while not (
            self._is_prepared.wait(_LISTEN)
            or self._before_search is None
            or self._before_search.reached()
        ):
            if self.take_over():
                yield
        self.take_over()

    def take_over(self) -> bool:
        """Count what has been proven by now; whether there is anything new."""
        bounds = list(self._thread.pending())
        for component, bound in bounds:
            take_over(component, bound)
        return bool(bounds)

    def _bounds(
        self, stop: Stop
    ) -> Generator[tuple[Relaxable, Bound], None, None]:
        """Climb in a thread."""
        try:
            if self._before_search is not None:
                begun_for = self._before_search
                yield from _appraised(
                    self._components,
                    lambda component: component.relaxation.climb(
                        stop, begun_for=begun_for
                    ),
                    stop,
                )
        finally:
            # Whoever waits is to wait no longer.
            self._is_prepared.set()
        self._is_over.wait(self._patience)
        undecided = [
            component
            for component in self._components
            if not (stop.reached() or _is_decided(component))
        ]
        yield from _appraised(
            undecided,
            lambda component: component.relaxation.climb_and_look(
                component, stop, _WORTHWHILE
            ),
            stop,
        )


def _appraised(
    components: Sequence[Relaxable],
    climb: Callable[[Relaxable], Iterator[Bound]],
    stop: Stop,
) -> Iterator[tuple[Relaxable, Bound]]:
    """Give out bounds in turn, and find out what demands are worth at the prices that proved them."""
    for component, bound in bounds_in_turn(components, climb):
        component.relaxation.appraise(stop)
        yield component, bound
    # The prices of the last rung are the best to go by, also where its bound was no better.
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
