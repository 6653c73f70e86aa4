"""Calls of functions and operators, logical operators, and loops, as code that runs.

Each is compiled to a closure over a frame, which pays its cost as it runs (see `kubecel.code`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from kubecel.code import COST, Compiled, charge, constant, fixed, is_true, spend
from kubecel.cost import (
    CONTAINERS,
    LIST_COST,
    CostRule,
    EffortRule,
    comparison,
    equality,
    inequality,
    tenths,
)
from kubecel.overloads import FUNCTIONS, Overload
from kubecel.types import Impl, Test, Type, runtime_test
from kubecel.values import (
    MAPS,
    MISSING,
    EvalError,
    Frame,
    Run,
    Uint,
    Value,
    equal,
    equal_numbers,
    go_name,
    lookup,
    map_items,
    map_key,
    map_keys,
    no_overload,
    unhashable,
)

__all__ = [
    "Loop",
    "all_of",
    "any_of",
    "call",
    "conditional",
    "equals",
    "fold",
    "membership",
]

# ----------------------------------------------------------------------------
# ``&&``, ``||``, ``?:``, ``==`` and ``!=``.

_ONE_UNIT: Final = 10
"""Strings up to this length cost 1 to compare, unless they are empty."""


def all_of(terms: Sequence[Compiled]) -> Compiled:
    """``a && b && ...``: false wins over errors, errors win over true."""
    return _chain(terms, decisive=False)


def any_of(terms: Sequence[Compiled]) -> Compiled:
    """``a || b || ...``: true wins over errors, errors win over false."""
    return _chain(terms, decisive=True)


def _chain(terms: Sequence[Compiled], *, decisive: bool) -> Compiled:
    # The first term always runs: its cost is the chain's. The later ones pay for
    # themselves, as a decisive value ends the chain before them.
    first = terms[0].run
    later_terms = tuple((term.run, term.cost) for term in terms[1:])

    def run(frame: Frame) -> Value:
        error: EvalError | None = None
        try:
            value = first(frame)
            if value is decisive:
                return decisive
            if value is not True and value is not False:
                error = no_overload()
        except EvalError as failure:
            error = failure
        for term, cost in later_terms:
            frame[COST] += cost
            try:
                value = term(frame)
            except EvalError as failure:
                error = error or failure
                continue
            if value is decisive:
                return decisive
            if value is not True and value is not False:
                error = error or no_overload()
        if error is not None:
            raise error
        return not decisive

    return Compiled(run, terms[0].cost)


def conditional(condition: Compiled, yes: Compiled, no: Compiled) -> Compiled:
    """``condition ? yes : no``, which costs nothing by itself."""
    test, yes_run, no_run = condition.run, yes.run, no.run
    yes_cost = yes.cost - yes.base
    no_cost = no.cost - no.base

    def run(frame: Frame) -> Value:
        if is_true(test(frame)):
            frame[COST] += yes_cost
            return yes_run(frame)
        frame[COST] += no_cost
        return no_run(frame)

    return Compiled(run, condition.cost, attribute=True)


def equals(left: Compiled, right: Compiled, *, negated: bool) -> Compiled:
    """``left == right``, or ``!=``, which takes values that cannot be compared for different."""
    cost = left.cost + right.cost
    left_run, right_run = left.run, right.run
    if type(right.value) is str:
        return Compiled(_equals_text(left_run, right.value, negated), cost)
    if type(right.value) is int and not negated:
        return Compiled(_equals_int(left_run, right.value), cost)
    settle = _differ if negated else _equal

    def run(frame: Frame) -> bool:
        return settle(frame, left_run(frame), right_run(frame))

    return Compiled(run, cost)


def _equal(frame: Frame, left: Value, right: Value) -> bool:
    frame[COST] += equality(left, right)
    if type(left) in CONTAINERS:
        spend(frame, comparison((left, right)))
    result = equal(left, right)
    if result is None:
        raise no_overload()
    return result


def _differ(frame: Frame, left: Value, right: Value) -> bool:
    frame[COST] += inequality(left, right)
    if type(left) in CONTAINERS:
        spend(frame, comparison((left, right)))
    return equal(left, right) is not True


def _equals_text(operand: Run, text: str, negated: bool) -> Run:
    """Compare with a constant text, most often of a string."""
    short = 0 < len(text) <= _ONE_UNIT
    settle = _differ if negated else _equal

    def run(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is not str:
            return settle(frame, value, text)
        if not short:
            frame[COST] += tenths(min(len(value), len(text)))
        elif value:
            frame[COST] += 1
        return (value == text) is not negated

    return run


def _equals_int(operand: Run, constant: int) -> Run:
    """Compare with a constant int, most often of an int."""

    def run(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is int:
            frame[COST] += 1
            return bool(value == constant)
        return _equal(frame, value, constant)

    return run


# ----------------------------------------------------------------------------
# Calls of functions and operators.

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


# ----------------------------------------------------------------------------
# Loops.

_LIGHT: Final = 64
"""Steps of no more nodes are paid for by the cost of the loop."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A fold with its parts compiled.

    ``slots`` are those of its one or two variables, and ``weight`` is the number of nodes that a step evaluates.
    """

    kind: str
    range: Compiled
    slots: tuple[int, ...]
    body: Compiled
    guard: Compiled | None
    weight: int


_Values: TypeAlias = tuple[int, Iterable[Any]]
_Builder: TypeAlias = Callable[[Loop, Callable[[Frame], _Values]], Run]


def fold(loop: Loop) -> Compiled:
    """Compile a loop. The cost of the result, read once, is part of the static cost."""
    if loop.weight > _LIGHT:
        loop = _with_effort(loop, loop.weight // 8)
    run = _FOLDS[loop.kind](loop, _values(loop))
    # The result of ``exists_one`` is compared with 1, which costs 1 more.
    result_cost = 2 if loop.kind == "exists_one" else 1
    return Compiled(run, loop.range.cost + result_cost)


def _with_effort(loop: Loop, effort: int) -> Loop:
    """A loop whose steps take longer than they may cost: much of what an expression does is free."""
    first = loop.guard or loop.body
    inner = first.run

    def run(frame: Frame) -> Value:
        spend(frame, effort)
        return inner(frame)

    heavy = replace(first, run=run)
    if loop.guard:
        return replace(loop, guard=heavy)
    return replace(loop, body=heavy)


def _values(loop: Loop) -> Callable[[Frame], _Values]:
    """Return the function that gives the loop's values (pairs, for two variables) and their number."""
    source = loop.range.run
    pairs = len(loop.slots) == 2

    def values(frame: Frame) -> _Values:
        container = source(frame)
        kind = type(container)
        if kind is tuple:
            return len(container), enumerate(container) if pairs else container
        if kind in MAPS:
            return len(container), map_items(container) if pairs else map_keys(
                container
            )
        if pairs:
            raise EvalError(
                f"unsupported comprehension range type: {go_name(container)}"
            )
        raise EvalError(f"got '{go_name(container)}', expected iterable type")

    return values


