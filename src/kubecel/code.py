"""The compiled form of the syntax's nodes; variables, selections and indexes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kubecel.errors import CelRuntimeError
from kubecel.values import (
    EXTENSION_TYPES,
    MAPS,
    MISSING,
    NONE,
    DomainMap,
    EvalError,
    Frame,
    NamedFormat,
    Optional,
    Run,
    TextMap,
    TypeValue,
    Uint,
    Value,
    find,
    go_name,
    no_overload,
    type_name,
)

__all__ = [
    "COST",
    "FIRST_LOCAL",
    "AccessStep",
    "Compiled",
    "bind",
    "chain",
    "charge",
    "check_key",
    "constant",
    "device",
    "fixed",
    "is_true",
    "lazy_variable",
    "opt_map",
    "opt_variable",
    "or_else",
    "over_limit",
    "present",
    "read",
    "spend",
    "variable",
]

COST: Final = 0
"""Where a frame counts the cost that could not be known before."""

LIMIT: Final = 1
"""Where a frame keeps the cost limit, less what `spend` took off it."""

DEVICE_SLOT: Final = 2
FIRST_LOCAL: Final = 3


@dataclass(frozen=True, slots=True)
class Compiled:
    """Compiled code and what is known about it.

    Parameters
    ----------
    run
        Computes the value. It adds to the frame's cost only what is not in `cost`.
    cost
        The part of the cost that every evaluation has. Whoever runs the code unconditionally includes it in its own
        cost; whoever runs it sometimes adds it to the frame when it does.
    value
        The value, if it is the same for every device; else `MISSING`.
    literal
        Whether upstream treats it as a constant, too: it then costs nothing and may be folded further.
    attribute
        Whether upstream treats it as an attribute: a variable with selections.
    base
        What upstream charges for an attribute apart from its selections; a branch of a conditional does not pay it.
    """

    run: Run
    cost: int = 0
    value: Value = MISSING
    literal: bool = False
    attribute: bool = False
    base: int = 0


def constant(value: Value) -> Compiled:
    """Code of a constant."""
    return Compiled(lambda _: value, 0, value, literal=True)


def fixed(compute: Callable[[], Value], cost: int = 1) -> Compiled:
    """Code of a call whose arguments never change: it is computed once, and may fail every time."""
    try:
        value = compute()
    except CelRuntimeError as error:
        # Keep the type: an error that logic can absorb stays one, and one that ends the
        # evaluation does so where it is reached. A new one each time, as tracebacks
        # would pile up in an exception that is raised again and again.
        failure, message = type(error), str(error)

        def fail(_: Frame) -> Value:
            raise failure(message)

        return Compiled(fail, cost)
    return Compiled(lambda _: value, cost, value)


def charge(frame: Frame, cost: int) -> None:
    """Add a cost, and stop where the limit is passed."""
    frame[COST] += cost
    if frame[COST] > frame[LIMIT]:
        raise over_limit()


def spend(frame: Frame, effort: int) -> None:
    """Take effort that is no cost off what the evaluation may still cost, and stop where nothing is left."""
    frame[LIMIT] -= effort
    if frame[COST] > frame[LIMIT]:
        raise CelRuntimeError(
            "operation cancelled: the evaluation takes too long"
        )


def over_limit() -> CelRuntimeError:
    """The error that ends an evaluation; nothing absorbs it."""
    return CelRuntimeError("operation cancelled: actual cost limit exceeded")


def is_true(value: Value) -> bool:
    """A condition's value, which must be a bool."""
    if value is True or value is False:
        return bool(value)
    raise EvalError("no such overload")


# ----------------------------------------------------------------------------
# Selections and indexes: chains like ``device.attributes["domain"].name``. Upstream
# evaluates a chain as a whole, and once one step of it is optional, so are all later
# ones.

_MAX_SHOWN: Final = 1000
"""So much of a key is shown."""


_KEYS: Final = frozenset({str, int, Uint, bool, float})


@dataclass(frozen=True, slots=True)
class AccessStep:
    """A selection or index.

    ``cost`` is paid when the step finds something. A ``test`` only asks whether it does; it is the last one.
    """

    key: Compiled
    optional: bool = False
    cost: int = 1
    test: bool = False


def device() -> Compiled:
    """The variable ``device``."""
    return Compiled(lambda frame: frame[DEVICE_SLOT], 1, attribute=True, base=1)


