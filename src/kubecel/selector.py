"""Selectors and derived attributes: compile once, ask about many devices.

First a device as selectors see it, and what a selector reads of it; then what is compiled.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from kubecel.check import Checked, check
from kubecel.code import FIRST_LOCAL, over_limit
from kubecel.cost import COST_LIMIT
from kubecel.environment import ALL_GATES, FeatureGates, environment_for
from kubecel.errors import (
    CelCompileError,
    CelRuntimeError,
    SelectorError,
    compile_error,
)
from kubecel.estimate import estimate
from kubecel.kubernetes_types.attribute_values import (
    UNSET,
    AttributeValue,
    Version,
)
from kubecel.kubernetes_types.quantities import Quantity, parse_quantity
from kubecel.kubernetes_types.semantic_versions import Semver, parse_semver
from kubecel.literal_checks import validate
from kubecel.parse import MAX_DEPTH, parse
from kubecel.plan import plan
from kubecel.syntax import (
    Bind,
    Expr,
    Fold,
    Ident,
    Index,
    Literal,
    OptMap,
    Select,
    children,
)
from kubecel.values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    DomainMap,
    Optional,
    Run,
    TextMap,
    Value,
    type_name,
)

__all__ = [
    "CelDerivation",
    "CelDevice",
    "CelSelector",
    "CheckedExpression",
    "Reads",
    "check_expression",
    "compile_derivation",
    "compile_selector",
    "convert_device",
    "device_from_wire",
    "estimated_cost",
]

# ----------------------------------------------------------------------------
# A device as selectors see it, and what a selector reads of it, as far as its text
# tells.

_FIELDS: Final[Mapping[str, Callable[[Any], AttributeValue]]] = {
    **dict.fromkeys(("ints", "bools", "strings"), tuple),
    "versions": lambda texts: tuple(map(Version, texts)),
    **dict.fromkeys(("int", "bool", "string"), lambda scalar: scalar),
    "version": Version,
}
"""What attributes have in the wire form, and what it becomes."""


@dataclass(frozen=True, slots=True)
class CelDevice:
    """A converted device. Convert once, match often; it is never changed and may be shared by threads.

    Parameters
    ----------
    variables
        The fields of the CEL variable ``device``.
    error
        Why every selector fails on this device; empty if they do not.
    """

    variables: dict[str, Value]
    error: str = ""


def with_own_quantities(device: CelDevice) -> dict[str, Value]:
    """The device's fields with capacities that only this evaluation sees, so that it may change how they are held.

    Comparing a quantity with a big one makes upstream hold it as a big one, too, and from then on it is no integer.
    """
    capacities = DomainMap()
    for domain, quantities in device.variables["capacity"].items():
        capacities[domain] = TextMap(
            (
                name,
                Quantity(shared.nanos, shared.format, shared.scale, own=True),
            )
            for name, shared in quantities.items()
        )
    return {**device.variables, "capacity": capacities}


def convert_device(
    driver: str,
    attributes: Mapping[str, AttributeValue],
    capacity: Mapping[str, Quantity],
    allow_multiple_allocations: bool = False,
) -> CelDevice:
    """Convert a device for matching.

    Features do not matter: upstream shows what a device has in any case, and only the checking of new expressions
    looks at them.

    Parameters
    ----------
    driver
        The driver's name: the domain of every attribute and capacity whose name has none.
    attributes, capacity
        By name, with or without a domain (``domain/name``).
    allow_multiple_allocations
        The device's ``allowMultipleAllocations``; absent means false.
    """
    domains, capacities = DomainMap(), DomainMap()
    try:
        for name, value in attributes.items():
            _put(domains, driver, name, _attribute(name, value))
    except ValueError as error:
        return CelDevice({}, str(error))
    for name, quantity in capacity.items():
        _put(capacities, driver, name, quantity)
    return CelDevice(
        {
            "driver": driver,
            "allowMultipleAllocations": allow_multiple_allocations,
            "attributes": domains,
            "capacity": capacities,
        }
    )


def _put(domains: DomainMap, driver: str, name: str, value: Value) -> None:
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = driver, name
    domains.setdefault(domain, TextMap())[identifier] = value


def _attribute(name: str, value: AttributeValue) -> Value:
    if isinstance(value, tuple):
        return tuple(_attribute(name, item) for item in value)
    if isinstance(value, Version):
        try:
            return parse_semver(str(value))
        except ValueError as error:
            raise ValueError(
                f"attribute {name}: parse semantic version: {error}"
            ) from error
    if isinstance(value, str):
        value.encode()  # text that is not Unicode could not be searched later
        return value
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and INT_MIN <= value <= INT_MAX:
        return value
    raise ValueError(f"attribute {name}: unsupported attribute value")


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


def device_from_wire(driver: str, device: Mapping[str, Any]) -> CelDevice:
    """Convert a device in the wire form of ``resource.k8s.io/v1``.

    Parameters
    ----------
    driver
        The driver's name.
    device
        Attributes like ``{"int": 3}``, ``{"version": "1.0.0"}`` or ``{"strings": [...]}``; capacity like
        ``{"value": "80Gi"}``.

    Raises
    ------
    QuantitySyntaxError
        A capacity is not a quantity.
    """
    wire_attributes = device.get("attributes") or {}
    wire_capacity = device.get("capacity") or {}
    attributes = {
        name: _wire_attribute(value) for name, value in wire_attributes.items()
    }
    capacity = {
        name: parse_quantity(str(value["value"]))
        for name, value in wire_capacity.items()
    }
    shareable = bool(device.get("allowMultipleAllocations"))
    return convert_device(driver, attributes, capacity, shareable)


def _wire_attribute(value: Mapping[str, Any]) -> AttributeValue:
    """Lists win over scalars, as upstream looks for them first."""
    for key, read in _FIELDS.items():
        if value.get(key) is not None:
            return read(value[key])
    return UNSET


# ----------------------------------------------------------------------------
# What a selector reads. It errs on the side of "everything": who caches answers by what
# was read must never miss a thing.


@dataclass(frozen=True, slots=True)
class Reads:
    """The parts of a device that a selector reads.

    Parameters
    ----------
    everything
        The selector may read anything: `attributes` and `capacity` do not limit it.
    attributes, capacity
        (domain, name) of what is read or tested for. The name ``*`` stands for every name of the domain.
    driver, allow_multiple_allocations
        Whether these fields are read.
    """

    everything: bool = False
    attributes: frozenset[tuple[str, str]] = frozenset()
    capacity: frozenset[tuple[str, str]] = frozenset()
    driver: bool = False
    allow_multiple_allocations: bool = False


def reads(root: Expr) -> Reads:
    """Find what an expression reads."""
    names_read: dict[str, set[tuple[str, str]]] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        path, computed = _path(node)
        # A local variable that is called ``device`` hides the device: no need to tell
        # them apart for an expression that nobody writes.
        if path is None and "device" not in _local_names(node):
            stack += children(node)
            continue
        field, domain, name = [*(path or ()), None, None, None][:3]
        if field is None or (
            field in {"attributes", "capacity"} and domain is None
        ):
            return Reads(everything=True)
        names_read.setdefault(field, set()).add((domain or "", name or "*"))
        stack += computed
    return Reads(
        attributes=frozenset(names_read.get("attributes", ())),
        capacity=frozenset(names_read.get("capacity", ())),
        driver="driver" in names_read,
        allow_multiple_allocations="allowMultipleAllocations" in names_read,
    )


def _local_names(node: Expr) -> tuple[str, ...]:
    """Return the variables that a node declares."""
    if isinstance(node, Fold):
        return node.names
    if isinstance(node, Bind | OptMap):
        return (node.name,)
    return ()


def _path(node: Expr) -> tuple[list[str | None] | None, list[Expr]]:
    """Return the constant steps from ``device`` (None for a computed one), and the nodes that compute a step."""
    steps: list[str | None] = []
    computed: list[Expr] = []
    while isinstance(node, Select | Index):
        if isinstance(node, Select):
            steps.append(node.field)
        elif isinstance(node.key, Literal) and isinstance(node.key.value, str):
            steps.append(node.key.value)
        else:
            steps.append(None)
            computed.append(node.key)
        node = node.operand
    if not isinstance(node, Ident) or node.name.removeprefix(".") != "device":
        return None, []
    return steps[::-1], computed


# ----------------------------------------------------------------------------
# Expressions, compiled once.


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