def _setter(slots: tuple[int, ...]) -> Callable[[Frame, Value], None]:
    """Return the function that puts an item into a loop's one or two variables."""
    if len(slots) == 1:
        (only,) = slots

        def set_one(frame: Frame, value: Value) -> None:
            frame[only] = value

        return set_one
    first, second = slots

    def set_two(frame: Frame, pair: Value) -> None:
        frame[first], frame[second] = pair

    return set_two


def _quantifier(decisive: bool) -> _Builder:
    """``all`` and ``exists``. Before each step the condition reads the result, and ``exists`` negates it."""
    test_cost = 3 if decisive else 2

    def build(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
        body, put_values = loop.body.run, _setter(loop.slots)
        cost = test_cost + 1 + loop.body.cost

        def run(frame: Frame) -> Value:
            steps_left, items = values(frame)
            error: EvalError | None = None
            for item in items:
                charge(frame, cost)
                put_values(frame, item)
                steps_left -= 1
                try:
                    value = body(frame)
                except EvalError as failure:
                    error = error or failure
                    continue
                if value is decisive:
                    # Upstream tests the result before a step that it then leaves out.
                    if steps_left:
                        frame[COST] += test_cost
                    return decisive
                if value is not True and value is not False:
                    error = error or no_overload()
            if error is not None:
                raise error
            return not decisive

        return run

    return build


def _exists_one(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
    """``exists_one`` looks at every item: an error is not absorbed, and no step is left out."""
    body, body_cost = loop.body.run, loop.body.cost
    put_values = _setter(loop.slots)

    def run(frame: Frame) -> bool:
        count = 0
        _, items = values(frame)
        for item in items:
            charge(frame, body_cost)
            put_values(frame, item)
            if is_true(body(frame)):
                frame[COST] += 2
                count += 1
        return count == 1

    return run


def _passing(loop: Loop) -> Callable[[Frame, Value], bool]:
    """Set the variables and evaluate the guard."""
    put_values = _setter(loop.slots)
    guard = loop.guard

    def passing(frame: Frame, item: Value) -> bool:
        put_values(frame, item)
        if guard is None:
            return True
        charge(frame, guard.cost)
        return is_true(guard.run(frame))

    return passing


def _collecting(
    new: Callable[[], Any],
    cost: Callable[[Compiled], int],
    add: Callable[[Any, Value, Value], object],
) -> _Builder:
    """The loops whose steps add what the body gives, perhaps under the step's key, to a new list or map."""

    def build(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
        body, key_slot = loop.body.run, loop.slots[0]
        passing = _passing(loop)
        step_cost = cost(loop.body)

        def run(frame: Frame) -> Value:
            result = new()
            _, items = values(frame)
            for item in items:
                if passing(frame, item):
                    charge(frame, step_cost)
                    key = frame[key_slot]
                    add(result, key, body(frame))
            return tuple(result) if new is list else result

        return run

    return build


def _insert(values: dict[Any, Any], key: Value, value: Value) -> None:
    """Add an entry to a map that is being built; the key must be new."""
    if lookup(values, key) is not MISSING:
        raise EvalError(f"insert failed: key {key} already exists")
    values[map_key(key)] = value


def _insert_all(values: dict[Any, Any], _: Value, entries: Value) -> None:
    if not isinstance(entries, dict):
        raise no_overload("cel.@mapInsert")
    for key, value in map_items(entries):
        _insert(values, key, value)


_FOLDS: Final[dict[str, _Builder]] = {
    "all": _quantifier(decisive=False),
    "exists": _quantifier(decisive=True),
    "exists_one": _exists_one,
    # Each step adds a list of one element to the result.
    "map": _collecting(
        list,
        lambda body: 2 if body.literal else 2 + LIST_COST + body.cost,
        lambda result, _, value: result.append(value),
    ),
    "transform_map": _collecting(dict, lambda body: 3 + body.cost, _insert),
    "transform_entry": _collecting(
        dict, lambda body: 2 + body.cost, _insert_all
    ),
}
