"""What rules of one shape ask of fields: a limit, a form of name, differing items, one of some values.

A check names its fields by their path on the wire, below the part that the rule is about; several are separated by
``|``, and no name is the part itself. A field that is absent passes, but for `required`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Sized
from typing import Any

from pydantic.alias_generators import to_snake

from dralloc.validate.names import Judge
from dralloc.validate.rule import Check, Issue

__all__ = [
    "at_most",
    "choice",
    "choices",
    "distinct",
    "form",
    "forms",
    "keys",
    "limit",
    "longest",
    "named",
    "not_false",
    "not_negative",
    "on",
    "positive",
    "required",
    "size_of",
    "unique",
]


def on(fields: str, of_field: Check, *, absent: bool = False) -> Check:
    """A check that looks at each of the fields, also at those that are absent if that is asked for."""
    ways = [(f".{field}" if field else "", _steps(field)) for field in fields.split("|")]

    def check(part: Any, at: str) -> Iterator[Issue]:
        for below, steps in ways:
            value = part
            for wire, python in steps:
                value = value.get(wire, "") if isinstance(value, dict) else getattr(value, python)
            if absent or value is not None:
                yield from of_field(value, f"{at}{below}".removeprefix("."))

    return check


def _steps(field: str) -> list[tuple[str, str]]:
    return [(step, to_snake(step)) for step in field.split(".") if step]


def form(fields: str, judge: Judge) -> Check:
    """A name has the form that a function of `dralloc.validate.names` asks for."""
    return on(fields, lambda text, at: named(text, at, judge))


def forms(fields: str, judge: Judge) -> Check:
    """All names of a list have a form."""
    return on(
        fields, lambda texts, at: (one for i, text in enumerate(texts) for one in named(text, f"{at}[{i}]", judge))
    )


def keys(fields: str, judge: Judge) -> Check:
    """All keys of a map have a form; the issue is with the map, as the API server has it."""
    return on(fields, lambda entries, at: (one for key in entries for one in named(key, at, judge)))


def limit(most: int, fields: str, what: str) -> Check:
    """There are at most so many items."""
    return on(fields, lambda items, at: at_most(most, items, at, what))


def longest(most: int, fields: str) -> Check:
    """A text has at most so many bytes."""

    def of_field(text: Any, at: str) -> Iterator[Issue]:
        if size_of(str(text)) > most:
            yield Issue(at, f"is longer than {most} bytes")

    return on(fields, of_field)


def distinct(fields: str, by: str = "") -> Check:
    """The items of a list differ, in a field of theirs if that is named."""
    return on(fields, lambda items, at: unique((getattr(one, by) if by else one for one in items), at))


def choice(fields: str, allowed: Sequence[str], *, empty: bool = False) -> Check:
    """A text is one of some, or empty if that is allowed."""

    def of_field(text: str, at: str) -> Iterator[Issue]:
        if text not in allowed and not (empty and not text):
            yield Issue(at, f'"{text}" is not one of {", ".join(allowed)}')

    return on(fields, of_field)


def choices(fields: str, allowed: Sequence[str]) -> Check:
    """All texts of a list are of some."""
    one = choice("", allowed)
    return on(fields, lambda texts, at: (issue for i, text in enumerate(texts) for issue in one(text, f"{at}[{i}]")))


def required(fields: str) -> Check:
    """Something is there, and not empty."""
    return on(fields, lambda value, at: () if value else (Issue(at, "is required"),), absent=True)


def not_false(fields: str) -> Check:
    """A switch is on or absent."""
    return on(fields, lambda value, at: (Issue(at, "must be true or left out"),) if value is False else ())


def positive(fields: str) -> Check:
    """A number is above zero."""
    return on(fields, lambda number, at: (Issue(at, f"{number} is not greater than zero"),) if number <= 0 else ())


def not_negative(fields: str) -> Check:
    """A number is zero or above; what is no number has been refused before."""

    def of_field(number: Any, at: str) -> Iterator[Issue]:
        if isinstance(number, int) and number < 0:
            yield Issue(at, f"{number} is negative")

    return on(fields, of_field)


def size_of(text: str) -> int:
    """How many bytes a text has on the wire."""
    return len(text.encode(errors="surrogatepass"))


def named(text: Any, path: str, judge: Judge) -> Iterator[Issue]:
    """An issue if the text does not have the form that one of the functions of `dralloc.validate.names` asks for."""
    text = str(text or "")
    if not text:
        yield Issue(path, "is required")
    elif reason := judge(text):
        shown = text if len(text) <= 80 else f"{text[:38]}...{text[-38:]}"
        yield Issue(path, f'"{shown}" {reason}')


def at_most(most: int, items: Sized, path: str, what: str) -> Iterator[Issue]:
    """An issue if there are more items than allowed."""
    if len(items) > most:
        yield Issue(path, f"has {len(items)} {what}, at most {most} are allowed")


def unique(keys: Iterable[Hashable], path: str, *, field: str = "") -> Iterator[Issue]:
    """An issue for every item of the list at `path` whose key came before."""
    seen: dict[Hashable, int] = {}
    for index, key in enumerate(keys):
        first = seen.setdefault(key, index)
        if first != index:
            shown = "/".join(str(part) for part in key if part) if isinstance(key, tuple) else key
            yield Issue(f"{path}[{index}]{field}", f'"{shown}" is there before, at {path}[{first}]')
