"""Patterns, as in cutting stock: which requirements fit into a bin together.

A pattern is a multiset of requirements that can be served in one bin at once. Whatever is served in a bin is a pattern,
and a part of a pattern always fits as well, so it is enough to know the maximal ones.

Patterns are found by adding requirements one at a time, in the order of their numbers, to all states that the ones
before can leave. Serving them in another order leaves the same, so this misses none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dralloc.solve.optimum.classes.demand_classes import Requirement
from dralloc.solve.optimum.classes.state_space import (
    Effort,
    State,
    StateSpace,
    TooMuchEffort,
    Transition,
)

__all__ = ["Pattern", "maximal_patterns"]

Path = tuple["Path", Transition] | None
"""Transitions in reverse."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """How often each requirement (by number) is served, and transitions that do it."""

    counts: tuple[tuple[int, int], ...]
    transitions: tuple[Transition, ...]

    @property
    def size(self) -> int:
        """How many requirements are served."""
        return sum(count for _, count in self.counts)


def maximal_patterns(
    space: StateSpace,
    requirements: Sequence[Requirement],
    supply: Mapping[int, int],
    limit: int,
) -> list[Pattern] | None:
    """Find the maximal patterns.

    Parameters
    ----------
    space
        The state space of the bin.
    requirements
        All requirements, by number.
    supply
        By requirement, how many demands can make use of it: no others are looked at, and never more of them.
    limit
        How many devices to look at.

    Returns
    -------
    None if it takes more of them.
    """
    numbers = sorted(number for number in supply if space.serves(requirements[number]))
    try:
        found = _multisets(
            space,
            requirements,
            [(number, supply[number]) for number in numbers],
            Effort(limit),
        )
    except TooMuchEffort:
        return None
    return [
        Pattern(
            tuple(
                (number, count)
                for number, count in zip(numbers, counts, strict=True)
                if count
            ),
            _followed(path),
        )
        for counts, path in found.items()
        if not any(
            _with_one_more(counts, place) in found for place in range(len(counts))
        )
    ]


def _multisets(
    space: StateSpace,
    requirements: Sequence[Requirement],
    supply: Sequence[tuple[int, int]],
    effort: Effort,
) -> dict[tuple[int, ...], Path]:
    """All multisets of requirements that fit, as counts in the order of the supply, each with a path that serves it."""
    found: dict[tuple[int, ...], Path] = {}
    layer: dict[tuple[int, ...], dict[State, Path]] = {
        (0,) * len(supply): {space.start: None}
    }
    while layer:
        following: dict[tuple[int, ...], dict[State, Path]] = {}
        for counts, states in layer.items():
            found[counts] = next(iter(states.values()))
            last = max(
                (place for place, count in enumerate(counts) if count), default=0
            )
            for place, (number, most) in enumerate(supply[last:], last):
                if counts[place] == most:
                    continue
                more = _with_one_more(counts, place)
                for state, path in states.items():
                    for after, transition in space.transitions(
                        number, requirements[number], state, effort
                    ):
                        following.setdefault(more, {}).setdefault(
                            after, (path, transition)
                        )
        layer = following
    return found


def _with_one_more(counts: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*counts[:place], counts[place] + 1, *counts[place + 1 :])


def _followed(path: Path) -> tuple[Transition, ...]:
    transitions = []
    while path is not None:
        path, transition = path
        transitions.append(transition)
    return tuple(reversed(transitions))