def chain(
    base: Compiled,
    steps: Sequence[AccessStep],
    *,
    of_device: bool,
    may_be_optional: bool,
) -> Compiled:
    """A chain of steps from a base; `of_device` says that the base is the variable ``device``."""
    # A chain from anything else than a variable makes an attribute of it, for 1.
    start = base.base if base.attribute else 1
    cost = base.cost if base.attribute else base.cost + 1
    if may_be_optional or any(step.optional for step in steps):
        # How far an optional chain gets, and so its cost, is only known when it runs.
        run = _optional_chain(base.run, steps)
        return Compiled(run, cost, attribute=True, base=start)
    cost += sum(step.cost + step.key.cost for step in steps)
    steps_taken = steps[:-1] if steps[-1].test else steps
    device_run = _device_chain(steps_taken) if of_device else None
    run = device_run or _plain_chain(base.run, steps_taken)
    if steps[-1].test:
        run = _test(run, steps[-1].key.value)
    return Compiled(run, cost, attribute=True, base=start)


def present(tested: Compiled) -> Compiled:
    """``has()`` of a chain that ends in a test: upstream takes 1 off what the chain costs."""
    inner = tested.run

    def run(frame: Frame) -> bool:
        result: Value = inner(frame)
        if type(result) is bool:
            return result
        return result.value is not MISSING

    return Compiled(run, tested.cost - 1, attribute=True)


def _handed_on(value: Optional) -> Optional:
    """Return the value that reading a variable or choosing a branch makes of an optional.

    Upstream takes it apart there and builds it again from Go's own value, which not all values survive.
    """
    if value.value is MISSING:
        return value
    try:
        return Optional(_native(value.value))
    except EvalError as error:
        return Optional(error)


def _native(value: Value) -> Value:
    """Return the value that is left of an optional where upstream handles it as a value of Go."""
    kind = type(value)
    if kind is Optional:
        if value.value is MISSING:
            return None
        return _native(value.value)
    if kind is TypeValue:
        return value.name
    if kind is DomainMap:
        return TextMap(value)
    if kind in _NOT_CONVERTED:
        raise EvalError(
            f"unsupported conversion to ref.Val: ({go_name(value)})"
        )
    if isinstance(value, EvalError):
        raise value
    return value


_NOT_CONVERTED: Final = EXTENSION_TYPES - {NamedFormat}


def _device_chain(steps: Sequence[AccessStep]) -> Run | None:
    """The selections that nearly every selector consists of, as direct as can be."""
    keys = [step.key.value for step in steps]
    if not all(type(key) is str for key in keys):
        return None
    # The checker knows the fields, and a domain that is not there is an empty map: only names can be missing.
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


def _plain_chain(base: Run, steps: Sequence[AccessStep]) -> Run:
    if not steps:
        return base
    if len(steps) == 1:
        return _one_step(base, steps[0])
    keys = tuple(step.key.run for step in steps)

    def run(frame: Frame) -> Value:
        value = base(frame)
        for key in keys:
            value = _get(value, key(frame))
        return value

    return run


def _one_step(base: Run, step: AccessStep) -> Run:
    key = step.key.run
    name = step.key.value
    if type(name) is not str:
        return lambda frame: _get(base(frame), key(frame))

    def run(frame: Frame) -> Value:
        value = base(frame)
        if type(value) is TextMap and name in value:
            return value[name]
        return _get(value, name)

    return run


def _optional_chain(base: Run, steps: Sequence[AccessStep]) -> Run:
    """Whether the result is optional depends on the base's value and on the steps that were taken."""
    plan = tuple((step.key.run, step.key.cost, step) for step in steps)

    def run(frame: Frame) -> Value:
        value = base(frame)
        optional = type(value) is Optional
        if optional:
            if value.value is MISSING:
                return NONE
            value = _native(value.value)
        # Behind an optional step nothing fails: what is not there ends the chain without a value.
        for key, key_cost, step in plan:
            frame[COST] += key_cost
            optional = optional or step.optional
            find_step = _look if optional or step.test else _get
            value = find_step(value, key(frame))
            # A test behind an optional step gives an optional, too, which `present` reads.
            if step.test and not optional:
                frame[COST] += step.cost
                return value is not MISSING
            if value is MISSING:
                return NONE
            frame[COST] += step.cost
        return Optional(value) if optional else value

    return run


def _get(value: Value, key: Value) -> Value:
    """A step that must find something."""
    value_there = _look(value, key)
    if value_there is not MISSING:
        return value_there
    if type(value) is tuple:
        raise EvalError(f"index out of bounds: {key}")
    raise EvalError(f"no such key: {_shown(key)[:_MAX_SHOWN]}")


