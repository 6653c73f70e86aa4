"""Selectors: compile once, match many devices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dralloc.errors import CelCompileError, CelRuntimeError
from dralloc.features import ALL_FEATURES, Features
from dralloc.match.cel.check import Checked, check
from dralloc.match.cel.code import FIRST_LOCAL, over_limit
from dralloc.match.cel.cost import COST_LIMIT
from dralloc.match.cel.data import MISSING, Optional, Run
from dralloc.match.cel.device import CelDevice, with_own_quantities
from dralloc.match.cel.environment import Environment, environment_for
from dralloc.match.cel.estimate import estimate
from dralloc.match.cel.failure import SelectorError, compile_error
from dralloc.match.cel.kinds import type_name
from dralloc.match.cel.parse import MAX_DEPTH, parse
from dralloc.match.cel.plan import plan
from dralloc.match.cel.reads import Reads, reads
from dralloc.match.cel.types import BOOL
from dralloc.match.cel.validate import validate

__all__ = ["Selector", "compile_selector", "estimated_cost"]


@dataclass(frozen=True, slots=True, eq=False)
class Selector:
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


def compile_selector(expression: str, features: Features = ALL_FEATURES, *, new_expression: bool = False) -> Selector:
    """Compile a selector; the last ones compiled are remembered.

    Parameters
    ----------
    expression
        The text, as in ``spec.selectors[].cel.expression``.
    features
        Only new expressions depend on it.
    new_expression
        Whether the expression is checked as when an object is created. The scheduler checks stored objects, whose
        expressions may use what is switched off (KEP-4381, CEL environment "StoredExpressions").

    Raises
    ------
    CelCompileError
        The expression does not parse, or is not well typed, or cannot give a bool. The message shows where.
    """
    if not new_expression:
        features = ALL_FEATURES
    with _not_too_deep(expression):
        compiled = _compile(expression, features, new_expression)
    if isinstance(compiled, str):
        raise CelCompileError(compiled)
    return compiled


def estimated_cost(expression: str, features: Features = ALL_FEATURES, *, new_expression: bool = True) -> int:
    """What a selector costs at most, as the API server estimates it when an object is created.

    More than `COST_LIMIT` is refused there (KEP-4381). The estimate never depends on a device, and 2**64 - 1 stands
    for a cost without any limit.

    Parameters
    ----------
    expression, features, new_expression
        As for `compile_selector`.

    Raises
    ------
    CelCompileError
        As for `compile_selector`.
    """
    compile_selector(expression, features, new_expression=new_expression)
    with _not_too_deep(expression):
        return estimate(_checked(expression, environment_for(features, new_expression=new_expression)))


@contextmanager
def _not_too_deep(expression: str) -> Iterator[None]:
    """Tell of a recursion error, which is never remembered, as it also depends on the caller's depth."""
    try:
        yield
    except RecursionError:
        message = f"expression recursion limit exceeded: {MAX_DEPTH}"
        raise compile_error(expression, [(0, message)]) from None


@lru_cache(maxsize=4096)
def _compile(expression: str, features: Features, new_expression: bool) -> Selector | str:
    """The selector, or the error's message: both are remembered."""
    try:
        return _compiled(expression, features, new_expression=new_expression)
    except CelCompileError as error:
        return str(error)


def _compiled(expression: str, features: Features, *, new_expression: bool) -> Selector:
    checked = _checked(expression, environment_for(features, new_expression=new_expression))
    try:
        code, size = plan(checked)
    except SelectorError as error:
        raise compile_error(expression, [(error.pos, str(error))]) from None
    asks_for_integers = "isInteger" in expression or "asInteger" in expression
    variables = (None,) * (size - FIRST_LOCAL)
    return Selector(expression, reads(checked.root), code.run, code.cost, variables, asks_for_integers)


def _checked(expression: str, environment: Environment) -> Checked:
    """Parse and check."""
    if not expression.isascii():
        try:
            expression.encode()
        except UnicodeEncodeError as error:
            raise compile_error(expression, [(error.start, "Syntax error: not a Unicode character")]) from None
    checked, findings = check(parse(expression), environment)
    findings = findings or validate(checked)
    if findings:
        raise compile_error(expression, findings)
    output = checked.types[checked.root]
    if output not in {BOOL, environment.attribute}:
        raise CelCompileError(f"must evaluate to bool or the unknown type, not {output}")
    return checked
