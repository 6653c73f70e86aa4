"""One request, one node: which devices are excluded by what, until too few are left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

from dralloc.ask.context.context import Context
from dralloc.ask.context.offers import Variation
from dralloc.ask.explain.reasons import Code, FilterReason
from dralloc.ask.explain.wording import Wording, groups_text, request_text, taint_text
from dralloc.objects.api import DeviceTaint
from dralloc.objects.report import amount
from dralloc.problem import Alternative, Charge, Claim, Device
from dralloc.problem.ledger import Scarcity, Shortage

__all__ = ["Exclusion", "FilterTrace"]

_DETAILED = 3


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why one device cannot serve a request: a label that is the same for many devices, and the particulars."""

    code: Code
    label: str
    detail: Callable[[], str] = field(default=str, compare=False)


_ORDER = {code: place for place, code in enumerate(Code)}


class FilterTrace:
    """Tells the devices of a node apart by what excludes them."""

    def __init__(self, context: Context, wording: Wording) -> None:
        self._context = context
        self._wording = wording
        self._published: dict[tuple[int, object], Exclusion | None] = {}

    def shortage(
        self, claim: Claim, alternative: Alternative, node: int
    ) -> FilterReason | None:
        """Why too few devices are left for a request alone; None if there are enough."""
        found = [self._exclusion(alternative, *one) for one in self._reached(node)]
        groups: dict[Exclusion, list[Exclusion]] = defaultdict(list)
        for one in filter(None, found):
            groups[one].append(one)
        usable, least = found.count(None), alternative.count or 1
        if alternative.count is None:
            blocking = {
                one: same
                for one, same in groups.items()
                if _ORDER[one.code] >= _ORDER[Code.IN_USE]
            }
            if blocking:
                groups, usable, least = blocking, 0, len(found)
            elif usable:
                return None
        elif usable >= least:
            return None
        if groups:
            excluded = dict(
                sorted(groups.items(), key=lambda item: _ORDER[item[0].code])
            )
            return _cause(
                request_text(claim, alternative),
                alternative.count,
                excluded,
                usable,
                least,
            )
        text = "the node has too few devices" if usable else "the node has no devices"
        return FilterReason(Code.NO_DEVICE, text, request_text(claim, alternative))

    def _reached(self, node: int) -> Iterator[tuple[int, object]]:
        problem, offers = self._context.problem, self._context.offers
        for pool in problem.nodes[node].pools:
            for device, device_key in zip(
                pool.devices, offers.device_keys(pool.devices), strict=True
            ):
                if problem.on_node(device, node):
                    yield device, device_key

    def _exclusion(
        self, alternative: Alternative, device: int, device_key: object
    ) -> Exclusion | None:
        """What keeps a device from an alternative that is alone with it; None if nothing does."""
        key = alternative.index, device_key
        if key not in self._published:
            self._published[key] = next(self._unfit(alternative.index, device), None)
        return self._published[key] or next(self._in_the_way(alternative, device), None)

    # What the device is, whatever is in use.

    def _unfit(self, alternative: int, device: int) -> Iterator[Exclusion]:
        offers = self._context.offers
        verdict = offers.selects(alternative, device)
        if verdict is False:
            yield self._unselected(alternative, device)
        elif verdict is not True:
            yield Exclusion(Code.CEL, "a selector fails", partial(str, verdict))
        if offers.charge(alternative, device) is None:
            yield self._too_small(alternative, device)

    def _unselected(self, alternative: int, device: int) -> Exclusion:
        offers = self._context.offers
        clauses = offers.clauses(alternative)
        for number, clause in enumerate(clauses):
            others = frozenset(range(len(clauses))) - {number}
            if (
                offers.selects(
                    offers.vary(alternative, Variation(without=others)), device
                )
                is False
            ):
                if clause.of_class:
                    return Exclusion(
                        Code.CLASS,
                        f"not of class {clause.of_class}",
                        partial(str, clause),
                    )
                return Exclusion(Code.SELECTOR, f"does not match {clause}")
        if offers.knows_selectors:
            return Exclusion(
                Code.FEATURE,
                "has binding conditions, and DRADeviceBindingConditions is off",
            )
        return Exclusion(Code.SELECTOR, "does not match the selectors")

    def _too_small(self, alternative: int, device: int) -> Exclusion:
        offers = self._context.offers
        capacity = self._context.problem.devices[device].capacity
        amounts = offers.amounts(alternative)
        for name, asked in amounts.items():
            others = tuple((other, None) for other in amounts if other != name)
            if (
                offers.charge(
                    offers.vary(alternative, Variation(amounts=others)), device
                )
                is None
            ):
                if name not in capacity:
                    return Exclusion(
                        Code.AMOUNT,
                        f"capacity {name}: {asked} asked, the device has none of that name",
                    )
                if asked.nanos > capacity[name].total:
                    published = amount(capacity[name].total)
                    return Exclusion(
                        Code.AMOUNT,
                        f"capacity {name}: {asked} asked, the device has {published}",
                    )
                return Exclusion(
                    Code.AMOUNT,
                    f"capacity {name}: the device's request policy does not allow {asked}",
                )
        return Exclusion(Code.AMOUNT, "the amounts that are asked are not offered")

    # What is in use.

    def _in_the_way(self, alternative: Alternative, number: int) -> Iterator[Exclusion]:
        device = self._context.problem.devices[number]
        charge = self._context.offers.charge(alternative.index, number) or Charge()
        shortages = list(
            self._context.ledger.shortages(device, charge, admin=alternative.admin)
        )
        in_use = [one for one in shortages if one.scarcity is Scarcity.DEVICE]
        yield from (self._short(alternative, number, one) for one in in_use)
        if not self._context.offers.admits(alternative.index, number):
            yield self._unadmitted(alternative, number)
        yield from (
            self._short(alternative, number, one)
            for one in shortages
            if one not in in_use
        )

    def _short(
        self, alternative: Alternative, number: int, shortage: Shortage
    ) -> Exclusion:
        device = self._context.problem.devices[number]
        match shortage.scarcity, shortage.what:
            case Scarcity.COUNTER, int(counter):
                label = f"counter {self._context.problem.counters[counter].id.counter} is short"
                return Exclusion(
                    Code.COUNTER,
                    label,
                    partial(self._left, device, counter, shortage.wanted),
                )
            case Scarcity.CAPACITY, str(name):
                detail = partial(self._full, alternative, number, name, shortage.wanted)
                return Exclusion(Code.CAPACITY, f"capacity {name} is short", detail)
            case Scarcity.GROUPS, int(counter_set):
                label = f"its counter set is in use in other {shortage.scarcity.value}"
                return Exclusion(
                    Code.GROUPS, label, partial(self._clash, number, counter_set)
                )
            case _:
                return Exclusion(Code.IN_USE, "in use", partial(self._held, device))

    def _held(self, device: Device) -> str:
        holders = self._context.ledger.holders_of_device(device.slot)
        return f"{device.id}: {self._wording.holders(holders, amounts=False)}"

    def _unadmitted(self, alternative: Alternative, number: int) -> Exclusion:
        taints: tuple[DeviceTaint, ...] = self._context.offers.taints(
            alternative.index, number
        )
        if taints:
            named = ", ".join(map(taint_text, taints))
            return Exclusion(Code.TAINT, f"taint {named} is not tolerated")
        if self._context.problem.features.PartitionableDevices:
            return Exclusion(Code.TAINT, "a taint is not tolerated")
        return Exclusion(
            Code.FEATURE, "consumes counters, and DRAPartitionableDevices is off"
        )

    def _left(self, device: Device, index: int, wanted: int) -> str:
        counter, free = (
            self._context.problem.counters[index],
            self._context.ledger.free[index],
        )
        holders = self._wording.holders(self._context.ledger.holders_of_counter(index))
        left = (
            f"{amount(free)} free of {amount(counter.total)}"
            if free >= 0
            else f"overdrawn by {amount(-free)}"
        )
        need = f"{amount(wanted)} needed, " if wanted else ""
        return f"{device.id}: counter {counter.id.counter_set}/{counter.id.counter}: {need}{left}, {holders}"

    def _clash(self, number: int, counter_set: int) -> str:
        device, ledger = self._context.problem.devices[number], self._context.ledger
        own = groups_text(device.groups_on(counter_set))
        users = self._wording.users(ledger.users_of_set(counter_set))
        return f"{device.id}: {self._wording.counter_set(number, counter_set)} is used {users}; the device is {own}"

    def _full(
        self, alternative: Alternative, number: int, name: str, wanted: int
    ) -> str:
        device, ledger = self._context.problem.devices[number], self._context.ledger
        total, left = device.capacity[name].total, ledger.capacity_left(device, name)
        need = self._wording.taken(
            number,
            name,
            self._context.offers.amounts(alternative.index).get(name),
            wanted,
        )
        holders = self._wording.holders(ledger.holders_of_capacity(device.slot, name))
        return f"{device.id}: capacity {name}: {need} needed, {amount(left)} left of {amount(total)}, {holders}"


def _cause(
    subject: str,
    count: int | None,
    excluded: Mapping[Exclusion, list[Exclusion]],
    usable: int,
    least: int,
) -> FilterReason:
    """The exclusion with which fewer than the least are left, with all that are looked for before and after it."""
    total = usable + sum(map(len, excluded.values()))
    gone = accumulate(map(len, excluded.values()))
    decisive = next(
        one
        for one, number in zip(excluded, gone, strict=True)
        if total - number < least
    )
    same = excluded[decisive]
    return FilterReason(
        code=decisive.code,
        text=_words(decisive, count),
        subject=subject,
        devices=len(same),
        excluded=tuple((one.label, len(group)) for one, group in excluded.items()),
        details=tuple(filter(None, (one.detail() for one in same[:_DETAILED]))),
    )


def _words(decisive: Exclusion, count: int | None) -> str:
    if decisive.code is Code.CLASS:
        several = count is not None and count > 1
        return (
            f"too few devices: {decisive.label}"
            if several
            else decisive.label.replace("not of", "no device of")
        )
    if count is None and _ORDER[decisive.code] >= _ORDER[Code.IN_USE]:
        return f"asks for all devices, and not all can be had: {decisive.label}"
    return decisive.label
