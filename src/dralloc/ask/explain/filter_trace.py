"""One request, one node: which devices are excluded by what, until too few are left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Final, assert_never

from dralloc.ask.context.context import Context
from dralloc.ask.context.offers import Variation
from dralloc.ask.explain.reasons import Code, FilterReason
from dralloc.ask.explain.wording import (
    Wording,
    groups_text,
    request_text,
    taint_text,
)
from dralloc.compile.match.slips import capacity_slip
from dralloc.objects.api import DeviceTaint
from dralloc.objects.report import amount
from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Charge,
    Claim,
    CounterIndex,
    Device,
    DeviceIndex,
    NodeIndex,
)
from dralloc.problem.ledger import Scarcity, Shortage

__all__ = ["FilterTrace"]

_DETAILED: Final = 3
"""Of devices that are excluded alike, so many are described."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why one device cannot serve a request: a label that is the same for many devices, and the particulars."""

    code: Code
    label: str
    detail: Callable[[], str] = field(default=str, compare=False)


_ORDER: Final = {code: rank for rank, code in enumerate(Code)}
"""Exclusions in the order in which they count: what a device is, before what is in use."""


class FilterTrace:
    """Tells the devices of a node apart by what excludes them."""

    def __init__(self, context: Context, wording: Wording) -> None:
        self._context = context
        self._wording = wording
        self._published: dict[tuple[int, object], Exclusion | None] = {}

    def shortage(
        self, claim: Claim, alternative: Alternative, node: NodeIndex
    ) -> FilterReason | None:
        """Return why too few devices are left for a request alone; None if there are enough."""
        exclusions = [
            self._exclusion(alternative, *reached)
            for reached in self._reached(node)
        ]
        groups: dict[Exclusion, list[Exclusion]] = defaultdict(list)
        for exclusion in filter(None, exclusions):
            groups[exclusion].append(exclusion)
        usable, least = exclusions.count(None), alternative.count or 1
        if alternative.count is None:
            # Of all devices that match, one that cannot be had is one too many. Those that do
            # not match are none of them.
            blocking = {
                exclusion: equal
                for exclusion, equal in groups.items()
                if _ORDER[exclusion.code] >= _ORDER[Code.IN_USE]
            }
            if blocking:
                groups, usable, least = blocking, 0, len(exclusions)
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
        text = (
            "the node has too few devices"
            if usable
            else "the node has no devices"
        )
        return FilterReason(
            Code.NO_DEVICE, text, request_text(claim, alternative)
        )

    def _reached(self, node: NodeIndex) -> Iterator[tuple[DeviceIndex, object]]:
        problem, offers = self._context.problem, self._context.offers
        for pool in problem.nodes[node].pools:
            for device, device_key in zip(
                pool.devices, offers.device_keys(pool.devices), strict=True
            ):
                if problem.on_node(device, node):
                    yield device, device_key

    def _exclusion(
        self, alternative: Alternative, device: DeviceIndex, device_key: object
    ) -> Exclusion | None:
        """Return why a device cannot serve an alternative even with nothing else allocated; None if it can."""
        # What is published is the same for all devices of one key; what is in use is not.
        key = alternative.index, device_key
        if key not in self._published:
            self._published[key] = next(
                self._unfit(alternative.index, device), None
            )
        return self._published[key] or next(
            self._in_the_way(alternative, device), None
        )

    # What the device is, whatever is in use.

    def _unfit(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Iterator[Exclusion]:
        offers = self._context.offers
        verdict = offers.selects(alternative, device)
        if verdict is False:
            yield self._unselected(alternative, device)
        elif verdict is not True:
            yield Exclusion(Code.CEL, "a selector fails", partial(str, verdict))
        if offers.charge(alternative, device) is None:
            yield self._too_small(alternative, device)

    def _unselected(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Exclusion:
        offers = self._context.offers
        clauses = offers.clauses(alternative)
        # The first clause that alone excludes the device is blamed.
        for clause_index, clause in enumerate(clauses):
            other_clauses = frozenset(range(len(clauses))) - {clause_index}
            if (
                offers.selects(
                    offers.vary(alternative, Variation(without=other_clauses)),
                    device,
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

    def _too_small(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Exclusion:
        offers = self._context.offers
        capacity = self._context.problem.devices[device].capacity
        amounts = offers.amounts(alternative)
        for name, requested in amounts.items():
            # The amount alone, without any of the others that are asked for.
            unasked = tuple((unmet, None) for unmet in amounts if unmet != name)
            varied = offers.vary(alternative, Variation(amounts=unasked))
            if offers.charge(varied, device) is None:
                if name not in capacity:
                    meant = capacity_slip(name, capacity)
                    return Exclusion(
                        Code.AMOUNT,
                        f"capacity {name}: {requested} asked, the device has none of that name{meant}",
                    )
                if requested.nanos > capacity[name].total:
                    published = amount(capacity[name].total)
                    return Exclusion(
                        Code.AMOUNT,
                        f"capacity {name}: {requested} asked, the device has {published}",
                    )
                return Exclusion(
                    Code.AMOUNT,
                    f"capacity {name}: the device's request policy does not allow {requested}",
                )
        return Exclusion(
            Code.AMOUNT, "the amounts that are asked are not offered"
        )

    # What is in use.

    def _in_the_way(
        self, alternative: Alternative, device_index: DeviceIndex
    ) -> Iterator[Exclusion]:
        device = self._context.problem.devices[device_index]
        charge = (
            self._context.offers.charge(alternative.index, device_index)
            or Charge()
        )
        shortages = list(
            self._context.ledger.shortages(
                device, charge, admin=alternative.admin
            )
        )
        # Taints come between a device that is in use and what else is short, as in upstream's order of checks.
        for shortage in shortages:
            if shortage.scarcity is Scarcity.DEVICE:
                yield self._short(alternative, device_index, shortage)
        if not self._context.offers.admits(alternative.index, device_index):
            yield self._unadmitted(alternative, device_index)
        for shortage in shortages:
            if shortage.scarcity is not Scarcity.DEVICE:
                yield self._short(alternative, device_index, shortage)

    def _short(
        self,
        alternative: Alternative,
        device_index: DeviceIndex,
        shortage: Shortage,
    ) -> Exclusion:
        device = self._context.problem.devices[device_index]
        match shortage.scarcity:
            case Scarcity.COUNTER:
                counter = CounterIndex(int(shortage.subject))
                label = f"counter {self._context.problem.counters[counter].id.counter} is short"
                return Exclusion(
                    Code.COUNTER,
                    label,
                    partial(self._left, device, counter, shortage.requested),
                )
            case Scarcity.CAPACITY:
                name = str(shortage.subject)
                detail = partial(
                    self._full,
                    alternative,
                    device_index,
                    name,
                    shortage.requested,
                )
                return Exclusion(
                    Code.CAPACITY, f"capacity {name} is short", detail
                )
            case Scarcity.GROUPS:
                counter_set = int(shortage.subject)
                label = f"its counter set is in use in other {shortage.scarcity.value}"
                return Exclusion(
                    Code.GROUPS,
                    label,
                    partial(self._clash, device_index, counter_set),
                )
            case Scarcity.DEVICE:
                return Exclusion(
                    Code.IN_USE, "in use", partial(self._held, device)
                )
            case _:
                assert_never(shortage.scarcity)

    def _held(self, device: Device) -> str:
        holders = self._context.ledger.holders_of_device(device.slot)
        return f"{device.id}: {self._wording.holders(holders, amounts=False)}"

    def _unadmitted(
        self, alternative: Alternative, device: DeviceIndex
    ) -> Exclusion:
        taints: tuple[DeviceTaint, ...] = self._context.offers.taints(
            alternative.index, device
        )
        if taints:
            named = ", ".join(map(taint_text, taints))
            return Exclusion(Code.TAINT, f"taint {named} is not tolerated")
        if self._context.problem.features.PartitionableDevices:
            return Exclusion(Code.TAINT, "a taint is not tolerated")
        return Exclusion(
            Code.FEATURE,
            "consumes counters, and DRAPartitionableDevices is off",
        )

    def _left(self, device: Device, index: CounterIndex, needed: int) -> str:
        counter, free = (
            self._context.problem.counters[index],
            self._context.ledger.free[index],
        )
        holders = self._wording.holders(
            self._context.ledger.holders_of_counter(index)
        )
        remainder = (
            f"{amount(free)} free of {amount(counter.total)}"
            if free >= 0
            else f"overdrawn by {amount(-free)}"
        )
        need = f"{amount(needed)} needed, " if needed else ""
        return f"{device.id}: counter {counter.id.counter_set}/{counter.id.counter}: {need}{remainder}, {holders}"

    def _clash(self, device_index: DeviceIndex, counter_set: int) -> str:
        device, ledger = (
            self._context.problem.devices[device_index],
            self._context.ledger,
        )
        device_groups = groups_text(device.groups_on(counter_set))
        users = self._wording.users(ledger.users_of_set(counter_set))
        name = self._wording.counter_set(device_index, counter_set)
        return f"{device.id}: {name} is used {users}; the device is {device_groups}"

    def _full(
        self,
        alternative: Alternative,
        device_index: DeviceIndex,
        name: str,
        needed: int,
    ) -> str:
        device, ledger = (
            self._context.problem.devices[device_index],
            self._context.ledger,
        )
        total, available = (
            device.capacity[name].total,
            ledger.capacity_left(device, name),
        )
        need = self._wording.taken(
            device_index,
            name,
            self._context.offers.amounts(alternative.index).get(name),
            needed,
        )
        holders = self._wording.holders(
            ledger.holders_of_capacity(device.slot, name)
        )
        return f"{device.id}: capacity {name}: {need} needed, {amount(available)} left of {amount(total)}, {holders}"


def _cause(
    subject: str,
    count: int | None,
    excluded: Mapping[Exclusion, list[Exclusion]],
    usable: int,
    least: int,
) -> FilterReason:
    """The exclusion with which fewer than the least are left, with all that are looked for before and after it."""
    # Exclusions are in the order in which they count, so that the first with which too few
    # are left decides; later ones would not have been looked at.
    total = usable + sum(map(len, excluded.values()))
    gone = accumulate(map(len, excluded.values()))
    decisive = next(
        exclusion
        for exclusion, excluded_count in zip(excluded, gone, strict=True)
        if total - excluded_count < least
    )
    equal = excluded[decisive]
    return FilterReason(
        code=decisive.code,
        text=_words(decisive, count),
        subject=subject,
        devices=len(equal),
        excluded=tuple(
            (exclusion.label, len(group))
            for exclusion, group in excluded.items()
        ),
        details=tuple(
            filter(
                None, (exclusion.detail() for exclusion in equal[:_DETAILED])
            )
        ),
    )


def _words(decisive: Exclusion, count: int | None) -> str:
    if decisive.code is Code.CLASS:
        wants_several = count is not None and count > 1
        return (
            f"too few devices: {decisive.label}"
            if wants_several
            else decisive.label.replace("not of", "no device of")
        )
    if count is None and _ORDER[decisive.code] >= _ORDER[Code.IN_USE]:
        return f"asks for all devices, and not all can be had: {decisive.label}"
    return decisive.label
