"""Keys of equivalent devices, and the attributes that requests derive (KEP-6080)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dralloc.compile.inventory.catalog import comparable
from dralloc.objects.api import AttributeValue, Device, DeviceTaint
from dralloc.objects.api.slice_reader import DeviceTemplate
from dralloc.objects.features import Features
from dralloc.problem import Scalar
from kubecel import AttributeValue as CelValue
from kubecel import (
    CelCompileError,
    CelDerivation,
    CelDevice,
    CelRuntimeError,
    CelSelector,
    compile_derivation,
    compile_selector,
    convert_device,
    explain,
)

__all__ = [
    "DerivedAttributes",
    "DeviceKeys",
    "cel_device",
    "derived_name",
    "in_words",
]

# ----------------------------------------------------------------------------
# Which devices are equivalent to every selector, toleration and capacity request in
# play.
#
# Real inventories publish few kinds of devices many times. What makes each of them
# unique, its UUID or its index, is rarely read by a selector, so it is left out, and
# everything that depends on a device is worked out once for each key.

_SMALL: Final = 2**63
_EVERY: Final = "*"


@dataclass
class DeviceKeys:
    """Canonical keys of devices, as numbers. Equal keys mean equal answers; unequal ones mean nothing.

    Parameters
    ----------
    expressions
        All expressions in play: selectors, if nothing else is said.
    features
        Which feature gates are on.
    compiling
        How to compile an expression.
    """

    expressions: Iterable[str]
    features: Features
    compiling: Callable[[str], CelSelector | CelDerivation] = compile_selector
    everything: bool = False
    _read: set[tuple[str, str]] = field(default_factory=set)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _known: dict[str, dict[str, bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for expression in self.expressions:
            try:
                reads = self.compiling(expression).reads
            except CelCompileError:
                # It gives the same for every device: an error.
                continue
            self.everything |= reads.everything
            self._read |= reads.attributes

    def of(
        self, driver: str, device: Device, taints: tuple[DeviceTaint, ...]
    ) -> int:
        """The key of a device that a driver publishes, with the taints that count.

        Capacities are kept as they are: equal ones are one object after loading. An attribute that no selector reads
        still matters if it could fail to convert. Counters are not looked at: who asks about devices that charge them
        by request has to tell those apart.
        """
        reads = self._known.setdefault(driver, {})
        attributes = []
        for name, value in device.attributes.items():
            read = reads.get(name)
            if read is None:
                read = reads[name] = self._find_read(driver, name)
            if read or not (
                (type(value) is str and value.isascii()) or _converts(value)
            ):
                # One equals True, in lists as well: the types tell them apart.
                kind = (
                    tuple(map(type, value))
                    if isinstance(value, tuple)
                    else type(value)
                )
                attributes.append((name, kind, value))
        key = (
            driver,
            tuple(attributes),
            id(device.capacity) if device.capacity else 0,
            device.allow_multiple_allocations,
            taints,
            device.binding_conditions is None,
            not device.binding_conditions,
            not device.consumes_counters,
        )
        return self._numbers.setdefault(key, len(self._numbers))

    def equal(self, driver: str, template: DeviceTemplate) -> bool:
        """Whether the texts in which lists of devices differ that are made from a template are of no matter."""
        return not any(self._find_read(driver, name) for name in template.open)

    def _find_read(self, driver: str, name: str) -> bool:
        if self.everything:
            return True
        domain, slash, identifier = name.partition("/")
        if not slash:
            domain, identifier = driver, name
        return (domain, identifier) in self._read or (
            domain,
            _EVERY,
        ) in self._read


def _converts(value: AttributeValue) -> bool:
    """Whether the value, which is no plain text, is sure to be one that selectors can be shown."""
    return isinstance(value, bool) or (
        isinstance(value, int) and -_SMALL <= value < _SMALL
    )


# ----------------------------------------------------------------------------
# Attributes that requests derive from devices, for constraints to compare (KEP-6080,
# as of its text of July 2026).
#
# What an expression gives for a device is an attribute of it under a name that
# nothing else has. Constraints know which name to look up for which request: the
# derived attribute shadows one that the device publishes.

_Failure = CelCompileError | CelRuntimeError


def cel_device(driver: str, device: Device) -> CelDevice:
    """A device that a driver publishes, as expressions are shown it."""
    capacity = {
        name: capacity.value for name, capacity in device.capacity.items()
    }
    return convert_device(
        driver, device.attributes, capacity, device.allow_multiple_allocations
    )


def derived_name(expression: str) -> str:
    """The name among a device's attributes of what an expression gives; no attribute can be published under it."""
    return f"= {expression}"


class DerivedAttributes:
    """The values of expressions on devices, evaluated once for all devices that the expression cannot tell apart.

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
        """Return the errors of expressions on a device, by expression."""
        failures = {}
        for expression in self._keys:
            value = self._value(expression, driver, device)
            if isinstance(value, _Failure):
                failures[expression] = in_words(value)
        return failures

    def of(
        self, driver: str, device: Device
    ) -> Mapping[str, frozenset[Scalar]]:
        """Return what expressions give for a device, by name, as constraints compare it."""
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
    """Return the error of an expression in words, with upstream's advice."""
    if isinstance(failure, CelRuntimeError):
        return f"CEL runtime error: {explain(failure)}"
    return f"CEL compile error: {failure}"
