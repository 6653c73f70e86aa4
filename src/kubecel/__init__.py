"""The CEL environment of Kubernetes' device selectors, in Python.

A ResourceClaim selects devices by expressions like ``device.attributes["gpu.example.com"].model == "A100"``. This
package parses, checks, estimates and evaluates them as the API server and the scheduler do.

>>> from kubecel import compile_selector, device_from_wire
>>> gpu = device_from_wire("gpu.example.com", {"capacity": {"memory": {"value": "80Gi"}}})
>>> large = compile_selector('device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))')
>>> large.matches(gpu)
True
>>> large.evaluate(gpu)
(True, 6)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kubecel.cost import COST_LIMIT
    from kubecel.device import CelDevice, convert_device, device_from_wire
    from kubecel.device_reads import Reads
    from kubecel.environment import ALL_GATES, FeatureGates
    from kubecel.errors import (
        CelCompileError,
        CelError,
        CelRuntimeError,
        QuantitySyntaxError,
        explain,
    )
    from kubecel.kubernetes_types.attribute_values import (
        UNSET,
        AttributeValue,
        Unset,
        Version,
    )
    from kubecel.kubernetes_types.quantities import (
        NANOS,
        Format,
        Quantity,
        parse_quantity,
    )
    from kubecel.overloads import FUNCTION_NAMES
    from kubecel.selector import (
        CelDerivation,
        CelSelector,
        CheckedExpression,
        check_expression,
        compile_derivation,
        compile_selector,
        estimated_cost,
    )
    from kubecel.syntax import string_literal

__all__ = [
    "ALL_GATES",
    "COST_LIMIT",
    "FUNCTION_NAMES",
    "NANOS",
    "UNSET",
    "AttributeValue",
    "CelCompileError",
    "CelDerivation",
    "CelDevice",
    "CelError",
    "CelRuntimeError",
    "CelSelector",
    "CheckedExpression",
    "FeatureGates",
    "Format",
    "Quantity",
    "QuantitySyntaxError",
    "Reads",
    "Unset",
    "Version",
    "check_expression",
    "compile_derivation",
    "compile_selector",
    "convert_device",
    "device_from_wire",
    "estimated_cost",
    "explain",
    "parse_quantity",
    "string_literal",
]

_NAMES: Final = {
    "cost": ("COST_LIMIT",),
    "device": ("CelDevice", "convert_device", "device_from_wire"),
    "device_reads": ("Reads",),
    "environment": ("ALL_GATES", "FeatureGates"),
    "errors": (
        "CelCompileError",
        "CelError",
        "CelRuntimeError",
        "QuantitySyntaxError",
        "explain",
    ),
    "kubernetes_types.attribute_values": (
        "UNSET",
        "AttributeValue",
        "Unset",
        "Version",
    ),
    "kubernetes_types.quantities": (
        "NANOS",
        "Format",
        "Quantity",
        "parse_quantity",
    ),
    "overloads": ("FUNCTION_NAMES",),
    "selector": (
        "CelDerivation",
        "CelSelector",
        "CheckedExpression",
        "check_expression",
        "compile_derivation",
        "compile_selector",
        "estimated_cost",
    ),
    "syntax": ("string_literal",),
}
"""The public names by module. A module is imported with the first of its names: amounts need no grammar of CEL."""

_HOME: Final = {
    name: module for module, names in _NAMES.items() for name in names
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(
        import_module(f"kubecel.{_HOME[name]}"), name
    )
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
