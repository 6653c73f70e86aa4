"""Loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from kubecel.code import COST, Compiled, charge, is_true, spend
from kubecel.cost import LIST_COST
from kubecel.data import MAPS, MISSING, EvalError, Frame, Run, Value, no_overload
from kubecel.maps import lookup, map_items, map_key, map_keys
from kubecel.runtime_types import go_name

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
    return Compiled(run, loop.range.cost + (2 if loop.kind == "exists_one" else 1))


def _with_effort(loop: Loop, effort: int) -> Loop:
    """A loop whose steps take longer than they may cost: much of what an expression does is free."""
    first = loop.guard or loop.body
    inner = first.run

    def run(frame: Frame) -> Value:
        spend(frame, effort)
        return inner(frame)

    heavy = replace(first, run=run)
    return replace(loop, guard=heavy) if loop.guard else replace(loop, body=heavy)


def _values(loop: Loop) -> Callable[[Frame], _Values]:
    """What the loop runs over: how many, and the values (or pairs, for two variables)."""
    source = loop.range.run
    pairs = len(loop.slots) == 2

    def values(frame: Frame) -> _Values:
        found = source(frame)
        kind = type(found)
        if kind is tuple:
            return len(found), enumerate(found) if pairs else found
        if kind in MAPS:
            return len(found), map_items(found) if pairs else map_keys(found)
        if pairs:
            raise EvalError(f"unsupported comprehension range type: {go_name(found)}")
        raise EvalError(f"got '{go_name(found)}', expected iterable type")

    return values


def _setter(slots: tuple[int, ...]) -> Callable[[Frame, Value], None]:
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
            left, items = values(frame)
            error: EvalError | None = None
            for item in items:
                charge(frame, cost)
                put_values(frame, item)
                left -= 1
                try:
                    value = body(frame)
                except EvalError as failure:
                    error = error or failure
                    continue
                if value is decisive:
                    frame[COST] += test_cost if left else 0
                    return decisive
                if value is not True and value is not False:
                    error = error or no_overload()
            if error is not None:
                raise error
            return not decisive

        return run

    return build


def _exists_one(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
    body, put_values, cost = loop.body.run, _setter(loop.slots), loop.body.cost

    def run(frame: Frame) -> bool:
        count = 0
        for item in values(frame)[1]:
            charge(frame, cost)
            put_values(frame, item)
            if is_true(body(frame)):
                frame[COST] += 2
                count += 1
        return count == 1

    return run


def _passing(loop: Loop) -> Callable[[Frame, Value], bool]:
    """Set the variables and evaluate the guard."""
    put_values = _setter(loop.slots)
    test, cost = (loop.guard.run, loop.guard.cost) if loop.guard else (None, 0)

    def passing(frame: Frame, item: Value) -> bool:
        put_values(frame, item)
        if test is None:
            return True
        charge(frame, cost)
        return is_true(test(frame))

    return passing


def _collecting(
    new: Callable[[], Any],
    cost: Callable[[Compiled], int],
    add: Callable[[Any, Value, Value], object],
) -> _Builder:
    """The loops whose steps add what the body gives, perhaps under the step's key, to a new list or map."""

    def build(loop: Loop, values: Callable[[Frame], _Values]) -> Run:
        body, passing, key_slot, step_cost = (
            loop.body.run,
            _passing(loop),
            loop.slots[0],
            cost(loop.body),
        )

        def run(frame: Frame) -> Value:
            result = new()
            for item in values(frame)[1]:
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
    "transform_entry": _collecting(dict, lambda body: 2 + body.cost, _insert_all),
}
