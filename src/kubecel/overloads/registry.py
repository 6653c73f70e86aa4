"""How a table of functions is written, and what it becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

from kubecel.cost import CostRule
from kubecel.data import MAPS, Value
from kubecel.effort import EffortRule
from kubecel.runtime_types import type_named
from kubecel.types import Type, parse_signature

__all__ = ["Impl", "Overload", "Test", "accepts", "function", "method", "runtime_test"]

Impl: TypeAlias = Callable[..., Value]
"""What a function does with its arguments. It raises `EvalError` where upstream gives an error."""

Test: TypeAlias = Callable[[Value], bool]


@dataclass(frozen=True, slots=True)
class Overload:
    """One overload of a function.

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
    return Overload(name, member, params, result, impl, cost, by_name, checks, effort)


function = partial(_declared, False)
"""Declares a function called as ``name(arguments)``."""

method = partial(_declared, True)
"""Declares a function called as ``first.name(others)``; the signature begins with the first argument."""


@cache
def runtime_test(wanted: Type) -> Test:
    """A test for values of a type. As upstream's, it looks at no more than the first element of a list or map."""
    if wanted.is_dyn or wanted.is_param:
        return lambda _: True
    if wanted.name == "list":
        element = runtime_test(wanted.params[0])
        return lambda value: type(value) is tuple and (not value or element(value[0]))
    if wanted.name == "map":
        return lambda value: type(value) in MAPS
    kind = type_named(wanted.name)
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
