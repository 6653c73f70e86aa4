"""Calls of functions and operators, as code that runs.

Each is compiled to a closure over a frame, which pays its cost as it runs (see `kubecel.code`). Operators that need not
evaluate both sides, and equality, are in `kubecel.logic`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from kubecel.code import Compiled, charge, constant, fixed, spend
from kubecel.cost import CostRule, EffortRule
from kubecel.overloads import FUNCTIONS, Overload
from kubecel.types import Impl, Test, Type, runtime_test
from kubecel.values import (
    MISSING,
    EvalError,
    Frame,
    Run,
    Uint,
    Value,
    equal_numbers,
    no_overload,
    unhashable,
)

__all__ = ["call", "membership"]

_PRIMITIVES: Final = frozenset({bool, int, Uint, float, str})
_CHEAP: Final = 20_000
"""Calls with known arguments are computed when the selector is compiled, if they cost no more than this."""

_Check: TypeAlias = Callable[[Sequence[Value]], None]
"""Refuses values that are not of the types of an overload's parameters."""

_SCALARS: Final = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes"}
)


def call(
    name: str,
    overloads: Sequence[Overload],
    args: Sequence[Compiled],
    types: Sequence[Type],
) -> Compiled:
    """A call of a function that the checker resolved to one or more overloads."""
    impl, rule, check = _implementation(name, overloads, types)
    efforts = (
        overload.effort for overload in overloads if overload.effort is not None
    )
    effort = next(efforts, None)
    checked = impl if check is None else _checked(impl, check)
    cost = sum(arg.cost for arg in args)
    if all(arg.value is not MISSING for arg in args):
        values = [arg.value for arg in args]
        work = 0 if effort is None else effort(values)
        # A rule may take as long as the call itself, so look at the work first.
        call_cost = _own_cost(rule, check, values) if work <= _CHEAP else work
        if cost + call_cost + work <= _CHEAP:
            return fixed(lambda: checked(*values), cost + call_cost)
    if rule is None and effort is None:
        return Compiled(_run(checked, args), cost + 1)
    runs = tuple(arg.run for arg in args)
    return Compiled(_run_with_rules(impl, runs, check, rule, effort), cost)


def _own_cost(
    rule: CostRule | None, check: _Check | None, values: Sequence[Value]
) -> int:
    """The cost of a call with known arguments; 1 if it fails for their types."""
    if rule is None:
        return 1
    try:
        if check is not None:
            check(values)
    except EvalError:
        return 1
    return rule(values)


def _implementation(
    name: str, overloads: Sequence[Overload], types: Sequence[Type]
) -> tuple[Impl, CostRule | None, _Check | None]:
    """Return the function to call, its cost, and the test that values at run time must pass before."""
    first = overloads[0]
    if len(overloads) > 1:
        rule = first.cost if first.by_name else None
        if first.checks:
            return first.impl, rule, None
        return _dispatcher(name, first, len(types)), rule, None
    if first.checks:
        return first.impl, first.cost, None
    tests = []
    for position, static_type in enumerate(types):
        param = first.params[position]
        if not _proven(static_type, param):
            tests.append((position, runtime_test(param)))
    check = _check(name, tuple(tests)) if tests else None
    return first.impl, first.cost, check


def _proven(static_type: Type, param: Type) -> bool:
    """Whether values of a static type need no test. Null may hide behind other types than these."""
    if param.is_dyn or param.is_param:
        return True
    if static_type.name != param.name:
        return False
    if static_type.name in _SCALARS:
        return True
    if static_type.name not in {"list", "map"}:
        return False
    return all(map(_proven, static_type.params, param.params))


def _check(name: str, tests: tuple[tuple[int, Test], ...]) -> _Check:
    def check(values: Sequence[Value]) -> None:
        for position, test in tests:
            if not test(values[position]):
                raise no_overload(name)

    return check


def _checked(impl: Impl, check: _Check) -> Impl:
    def checked(*values: Value) -> Value:
        check(values)
        return impl(*values)

    return checked


def _dispatcher(name: str, first: Overload, count: int) -> Impl:
    """Choose the overload by the values, among all that the function has."""
    # Not only those that the checker left: upstream dispatches by name and values.
    candidates = []
    for overload in FUNCTIONS[name]:
        if overload.member is first.member and len(overload.params) == count:
            tests = [runtime_test(param) for param in overload.params]
            candidates.append((overload.impl, tests))

    def dispatch(*args: Value) -> Value:
        for impl, tests in candidates:
            if all(test(arg) for test, arg in zip(tests, args, strict=True)):
                return impl(*args)
        raise no_overload(name)

    return dispatch


def _run(impl: Impl, args: Sequence[Compiled]) -> Run:
    runs = [arg.run for arg in args]
    if len(runs) == 1:
        (only,) = runs
        return lambda frame: impl(only(frame))
    if len(runs) == 2:
        first, second = runs
        value = args[1].value
        if value is not MISSING:
            return lambda frame: impl(first(frame), value)
        return lambda frame: impl(first(frame), second(frame))
    return lambda frame: impl(*[run(frame) for run in runs])


def _run_with_rules(
    impl: Impl,
    runs: tuple[Run, ...],
    check: _Check | None,
    rule: CostRule | None,
    effort: EffortRule | None,
) -> Run:
    """Charge before the call, so that what would be too expensive is not even begun."""

    def run(frame: Frame) -> Value:
        values = [argument(frame) for argument in runs]
        if check is not None:
            check(values)
        if effort is not None:
            spend(frame, effort(values))
        charge(frame, 1 if rule is None else rule(values))
        return impl(*values)

    return run


def membership(value: Compiled, values: Sequence[Value]) -> Compiled | None:
    """``value in [constants]``, which upstream looks up in a set, free of charge; None if it does not."""
    if not values:
        return constant(False)
    if not all(type(item) in _PRIMITIVES for item in values):
        return None
    # With their types, as Python takes 1, 1.0 and True for the same.
    keys: set[tuple[type, Value]] = set()
    for item in values:
        keys.update((type(key), key) for key in (item, *equal_numbers(item)))
    inner = value.run

    def run(frame: Frame) -> bool:
        candidate = inner(frame)
        kind = type(candidate)
        if kind in _PRIMITIVES:
            return (kind, candidate) in keys
        if error := unhashable(candidate):
            raise error
        return False

    return Compiled(run, value.cost)
