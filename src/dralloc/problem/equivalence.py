"""What is equal up to names, so that what was found out for one holds for the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.problem.eligibility import Eligibility
from dralloc.problem.problem import Problem
from dralloc.problem.requests import Claim
from dralloc.problem.supply import Device, Scalar

__all__ = ["Recurrence", "claim_key", "device_traits", "inventory_key", "part_key"]


@dataclass(slots=True)
class Recurrence:
    """Tells where values of the named attributes recur, whatever they are: they are numbered as they appear.

    They may recur under another name, as a constraint may compare different attributes of different requests.
    """

    names: Sequence[str]
    _numbers: dict[Scalar, int] = field(default_factory=dict)

    def of(
        self, attributes: Mapping[str, frozenset[Scalar]]
    ) -> tuple[frozenset[int] | None, ...]:
        """The values of a device by name, None for one that it lacks."""
        return tuple(self._numbered(attributes.get(name)) for name in self.names)

    def _numbered(self, values: frozenset[Scalar] | None) -> frozenset[int] | None:
        if values is None:
            return None
        numbers = self._numbers
        return frozenset(
            numbers.setdefault(value, len(numbers))
            for value in sorted(values, key=repr)
        )


def claim_key(eligibility: Eligibility, claim: Claim) -> Hashable:
    """A canonical key of what a claim asks for.

    Claims with equal keys can be exchanged in any answer: request by request their alternatives get the same answers
    for every device (`Eligibility.request_key`), ask for as many and have the same rank, and constraints of the same
    kind and scope compare the same attributes of the same of them. Names do not matter, but for whether there is a
    choice at all, which upstream counts as a step. Defects are not in the key: their messages are each claim's own.
    """
    request_key = eligibility.request_key
    requests = tuple(
        [
            tuple(
                [
                    (
                        request_key(one.index),
                        one.count,
                        one.rank,
                        one.admin,
                        bool(one.name.sub),
                    )
                    for one in request.alternatives
                ]
            )
            for request in claim.requests
        ]
    )
    if not claim.constraints:
        return requests
    names = [one.name for one in claim.alternatives()]
    covered = [
        (
            each.kind,
            each.scope,
            tuple([each.covers(name) and each.compared(name) for name in names]),
        )
        for each in claim.constraints
    ]
    return requests, tuple(covered)


def device_traits(
    device: Device, number: Callable[[str, int], int] = lambda _, index: index
) -> Hashable:
    """All that rules read of a device itself and that no allocation changes, but for nodes and compared attributes.

    Two devices of one node can be exchanged in any answer if their traits are equal, alternatives get the same answers
    about them (`Eligibility.device_key`, or the charges themselves), and equal values are in use and under constrained
    attributes of them. For the rules read nothing else: who shares the device, what its first use consumes, which group
    of counters closes it, what it excludes (compatibility groups), and the capacities that shares consume.

    Parameters
    ----------
    number
        What a counter, a group or a counter set is called; by default, as in the problem.
    """
    consumes, shareable = device.consumes, device.shareable
    return (
        shareable,
        tuple([(number("counter", counter), amount) for counter, amount in consumes]),
        number("group", device.group) if consumes else None,
        tuple(
            [
                (number("counter set", each), groups)
                for each, groups in device.compatibility
            ]
        ),
        tuple(
            [
                (each.name, each.total, each.consumable)
                for each in device.capacity.values()
            ]
        )
        if shareable
        else (),
    )


def inventory_key(problem: Problem) -> Hashable:
    """A canonical key of all that a small problem has to offer, to demands with the same alternatives.

    Problems with equal keys give equal answers to equal demands, index by index (see `part_key`).
    """
    devices, counters = range(len(problem.devices)), range(len(problem.counters))
    return part_key(
        problem, problem.all_nodes, devices, counters, problem.eligibility.device_key
    )


def part_key(
    problem: Problem,
    nodes: Iterable[int],
    devices: Sequence[int],
    counters: Iterable[int],
    device_key: Callable[[int], Hashable],
) -> Hashable:
    """A canonical key of all that some nodes offer, as far as these devices and counters count.

    Parts with equal keys give equal answers, place by place. That is so because the key holds, in order, everything
    that a rule reads: which devices are one (slots), their traits (`device_traits`), whom they may serve (a
    ``device_key`` as `Eligibility.device_key`, with counters by their place), what is in use of it, and what is in use
    elsewhere on the same counter sets. Of attribute values it only matters where they recur, so they are numbered as
    they appear; so are slots, groups and counter sets.
    """
    usage, views = problem.usage, [problem.devices[device] for device in devices]
    recurrence = Recurrence(
        sorted({name for device in views for name in device.attributes})
    )
    slots: dict[int, int] = {}
    numbers = {("counter", counter): place for place, counter in enumerate(counters)}

    def number(sort: str, index: int) -> int:
        return numbers.setdefault((sort, index), len(numbers))

    offered = tuple(
        [
            (
                device_key(index),
                slots.setdefault(device.slot, len(slots)),
                device_traits(device, number),
                device.nodes,
                device.binds_to_node,
                recurrence.of(device.attributes) if device.attributes else (),
            )
            for index, device in zip(devices, views, strict=True)
        ]
    )
    used = tuple(
        [
            (
                slot in usage.held,
                usage.shares.get(slot, 0),
                tuple(sorted(usage.consumed.get(slot, {}).items())),
            )
            for slot in slots
        ]
    )
    free = tuple(
        [
            (
                problem.counters[index].free,
                numbers.get(("group", problem.counters[index].group), -1),
            )
            for sort, index in numbers
            if sort == "counter"
        ]
    )
    excluded = tuple(
        [
            (place, frozenset.intersection(*problem.groups_in_use[index]))
            for (sort, index), place in numbers.items()
            if sort == "counter set" and index in problem.groups_in_use
        ]
    )
    places = {device: place for place, device in enumerate(devices)}
    pools = tuple(
        [
            tuple(
                [
                    (
                        pool.state,
                        tuple(
                            [places[each] for each in pool.devices if each in places]
                        ),
                    )
                    for pool in one.pools
                ]
            )
            for one in (problem.nodes[node] for node in nodes)
        ]
    )
    return offered, tuple(recurrence.names), used, free, excluded, pools
