"""Taints that DeviceTaintRules put on devices (KEP-5055 "DeviceTaintRule").

Source: upstream's ``resourceslice/tracker``. A rule has the same effect as if the driver had published the taint.
Kubernetes 1.33 and 1.34 have selectors by class and by CEL expression, too; a rule whose expression fails on a device
does not select it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.objects.api import (
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
)
from dralloc.objects.names import DeviceID
from kubecel import CelDevice, CelError, compile_selector

__all__ = ["TaintRules"]


@dataclass(frozen=True)
class TaintRules:
    """The rules that are in force, and the classes that they may name."""

    rules: Sequence[DeviceTaintRule] = ()
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)

    def taints(
        self, id_: DeviceID, device: Callable[[], CelDevice]
    ) -> tuple[DeviceTaint, ...]:
        """The taints that rules put on a device, in the order of the rules."""
        return tuple(rule.spec.taint for rule in self.selecting(id_, device))

    def selecting(
        self, id_: DeviceID, device: Callable[[], CelDevice] | None
    ) -> Iterator[DeviceTaintRule]:
        """The rules that select a device.

        Parameters
        ----------
        device
            Gives the device for CEL expressions; None if it is not published: then rules with expressions do not select
            it.
        """
        return (rule for rule in self.rules if self._selects(rule, id_, device))

    def _selects(
        self,
        rule: DeviceTaintRule,
        id_: DeviceID,
        device: Callable[[], CelDevice] | None,
    ) -> bool:
        selector = rule.spec.device_selector
        if selector is None:
            return False
        wanted = zip(
            (selector.driver, selector.pool, selector.device), id_, strict=True
        )
        if not all(want in (None, have) for want, have in wanted):
            return False
        expressions = self._expressions(selector.device_class_name, selector.selectors)
        if not expressions:
            return expressions is not None
        return device is not None and _all_match(expressions, device())

    def _expressions(
        self, class_name: str | None, selectors: Sequence[DeviceSelector]
    ) -> list[str] | None:
        """The CEL expressions of the class and of the rule itself; None if there is no such class."""
        if class_name is not None and class_name not in self.classes:
            return None
        of_class = (
            self.classes[class_name].spec.selectors if class_name is not None else ()
        )
        return [
            one.cel.expression for one in (*of_class, *selectors) if one.cel is not None
        ]


def _all_match(expressions: Sequence[str], device: CelDevice) -> bool:
    try:
        return all(
            compile_selector(expression).matches(device) for expression in expressions
        )
    except CelError:
        return False
