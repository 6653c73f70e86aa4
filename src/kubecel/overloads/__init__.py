"""Every function of CEL as data: one table per library, joined here."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, groupby
from operator import attrgetter
from typing import Final

from kubecel.overloads.conversions import (
    CONVERSION_NAMES,
    CONVERSIONS,
    TEMPORAL,
)
from kubecel.overloads.extensions import EXTENSIONS, FORMATS
from kubecel.overloads.operators import INCLUDES, LISTS, OPERATORS, OPTIONALS
from kubecel.overloads.strings import REGEX, REGEX_NAMES, STRINGS, check_pattern
from kubecel.types import Overload, function, method
from kubecel.values import Value

__all__ = [
    "CONVERSION_NAMES",
    "FUNCTIONS",
    "FUNCTION_NAMES",
    "REGEX_NAMES",
    "Overload",
    "check_pattern",
]


def _unused(*_: Value) -> Value:
    """The implementation of what the compiler knows by itself."""
    raise AssertionError("the compiler evaluates this by itself")


_KNOWN_TO_COMPILER: Final = (
    function("_==_", "A, A -> bool", _unused),
    function("_!=_", "A, A -> bool", _unused),
    function("_?_:_", "bool, A, A -> A", _unused),
    function("_[_]", "list(A), int -> A", _unused),
    function("_[_]", "map(A, B), A -> B", _unused),
    function("_[_]", "optional(list(V)), int -> optional(V)", _unused),
    function("_[_]", "optional(map(K, V)), K -> optional(V)", _unused),
    function("_[?_]", "list(V), int -> optional(V)", _unused),
    function("_[?_]", "optional(list(V)), int -> optional(V)", _unused),
    function("_[?_]", "map(K, V), K -> optional(V)", _unused),
    function("_[?_]", "optional(map(K, V)), K -> optional(V)", _unused),
    method("or", "optional(V), optional(V) -> optional(V)", _unused),
    method("orValue", "optional(V), V -> V", _unused),
)


_TABLES: Final = (
    *(_KNOWN_TO_COMPILER, OPERATORS, CONVERSIONS, REGEX, LISTS, STRINGS),
    *(INCLUDES, TEMPORAL, EXTENSIONS, FORMATS, OPTIONALS),
)
_name: Final = attrgetter("name")

FUNCTIONS: Final[Mapping[str, tuple[Overload, ...]]] = {
    name: tuple(overloads)
    for name, overloads in groupby(sorted(chain(*_TABLES), key=_name), _name)
}
"""Every overload by the function's name, in upstream's order where that matters."""

FUNCTION_NAMES: Final = tuple(filter(str.isidentifier, FUNCTIONS))
"""The functions that are called by a name, which is no operator and has no dot."""
