"""A row of the table: a field of the API, and what it is to each mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import accumulate
from typing import Any

from pydantic.alias_generators import to_snake

from dralloc.objects.choices import Mode

__all__ = [
    "Fate",
    "FieldRow",
    "ignored",
    "modelled",
    "no_matter",
    "preferred",
    "spelled_out",
]


class Fate(StrEnum):
    """The treatment of a field in a mode.

    ``MODELLED``: the answer minds it. ``IGNORED``: it could change the answer and does not; a notice names it, nothing
    is proven beyond the rules modelled, and ``--strict`` refuses it. ``NO_MATTER``: it cannot change the answer.
    """

    MODELLED = "modelled"
    IGNORED = "ignored"
    NO_MATTER = "no matter"


Fates = Mapping[Mode, Fate]
Says = Callable[[Any, Any], bool]
"""Whether an object says something with a field: called with the object and the value of the field in it."""


def _says_anything(_: Any, value: Any) -> bool:
    return bool(value)


@dataclass(frozen=True, slots=True, eq=False)
class FieldRow:
    """A field of a kind.

    Parameters
    ----------
    path
        As on the wire, without steps into lists and maps.
    rule
        What the field is for; of a field that is ignored, what is not looked at.
    fates
        By mode.
    says
        Whether an object uses the field.
    of_running
        Whether it counts on pods that have a node, and not on those to be placed.
    """

    kind: str
    path: str
    rule: str
    fates: Fates
    says: Says = _says_anything
    of_running: bool = False

    @property
    def matters(self) -> bool:
        """Whether it can change the answer of some mode."""
        return set(self.fates.values()) != {Fate.NO_MATTER}

    @property
    def covers_below(self) -> bool:
        """Whether all fields below have the same fate, those that are yet to come among them."""
        return Fate.MODELLED not in self.fates.values()

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the fields on the way in Python."""
        return _in_python(self.path)


@cache
def _in_python(path: str) -> tuple[str, ...]:
    return tuple(map(to_snake, path.split(".")))


def modelled(
    rule: str, *paths: str, but: Fates | None = None
) -> Iterator[FieldRow]:
    """Rows of fields that all modes mind, ``but`` for those that do something else."""
    return rows(
        rule, *paths, fates=dict.fromkeys(Mode, Fate.MODELLED) | dict(but or {})
    )


def preferred(rule: str, *paths: str) -> Iterator[FieldRow]:
    """Rows of preferences: the scheduler's scores know them, and they bind no other answer."""
    return rows(
        rule,
        *paths,
        fates=dict.fromkeys(Mode, Fate.NO_MATTER)
        | {Mode.SCHEDULER: Fate.MODELLED},
    )


def ignored(
    rule: str,
    *paths: str,
    says: Says = _says_anything,
    of_running: bool = False,
    but: Fates | None = None,
) -> Iterator[FieldRow]:
    """Rows of fields that no mode minds, although they can change the answer, ``but`` for those named."""
    for row in rows(
        rule, *paths, fates=dict.fromkeys(Mode, Fate.IGNORED) | dict(but or {})
    ):
        yield replace(row, says=says, of_running=of_running)


def no_matter(*paths: str) -> Iterator[FieldRow]:
    """Rows of fields that cannot change an answer."""
    return rows("", *paths, fates=dict.fromkeys(Mode, Fate.NO_MATTER))


def rows(rule: str, *paths: str, fates: Fates) -> Iterator[FieldRow]:
    """Rows of fields with one rule and the same fates.

    Parameters
    ----------
    paths
        Each is a kind and a path; ``{a,b}`` stands for both.
    """
    for path in paths:
        for field in spelled_out(path):
            kind, _, name = field.partition(" ")
            yield FieldRow(kind, name, rule, fates)


def spelled_out(text: str) -> Iterator[str]:
    """The texts that one with braces, maybe inside of others, stands for."""
    start = text.find("{")
    if start < 0:
        yield text
        return
    end = _closing(text, start)
    for part in _options(text[start + 1 : end]):
        yield from spelled_out(f"{text[:start]}{part}{text[end + 1 :]}")


def _depths(text: str) -> Iterator[int]:
    """Yield the number of braces that are open behind each character."""
    return accumulate(
        (character == "{") - (character == "}") for character in text
    )


def _closing(text: str, start: int) -> int:
    return next(
        position
        for position, depth in enumerate(_depths(text[start:]), start)
        if not depth
    )


def _options(text: str) -> list[str]:
    commas = zip(text, _depths(text), strict=True)
    return "".join(
        "\n" if character == "," and not depth else character
        for character, depth in commas
    ).split("\n")
