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

from dralloc.solvers.cpsat.classes.machine import Machine, State, Step
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
        The most multisets and states to look at.

    Returns
    -------
    None if there are more.
    """
    numbers = sorted(number for number in supply if machine.serves(needs[number]))
    found: dict[tuple[int, ...], Path] = {}
    layer: dict[tuple[int, ...], dict[State, Path]] = {(0,) * len(numbers): {machine.start: None}}
    effort = 0
    while layer:
        following: dict[tuple[int, ...], dict[State, Path]] = {}
        for counts, states in layer.items():
            found[counts] = next(iter(states.values()))
            last = max((place for place, count in enumerate(counts) if count), default=0)
            for place in range(last, len(numbers)):
                number = numbers[place]
                if counts[place] == supply[number]:
                    continue
                more = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
                for state, path in states.items():
                    for after, step in machine.embeddings(number, needs[number], state):
                        following.setdefault(more, {}).setdefault(after, (path, step))
                        effort += 1
                if effort > limit:
                    return None
        layer = following
    return [_pattern(numbers, counts, path) for counts, path in found.items() if not _grows(counts, found)]


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
