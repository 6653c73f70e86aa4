"""Which devices are equivalent to every selector, toleration and capacity request in play.

Real inventories publish few kinds of devices many times. What makes each of them unique, its UUID or its index, is
rarely read by a selector, so it is left out, and everything that depends on a device is worked out once for each key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final

from dralloc.objects.api import AttributeValue, Device, DeviceTaint
from dralloc.objects.api.slice_reader import DeviceTemplate
from dralloc.objects.features import Features
from kubecel import CelCompileError, CelDerivation, CelSelector, compile_selector

__all__ = ["DeviceKeys"]

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

    def of(self, driver: str, device: Device, taints: tuple[DeviceTaint, ...]) -> int:
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
                    tuple(map(type, value)) if isinstance(value, tuple) else type(value)
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
        return (domain, identifier) in self._read or (domain, _EVERY) in self._read


def _converts(value: AttributeValue) -> bool:
    """Whether the value, which is no plain text, is sure to be one that selectors can be shown."""
    return isinstance(value, bool) or (
        isinstance(value, int) and -_SMALL <= value < _SMALL
    )
