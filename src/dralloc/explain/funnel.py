"""One request, one node: which devices are excluded by what, until too few are left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dralloc.api import DeviceTaint
from dralloc.explain.offers import Variation
from dralloc.explain.reasons import Cause, Code
from dralloc.explain.scene import Scene
from dralloc.explain.wording import Wording, taint_text
from dralloc.names import ClaimKey
from dralloc.problem import Alternative, Charge, Claim, Device
from dralloc.report import amount

__all__ = ["Exclusion", "Funnel"]

_DETAILED = 3


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why one device cannot serve a request: a label that is the same for many devices, and the particulars."""

    code: Code
    label: str
    detail: str = ""


_ORDER = {code: place for place, code in enumerate(Code)}


class Funnel:
    """Tells the devices of a node apart by what excludes them."""

    def __init__(self, scene: Scene, wording: Wording) -> None:
        self._scene = scene
        self._wording = wording
        self._published: dict[tuple[int, object], Exclusion | None] = {}

    def shortage(self, claim: Claim, alternative: Alternative, node: int) -> Cause | None:
        """Why too few devices are left for a request alone; None if there are enough."""
        exclusions: list[Exclusion] = []
        usable = total = 0
        for device in self._scene.problem.nodes[node].devices():
            if self._scene.problem.on_node(device, node):
                total += 1
                found = self.exclusion(alternative, device)
                usable += found is None
                exclusions += [found] if found is not None else []
        every = alternative.count is None
        if every:
            blocking = [one for one in exclusions if _ORDER[one.code] >= _ORDER[Code.IN_USE]]
            if usable and not blocking:
                return None
            return _cause(claim, alternative, blocking or exclusions, total if not blocking else 0)
        if usable >= (alternative.count or 0):
            return None
        return _cause(claim, alternative, exclusions, total)

    def exclusion(self, alternative: Alternative, device: int) -> Exclusion | None:
        """What keeps a device from an alternative that is alone with it; None if nothing does."""
        published = self._by_look(alternative.index, device)
        if published is not None:
            return published
        return next(self._in_the_way(alternative, device), None)

    def _by_look(self, alternative: int, device: int) -> Exclusion | None:
        key = alternative, self._scene.offers.look(device)
        if key not in self._published:
            self._published[key] = next(self._unfit(alternative, device), None)
        return self._published[key]

    # What the device is, whatever is in use.

    def _unfit(self, alternative: int, device: int) -> Iterator[Exclusion]:
        offers = self._scene.offers
        verdict = offers.selects(alternative, device)
        if verdict is False:
            yield self._unselected(alternative, device)
        elif verdict is not True:
            yield Exclusion(Code.CEL, "a selector fails", str(verdict))
        if offers.charge(alternative, device) is None:
            yield self._too_small(alternative, device)

    def _unselected(self, alternative: int, device: int) -> Exclusion:
        offers = self._scene.offers
        clauses = offers.clauses(alternative)
        for number, clause in enumerate(clauses):
            others = frozenset(range(len(clauses))) - {number}
            if offers.selects(offers.vary(alternative, Variation(without=others)), device) is False:
                if clause.of_class:
                    return Exclusion(Code.CLASS, f"not of class {clause.of_class}", str(clause))
                return Exclusion(Code.SELECTOR, str(clause))
        if offers.knows_selectors:
            return Exclusion(Code.FEATURE, "has binding conditions, and DRADeviceBindingConditions is off")
        return Exclusion(Code.SELECTOR, "selectors")

    def _too_small(self, alternative: int, device: int) -> Exclusion:
        offers = self._scene.offers
        capacity = self._scene.problem.devices[device].capacity
        amounts = offers.amounts(alternative)
        for name, asked in amounts.items():
            others = tuple((other, None) for other in amounts if other != name)
            if offers.charge(offers.vary(alternative, Variation(amounts=others)), device) is None:
                if name not in capacity:
                    return Exclusion(Code.AMOUNT, f"capacity {name}: {asked} asked, the device has none of that name")
                if asked.nanos > capacity[name].total:
                    published = amount(capacity[name].total)
                    return Exclusion(Code.AMOUNT, f"capacity {name}: {asked} asked, the device has {published}")
                return Exclusion(Code.AMOUNT, f"capacity {name}: the device's request policy does not allow {asked}")
        return Exclusion(Code.AMOUNT, "the amounts that are asked are not offered")

    # What is in use.

    def _in_the_way(self, alternative: Alternative, number: int) -> Iterator[Exclusion]:
        device, books = self._scene.problem.devices[number], self._scene.books
        charge = self._scene.offers.charge(alternative.index, number) or Charge()
        taken = device.slot in books.held or (not device.shareable and books.shares.get(device.slot, 0) > 0)
        if taken and not alternative.admin:
            holders = self._wording.holders(books.holders_of_slot(device.slot), amounts=False)
            yield Exclusion(Code.IN_USE, "in use", f"{device.id}: {holders}")
        if not self._scene.offers.admits(alternative.index, number):
            yield self._unadmitted(alternative, number)
        if not alternative.admin:
            yield from self._counters(device, charge)
        yield from self._capacities(alternative, number, charge)

    def _unadmitted(self, alternative: Alternative, number: int) -> Exclusion:
        taints: tuple[DeviceTaint, ...] = self._scene.offers.taints(alternative.index, number)
        if taints:
            named = ", ".join(map(taint_text, taints))
            return Exclusion(Code.TAINT, f"taint {named} is not tolerated")
        if self._scene.problem.features.PartitionableDevices:
            return Exclusion(Code.TAINT, "a taint is not tolerated")
        return Exclusion(Code.FEATURE, "consumes counters, and DRAPartitionableDevices is off")

    def _counters(self, device: Device, charge: Charge) -> Iterator[Exclusion]:
        books, counters = self._scene.books, self._scene.problem.counters
        opening = not books.shares.get(device.slot, 0)
        if opening and device.consumes:
            for index in books.overdrawn():
                if counters[index].group == device.group:
                    yield self._short(device, index, 0)
        needed: dict[int, int] = {}
        for index, wanted in (*(device.consumes if opening else ()), *charge.counters):
            needed[index] = needed.get(index, 0) + wanted
        for index, wanted in needed.items():
            if wanted > books.free[index]:
                yield self._short(device, index, wanted)

    def _short(self, device: Device, index: int, wanted: int) -> Exclusion:
        counter, free = self._scene.problem.counters[index], self._scene.books.free[index]
        holders = self._wording.holders(self._scene.books.holders_of_counter(index))
        left = f"{amount(free)} free of {amount(counter.total)}" if free >= 0 else f"overdrawn by {amount(-free)}"
        need = f"{amount(wanted)} needed, " if wanted else ""
        detail = f"{device.id}: counter {counter.id.counter_set}/{counter.id.counter}: {need}{left}, {holders}"
        return Exclusion(Code.COUNTER, f"counter {counter.id.counter} is short", detail)

    def _capacities(self, alternative: Alternative, number: int, charge: Charge) -> Iterator[Exclusion]:
        device, books = self._scene.problem.devices[number], self._scene.books
        asked = self._scene.offers.amounts(alternative.index)
        for name, wanted in charge.capacity:
            total, consumed = device.capacity[name].total, books.consumed.get(device.slot, {}).get(name, 0)
            if consumed + wanted > total:
                need = self._wording.taken(number, name, asked.get(name), wanted)
                holders = self._wording.holders(books.holders_of_capacity(device.slot, name))
                left = f"{amount(total - consumed)} left of {amount(total)}"
                detail = f"{device.id}: capacity {name}: {need} needed, {left}, {holders}"
                yield Exclusion(Code.CAPACITY, f"capacity {name} is short", detail)


