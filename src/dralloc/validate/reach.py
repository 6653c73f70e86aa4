"""Which published devices classes and requests accept, whatever is in use: the view that several rules look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from dralloc.api import AttributeValue, Counter, Device, DeviceSelector, DeviceTaint, ResourceSlice
from dralloc.api.tolerating import all_tolerated
from dralloc.inventory.catalog import PublishedDevice
from dralloc.inventory.charges import charge_for
from dralloc.inventory.reach import NodeIndex
from dralloc.match.taint_rules import TaintRules
from dralloc.names import DeviceID
from dralloc.quantity import Quantity
from dralloc.validate.places import Details
from dralloc.validate.pools import Pool, find_pools
from dralloc.validate.rule import ValidationContext
from kubecel import CelCompileError, CelDevice, CelRuntimeError, CelSelector, compile_selector, convert_device

__all__ = ["Offer", "Reach", "find_reach"]


@dataclass(frozen=True, eq=False)
class Offer:
    """A device as the newest generation of its pool publishes it."""

    slice: ResourceSlice
    index: int
    device: Device
    pool: Pool

    @property
    def id(self) -> DeviceID:
        """The device's identity."""
        return DeviceID(*self.pool.id, self.device.name)

    @cached_property
    def cel(self) -> CelDevice:
        """The device as expressions see it."""
        device = self.device
        capacity = {name: entry.value for name, entry in device.capacity.items()}
        return convert_device(self.pool.id.driver, device.attributes, capacity, device.allow_multiple_allocations)

    def attribute(self, name: str) -> AttributeValue | None:
        """A value by its qualified name; the driver's own domain may be left out (KEP-4381)."""
        bare = name.removeprefix(f"{self.pool.id.driver}/")
        return self.device.attributes.get(name, self.device.attributes.get(bare))


class _Verdict(NamedTuple):
    """Whether a selector accepts a device, and why it could not tell."""

    accepts: bool
    failure: str = ""


_YES = _Verdict(accepts=True)
_NO = _Verdict(accepts=False)