def _test(operand: Run, name: str) -> Run:
    def run(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is TextMap:
            return name in value
        return _look(value, name) is not MISSING

    return run


def check_key(key: Value) -> None:
    """Refuse what may not stand between brackets.

    Raises
    ------
    EvalError
        The key is of another type than text, number or bool.
    """
    if type(key) not in _KEYS:
        raise EvalError(f"invalid qualifier type: {go_name(key)}")


def _look(value: Value, key: Value) -> Value:
    """Return the value that a step finds, or `MISSING`."""
    if type(key) is not str:
        check_key(key)
    kind = type(value)
    if kind in MAPS:
        return find(value, key)
    if kind is tuple:
        index = _position(key)
        if 0 <= index < len(value):
            return value[index]
        return MISSING
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
    if isinstance(key, str | int | float):
        return str(key)
    return type_name(key)


def or_else(left: Compiled, right: Compiled, *, unwrap: bool) -> Compiled:
    """``or`` and ``orValue``: the right side is evaluated only where the left one has no value.

    What is no optional, as upstream never looks, is taken as it is.
    """
    left_run, right_run, right_cost = left.run, right.run, right.cost

    def run(frame: Frame) -> Value:
        value = left_run(frame)
        if type(value) is not Optional:
            return value
        if value.value is not MISSING:
            return value.held() if unwrap else value
        frame[COST] += right_cost
        return right_run(frame)

    return Compiled(run, left.cost)


# ----------------------------------------------------------------------------
# Local variables: those of loops, and those that are computed when first read.

_UNREAD: Final = object()


def variable(slot: int) -> Compiled:
    """A loop's variable."""
    return _variable(lambda frame: frame[slot])


def _variable(run: Run) -> Compiled:
    return Compiled(run, 1, attribute=True, base=1)


def read(code: Compiled) -> Compiled:
    """Read what may be an optional, as upstream hands it on."""
    inner = code.run

    def run(frame: Frame) -> Value:
        value = inner(frame)
        if type(value) is Optional:
            return _handed_on(value)
        return value

    return replace(code, run=run, value=MISSING)


def lazy_variable(slot: int, value: Compiled) -> Compiled:
    """A variable of `bind`: computed at the first reading, an error as well."""
    compute, cost = value.run, value.cost

    def run(frame: Frame) -> Value:
        value_read = frame[slot]
        if value_read is _UNREAD:
            frame[COST] += cost
            try:
                value_read = frame[slot] = compute(frame)
            except EvalError as error:
                frame[slot] = error
                raise
        elif type(value_read) is EvalError:
            raise value_read
        return value_read

    return _variable(run)


def bind(slot: int, body: Compiled) -> Compiled:
    """A scope in which a variable has not been read yet."""
    inner, cost = body.run, body.cost

    def run(frame: Frame) -> Value:
        frame[slot] = _UNREAD
        return inner(frame)

    return Compiled(run, cost)


def opt_map(
    target: Compiled, slots: tuple[int, int], body: Compiled, *, flat: bool
) -> Compiled:
    """``optMap`` and ``optFlatMap``.

    Upstream evaluates the target once more where the variable is first read, which is only noticed in the cost: the
    second slot keeps what that would be.
    """
    source, inner = target.run, body.run
    # A flat body is a branch of upstream's conditional, which does not pay its base;
    # otherwise the branch is a call of ``optional.of``, for 1 more.
    body_cost = body.cost - body.base if flat else body.cost + 1
    value_slot, cost_slot = slots

    def run(frame: Frame) -> Value:
        cost_before = frame[COST]
        optional = source(frame)
        if type(optional) is not Optional:
            raise no_overload("hasValue")
        if optional.value is MISSING:
            frame[COST] += 1
            return NONE
        cost_once_more = frame[COST] - cost_before + target.cost + 1
        frame[cost_slot] = (optional, cost_once_more)
        frame[value_slot] = _UNREAD
        frame[COST] += body_cost
        result = inner(frame)
        return result if flat else Optional(result)

    return Compiled(run, target.cost + 1)


def opt_variable(slots: tuple[int, int]) -> Compiled:
    """The variable of `opt_map`."""
    value_slot, cost_slot = slots

    def run(frame: Frame) -> Value:
        optional, cost = frame[cost_slot]
        if frame[value_slot] is _UNREAD:
            frame[COST] += cost
            frame[value_slot] = None
        return optional.held()

    return _variable(run)
