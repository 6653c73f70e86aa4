"""The match table: which device may serve which alternative. Lazy and memoised.

A selector is evaluated for a device when somebody asks, and never twice: requests with equal class, selectors or
amounts share their answers. A failing selector is an answer too; who asks decides what it means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dralloc.api import DeviceClass, DeviceToleration
from dralloc.errors import AllocationError, CelCompileError, CelRuntimeError, FatalError
from dralloc.features import Features
from dralloc.inventory import Inventory
from dralloc.inventory.charges import charge_for
from dralloc.match.cel import CelDevice, compile_selector, convert_device
from dralloc.match.taints import all_tolerated
from dralloc.names import ClaimKey
from dralloc.problem import Charge
from dralloc.quantity import Quantity

__all__ = ["Criteria", "MatchTable"]

Amounts = tuple[tuple[str, Quantity], ...]


@dataclass(frozen=True, slots=True)
class Criteria:
    """What an alternative demands of a device.

    ``claim`` only appears in messages. ``device_class`` is None where the class does not exist.
    """

    claim: ClaimKey
    device_class: DeviceClass | None
    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class _Failure:
    """A selector that failed: of the class or of the request, which one, and how."""

    of_class: bool
    selector: int
    message: str


_Verdicts = dict[int, "bool | _Failure"]


@dataclass
class MatchTable:
    """Answers of `dralloc.problem.Eligibility` for the alternatives of a problem, by their index."""

    inventory: Inventory
    features: Features
    criteria: list[Criteria] = field(default_factory=list)
    _selected: list[_Verdicts] = field(default_factory=list)
    _charged: list[dict[int, Charge | None]] = field(default_factory=list)
    _shared_verdicts: dict[object, _Verdicts] = field(default_factory=dict)
    _shared_charges: dict[object, dict[int, Charge | None]] = field(default_factory=dict)
    _devices: dict[int, CelDevice] = field(default_factory=dict)

    def add(self, criteria: Criteria) -> int:
        """Enter an alternative; returns its index."""
        class_name = criteria.device_class.metadata.name if criteria.device_class else ""
        self._selected.append(self._shared_verdicts.setdefault((class_name, criteria.selectors), {}))
        # Amounts are recorded the way they were written, so equal amounts in other units are not the same request.
        written = tuple((name, str(amount)) for name, amount in criteria.amounts)
        self._charged.append(self._shared_charges.setdefault(written, {}))
        self.criteria.append(criteria)
        return len(self.criteria) - 1

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        """Whether class and request selectors accept the device, or the fatal error that upstream raises."""
        verdicts = self._selected[alternative]
        verdict = verdicts.get(device)
        if verdict is None:
            verdict = verdicts[device] = self._evaluate(self.criteria[alternative], device)
        return self._error(self.criteria[alternative], verdict) if isinstance(verdict, _Failure) else verdict

    def admits(self, alternative: int, device: int) -> bool:
        """Whether the device's taints are tolerated, and it does not need a feature that is off."""
        published = self.inventory.sources[device].device
        if published.consumes_counters and not self.features.PartitionableDevices:
            return False
        if not published.taints or not self.features.DeviceTaints:
            return True
        return all_tolerated(published.taints, self.criteria[alternative].tolerations)

    def charge(self, alternative: int, device: int) -> Charge | None:
        """What an allocation takes; None if the device cannot give what the alternative asks for."""
        charges = self._charged[alternative]
        if device not in charges:
            charges[device] = self._charge(self.criteria[alternative], device)
        return charges[device]

    def _charge(self, criteria: Criteria, device: int) -> Charge | None:
        if not self.features.ConsumableCapacity:
            return Charge()
        shareable = self.inventory.devices[device].shareable
        source = self.inventory.sources[device]
        return charge_for(dict(criteria.amounts), source, self.inventory.published, shareable=shareable)

    def _evaluate(self, criteria: Criteria, device: int) -> bool | _Failure:
        published = self.inventory.sources[device].device
        if published.binding_conditions and not self.features.DeviceBindingAndStatus:
            return False
        if criteria.device_class is not None:
            expressions = [selector.cel.expression for selector in criteria.device_class.spec.selectors if selector.cel]
            verdict = self._all_match(expressions, device, of_class=True)
            if verdict is not True:
                return verdict
        return self._all_match(criteria.selectors, device, of_class=False)

    def _all_match(self, expressions: Sequence[str], device: int, *, of_class: bool) -> bool | _Failure:
        id_ = self.inventory.devices[device].id
        for number, expression in enumerate(expressions):
            try:
                if not compile_selector(expression, self.features).matches(self._cel_device(device)):
                    return False
            except CelCompileError as error:
                return _Failure(of_class, number, f"selector #{number}: CEL compile error: {error}")
            except CelRuntimeError as error:
                return _Failure(of_class, number, f"selector #{number} on device {id_}: CEL runtime error: {error}")
        return True

    def _cel_device(self, device: int) -> CelDevice:
        if device not in self._devices:
            source = self.inventory.sources[device]
            self._devices[device] = convert_device(
                source.slice.spec.driver,
                source.device.attributes,
                {name: capacity.value for name, capacity in source.device.capacity.items()},
                source.device.allow_multiple_allocations,
            )
        return self._devices[device]

    def _error(self, criteria: Criteria, failure: _Failure) -> FatalError:
        device_class = criteria.device_class
        owner = (
            f"class {device_class.metadata.name}" if failure.of_class and device_class else f"claim {criteria.claim}"
        )
        return FatalError(f"{owner}: {failure.message}")
