"""The kinds of values that questions are asked with in Python, and what is said of a value of another kind.

Type hints say the same to a type checker, which nobody runs in a notebook. If nobody looked at values, a list where a
word belongs would end with an error from somewhere inside, maybe minutes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

from dralloc.objects.errors import DrallocError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "FUNCTION",
    "NONE",
    "NUMBER",
    "NUMBERS",
    "PATH",
    "SWITCH",
    "TEXT",
    "TEXTS",
    "WHOLE_NUMBER",
    "WHOLE_NUMBERS",
    "ValueKind",
    "any_of",
    "dict_of",
    "instance_of",
    "list_of",
    "require_fields",
    "takes",
]

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class ValueKind(NamedTuple):
    """Values of one kind.

    Parameters
    ----------
    words
        What such a value is, as it follows "must be".
    holds
        Whether a value is of this kind.
    """

    words: str
    holds: Callable[[object], bool]

    def or_none(self) -> ValueKind:
        """Return the kind of these values and of None."""
        return any_of(self, NONE)

    def require(self, subject: str, value: object) -> None:
        """Refuse a value of another kind.

        Parameters
        ----------
        subject
            What the value is given for.

        Raises
        ------
        DrallocError
            It is of another kind.
        """
        if not self.holds(value):
            raise DrallocError(
                f"{subject}: must be {self.words}, not {_shown(value)}"
            )


def _shown(value: object) -> str:
    """Return a simple value itself, and of others the type."""
    if value is None or isinstance(value, str | int | float):
        return repr(value)
    return type(value).__name__


def instance_of(classes: type | tuple[type, ...], words: str) -> ValueKind:
    """Return the kind of the instances of a class, or of several."""
    return ValueKind(words, lambda value: isinstance(value, classes))


def list_of(classes: type | tuple[type, ...], words: str) -> ValueKind:
    """Return the kind of what gives instances of these classes in turn; a text is no list of its letters."""

    def holds(value: object) -> bool:
        if isinstance(value, str) or not isinstance(value, Iterable):
            return False
        # What an iterator gives can be seen once only: that is for whoever uses it.
        return isinstance(value, Iterator) or all(
            isinstance(element, classes) for element in value
        )

    return ValueKind(words, holds)


def dict_of(classes: type | tuple[type, ...], words: str) -> ValueKind:
    """Return the kind of what has an instance of these classes for each text."""

    def holds(value: object) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(key, str) and isinstance(element, classes)
            for key, element in value.items()
        )

    return ValueKind(words, holds)


def any_of(*kinds: ValueKind) -> ValueKind:
    """Return the kind of the values of all of these kinds."""
    *words, last_words = [kind.words for kind in kinds]
    return ValueKind(
        f"{', '.join(words)} or {last_words}",
        lambda value: any(kind.holds(value) for kind in kinds),
    )


def _is_whole_number(value: object) -> bool:
    """Return whether a value counts something: also one of NumPy, but neither True nor 2.0."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


NONE: Final = ValueKind("None", lambda value: value is None)
TEXT: Final = instance_of(str, "a text")
TEXTS: Final = list_of(str, "a list of texts")
SWITCH: Final = instance_of(bool, "True or False")
WHOLE_NUMBER: Final = ValueKind("a whole number", _is_whole_number)
WHOLE_NUMBERS: Final = list_of(Integral, "a list of whole numbers")
NUMBER: Final = ValueKind("a number", _is_number)
NUMBERS: Final = list_of(Real, "a list of numbers")
PATH: Final = instance_of((str, PathLike), "a path")
FUNCTION: Final = ValueKind("a function", callable)


def require_fields(
    record: DataclassInstance, kinds: Mapping[str, ValueKind]
) -> None:
    """Refuse a record with a value of another kind than its field says; what iterators give is kept in their place.

    Parameters
    ----------
    kinds
        By annotation, as it is written. Fields with other annotations are not looked at.

    Raises
    ------
    DrallocError
        A value is of another kind.
    """
    for field in fields(record):
        kind = kinds.get(str(field.type))
        if kind is None:
            continue
        value = getattr(record, field.name)
        if isinstance(value, Iterator):
            value = tuple(value)
            object.__setattr__(record, field.name, value)
        kind.require(field.name, value)


def takes(
    **kinds: ValueKind,
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Decorate a function that is asked in Python, so that it refuses arguments of other kinds before it begins.

    Parameters
    ----------
    kinds
        By the name of the argument.
    """

    def decorate(
        function: Callable[Arguments, Answer],
    ) -> Callable[Arguments, Answer]:
        names = [
            parameter.name
            for parameter in signature(function).parameters.values()
            if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
        ]

        @wraps(function)
        def checked(
            *args: Arguments.args, **keywords: Arguments.kwargs
        ) -> Answer:
            # Too many arguments, and unknown names, are for the call itself to refuse.
            arguments: dict[str, object] = dict(zip(names, args, strict=False))
            arguments.update(keywords)
            for name, kind in kinds.items():
                if name in arguments:
                    kind.require(name, arguments[name])
            return function(*args, **keywords)

        return checked

    return decorate
