"""CEL's types, and how a table of functions is written with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, TypeAlias

from kubecel.cost import CostRule, EffortRule
from kubecel.values import MAPS, Value, type_named

__all__ = [
    "ANY",
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DYN",
    "ERROR",
    "INT",
    "NULL",
    "QUANTITY",
    "STRING",
    "UINT",
    "Impl",
    "Overload",
    "Test",
    "Type",
    "accepts",
    "fresh",
    "function",
    "list_of",
    "map_of",
    "method",
    "optional_of",
    "parse_signature",
    "parse_type",
    "runtime_test",
    "type_of",
]


_PARAM: Final = "@param"
_MAX_TYPES: Final = 1000


@dataclass(frozen=True, slots=True)
class Type:
    """A type: a name with parameters. A type parameter has its own name in `label`, and a wrapper is labelled so."""

    name: str
    params: tuple[Type, ...] = ()
    label: str = ""

    @property
    def is_param(self) -> bool:
        """Whether it is a type parameter, bound or free."""
        return self.name == _PARAM

    @property
    def has_params(self) -> bool:
        """Whether a type parameter is in it."""
        return self.is_param or any(param.has_params for param in self.params)

    @property
    def is_dyn(self) -> bool:
        """Whether nothing is known about the value."""
        return self.name in {"dyn", "any"}

    @property
    def is_message(self) -> bool:
        """Whether it is an object type; null is assignable to those."""
        return (
            self.name.startswith(("kubernetes.", "net."))
            or self.name == "google.protobuf.Empty"
        )

    @property
    def is_too_large(self) -> bool:
        """Whether so many types are in it that handling it would take too long: maps can double it again and again."""
        count = 0
        stack = [self]
        while stack and count <= _MAX_TYPES:
            count += 1
            stack += stack.pop().params
        return bool(stack)

    def __str__(self) -> str:
        if self.is_param:
            return self.label
        if self.label:
            return f"{self.label}({self.name})"
        if self.params:
            return f"{self.name}({', '.join(map(str, self.params))})"
        return self.name


def _param(label: str) -> Type:
    return Type(_PARAM, (), label)


ANY: Final = Type("any")
BOOL: Final = Type("bool")
BYTES: Final = Type("bytes")
DOUBLE: Final = Type("double")
DYN: Final = Type("dyn")
ERROR: Final = Type("!error!")
INT: Final = Type("int")
NULL: Final = Type("null_type")
QUANTITY: Final = Type("kubernetes.Quantity")
STRING: Final = Type("string")
UINT: Final = Type("uint")

_ALIASES: Final = {
    "cidr": "net.CIDR",
    "duration": "google.protobuf.Duration",
    "format": "kubernetes.NamedFormat",
    "ip": "net.IP",
    "null": "null_type",
    "optional": "optional_type",
    "quantity": "kubernetes.Quantity",
    "semver": "kubernetes.Semver",
    "timestamp": "google.protobuf.Timestamp",
    "url": "kubernetes.URL",
}
_TOKENS: Final = re.compile(r"[\w.]+|[(),]")


def list_of(element: Type) -> Type:
    """``list(element)``."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """``optional_type(value)``."""
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    """``type(value)``, the type of a type."""
    return Type("type", (value,))


def fresh(number: int) -> Type:
    """A free type parameter of the checker."""
    return _param(f"_var{number}")


@cache
def parse_type(text: str) -> Type:
    """Read a type, e.g. ``map(K, list(int))``; a single capital letter is a type parameter."""
    return _type(iter([*_TOKENS.findall(text), ""]), [])


def parse_signature(text: str) -> tuple[tuple[Type, ...], Type]:
    """Read a signature, e.g. ``quantity, int -> quantity``, as parameters and result."""
    parameter_texts, _, right = text.rpartition("->")
    if not parameter_texts.strip():
        return (), parse_type(right)
    # A type may have any number of parameters, so a list reads them all at once.
    holder = parse_type(f"list({parameter_texts})")
    return holder.params, parse_type(right)


def _type(tokens: Iterator[str], ahead: list[str]) -> Type:
    """Read one type; the token after it is left in `ahead`."""
    name = next(tokens)
    ahead[:] = [next(tokens)]
    if len(name) == 1 and name.isupper():
        return _param(name)
    params: list[Type] = []
    if ahead[0] == "(":
        ahead[0] = ","
        while ahead[0] == ",":
            params.append(_type(tokens, ahead))
        ahead[0] = next(tokens)
    return Type(_ALIASES.get(name, name), tuple(params))


# ----------------------------------------------------------------------------
# Overloads: how a table of functions is written, and what it becomes.

Impl: TypeAlias = Callable[..., Value]
"""What a function does with its arguments. It raises `EvalError` where upstream gives an error."""

Test: TypeAlias = Callable[[Value], bool]


@dataclass(frozen=True, slots=True)
class Overload:
    """An overload of a function.

    Parameters
    ----------
    name, member, params, result
        Its declaration; a member is called as ``first.name(others)``.
    impl
        What it does.
    cost
        Its cost rule, None for 1.
    by_name
        Whether the rule also holds when it is open which overload will be called; otherwise such calls cost 1.
    checks
        Whether `impl` itself refuses arguments of other types, so that any overload's may be called.
    effort
        The rule for what it takes beyond its cost, if it may take much more.
    """

    name: str
    member: bool
    params: tuple[Type, ...]
    result: Type
    impl: Impl
    cost: CostRule | None = None
    by_name: bool = True
    checks: bool = False
    effort: EffortRule | None = None


def _declared(  # noqa: PLR0913 - a row of a table
    member: bool,
    name: str,
    signature: str,
    impl: Impl,
    cost: CostRule | None = None,
    effort: EffortRule | None = None,
    *,
    by_name: bool = True,
    checks: bool = False,
) -> Overload:
    params, result = parse_signature(signature)
    return Overload(
        name, member, params, result, impl, cost, by_name, checks, effort
    )


function = partial(_declared, False)
"""Declares a function called as ``name(arguments)``."""

method = partial(_declared, True)
"""Declares a function called as ``first.name(others)``; the signature begins with the first argument."""


@cache
def runtime_test(expected: Type) -> Test:
    """A test for values of a type. As upstream's, it looks at no more than the first element of a list or map."""
    if expected.is_dyn or expected.is_param:
        return lambda _: True
    if expected.name == "list":
        element = runtime_test(expected.params[0])
        return lambda value: (
            type(value) is tuple and (not value or element(value[0]))
        )
    if expected.name == "map":
        return lambda value: type(value) in MAPS
    kind = type_named(expected.name)
    return lambda value: type(value) is kind


def accepts(parse: Callable[..., object]) -> Callable[..., bool]:
    """Whether a function that reads a text does not raise `ValueError`."""

    def accepted(*args: Value) -> bool:
        try:
            parse(*args)
        except ValueError:
            return False
        return True

    return accepted
