"""Packing patterns: which needs fit into a cell together.

A pattern is a multiset of needs that can be served in one cell at once. Whatever is served in a cell is a pattern, and
fewer needs than a pattern always fit as well, so it is enough to know the maximal ones.

Patterns are found by adding needs one at a time, in the order of their numbers, to all states that the ones before can
leave. Taking things in another order leaves the same, so this misses none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dralloc.solvers.cpsat.classes.machine import Effort, Machine, State, Step, TooMuchEffort
from dralloc.solvers.cpsat.classes.needs import Need

__all__ = ["Pattern", "maximal_patterns"]

Path = tuple["Path", Step] | None
"""Steps in reverse."""


class _Found(NamedTuple):
    state: State
    path: Path


@dataclass(frozen=True, slots=True)
class Pattern:
    """How often each need (by number) is served, and steps that do it."""

    counts: tuple[tuple[int, int], ...]
    steps: tuple[Step, ...]


def maximal_patterns(
    machine: Machine, needs: Sequence[Need], supply: Mapping[int, int], limit: int
) -> list[Pattern] | None:
    """Find the maximal patterns.

    Parameters
    ----------
    machine
        The cell.
    needs
        All needs, by number.
    supply
        By need, how many demands can make use of it: the only needs that are looked at, and never more of them.
    limit
        How many devices to look at.

    Returns
    -------
    None if it takes more of them.
    """
    numbers = sorted(number for number in supply if machine.serves(needs[number]))
    try:
        found = _multisets(machine, needs, [(number, supply[number]) for number in numbers], Effort(limit))
    except TooMuchEffort:
        return None
    return [_pattern(numbers, counts, path) for counts, path in found.items() if not _grows(counts, found)]


def _multisets(
    machine: Machine, needs: Sequence[Need], supply: Sequence[tuple[int, int]], effort: Effort
) -> dict[tuple[int, ...], Path]:
    """All multisets of needs that fit, as counts in the order of the supply, each with one way to serve them."""
    found: dict[tuple[int, ...], Path] = {}
    layer: dict[tuple[int, ...], dict[State, Path]] = {(0,) * len(supply): {machine.start: None}}
    while layer:
        following: dict[tuple[int, ...], dict[State, Path]] = {}
        for counts, states in layer.items():
            found[counts] = next(iter(states.values()))
            last = max((place for place, count in enumerate(counts) if count), default=0)
            for place, (number, most) in enumerate(supply[last:], last):
                if counts[place] == most:
                    continue
                more = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
                for state, path in states.items():
                    for after, step in machine.embeddings(number, needs[number], state, effort):
                        following.setdefault(more, {}).setdefault(after, (path, step))
        layer = following
    return found


def _grows(counts: tuple[int, ...], found: Mapping[tuple[int, ...], object]) -> bool:
    """Whether one more need fits."""
    return any((*counts[:place], count + 1, *counts[place + 1 :]) in found for place, count in enumerate(counts))


def _pattern(numbers: Sequence[int], counts: tuple[int, ...], path: Path) -> Pattern:
    each = tuple((number, count) for number, count in zip(numbers, counts, strict=True) if count)
    return Pattern(each, tuple(reversed(list(_steps(path)))))


def _steps(path: Path) -> Iterator[Step]:
    while path is not None:
        path, step = path
        yield step
