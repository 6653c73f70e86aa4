"""Selectors: compile once, match many devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from kubecel.check import Checked, check
from kubecel.code import FIRST_LOCAL, over_limit
from kubecel.cost import COST_LIMIT
from kubecel.data import MISSING, Optional, Run
from kubecel.device import CelDevice, with_own_quantities
from kubecel.environment import ALL_GATES, FeatureGates, environment_for
from kubecel.errors import CelCompileError, CelRuntimeError
from kubecel.estimate import estimate
from kubecel.failure import SelectorError, compile_error
from kubecel.parse import MAX_DEPTH, parse
from kubecel.plan import plan
from kubecel.reads import Reads, reads
from kubecel.runtime_types import type_name
from kubecel.types import BOOL
from kubecel.validate import validate

__all__ = ["CelSelector", "CheckedExpression", "check_expression", "compile_selector", "estimated_cost"]


@dataclass(frozen=True, slots=True, eq=False)
class CelSelector:
    """A compiled selector. It keeps no state between evaluations and may be shared by threads.

    Parameters
    ----------
    expression
        Its text.
    reads
        What it reads of a device.
    """

    expression: str
    reads: Reads
    _run: Run
    _cost: int
    _locals: tuple[Any, ...]
    _asks_for_integers: bool

    def matches(self, device: CelDevice, cost_limit: int = COST_LIMIT) -> bool:
        """Whether a device matches.

        Parameters
        ----------
        device
            From `convert_device`.
        cost_limit
            What the evaluation may cost, in CEL's units (KEP-4381: one million).

        Raises
        ------
        CelRuntimeError
            The selector fails on this device; with Kubernetes, the allocation then fails.
        """
        return self.evaluate(device, cost_limit)[0]

    def evaluate(self, device: CelDevice, cost_limit: int = COST_LIMIT) -> tuple[bool, int]:
        """As `matches`, with what the evaluation cost."""
        if device.error:
            raise CelRuntimeError(device.error)
        variables = with_own_quantities(device) if self._asks_for_integers else device.variables
        frame = [self._cost, cost_limit, variables, *self._locals]
        try:
            result = self._run(frame)
        except RecursionError:
            raise CelRuntimeError("the expression nests too deeply to be evaluated") from None
        if frame[0] > cost_limit:
            raise over_limit()
        while type(result) is Optional and result.value is not MISSING:
            result = result.value
        if result is True or result is False:
            return result, frame[0]
        name = type_name(result)
        raise CelRuntimeError(
            f"CEL result of type {name} could not be converted to bool: type conversion error from {name} to 'bool'"
        )


class CheckedExpression(NamedTuple):
    """An expression that is well typed.

    Parameters
    ----------
    output
        The type of its value as CEL writes it, e.g. ``list(string)``.
    cost
        What it costs at most, as the API server estimates it; 2**64 - 1 stands for a cost without any limit.
    """

    output: str
    cost: int


def compile_selector(expression: str, gates: FeatureGates = ALL_GATES) -> CelSelector:
    """Compile a selector; the last ones compiled are remembered.

    Parameters
    ----------
    expression
        The text, as in ``spec.selectors[].cel.expression``.
    gates
        What it may use, if that is not everything.

    Raises
    ------
    CelCompileError
        The expression does not parse, or is not well typed, or cannot give a bool. The message shows where.

    Examples
    --------
    >>> from kubecel import device_from_wire
    >>> gpu = device_from_wire("gpu.example.com", {"attributes": {"model": {"string": "A100"}}})
    >>> compile_selector('device.attributes["gpu.example.com"].model == "A100"').matches(gpu)
    True
    """
    with _not_too_deep(expression):
        compiled = _compile(expression, gates)
    if isinstance(compiled, str):
        raise CelCompileError(compiled)
    return compiled


def check_expression(expression: str, gates: FeatureGates = ALL_GATES) -> CheckedExpression:
    """Parse, check and estimate an expression that may give a value of any type.

    Parameters
    ----------
    expression, gates
        As for `compile_selector`.

    Raises
    ------
    CelCompileError
        The expression does not parse or is not well typed.

    Examples
    --------
    >>> check_expression("device.driver + 'x'")
    CheckedExpression(output='string', cost=9)
    """
    with _not_too_deep(expression):
        checked = _checked(expression, gates)
        return CheckedExpression(str(checked.types[checked.root]), estimate(checked))


def estimated_cost(expression: str, gates: FeatureGates = ALL_GATES) -> int:
    """What a selector costs at most, as the API server estimates it when an object is created.

    More than `COST_LIMIT` is refused there (KEP-4381). The estimate never depends on a device, and 2**64 - 1 stands
    for a cost without any limit.

    Parameters
    ----------
    expression, gates
        As for `compile_selector`.

    Raises
    ------
    CelCompileError
        As for `compile_selector`.

    Examples
    --------
    >>> estimated_cost('device.driver == "gpu.example.com"')
    4
    """
    compile_selector(expression, gates)
    return check_expression(expression, gates).cost


@contextmanager
def _not_too_deep(expression: str) -> Iterator[None]:
    """Tell of a recursion error, which is never remembered, as it also depends on the caller's depth."""
    try:
        yield
    except RecursionError:
        message = f"expression recursion limit exceeded: {MAX_DEPTH}"
        raise compile_error(expression, [(0, message)]) from None


@lru_cache(maxsize=4096)
def _compile(expression: str, gates: FeatureGates) -> CelSelector | str:
    """The selector, or the error's message: both are remembered."""
    try:
        return _compiled(expression, gates)
    except CelCompileError as error:
        return str(error)


def _compiled(expression: str, gates: FeatureGates) -> CelSelector:
    checked = _checked(expression, gates)
    output = checked.types[checked.root]
    if output not in {BOOL, environment_for(gates).attribute}:
        raise CelCompileError(f"must evaluate to bool or the unknown type, not {output}")
    try:
        code, size = plan(checked)
    except SelectorError as error:
        raise compile_error(expression, [(error.pos, str(error))]) from None
    asks_for_integers = "isInteger" in expression or "asInteger" in expression
    variables = (None,) * (size - FIRST_LOCAL)
    return CelSelector(expression, reads(checked.root), code.run, code.cost, variables, asks_for_integers)


def _checked(expression: str, gates: FeatureGates) -> Checked:
    """Parse and check."""
    if not expression.isascii():
        try:
            expression.encode()
        except UnicodeEncodeError as error:
            raise compile_error(expression, [(error.start, "Syntax error: not a Unicode character")]) from None
    checked, findings = check(parse(expression), environment_for(gates))
    findings = findings or validate(checked)
    if findings:
        raise compile_error(expression, findings)
    return checked
