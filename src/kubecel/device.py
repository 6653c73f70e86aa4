"""A device as selectors see it, and what a selector reads of it, as far as its text tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubecel.errors import CelRuntimeError
from kubecel.kubernetes_types import (
    UNSET,
    AttributeValue,
    Quantity,
    Semver,
    Version,
    parse_quantity,
    parse_semver,
)
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
    DomainMap,
    TextMap,
    Value,
    type_name,
)

__all__ = [
    "CelDevice",
    "Reads",
    "as_attribute",
    "convert_device",
    "device_from_wire",
    "reads",
    "with_own_quantities",
]


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
    """Return what an expression gives, as an attribute: a scalar, or a list of scalars of one type (KEP-6080).

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
