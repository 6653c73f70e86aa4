"""The patterns of a bin, as in cutting stock: which requirements fit into it together.

A pattern is a multiset of requirements that can be served in one bin at once. Whatever is served in a bin is a pattern,
and a part of a pattern always fits as well, so it is enough to know the maximal ones. They are found by adding
requirements one at a time, in the order of their numbers, to all states that the ones before can leave. Serving them in
another order leaves the same, so this misses none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dralloc.solve.optimum.classes.assignments import (
    Effort,
    State,
    TooMuchEffort,
)
from dralloc.solve.optimum.classes.demand_classes import Requirement
from dralloc.solve.optimum.classes.state_space import StateSpace, Transition

__all__ = ["Pattern", "maximal_patterns"]

Path = tuple["Path", Transition] | None
"""Transitions in reverse."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A count of servings by requirement (its number), and transitions that do them."""

    counts: tuple[tuple[int, int], ...]
    transitions: tuple[Transition, ...]

    @property
    def size(self) -> int:
        """The number of requirements that are served."""
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
    requirement_indices = sorted(
        requirement
        for requirement in supply
        if space.may_serve(requirements[requirement])
    )
    supplied = [
        (requirement, supply[requirement])
        for requirement in requirement_indices
    ]
    try:
        multisets = _multisets(space, requirements, supplied, Effort(limit))
    except TooMuchEffort:
        return None
    patterns = []
    for multiset, path in multisets.items():
        # Parts of what fits fit as well: so a multiset that is part of a larger one is part of one with just one more.
        larger = (
            _with_one_more(multiset, position)
            for position in range(len(multiset))
        )
        if not any(counts in multisets for counts in larger):
            counts = zip(requirement_indices, multiset, strict=True)
            served = tuple(
                (requirement, count) for requirement, count in counts if count
            )
            patterns.append(Pattern(served, _transitions_of(path)))
    return patterns


def _multisets(
    space: StateSpace,
    requirements: Sequence[Requirement],
    supply: Sequence[tuple[int, int]],
    effort: Effort,
) -> dict[tuple[int, ...], Path]:
    """Return all multisets of requirements that fit, as counts in the order of the supply, each with a path to it.

    A layer holds the multisets of one size, with all states that they can leave.
    """
    multisets: dict[tuple[int, ...], Path] = {}
    empty = (0,) * len(supply)
    layer: dict[tuple[int, ...], dict[State, Path]] = {
        empty: {space.start: None}
    }
    while layer:
        next_layer: dict[tuple[int, ...], dict[State, Path]] = {}
        for counts, states in layer.items():
            multisets[counts] = next(iter(states.values()))
            # Requirements are added in the order of their numbers.
            last = max(
                (position for position, count in enumerate(counts) if count),
                default=0,
            )
            for position, (requirement, limit) in enumerate(
                supply[last:], last
            ):
                if counts[position] == limit:
                    continue
                larger = _with_one_more(counts, position)
                for state, path in states.items():
                    transitions = space.transitions(
                        requirement, requirements[requirement], state, effort
                    )
                    for after, transition in transitions:
                        reached = next_layer.setdefault(larger, {})
                        reached.setdefault(after, (path, transition))
        layer = next_layer
    return multisets


def _with_one_more(counts: tuple[int, ...], position: int) -> tuple[int, ...]:
    return (*counts[:position], counts[position] + 1, *counts[position + 1 :])


def _transitions_of(path: Path) -> tuple[Transition, ...]:
    transitions = []
    while path is not None:
        path, transition = path
        transitions.append(transition)
    return tuple(reversed(transitions))
