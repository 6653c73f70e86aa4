"""Selectors and derived attributes: compile once, ask about many devices.

A device as selectors see it is in `kubecel.device`, and what they read of it in `kubecel.device_reads`.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, TypeVar

from kubecel.check import Checked, check
from kubecel.code import FIRST_LOCAL, over_limit
from kubecel.cost import COST_LIMIT
from kubecel.device import CelDevice, with_own_quantities
from kubecel.device_reads import Reads, reads
from kubecel.environment import ALL_GATES, FeatureGates, environment_for
from kubecel.errors import (
    CelCompileError,
    CelRuntimeError,
    SelectorError,
    compile_error,
)
from kubecel.estimate import estimate
from kubecel.kubernetes_types.attribute_values import AttributeValue, Version
from kubecel.kubernetes_types.semantic_versions import Semver
from kubecel.literal_checks import validate
from kubecel.parse import MAX_DEPTH, parse
from kubecel.plan import plan
from kubecel.values import MISSING, Optional, Run, Value, type_name

__all__ = [
    "CelDerivation",
    "CelSelector",
    "CheckedExpression",
    "check_expression",
    "compile_derivation",
    "compile_selector",
    "estimated_cost",
]


@dataclass(frozen=True, slots=True, eq=False)
class _CelExpression(ABC):
    """A compiled expression. It keeps no state between evaluations and may be shared by threads.

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

    accepted_types: ClassVar[str]
    """What its value has to be, in words."""

    gives: ClassVar[re.Pattern[str]]
    """The types that will do; that of attributes always will."""

    def _result(self, device: CelDevice, cost_limit: int) -> tuple[Value, int]:
        """The value for a device, and what it cost to find."""
        if device.error:
            raise CelRuntimeError(device.error)
        variables = device.variables
        if self._asks_for_integers:
            variables = with_own_quantities(device)
        frame = [self._cost, cost_limit, variables, *self._locals]
        try:
            result = self._run(frame)
        except RecursionError:
            message = "the expression nests too deeply to be evaluated"
            raise CelRuntimeError(message) from None
        # Most code only adds to the cost, and whoever may cost much looks at the limit;
        # so it may be passed unnoticed at the end.
        if frame[0] > cost_limit:
            raise over_limit()
        return result, frame[0]


_Form = TypeVar("_Form", bound=_CelExpression)


class CelSelector(_CelExpression):
    """A compiled selector, as `compile_selector` gives it: it keeps no state and may be shared by threads.

    Its text is ``expression``; ``reads`` is what it reads of a device.
    """

    __slots__ = ()

    accepted_types = "bool or the unknown type"
    gives = re.compile("bool")

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

    def evaluate(
        self, device: CelDevice, cost_limit: int = COST_LIMIT
    ) -> tuple[bool, int]:
        """As `matches`, with what the evaluation cost."""
        result, cost = self._result(device, cost_limit)
        # Upstream takes the value out of an optional, however often it is wrapped.
        while type(result) is Optional and result.value is not MISSING:
            result = result.value
        if result is True or result is False:
            return result, cost
        name = type_name(result)
        raise CelRuntimeError(
            f"CEL result of type {name} could not be converted to bool: type conversion error from {name} to 'bool'"
        )


class CelDerivation(_CelExpression):
    """A compiled expression that derives an attribute from a device, as `compile_derivation` gives it (KEP-6080).

    Its text is ``expression``; ``reads`` is what it reads of a device.
    """

    __slots__ = ()

    accepted_types = "a string, int, bool, semver, or a list of one of them"
    gives = re.compile(r"(list\()?(bool|dyn|int|kubernetes\.Semver|string)\)?")

    def value(
        self, device: CelDevice, cost_limit: int = COST_LIMIT
    ) -> AttributeValue:
        """The attribute of a device; a version is without build metadata, which no comparison looks at.

        Parameters
        ----------
        device, cost_limit
            As for `CelSelector.matches`.

        Raises
        ------
        CelRuntimeError
            The expression fails on this device, or its value is none that an attribute can have.
        """
        return as_attribute(self._result(device, cost_limit)[0])


