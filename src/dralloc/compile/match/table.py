"""The match table: which device may serve which alternative. Lazy and memoised.

A selector is evaluated for a device when somebody asks, and never twice: requests with equal class, selectors or
amounts share their answers. A failing selector is an answer too; who asks decides what it means. Taints that
DeviceTaintRules put on devices come first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from dralloc.compile.inventory import Inventory, charge_for
from dralloc.compile.match.derived import (
    DerivedAttributes,
    DeviceKeys,
    cel_device,
    in_words,
)
from dralloc.compile.match.slips import compile_slip, key_slip
from dralloc.objects.api import (
    Device,
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceSlice,
)
from dralloc.objects.api.selecting import all_tolerated
from dralloc.objects.api.slice_reader import DeviceTemplate, common
from dralloc.objects.errors import (
    AllocationError,
    ExpressionFailure,
    FatalError,
)
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.objects.notebook import Brief
from dralloc.objects.quantity import Quantity
from dralloc.problem import AlternativeIndex, Charge, DeviceIndex, Numbered
from dralloc.problem import Device as ProblemDevice
from dralloc.problem.supply import record
from kubecel import (
    CelCompileError,
    CelDevice,
    CelError,
    CelRuntimeError,
    compile_selector,
)

__all__ = ["Criteria", "MatchTable", "SelectorFailure", "TaintRules"]

# ----------------------------------------------------------------------------
# Taints that DeviceTaintRules put on devices (KEP-5055 "DeviceTaintRule").
#
# Source: upstream's ``resourceslice/tracker``. A rule has the same effect as if the
# driver had published the taint. Kubernetes 1.33 and 1.34 have selectors by class and
# by CEL expression, too; a rule whose expression fails on a device does not select
# it.


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
        names = selector.driver, selector.pool, selector.device
        for selected, published in zip(names, id_, strict=True):
            if selected is not None and selected != published:
                return False
        expressions = self._expressions(
            selector.device_class_name, selector.selectors
        )
        if not expressions:
            return expressions is not None
        # The device is made ready for CEL only if some expression is to be asked about
        # it.
        return device is not None and _all_match(expressions, device())

    def _expressions(
        self, class_name: str | None, selectors: Sequence[DeviceSelector]
    ) -> list[str] | None:
        """The CEL expressions of the class and of the rule itself; None if there is no such class."""
        if class_name is not None and class_name not in self.classes:
            return None
        of_class = (
            self.classes[class_name].spec.selectors
            if class_name is not None
            else ()
        )
        return [
            selector.cel.expression
            for selector in (*of_class, *selectors)
            if selector.cel is not None
        ]


def _all_match(expressions: Sequence[str], device: CelDevice) -> bool:
    try:
        return all(
            compile_selector(expression).matches(device)
            for expression in expressions
        )
    except CelError:
        return False


Amounts = tuple[tuple[str, Quantity], ...]


@record
class Criteria:
    """The criteria of an alternative that a device has to meet.

    ``claim`` only appears in messages. ``device_class`` is None where the class does not exist. ``derived``: the
    expressions that have to give an attribute once the selectors accept the device (KEP-6080), by its name.
    """

    claim: ClaimKey
    device_class: DeviceClass | None
    selectors: tuple[str, ...]
    tolerations: tuple[DeviceToleration, ...]
    amounts: Amounts
    derived: tuple[tuple[str, str], ...] = ()

    def expressions(self, *, of_class: bool) -> Sequence[str]:
        """Return the selectors of the class, or of the request."""
        return _of_class(self.device_class) if of_class else self.selectors


@dataclass(frozen=True, slots=True)
class DerivationFailure:
    """A derived attribute, by its name, that cannot be had from a device, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """A selector that cannot be compiled, or failed on a device: of the class or of the request, which one, and how."""

    of_class: bool
    selector: int
    error: CelCompileError | CelRuntimeError


Verdict = bool | SelectorFailure | DerivationFailure

_Verdicts = dict[Hashable, Verdict]
"""By the key of a device."""

_Charges = dict[Hashable, "Charge | None"]


