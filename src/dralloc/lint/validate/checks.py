"""What rules of one shape ask of fields: a limit, a form of name, differing items, one of some values.

A check names its fields by their path on the wire, below the part that the rule is about, as `Places` has it; no name
is the part itself. A field that is absent passes, but for `required`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Sized
from typing import Any, Final

from dralloc.lint.validate.names import Judge, size_of
from dralloc.lint.validate.places import place_of, walk
from dralloc.lint.validate.rule import Check, Issue

__all__ = [
    "JUDGED",
    "at_most",
    "choice",
    "distinct",
    "form",
    "keys",
    "limit",
    "longest",
    "named",
    "not_false",
    "not_negative",
    "on",
    "one_term",
    "positive",
    "required",
    "told",
    "unique",
]

JUDGED: Final = '"{0}" {1}'
"""A text, and what one of the functions of `dralloc.lint.validate.names` says of it."""


def on(fields: str, of_field: Check, *, absent: bool = False) -> Check:
    """A check that looks at each of the fields, also at those that are absent if that is asked for."""
    place = place_of(fields)

    def check(part: Any, at: str) -> Iterator[Issue]:
        for path, value in walk(part, place, at, absent=absent):
            yield from of_field(value, path)

    return check


def told(
    fields: str,
    why: Callable[[Any], object],
    words: str,
    *,
    at: str = "",
    absent: bool = False,
) -> Check:
    """Something does not hold of the fields.

    Parameters
    ----------
    why
        What is wrong with a value; nothing true if it is in order.
    words
        The message, in which ``{0}`` stands for the value and ``{1}`` for what is wrong with it.
    at
        The field of the value with which the issue is, if that is not the value as a whole.
    absent
        Whether absent fields are looked at, too.
    """

    def of_field(value: Any, path: str) -> Iterator[Issue]:
        if wrong := why(value):
            yield Issue(".".join(filter(None, (path, at))), words.format(value, wrong))

    return on(fields, of_field, absent=absent)


def form(fields: str, judge: Judge, *, empty: bool = False) -> Check:
    """A name has the form that a function of `dralloc.lint.validate.names` asks for, or is empty if that is allowed."""
    return on(
        fields, lambda text, at: () if empty and not text else named(text, at, judge)
    )


def keys(fields: str, judge: Judge) -> Check:
    """All keys of a map have a form; the issue is with the map, as the API server has it."""
    return on(
        fields,
        lambda entries, at: (one for key in entries for one in named(key, at, judge)),
    )


def limit(most: int, fields: str, what: str) -> Check:
    """There are at most so many items."""
    return on(fields, lambda items, at: at_most(most, items, at, what))


def longest(most: int, fields: str) -> Check:
    """A text has at most so many bytes."""
    return told(
        fields, lambda text: size_of(str(text)) > most, f"is longer than {most} bytes"
    )


def distinct(fields: str, by: str = "") -> Check:
    """The items of a list differ, in a field of theirs if that is named."""
    return on(
        fields,
        lambda items, at: unique(
            (getattr(one, by) if by else one for one in items), at
        ),
    )


def choice(fields: str, allowed: Sequence[str], *, empty: bool = False) -> Check:
    """A text is one of some, or empty if that is allowed."""
    known = (*allowed, "") if empty else allowed
    return told(
        fields,
        lambda text: text not in known,
        f'"{{}}" is not one of {", ".join(allowed)}',
    )


def required(fields: str) -> Check:
    """Something is there, and not empty."""
    return told(fields, lambda value: not value, "is required", absent=True)


def not_false(fields: str) -> Check:
    """A switch is on or absent."""
    return told(fields, lambda value: value is False, "must be true or left out")


def positive(fields: str) -> Check:
    """A number is above zero."""
    return told(fields, lambda number: number <= 0, "{} is not greater than zero")


def not_negative(fields: str) -> Check:
    """A number is zero or above; what is no number has been refused before."""
    return told(
        fields, lambda number: isinstance(number, int) and number < 0, "{} is negative"
    )


def one_term(word: str) -> Check:
    """A node selector has no more than one term."""
    text = f"exactly one term is {word}, not {{1}}"
    return told(
        "nodeSelector.nodeSelectorTerms",
        lambda terms: len(terms) > 1 and len(terms),
        text,
    )


def named(text: Any, path: str, judge: Judge) -> Iterator[Issue]:
    """Yield an issue if the text lacks the form that one of the functions of `dralloc.lint.validate.names` asks for."""
    text = str(text or "")
    if not text:
        yield Issue(path, "is required")
    elif reason := judge(text):
        shown = text if len(text) <= 80 else f"{text[:38]}...{text[-38:]}"
        yield Issue(path, JUDGED.format(shown, reason))


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
            shown = (
                "/".join(str(part) for part in key if part)
                if isinstance(key, tuple)
                else key
            )
            yield Issue(
                f"{path}[{index}]{field}",
                f'"{shown}" is there before, at {path}[{first}]',
            )