def as_attribute(value: Value) -> AttributeValue:
    """Return the value of an expression as an attribute: a scalar, or a list of scalars of one type (KEP-6080).

    Raises
    ------
    CelRuntimeError
        It is neither.
    """
    if type(value) is not tuple:
        return _scalar(value, "CEL return type")
    for index, item in enumerate(value):
        if type(item) is not type(value[0]):
            first_type = type_name(value[0])
            raise CelRuntimeError(
                f"expected list element at index {index} to be {first_type}, got {type_name(item)}"
            )
    items: tuple[Any, ...] = tuple(
        _scalar(item, "list element type") for item in value
    )
    return items


def _scalar(value: Value, where: str) -> bool | int | str:
    if type(value) is Semver:
        return Version(value)
    if type(value) in (bool, int, str):
        plain: bool | int | str = value
        return plain
    raise CelRuntimeError(f"unsupported {where}: {type_name(value)}")


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


def compile_selector(
    expression: str, gates: FeatureGates = ALL_GATES
) -> CelSelector:
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
    return _remembered(CelSelector, expression, gates)


def compile_derivation(
    expression: str, gates: FeatureGates = ALL_GATES
) -> CelDerivation:
    """Compile the expression of a derived attribute (KEP-6080).

    Parameters
    ----------
    expression
        The text, as in ``derivedAttributes[].expression`` of a request.
    gates
        As for `compile_selector`.

    Raises
    ------
    CelCompileError
        The expression does not parse, or is not well typed, or cannot give a string, int, bool, semver or list of them.

    Examples
    --------
    >>> from kubecel import device_from_wire
    >>> nic = device_from_wire("nic.example.com", {"attributes": {"place": {"string": "numa1-slot7"}}})
    >>> compile_derivation("device.attributes['nic.example.com'].place.split('-')[0]").value(nic)
    'numa1'
    """
    return _remembered(CelDerivation, expression, gates)


def check_expression(
    expression: str, gates: FeatureGates = ALL_GATES
) -> CheckedExpression:
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
        return CheckedExpression(
            str(checked.types[checked.root]), estimate(checked)
        )


def estimated_cost(expression: str, gates: FeatureGates = ALL_GATES) -> int:
    """Return an upper bound of a selector's cost, as the API server estimates it when an object is created.

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


def _remembered(
    form: type[_Form], expression: str, gates: FeatureGates
) -> _Form:
    with _not_too_deep(expression):
        compiled: _Form | str = _compiled(form, expression, gates)
    if isinstance(compiled, str):
        raise CelCompileError(compiled)
    return compiled


@lru_cache(maxsize=8192)
def _compiled(
    form: type[_Form], expression: str, gates: FeatureGates
) -> _Form | str:
    """The compiled expression, or the error's message: both are remembered."""
    try:
        checked = _checked(expression, gates)
        output = str(checked.types[checked.root])
        attribute_type = str(environment_for(gates).attribute)
        if not form.gives.fullmatch(output) and output != attribute_type:
            return f"must evaluate to {form.accepted_types}, not {output}"
        code, size = plan(checked)
    except CelCompileError as error:
        return str(error)
    except SelectorError as error:
        return str(compile_error(expression, [(error.pos, str(error))]))
    # Only these see how a quantity is held, which a comparison may change; the name may
    # also occur in a text, where looking twice costs a little time and nothing else.
    asks_for_integers = "isInteger" in expression or "asInteger" in expression
    variables = (None,) * (size - FIRST_LOCAL)
    return form(
        expression,
        reads(checked.root),
        code.run,
        code.cost,
        variables,
        asks_for_integers,
    )


def _checked(expression: str, gates: FeatureGates) -> Checked:
    """Parse and check."""
    if not expression.isascii():
        try:
            expression.encode()
        except UnicodeEncodeError as error:
            finding = (error.start, "Syntax error: not a Unicode character")
            raise compile_error(expression, [finding]) from None
    checked, findings = check(parse(expression), environment_for(gates))
    findings = findings or validate(checked)
    if findings:
        raise compile_error(expression, findings)
    return checked