@dataclass(repr=False)
class MatchTable(Brief):
    """Answers of `dralloc.problem.Eligibility` for the alternatives of a problem, by their index."""

    inventory: Inventory
    features: Features
    taint_rules: TaintRules = field(default_factory=TaintRules)
    criteria: list[Criteria] = field(default_factory=list)
    _selected: list[_Verdicts] = field(default_factory=list)
    _charged: list[_Charges] = field(default_factory=list)
    _shared_verdicts: dict[object, _Verdicts] = field(default_factory=dict)
    _shared_charges: dict[object, _Charges] = field(default_factory=dict)
    _devices: dict[int, CelDevice] = field(default_factory=dict)
    _taints: dict[int, tuple[DeviceTaint, ...]] = field(default_factory=dict)
    _kinds: dict[Hashable, int] = field(default_factory=dict)
    _kind_of: list[int] = field(default_factory=list)

    def add(self, criteria: Criteria) -> AlternativeIndex:
        """Enter an alternative; returns its index."""
        class_name = (
            criteria.device_class.metadata.name if criteria.device_class else ""
        )
        self._selected.append(
            self._shared_verdicts.setdefault(
                (class_name, criteria.selectors, criteria.derived), {}
            )
        )
        # Amounts are recorded the way they were written, so equal amounts in other units are not the same request.
        written = tuple(
            (name, str(amount)) for name, amount in criteria.amounts
        )
        self._charged.append(self._shared_charges.setdefault(written, {}))
        kind = (
            class_name,
            criteria.selectors,
            criteria.tolerations,
            written,
            criteria.derived,
        )
        self._kind_of.append(self._kinds.setdefault(kind, len(self._kinds)))
        self.criteria.append(criteria)
        return AlternativeIndex(len(self.criteria) - 1)

    def add_again(
        self, alternative: AlternativeIndex, claim: ClaimKey
    ) -> AlternativeIndex:
        """Enter what another claim asks for in the words of a known alternative; returns its index."""
        criteria = self.criteria[alternative]
        self._selected.append(self._selected[alternative])
        self._charged.append(self._charged[alternative])
        self._kind_of.append(self._kind_of[alternative])
        self.criteria.append(
            Criteria(
                claim,
                criteria.device_class,
                criteria.selectors,
                criteria.tolerations,
                criteria.amounts,
                criteria.derived,
            )
        )
        return AlternativeIndex(len(self.criteria) - 1)

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        """A number for class, selectors, derived attributes, tolerations and amounts."""
        return self._kind_of[alternative]

    def device_key(self, device: DeviceIndex) -> Hashable:
        """A number for all that some class or request can tell about a device (see `DeviceKeys`)."""
        key = self._key_of[device]
        if key is None:
            self._find_keys(device)
            key = self._key_of[device]
        return key

    def _find_keys(self, device: DeviceIndex) -> None:
        """Find the key of a device, and with it those of its slice where they are known from others of one template."""
        slice_ = self.inventory.sources[device].slice
        keys = self.keys_of_template(slice_)
        if keys is None:
            self._key_of[device] = self._find_key(device)
            return
        first: int = device
        while first and self.inventory.sources[first - 1].slice is slice_:
            first -= 1
        # A slice that counts in two views of its pool is there twice.
        first = device - (device - first) % len(keys)
        self._key_of[first : first + len(keys)] = keys

    def keys_of_template(
        self, slice_: ResourceSlice
    ) -> Sequence[Hashable] | None:
        """The keys of a slice's devices, which all slices of the driver with its template have; None if they have not.

        Then the devices differ in what somebody reads, or what they give depends on counters of their own.
        """
        driver, devices, template = (
            slice_.spec.driver,
            slice_.spec.devices,
            common(slice_.spec.devices),
        )
        by_request, tainted = (
            self.features.SharedConsumableCapacity,
            self.features.DeviceTaints,
        )
        if (
            not isinstance(template, DeviceTemplate)
            # Taint rules can name a single device, and derived attributes can read the texts in which slices differ.
            or self.taint_rules.rules
            or self.derived
        ):
            return None
        if (by_request and template.by_request) or not self.device_keys.equal(
            driver, template
        ):
            return None
        # Slices keep their template alive, so nothing else gets its id.
        name = driver, id(template)
        if name not in self._keys_of:
            keys = [
                self.key_of(driver, device, device.taints if tainted else ())
                for device in devices
            ]
            self._keys_of[name] = tuple(keys)
        return self._keys_of[name]

    def _find_key(self, device: DeviceIndex) -> Hashable:
        source = self.inventory.sources[device]
        if source.requested_counters:
            # What such a device gives depends on its counters, which are its own.
            return id(source)
        return self.key_of(
            source.slice.spec.driver, source.device, self._taints_on(device)
        )

    def key_of(
        self, driver: str, device: Device, taints: tuple[DeviceTaint, ...]
    ) -> Hashable:
        """As `device_key`, for a device that a driver publishes, with the taints that count."""
        key = self.device_keys.of(driver, device, taints)
        failing = (
            tuple(self.derived.failures(driver, device)) if self.derived else ()
        )
        return (key, failing) if failing else key

    @cached_property
    def _key_of(self) -> list[Hashable]:
        return [None] * len(self.inventory.devices)

    @cached_property
    def _keys_of(self) -> dict[tuple[str, int], Sequence[Hashable]]:
        """The keys of the devices of a template, which are the same for all slices of a driver."""
        return {}

    @cached_property
    def device_keys(self) -> DeviceKeys:
        """Return the keys of devices: equal for devices that no alternative can tell apart."""
        expressions: dict[str, None] = {}
        for criteria in self.criteria:
            expressions.update(dict.fromkeys(criteria.selectors))
            expressions.update(dict.fromkeys(_of_class(criteria.device_class)))
        return DeviceKeys(expressions, self.features)

    @cached_property
    def derived(self) -> DerivedAttributes:
        """The attributes that the alternatives derive."""
        expressions = (
            expression
            for criteria in self.criteria
            for _, expression in criteria.derived
        )
        return DerivedAttributes(expressions, self.features)

    @property
    def devices(self) -> Numbered[DeviceIndex, ProblemDevice]:
        """The devices of the inventory, with what the alternatives derive from them."""
        if not self.derived:
            return self.inventory.devices
        devices = []
        sources = zip(
            self.inventory.devices, self.inventory.sources, strict=True
        )
        for device, source in sources:
            derived = self.derived.of(source.slice.spec.driver, source.device)
            attributes = {**device.attributes, **derived}
            devices.append(replace(device, attributes=attributes))
        return tuple(devices)

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        """Whether class and request selectors accept the device, or the fatal error that upstream raises.

        That is also an error if an attribute cannot be derived from a device that they accept.
        """
        verdict = self.verdict(alternative, device)
        return (
            verdict
            if isinstance(verdict, bool)
            else self._error(self.criteria[alternative], device, verdict)
        )

    def verdict(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Verdict:
        """Whether class and request selectors accept the device, or the first of all expressions that fails on it."""
        verdicts = self._selected[alternative]
        key = self.device_key(device)
        verdict = verdicts.get(key)
        if verdict is None:
            verdict = verdicts[key] = self._evaluate(
                self.criteria[alternative], device
            )
        return verdict

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        """Whether the device's taints are tolerated, and it does not need a feature that is off."""
        published = self.inventory.sources[device].device
        if (
            published.consumes_counters
            and not self.features.PartitionableDevices
        ):
            return False
        taints = self._taints_on(device)
        return not taints or all_tolerated(
            taints, self.criteria[alternative].tolerations
        )

    def _taints_on(self, device: DeviceIndex) -> tuple[DeviceTaint, ...]:
        """The taints that count."""
        if not self.features.DeviceTaints:
            return ()
        return (
            self.taints(device)
            if self.taint_rules.rules
            else self.inventory.sources[device].device.taints
        )

    def taints(self, device: DeviceIndex) -> tuple[DeviceTaint, ...]:
        """The taints of a device: those that its slice publishes, then those of rules."""
        if device not in self._taints:
            id_ = self.inventory.devices[device].id
            by_rules = self.taint_rules.taints(
                id_, partial(self._cel_device, device)
            )
            self._taints[device] = (
                *self.inventory.sources[device].device.taints,
                *by_rules,
            )
        return self._taints[device]

    def rules_for(self, id_: DeviceID) -> tuple[DeviceTaintRule, ...]:
        """The rules that put a taint on a device, which need not be published (any more)."""
        device = self.inventory.newest(id_)
        published = (
            None if device is None else partial(self._cel_device, device)
        )
        return tuple(self.taint_rules.selecting(id_, published))

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """Return the charge of an allocation; None if the device lacks an amount that the alternative asks for."""
        charges = self._charged[alternative]
        key = self.device_key(device)
        if key not in charges:
            amounts, source = (
                dict(self.criteria[alternative].amounts),
                self.inventory.sources[device],
            )
            shareable = self.inventory.devices[device].shareable
            charges[key] = (
                charge_for(
                    amounts,
                    source,
                    self.inventory.published,
                    self.features,
                    shareable=shareable,
                )
                if self.features.ConsumableCapacity
                else Charge()
            )
        return charges[key]

    def _evaluate(self, criteria: Criteria, device: DeviceIndex) -> Verdict:
        published = self.inventory.sources[device].device
        if (
            published.binding_conditions
            and not self.features.DeviceBindingAndStatus
        ):
            return False
        verdict = self._all_match(
            _of_class(criteria.device_class), device, of_class=True
        )
        # The request's selectors are only asked about what the class accepts: they cannot fail on anything else.
        if verdict is True:
            verdict = self._all_match(
                criteria.selectors, device, of_class=False
            )
        if verdict is not True or not criteria.derived:
            return verdict
        failures = self.derived.failures(
            self.inventory.sources[device].slice.spec.driver, published
        )
        for name, expression in criteria.derived:
            if expression in failures:
                return DerivationFailure(name, failures[expression])
        return True

    def _all_match(
        self, expressions: Sequence[str], device: DeviceIndex, *, of_class: bool
    ) -> bool | SelectorFailure:
        for expression_index, expression in enumerate(expressions):
            try:
                if not compile_selector(expression).matches(
                    self._cel_device(device)
                ):
                    return False
            except (CelCompileError, CelRuntimeError) as error:
                return SelectorFailure(
                    of_class, expression_index, error.with_traceback(None)
                )
        return True

    def _cel_device(self, device: DeviceIndex) -> CelDevice:
        if device not in self._devices:
            source = self.inventory.sources[device]
            self._devices[device] = cel_device(
                source.slice.spec.driver, source.device
            )
        return self._devices[device]

    def _error(
        self,
        criteria: Criteria,
        device: DeviceIndex,
        failure: SelectorFailure | DerivationFailure,
    ) -> FatalError:
        device_class, id_ = (
            criteria.device_class,
            self.inventory.devices[device].id,
        )
        claim = f"claim {criteria.claim}"
        if isinstance(failure, DerivationFailure):
            return ExpressionFailure(
                f"{claim}: derived attribute {failure.name} on device {id_}: {failure.reason}",
                what=f"derived attribute {failure.name}",
                owner=claim,
                driver=id_.driver,
                device=str(id_),
                reason=failure.reason,
            )
        of_class = device_class if failure.of_class else None
        owner = f"class {of_class.metadata.name}" if of_class else claim
        selector, words = (
            f"{owner}: selector #{failure.selector}",
            in_words(failure.error),
        )
        if not isinstance(failure.error, CelRuntimeError):
            # An expression that cannot be compiled fails on every device, so none is named. The advice goes behind the
            # message, before the lines that show where the fault is.
            head, *snippet = words.split("\n")
            lines = (f"{selector}: {head}{compile_slip(head)}", *snippet)
            return FatalError("\n".join(lines))
        expression = criteria.expressions(of_class=failure.of_class)[
            failure.selector
        ]
        published = id_.driver, self.inventory.sources[device].device
        reason = str(failure.error)
        return ExpressionFailure(
            f"{selector} on device {id_}: {words}",
            what="selector",
            owner=owner,
            expression=expression,
            driver=id_.driver,
            device=str(id_),
            reason=reason + key_slip(reason, expression, [published]),
        )


def _of_class(device_class: DeviceClass | None) -> list[str]:
    """The selectors of a class, if there is one."""
    if device_class is None:
        return []
    return [
        selector.cel.expression
        for selector in device_class.spec.selectors
        if selector.cel
    ]