def subject(claim: ClaimKey, alternative: Alternative) -> str:
    """Which request a cause is about."""
    return f"claim {claim}, request {alternative.name}"


def _cause(claim: Claim, alternative: Alternative, exclusions: list[Exclusion], total: int) -> Cause:
    about = subject(claim.key, alternative)
    if not exclusions:
        text = "the node has no devices" if not total else f"only {total} of {alternative.count} devices"
        return Cause(Code.NO_DEVICE, text if not total else "the node has too few devices", about)
    ordered = sorted(exclusions, key=lambda one: _ORDER[one.code])
    left, least = total, alternative.count or 1
    decisive = ordered[-1]
    for one in ordered:
        left -= 1
        if left < least:
            decisive = one
            break
    counts: dict[str, int] = {}
    for one in ordered:
        counts[one.label] = counts.get(one.label, 0) + 1
    same = [one.detail for one in ordered if one.label == decisive.label and one.detail]
    return Cause(
        code=decisive.code,
        text=_words(decisive, least, every=alternative.count is None),
        subject=about,
        devices=counts[decisive.label],
        excluded=tuple(counts.items()),
        details=tuple(same[:_DETAILED]),
    )


def _words(decisive: Exclusion, count: int, *, every: bool) -> str:
    if decisive.code is Code.CLASS:
        return decisive.label.replace("not of", "no device of") if count == 1 else f"too few devices: {decisive.label}"
    if every and _ORDER[decisive.code] >= _ORDER[Code.IN_USE]:
        return f"asks for all devices, and not all can be had: {decisive.label}"
    return decisive.label
