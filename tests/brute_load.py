"""What parts of an answer take together, for the exhaustive search: whether they fit, and what they still owe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dralloc.objects.names import ClaimKey, RequestName
from dralloc.problem import (
    Alternative,
    Charge,
    Constraint,
    ConstraintKind,
    CounterIndex,
    Demand,
    Device,
    DeviceIndex,
    NodeIndex,
    Problem,
)

__all__ = [
    "NOTHING",
    "Load",
    "bound",
    "got",
    "granted",
    "in_the_end",
    "joined",
    "left_out",
    "placed",
    "taken",
    "visiting",
]

CapacityOf = tuple[int, str]
"""A capacity of the device in a slot."""
Drawn = tuple[int, str, int]
"""The same with the total that the version says from which it is taken."""
Amounts = frozenset[tuple[Drawn | int, int]]
"""Of capacities, and of counters charged by request by index."""
Full = frozenset[tuple[CapacityOf, int]]
"""Capacities with the amounts, of which in the end others must exceed one without admin access."""


class Load(NamedTuple):
    """What grants take together.

    ``held``: slots of dedicated devices. ``owned``: these devices in the version that is taken. ``opened``: shareable
    devices in use. ``amounts``: what these consume.

    ``admin``: shareable devices granted with admin access, and ``admin_amounts``: what these consume; only known as
    long as their demand is not complete, because nobody else minds them.

    ``full``: what ``All`` has left out. ``homes``: claims of several demands, with the node that they are allocated
    for and the devices. ``visits``: the nodes of the other demands that list such a claim.

    ``charged``: devices with counters of theirs that are charged by request.

    ``got``: what claims have under constraints over several claims. ``bound``: these constraints, each with the name of
    what it is over, for each claim of a demand that is placed.
    """

    held: frozenset[int] = frozenset()
    owned: frozenset[DeviceIndex] = frozenset()
    opened: frozenset[DeviceIndex] = frozenset()
    amounts: Amounts = frozenset()
    admin: frozenset[DeviceIndex] = frozenset()
    admin_amounts: Amounts = frozenset()
    full: frozenset[Full] = frozenset()
    homes: frozenset[tuple[ClaimKey, NodeIndex, frozenset[DeviceIndex]]] = (
        frozenset()
    )
    visits: frozenset[tuple[ClaimKey, NodeIndex]] = frozenset()
    charged: frozenset[tuple[int, int]] = frozenset()
    got: frozenset[tuple[ClaimKey, RequestName, DeviceIndex]] = frozenset()
    bound: frozenset[tuple[str, ClaimKey, Constraint]] = frozenset()


NOTHING = Load()


def taken(
    problem: Problem, alternative: Alternative, device: DeviceIndex
) -> Load:
    """What one grant takes."""
    known, charge = (
        problem.devices[device],
        _charge(problem, alternative, device),
    )
    amounts: Counter[Drawn | int] = Counter()
    for name, amount in charge.capacity:
        amounts[known.slot, name, known.capacity[name].total] += amount
    if alternative.admin:
        own = frozenset({device} if known.shareable else ())
        return Load(admin=own, admin_amounts=frozenset(amounts.items()))
    for counter, amount in charge.counters:
        amounts[counter] += amount
    if known.shareable:
        charged = frozenset((device, counter) for counter, _ in charge.counters)
        return Load(
            opened=frozenset({device}),
            amounts=frozenset(amounts.items()),
            charged=charged,
        )
    return Load(
        held=frozenset({known.slot}),
        owned=frozenset({device}),
        amounts=frozenset(amounts.items()),
    )


def left_out(
    problem: Problem, alternative: Alternative, devices: Iterable[DeviceIndex]
) -> Load:
    """What must come true where ``All`` does without these shareable devices: little is left of each."""
    full = set()
    for device in devices:
        known = problem.devices[device]
        used = problem.usage.consumed.get(known.slot, {})
        full.add(
            frozenset(
                (
                    (known.slot, name),
                    known.capacity[name].total - used.get(name, 0) - amount,
                )
                for name, amount in _charge(
                    problem, alternative, device
                ).capacity
            )
        )
    return Load(full=frozenset(full))


def granted(
    claim: ClaimKey, node: NodeIndex, devices: Iterable[DeviceIndex]
) -> Load:
    """A claim of several demands is allocated for the node."""
    return Load(homes=frozenset({(claim, node, frozenset(devices))}))


def visiting(claim: ClaimKey, node: NodeIndex) -> Load:
    """A demand on the node wants a claim that is allocated elsewhere."""
    return Load(visits=frozenset({(claim, node)}))


def got(
    claim: ClaimKey, devices: Iterable[tuple[RequestName, DeviceIndex]]
) -> Load:
    """A claim under a constraint over several claims has these devices."""
    return Load(got=frozenset((claim, *pair) for pair in devices))


def bound(demand: Demand) -> Load:
    """The constraints over several claims of a demand that is placed."""
    return Load(
        bound=frozenset(
            (
                f"{scope.group or demand.key} {scope.number}",
                claim.key,
                constraint,
            )
            for claim in demand.claims
            for constraint in claim.constraints
            if (scope := constraint.scope)
        )
    )


def placed(load: Load) -> Load:
    """The load of a complete demand: what admin access takes is forgotten, and ``All`` minds what others take."""
    own = _of_all_versions(load.amounts)
    full = frozenset(
        frozenset((key, limit + own[key]) for key, limit in limits)
        for limits in load.full
    )
    return load._replace(
        admin=frozenset(), admin_amounts=frozenset(), full=full
    )


def joined(problem: Problem, first: Load, second: Load) -> Load | None:
    """What both take; None if they cannot both have it."""
    load = Load(
        held=first.held | second.held,
        owned=first.owned | second.owned,
        opened=first.opened | second.opened,
        amounts=_sum(first.amounts, second.amounts),
        admin=first.admin | second.admin,
        admin_amounts=_sum(first.admin_amounts, second.admin_amounts),
        full=first.full | second.full,
        homes=first.homes | second.homes,
        visits=first.visits | second.visits,
        charged=first.charged | second.charged,
        got=first.got | second.got,
        bound=first.bound | second.bound,
    )
    if first.held & second.held or {claim for claim, *_ in first.homes} & {
        claim for claim, *_ in second.homes
    }:
        return None
    fits = (
        _capacities_fit(problem, load)
        and _counters_fit(problem, load)
        and _reach(problem, load)
    )
    return load if fits and _agree(problem, load) else None


def in_the_end(problem: Problem, load: Load) -> bool:
    """Whether nothing is owed.

    What ``All`` left out is full, every claim that somebody lists is allocated, and there are counters for every device
    that nobody has opened without.
    """
    if not _counters_fit(problem, load, final=True):
        return False
    amounts = _of_all_versions(load.amounts)
    full = all(
        any(amounts[key] > limit for key, limit in limits)
        for limits in load.full
    )
    return full and {claim for claim, _ in load.visits} <= {
        claim for claim, *_ in load.homes
    }


def _charge(
    problem: Problem, alternative: Alternative, device: DeviceIndex
) -> Charge:
    charge = problem.eligibility.charge(alternative.index, device)
    assert charge is not None
    return charge


def _sum(first: Amounts, second: Amounts) -> Amounts:
    if not first or not second:
        return first or second
    amounts = Counter(dict(first))
    for key, amount in second:
        amounts[key] += amount
    return frozenset(amounts.items())


def _capacities_fit(problem: Problem, load: Load) -> bool:
    """No capacity is exceeded without admin access, nor with that of the demand."""
    amounts = dict(load.amounts)
    if not all(_holds(problem, device, amounts) for device in load.opened):
        return False
    together = dict(_sum(load.amounts, load.admin_amounts))
    slots = {problem.devices[device].slot for device in load.admin}
    with_admin = (
        device
        for device in load.opened | load.admin
        if problem.devices[device].slot in slots
    )
    return all(_holds(problem, device, together) for device in with_admin)


def _holds(
    problem: Problem, device: DeviceIndex, amounts: dict[Drawn | int, int]
) -> bool:
    """Whether the grants on this version, and on those with no more than its total, stay within that."""
    known = problem.devices[device]
    used = problem.usage.consumed.get(known.slot, {})
    return all(
        used.get(name, 0)
        + sum(amount for total, amount in drawn if total <= capacity.total)
        <= capacity.total
        for name, capacity in known.capacity.items()
        if (drawn := list(_drawn(amounts, known.slot, name)))
    )


def _drawn(
    amounts: dict[Drawn | int, int], slot: int, name: str
) -> Iterator[tuple[int, int]]:
    """What is taken of a capacity, with the totals of the versions that it is taken from."""
    for key, amount in amounts.items():
        if isinstance(key, tuple) and key[:2] == (slot, name):
            yield key[2], amount


def _of_all_versions(amounts: Amounts) -> Counter[CapacityOf]:
    totals: Counter[CapacityOf] = Counter()
    for key, amount in amounts:
        if isinstance(key, tuple):
            totals[key[:2]] += amount
    return totals


def _counters_fit(problem: Problem, load: Load, *, final: bool = False) -> bool:
    """No counter is exceeded, no group that is overdrawn is opened, and no device is both dedicated and shared."""
    shared = {problem.devices[device].slot for device in load.opened}
    if shared & load.held:
        return False
    counters = Counter(
        {
            CounterIndex(key): amount
            for key, amount in load.amounts
            if isinstance(key, int)
        }
    )
    minded = list(_minded(problem, load, final=final))
    overdrawn = {
        counter.group for counter in problem.counters if counter.free < 0
    }
    if any(
        problem.devices[version].consumes
        and problem.devices[version].group in overdrawn
        for version in minded
    ):
        return False
    for version in load.owned | load.opened:
        for counter, amount in problem.devices[version].consumes:
            beside = (version, counter) in load.charged and problem.devices[
                version
            ].slot not in problem.usage.shares
            if version in minded or beside:
                counters[counter] += amount
    fits = all(
        amount <= problem.counters[counter].free
        for counter, amount in counters.items()
    )
    return fits and _compatible(problem, minded)


def _minded(
    problem: Problem, load: Load, *, final: bool
) -> Iterator[DeviceIndex]:
    """The devices that come into use, in the versions that are taken.

    Who shares a device that is in use asks for no counters. So it is enough if the first one does, who may be yet to
    come: one with a version that has none.
    """
    for device in load.owned | load.opened:
        view = problem.devices[device]
        known = load.opened if final else problem.versions[view.slot]
        opening = (
            other for other in known if problem.devices[other].slot == view.slot
        )
        free = device in load.opened and any(
            _has_no_counters(problem.devices[other]) for other in opening
        )
        if view.slot not in problem.usage.shares and not free:
            yield device


def _has_no_counters(device: Device) -> bool:
    return device.shareable and not device.consumes and not device.compatibility


def _compatible(problem: Problem, versions: Iterable[DeviceIndex]) -> bool:
    """What is in use on a counter set has a compatibility group in common."""
    usage, common = problem.usage, dict(problem.usage.compatibility)
    in_use = [
        device
        for device in problem.devices
        if device.slot in usage.held or device.slot in usage.shares
    ]
    opened = [problem.devices[version] for version in versions]
    for device in (*in_use, *opened):
        for counter_set, groups in device.compatibility:
            common[counter_set] = common.get(counter_set, groups) & groups
    return all(
        common[counter_set]
        for device in opened
        for counter_set, _ in device.compatibility
    )


def _reach(problem: Problem, load: Load) -> bool:
    """Whoever lists a claim of several demands can use its devices."""
    return all(
        problem.usable_from(device, home, node)
        for claim, home, devices in load.homes
        for visited, node in load.visits
        if claim == visited
        for device in devices
    )


def _agree(problem: Problem, load: Load) -> bool:
    """Whether constraints over several claims hold for what these have so far: taking more never mends them."""
    return all(
        _holds_over(problem, load, name)
        for name in {name for name, *_ in load.bound}
    )


def _holds_over(problem: Problem, load: Load, name: str) -> bool:
    forms = {
        claim: constraint
        for over, claim, constraint in load.bound
        if over == name
    }
    any_form = next(iter(forms.values()))
    assert any_form.scope is not None
    value_sets = [*any_form.scope.held]
    for claim, request, device in load.got:
        if claim in forms and forms[claim].covers(request):
            values = problem.devices[device].attributes.get(
                forms[claim].compared(request)
            )
            if values is None:
                return False
            value_sets.append(values)
    if any_form.kind is ConstraintKind.MATCH:
        return len(value_sets) < 2 or any(
            all(value in value_set for value_set in value_sets)
            for value in value_sets[0]
        )
    carried = [value for values in value_sets for value in values or {None}]
    return len(carried) == len(set(carried))