@dataclass
class Reach:
    """Answers about all offers. Each selector is evaluated for each device at most once."""

    context: ValidationContext
    _verdicts: dict[str, dict[Offer, _Verdict]] = field(default_factory=dict)
    _of_class: dict[str, list[Offer]] = field(default_factory=dict)
    _failures: dict[tuple[object, ...], list[tuple[int, str]]] = field(default_factory=dict)
    _candidates: dict[tuple[str, ...], list[Offer]] = field(default_factory=dict)

    @cached_property
    def offers(self) -> list[Offer]:
        """Every device."""
        return [
            Offer(slice_, index, device, pool)
            for pool in self.context.view(find_pools)
            for slice_ in pool.slices
            for index, device in enumerate(slice_.spec.devices)
        ]

    @cached_property
    def _nodes(self) -> NodeIndex:
        return NodeIndex(self.context.cluster.nodes)

    @cached_property
    def _rules(self) -> TaintRules:
        rules = self.context.cluster.taint_rules if self.context.features.DeviceTaintRules else ()
        return TaintRules(rules, self.context.cluster.classes)

    def of_class(self, name: str) -> list[Offer]:
        """The devices of a class."""
        if name not in self._of_class:
            found = self.context.cluster.classes.get(name)
            self._of_class[name] = [] if found is None else self.selected(found.spec.selectors, self.offers)
        return self._of_class[name]

    def candidates(self, request: Details) -> list[Offer]:
        """The devices that a request's class and selectors accept."""
        key = (request.device_class_name, *(one.cel.expression for one in request.selectors if one.cel))
        if key not in self._candidates:
            self._candidates[key] = self.selected(request.selectors, self.of_class(request.device_class_name))
        return self._candidates[key]

    def selected(self, selectors: Iterable[DeviceSelector], offers: list[Offer]) -> list[Offer]:
        """Those that every selector accepts."""
        for selector in selectors:
            offers = [offer for offer, verdict in self._judged(selector, offers) if verdict.accepts]
        return offers

    def failures(self, selectors: Sequence[DeviceSelector], offers: list[Offer]) -> list[tuple[int, str]]:
        """The selectors, by index, that fail on devices which those before accept, and how."""
        key = (id(offers), *(one.cel.expression for one in selectors if one.cel))
        if key not in self._failures:
            self._failures[key] = list(self._failing(selectors, offers))
        return self._failures[key]

    def _failing(self, selectors: Sequence[DeviceSelector], offers: list[Offer]) -> Iterator[tuple[int, str]]:
        for index, selector in enumerate(selectors):
            verdicts = list(self._judged(selector, offers))
            failures = [(offer, verdict.failure) for offer, verdict in verdicts if verdict.failure]
            if failures:
                offer, failure = failures[0]
                more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
                yield index, f"fails on device {offer.id}{more}, which ends the allocation: {failure}"
            offers = [offer for offer, verdict in verdicts if verdict.accepts]

    def _judged(self, selector: DeviceSelector, offers: Iterable[Offer]) -> Iterator[tuple[Offer, _Verdict]]:
        expression = selector.cel.expression if selector.cel else ""
        verdicts = self._verdicts.setdefault(expression, {})
        run = compiled(expression)
        for offer in offers:
            verdict = verdicts.get(offer)
            if verdict is None:
                verdict = verdicts[offer] = _evaluate(run, offer)
            yield offer, verdict

    def tolerated(self, request: Details, offers: Iterable[Offer]) -> list[Offer]:
        """Those whose taints the request tolerates."""
        return [offer for offer in offers if all_tolerated(self._taints(offer), request.tolerations)]

    def _taints(self, offer: Offer) -> Sequence[DeviceTaint]:
        if not self.context.features.DeviceTaints:
            return ()
        return (*offer.device.taints, *self._rules.taints(offer.id, lambda: offer.cel))

    def capable(self, request: Details, offers: Iterable[Offer]) -> list[Offer]:
        """Those that have the capacity which the request asks for, as long as nobody else uses it."""
        wanted = request.capacity.requests if request.capacity else {}
        return [offer for offer in offers if not wanted or _serves(offer, wanted)]

    def most_on_a_node(self, offers: Iterable[Offer]) -> int:
        """How many of the devices one node reaches at most."""
        counts = [0] * len(self.context.cluster.nodes)
        for offer in offers:
            spec = offer.slice.spec
            per_device = spec.per_device_node_selection
            nodes = self._nodes.of_device(offer.device) if per_device else self._nodes.of_slice(offer.slice)
            for node in nodes:
                counts[node] += 1
        return max(counts, default=0)


def find_reach(context: ValidationContext) -> Reach:
    """The view of a context."""
    return Reach(context)


def compiled(expression: str) -> CelSelector | None:
    """The selector; None if it does not compile."""
    try:
        return compile_selector(expression)
    except CelCompileError:
        return None


def _evaluate(selector: CelSelector | None, offer: Offer) -> _Verdict:
    if selector is None:
        return _NO
    try:
        return _YES if selector.matches(offer.cel) else _NO
    except CelRuntimeError as failure:
        return _Verdict(accepts=False, failure=str(failure))


def _serves(offer: Offer, wanted: Mapping[str, Quantity]) -> bool:
    numbers: list[tuple[int, str]] = []
    counters: list[Counter] = []
    for consumption in offer.device.consumes_counters:
        published = offer.pool.counters.get(consumption.counter_set)
        for name, consumed in consumption.counters.items():
            if consumed.value_from is not None and published is not None and name in published.counters:
                numbers.append((len(counters), consumed.value_from.capacity_key))
                counters.append(published.counters[name])
    source = PublishedDevice(offer.slice, offer.device, tuple(numbers))
    shareable = offer.device.allow_multiple_allocations
    return charge_for(wanted, source, counters, shareable=shareable) is not None
