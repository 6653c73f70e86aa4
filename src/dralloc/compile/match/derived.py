"""Attributes that requests derive from devices, for constraints to compare (KEP-6080, as of its text of July 2026).

What an expression gives for a device is an attribute of it under a name that nothing else has. Constraints know which
name to look up for which request: the derived attribute shadows one that the device publishes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from dralloc.compile.inventory.values import comparable
from dralloc.compile.match.device_keys import DeviceKeys
from dralloc.objects.api import Device
from dralloc.objects.features import Features
from dralloc.problem import Scalar
from kubecel import AttributeValue as CelValue
from kubecel import (
    CelCompileError,
    CelDevice,
    CelRuntimeError,
    compile_derivation,
    convert_device,
    explain,
)

__all__ = ["DerivedAttributes", "cel_device", "derived_name", "in_words"]

_Failure = CelCompileError | CelRuntimeError


def cel_device(driver: str, device: Device) -> CelDevice:
    """A device that a driver publishes, as expressions are shown it."""
    capacity = {name: capacity.value for name, capacity in device.capacity.items()}
    return convert_device(
        driver, device.attributes, capacity, device.allow_multiple_allocations
    )


def derived_name(expression: str) -> str:
    """The name among a device's attributes of what an expression gives; no attribute can be published under it."""
    return f"= {expression}"


class DerivedAttributes:
    """What expressions give for devices: evaluated once for all devices that the expression cannot tell apart.

    Parameters
    ----------
    expressions
        All that are in play.
    features
        Which feature gates are on.
    """

    def __init__(self, expressions: Iterable[str], features: Features) -> None:
        self._features = features
        self._keys = {
            expression: DeviceKeys((expression,), features, compile_derivation)
            for expression in expressions
        }
        self._known: dict[tuple[str, Hashable], CelValue | _Failure] = {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def failures(self, driver: str, device: Device) -> Mapping[str, str]:
        """How expressions fail on a device, by expression."""
        failures = {}
        for expression in self._keys:
            value = self._value(expression, driver, device)
            if isinstance(value, _Failure):
                failures[expression] = in_words(value)
        return failures

    def of(self, driver: str, device: Device) -> Mapping[str, frozenset[Scalar]]:
        """What expressions give for a device, by name, as constraints compare it."""
        attributes = {}
        for expression in self._keys:
            value = self._value(expression, driver, device)
            if not isinstance(value, _Failure):
                name = derived_name(expression)
                attributes[name] = comparable(value, self._features)
        return attributes

    def _value(
        self, expression: str, driver: str, device: Device
    ) -> CelValue | _Failure:
        key = expression, self._keys[expression].of(driver, device, ())
        if key not in self._known:
            try:
                self._known[key] = compile_derivation(expression).value(
                    cel_device(driver, device)
                )
            except (CelCompileError, CelRuntimeError) as error:
                # The traceback would keep all that was on the stack alive, once for
                # each kind of device.
                self._known[key] = error.with_traceback(None)
        return self._known[key]


def in_words(failure: CelCompileError | CelRuntimeError) -> str:
    """How an expression fails, with upstream's advice."""
    if isinstance(failure, CelRuntimeError):
        return f"CEL runtime error: {explain(failure)}"
    return f"CEL compile error: {failure}"
