"""Every function of CEL as data: one table per library, joined here."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, groupby
from operator import attrgetter
from typing import Final

from kubecel.data import Value
from kubecel.overloads.convert import CONVERSION_NAMES, CONVERSIONS
from kubecel.overloads.extensions import EXTENSIONS
from kubecel.overloads.formats import FORMATS
from kubecel.overloads.lists import INCLUDES, LISTS
from kubecel.overloads.operators import OPERATORS
from kubecel.overloads.optionals import OPTIONALS
from kubecel.overloads.regex import REGEX, REGEX_NAMES, check_pattern
from kubecel.overloads.registry import Overload, function, method
from kubecel.overloads.strings import STRINGS
from kubecel.overloads.temporal import TEMPORAL

__all__ = ["CONVERSION_NAMES", "FUNCTIONS", "REGEX_NAMES", "Overload", "check_pattern"]


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
