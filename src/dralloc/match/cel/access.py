"""Variables, selections and indexes: chains like ``device.attributes["domain"].name``.

Upstream evaluates a chain as a whole, and once one step of it is optional, so are all later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dralloc.match.cel.code import COST, DEVICE_SLOT, Code
from dralloc.match.cel.data import (
    MISSING,
    NONE,
    DomainMap,
    EvalError,
    Frame,
    Optional,
    Run,
    Uint,
    Value,
    find,
    no_overload,
)
from dralloc.match.cel.kinds import type_name

_MAX_SHOWN: Final = 1000
"""So much of a key is shown."""

__all__ = ["Step", "chain", "device", "or_else", "present"]


@dataclass(frozen=True, slots=True)
class Step:
    """One selection or index.

    ``cost`` is paid when the step finds something; `extra` is what computing a key costs.
    """

    key: Code
    optional: bool = False
    cost: int = 1


def device() -> Code:
    """The variable ``device``."""
    return Code(lambda frame: frame[DEVICE_SLOT], 1, attribute=True, base=1)


def chain(base: Code, steps: Sequence[Step], *, of_device: bool, may_be_optional: bool) -> Code:
    """A chain of steps from a base; `of_device` says that the base is the variable ``device``."""
    start = base.base if base.attribute else 1
    cost = base.cost + (0 if base.attribute else 1)
    if may_be_optional or any(step.optional for step in steps):
        return Code(_optional_chain(base.run, steps), cost, attribute=True, base=start)
    cost += sum(step.cost + step.key.cost for step in steps)
    run = _device_chain(steps) if of_device else None
    return Code(run or _plain_chain(base.run, steps), cost, attribute=True, base=start)


def present(base: Code, name: str) -> Code:
    """``has(base.name)``: the test itself costs nothing, but a base that is no attribute becomes one, for 1."""
    inner = base.run

    def run(frame: Frame) -> bool:
        value = inner(frame)
        if type(value) is dict:
            return name in value
        if type(value) is Optional and value.value is not MISSING:
            value = value.value
        return isinstance(value, dict) and find(value, name) is not MISSING

    return Code(run, base.cost + (0 if base.attribute else 1), attribute=True)


def _device_chain(steps: Sequence[Step]) -> Run | None:
    """The selections that nearly every selector consists of, as direct as can be."""
    keys = [step.key.value for step in steps]
    if not all(type(key) is str for key in keys):
        return None
    if len(keys) == 1:
        (field,) = keys
        return lambda frame: frame[DEVICE_SLOT][field]
    if len(keys) == 2:
        field, domain = keys
        return lambda frame: frame[DEVICE_SLOT][field][domain]
    if len(keys) != 3:
        return None
    field, domain, name = keys

    def run(frame: Frame) -> Value:
        try:
            return frame[DEVICE_SLOT][field][domain][name]
        except KeyError:
            raise EvalError(f"no such key: {name}") from None

    return run


def _plain_chain(base: Run, steps: Sequence[Step]) -> Run:
    if len(steps) == 1:
        return _one_step(base, steps[0])
    keys = tuple(step.key.run for step in steps)

    def run(frame: Frame) -> Value:
        value = base(frame)
        for key in keys:
            value = _get(value, key(frame))
        return value

    return run


def _one_step(base: Run, step: Step) -> Run:
    key = step.key.run
    name = step.key.value
    if type(name) is not str:
        return lambda frame: _get(base(frame), key(frame))

    def run(frame: Frame) -> Value:
        value = base(frame)
        if type(value) is dict and name in value:
            return value[name]
        return _get(value, name)

    return run


def _optional_chain(base: Run, steps: Sequence[Step]) -> Run:
    """Whether the result is optional depends on the base's value and on the steps that were taken."""
    plan = tuple((step.key.run, step.optional, step.cost, step.key.cost) for step in steps)

    def run(frame: Frame) -> Value:
        value = base(frame)
        optional = type(value) is Optional
        if optional:
            if value.value is MISSING:
                return NONE
            value = value.value
        for key, opens, cost, key_cost in plan:
            frame[COST] += key_cost
            optional = optional or opens
            value = _look(value, key(frame)) if optional else _get(value, key(frame))
            if value is MISSING:
                return NONE
            frame[COST] += cost
        return Optional(value) if optional else value

    return run


def _get(value: Value, key: Value) -> Value:
    """A step that must find something."""
    found = _look(value, key)
    if found is not MISSING:
        return found
    if type(value) is tuple:
        raise EvalError(f"index out of bounds: {key}")
    raise EvalError(f"no such key: {_shown(key)[:_MAX_SHOWN]}")


def _look(value: Value, key: Value) -> Value:
    """What a step finds, or `MISSING`."""
    kind = type(value)
    if kind is dict or kind is DomainMap:
        return find(value, key)
    if kind is tuple:
        index = _position(key)
        return value[index] if 0 <= index < len(value) else MISSING
    return MISSING


def _position(key: Value) -> int:
    if type(key) is int or type(key) is Uint:
        return int(key)
    if type(key) is float and key.is_integer():
        return int(key)
    raise EvalError(f"unsupported index type '{type_name(key)}' in list")


def _shown(key: Value) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    return str(key) if isinstance(key, str | int | float) else type_name(key)


def or_else(left: Code, right: Code, *, unwrap: bool) -> Code:
    """``or`` and ``orValue``: the right side is evaluated only where the left one has no value."""
    first, second, cost = left.run, right.run, right.cost

    def run(frame: Frame) -> Value:
        value = first(frame)
        if type(value) is not Optional:
            raise no_overload()
        if value.value is not MISSING:
            return value.value if unwrap else value
        frame[COST] += cost
        return second(frame)

    return Code(run, left.cost)
