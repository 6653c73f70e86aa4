"""Loops, as code that runs.

Each is compiled to a closure over a frame, which pays its cost as it runs (see `kubecel.code`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from kubecel.code import COST, Compiled, charge, is_true, spend
from kubecel.cost import LIST_COST
from kubecel.values import (
    MAPS,
    MISSING,
    EvalError,
    Frame,
    Run,
    Value,
    go_name,
    lookup,
    map_items,
    map_key,
    map_keys,
    no_overload,
)

__all__ = ["Loop", "fold"]

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
