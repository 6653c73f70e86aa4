"""Rules about what all claims together take of a device, its capacities and its counters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from dralloc.check.problem.view import Use, View, amount
from dralloc.objects.names import DeviceID

__all__ = [
    "capacities_suffice",
    "counter_sets_have_a_common_group",
    "counters_suffice",
    "dedicated_devices_have_one_owner",
    "overdrawn_groups_are_closed",
]


def dedicated_devices_have_one_owner(view: View) -> Iterator[str]:
    """A dedicated device belongs to one claim, new or allocated; admin access does not count (KEP-4381, KEP-5018)."""
    usage = view.problem.usage
    for slot, uses in view.by_slot.items():
        owners = [use for use in uses if not use.alternative.admin]
        for use in owners:
            if slot in usage.held:
                yield f"{use}: held by an allocated claim"
            if slot in usage.shares and not use.device.shareable:
                yield f"{use}: dedicated, but shared by {usage.shares[slot]} allocated claims"
        if len(owners) > 1 and any(not use.device.shareable for use in owners):
            claims = ", ".join(str(use.claim.key) for use in owners)
            yield f"device {owners[0].device.id}: dedicated, but granted {len(owners)} times: to {claims}"


def capacities_suffice(view: View) -> Iterator[str]:
    """Of a shareable device no more capacity is consumed than it has (KEP-5075).

    Admin access holds nothing once it is allocated: what it takes counts beside the other grants of its demand, but not
    beside those of other demands (upstream behaviour).
    """
    for slot, uses in view.by_slot.items():
        yield from _capacities(
            view, slot, [use for use in uses if not use.alternative.admin]
        )
        for demand in sorted({use.demand for use in uses if use.alternative.admin}):
            within = f" in demand {view.problem.demands[demand].key} with admin access"
            yield from _capacities(
                view, slot, [use for use in uses if use.demand == demand], within
            )


def _capacities(
    view: View, slot: int, uses: list[Use], within: str = ""
) -> Iterator[str]:
    """What these grants take together of one device.

    While its pool is updated, versions of the device can have different totals, and for a grant only the version is
    in force that its node sees (upstream behaviour). There is an order in which every grant fits if those on the
    versions with no more than a total stay within that total.
    """
    for use in {use.device_index: use for use in uses if use.device.shareable}.values():
        same = [one for one in uses if one.device_index == use.device_index]
        for name in sorted(
            {
                name
                for use in same
                if use.charge is not None
                for name, _ in use.charge.capacity
            }
        ):
            known = use.device.capacity.get(name)
            counted = (
                [one for one in uses if _total(one, name) <= known.total]
                if known
                else same
            )
            taken = view.capacity_taken(slot, name, counted)
            if known is None:
                yield f"device {use.device.id}: charged {amount(taken)} of a capacity {name} that it lacks{within}"
            elif taken > known.total:
                total = amount(known.total)
                yield f"device {use.device.id}: capacity {name}: {amount(taken)} taken of {total}{within}"


def _total(use: Use, name: str) -> int:
    known = use.device.capacity.get(name)
    return known.total if known else 0


def counters_suffice(view: View) -> Iterator[str]:
    """No counter is charged more than is free.

    A device charges its counters once, when it comes into use (KEP-4815); what is charged by request counts for every
    grant, beside what the device charges (KEP-5941). Admin access charges nothing.
    """
    charges: dict[int, list[tuple[int, DeviceID]]] = defaultdict(list)
    in_force = frozenset(view.in_force)
    opening = (
        use
        for slot in view.opened
        for use in view.by_slot[slot]
        if not use.alternative.admin
    )
    by_request = {
        (use.device_index, counter)
        for use in opening
        if use.charge
        for counter, _ in use.charge.counters
    }
    for version in dict.fromkeys((*view.in_force, *(index for index, _ in by_request))):
        device = view.problem.devices[version]
        for counter, nanos in device.consumes:
            if version in in_force or (version, counter) in by_request:
                charges[counter].append((nanos, device.id))
    for uses in view.by_slot.values():
        for use in uses:
            if not use.alternative.admin and use.charge is not None:
                for counter, nanos in use.charge.counters:
                    charges[counter].append((nanos, use.device.id))
    for counter, charged in charges.items():
        known, total = (
            view.problem.counters[counter],
            sum(nanos for nanos, _ in charged),
        )
        if total > known.free:
            devices = ", ".join(dict.fromkeys(str(name) for _, name in charged))
            yield f"counter {known.id}: {amount(total)} charged, {amount(known.free)} free: by {devices}"


def overdrawn_groups_are_closed(view: View) -> Iterator[str]:
    """No device that consumes counters comes into use where allocated claims overdraw a counter of its group."""
    overdrawn = {
        counter.group: counter for counter in view.problem.counters if counter.free < 0
    }
    in_force = frozenset(view.in_force) if overdrawn else frozenset()
    for slot in view.opened:
        for use in view.by_slot[slot]:
            counter = overdrawn.get(use.device.group)
            opens = use.device_index in in_force and not use.alternative.admin
            if counter is not None and use.device.consumes and opens:
                yield f"{use}: its counters are closed: counter {counter.id} is overdrawn, {amount(counter.free)} free"


def counter_sets_have_a_common_group(view: View) -> Iterator[str]:
    """What is in use on a counter set has a compatibility group in common (KEP-5963)."""
    common = _common_groups(view)
    members: dict[int, list[tuple[frozenset[str], DeviceID]]] = defaultdict(list)
    for version in view.in_force:
        device = view.problem.devices[version]
        for number, groups in device.compatibility:
            members[number].append((groups, device.id))
    for number, joined in members.items():
        before = common.get(number)
        if not frozenset.intersection(
            *(groups for groups, _ in joined), *([] if before is None else [before])
        ):
            devices = ", ".join(dict.fromkeys(str(name) for _, name in joined))
            beside = "" if before is None else " beside allocated devices"
            yield f"no compatibility group in common on a counter set{beside}: {devices}"


def _common_groups(view: View) -> Mapping[int, frozenset[str]]:
    """By counter set, the groups that allocated devices there have in common."""
    usage = view.problem.usage
    found = dict(usage.compatibility)
    for device in () if view.problem.is_additive else view.problem.devices:
        if device.slot in usage.held or device.slot in usage.shares:
            for number, groups in device.compatibility:
                found[number] = found.get(number, groups) & groups
    return found
