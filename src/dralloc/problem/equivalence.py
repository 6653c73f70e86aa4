"""Equivalence: keys that are equal for things equal up to their names, so that a result for one holds for the other.

First canonical keys of claims, devices and parts of a problem; then nodes that are equal to a few demands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import RequestName
from dralloc.problem.indices import (
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    SlotIndex,
    indices,
)
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import Eligibility, Problem, renumbered
from dralloc.problem.requests import Charge, Claim, Constraint, Demand, Request
from dralloc.problem.subproblem import places
from dralloc.problem.supply import Device, Node, PoolState, Scalar

__all__ = [
    "NodeClasses",
    "Recurrence",
    "claim_key",
    "device_traits",
    "equivalent_nodes",
    "inventory_key",
]


@dataclass(slots=True)
class Recurrence:
    """Tells where values of the named attributes recur, whatever they are: they are numbered as they appear.

    They may recur under another name, as a constraint may compare different attributes of different requests.

    Parameters
    ----------
    held
        Values that are told apart from all others: constraints compare with them, as allocated devices have them.
    """

    names: Sequence[str]
    held: frozenset[Scalar] = frozenset()
    _numbers: dict[Scalar, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # They get their numbers first, so that these are the same wherever the same values are held.
        for value in sorted(self.held, key=repr):
            self._numbers[value] = len(self._numbers)

    def of(
        self, attributes: Mapping[str, frozenset[Scalar]]
    ) -> tuple[frozenset[int] | None, ...]:
        """The values of a device by name, None for one that it lacks."""
        return tuple(
            self._numbered(attributes.get(name)) for name in self.names
        )

    def _numbered(
        self, values: frozenset[Scalar] | None
    ) -> frozenset[int] | None:
        if values is None:
            return None
        number_of = self._numbers
        return frozenset(
            number_of.setdefault(value, len(number_of))
            for value in sorted(values, key=repr)
        )


def claim_key(eligibility: Eligibility, claim: Claim) -> Hashable:
    """A canonical key of what a claim asks for.

    Claims with equal keys can be exchanged in any answer: request by request their alternatives get the same answers
    for every device (`Eligibility.request_key`), ask for as many and have the same rank, and constraints of the same
    kind and scope compare the same attributes of the same of them. Names do not matter, but for whether there is a
    choice at all, which upstream counts as a step. Defects are not in the key: their messages are each claim's own.
    """
    requests = tuple(
        [_alternatives_key(eligibility, request) for request in claim.requests]
    )
    if not claim.constraints:
        return requests
    names = [alternative.name for alternative in claim.alternatives()]
    return requests, tuple(
        [_constraint_key(constraint, names) for constraint in claim.constraints]
    )


def _alternatives_key(eligibility: Eligibility, request: Request) -> Hashable:
    """Return the key of a request's alternatives, whatever they are called."""
    request_key = eligibility.request_key
    return tuple(
        [
            (
                request_key(alternative.index),
                alternative.count,
                alternative.rank,
                alternative.admin,
                bool(alternative.name.sub),
            )
            for alternative in request.alternatives
        ]
    )


def _constraint_key(
    constraint: Constraint, names: Sequence[RequestName]
) -> Hashable:
    """Return a constraint's part in the key of alternatives with these names: what it compares, or nothing."""
    compared = [
        constraint.covers(name) and constraint.compared(name) for name in names
    ]
    return constraint.kind, constraint.scope, tuple(compared)


def device_traits(
    device: Device,
    number_of: Callable[[str, int], int] = lambda _, index: index,
) -> Hashable:
    """Return all that rules read of a device and that no allocation changes, but for nodes and compared attributes.

    Two devices of one node can be exchanged in any answer if their traits are equal, alternatives get the same answers
    about them (`Eligibility.device_key`, or the charges themselves), and equal values are in use and under constrained
    attributes of them. For the rules read nothing else: who shares the device, what its first use consumes, which group
    of counters closes it, what it excludes (compatibility groups), and the capacities that shares consume.

    Parameters
    ----------
    number_of
        What a counter, a group or a counter set is called; by default, as in the problem.
    """
    consumes, shareable = device.consumes, device.shareable
    consumed = [
        (number_of("counter", counter), amount) for counter, amount in consumes
    ]
    # A device that consumes no counters is never closed by its group.
    group = number_of("group", device.group) if consumes else None
    compatibility = [
        (number_of("counter set", counter_set), groups)
        for counter_set, groups in device.compatibility
    ]
    # Nothing consumes the capacities of a device that one claim has for itself.
    capacities = device.capacity.values() if shareable else ()
    limits = [
        (capacity.name, capacity.total, capacity.consumable)
        for capacity in capacities
    ]
    return (
        shareable,
        tuple(consumed),
        group,
        tuple(compatibility),
        tuple(limits),
    )


def inventory_key(problem: Problem) -> Hashable:
    """A canonical key of all that a small problem has to offer, to demands with the same alternatives.

    Problems with equal keys give equal answers to equal demands, index by index (see `_part_key`).
    """
    devices, counters = (
        indices(problem.devices),
        indices(problem.counters),
    )
    return _part_key(
        problem,
        problem.all_nodes,
        devices,
        counters,
        problem.eligibility.device_key,
    )


def _part_key(
    problem: Problem,
    nodes: Iterable[NodeIndex],
    devices: Sequence[DeviceIndex],
    counters: Iterable[CounterIndex],
    device_key: Callable[[DeviceIndex], Hashable],
) -> Hashable:
    """A canonical key of all that some nodes offer, as far as these devices and counters count.

    Parts with equal keys give equal answers, place by place. That is so because the key holds, in order, everything
    that a rule reads: which devices are one (slots), their traits (`device_traits`), whom they may serve (a
    ``device_key`` as `Eligibility.device_key`, with counters by their place), what is in use of it, and what is in use
    elsewhere on the same counter sets. Of attribute values it only matters where they recur, so they are numbered as
    they appear; so are slots, groups and counter sets. Before all others come those which the problem's demands have to
    match or to avoid because of what is allocated (`Scope.held`): it matters which these are.
    """
    usage, views = (
        problem.usage,
        [problem.devices[device] for device in devices],
    )
    recurrence = Recurrence(
        sorted({name for device in views for name in device.attributes}),
        _held_values(problem),
    )
    slots: dict[SlotIndex, int] = {}
    number_of: dict[tuple[str, int], int] = {
        ("counter", counter): position
        for position, counter in enumerate(counters)
    }

    def number(sort: str, index: int) -> int:
        return number_of.setdefault((sort, index), len(number_of))

    # First the devices. On the way slots, groups and counter sets get their numbers, as they appear, and everything
    # below goes by these.
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
    drawn = [
        CounterIndex(index) for sort, index in number_of if sort == "counter"
    ]
    # A group that can close none of the devices has no number, and does not matter.
    free = tuple(
        [
            (
                problem.counters[counter].free,
                number_of.get(("group", problem.counters[counter].group), -1),
            )
            for counter in drawn
        ]
    )
    excluded = tuple(
        [
            (set_number, frozenset.intersection(*problem.groups_in_use[index]))
            for (sort, index), set_number in number_of.items()
            if sort == "counter set" and index in problem.groups_in_use
        ]
    )
    place_of = places(devices)
    pools = tuple([_pools_key(problem.nodes[node], place_of) for node in nodes])
    return offered, tuple(recurrence.names), used, free, excluded, pools


def _held_values(problem: Problem) -> frozenset[Scalar]:
    """The values that constraints of the demands compare with devices, as devices that are allocated have them."""
    held: set[Scalar] = set()
    for demand in problem.demands if problem.has_scopes else ():
        for claim in demand.claims:
            for constraint in claim.constraints:
                if constraint.scope:
                    held.update(*constraint.scope.held)
    return frozenset(held)


def _pools_key(
    node: Node, place_of: Mapping[DeviceIndex, DeviceIndex]
) -> Hashable:
    """The pools of a node in search order, with the devices of the part by their place in it."""
    pools = []
    for pool in node.pools:
        in_part = [
            place_of[device] for device in pool.devices if device in place_of
        ]
        pools.append((pool.state, tuple(in_part)))
    return tuple(pools)


# ----------------------------------------------------------------------------
# Nodes that are equal to a few demands: what fits on one of them fits on every other.
#
# Two nodes are equivalent if their devices that could serve the demands are equal one
# by one, in search order: they serve the same requests at the same charge, as much is
# left of them, and counters and compared attribute values recur in the same pattern
# (see `dralloc.problem.equivalence`). The names of devices, counters and values do
# not matter, so the n-th device of the one stands for the n-th of the other in any
# answer.
#
# That is only true of *isolated* nodes, none of whose devices, and none of whose
# counters, another node reaches. Devices that choose their own nodes are on no
# isolated node.

_NOTHING = Charge()


@dataclass(frozen=True, slots=True)
class NodeClasses:
    """Classes of equivalent nodes.

    Parameters
    ----------
    groups
        The nodes of each class, in search order: the first stands for the others. Nodes where nothing can happen to the
        demands are in none.
    offers
        For each class a key of what its nodes have, whoever may go there.
    """

    groups: tuple[tuple[NodeIndex, ...], ...]
    offers: tuple[Hashable, ...]


def equivalent_nodes(
    problem: Problem, demands: Sequence[Demand]
) -> NodeClasses | None:
    """Group the nodes by what the demands see of them; None if they are not isolated: rules between pods tie them."""
    if any(demand.roles for demand in demands):
        return None
    survey = _Survey(problem, demands)
    groups: dict[tuple[Hashable, Hashable], list[NodeIndex]] = {}
    for node in problem.all_nodes:
        allowed = survey.allowed(node)
        if any(allowed):
            devices = []
            for device in problem.nodes[node].devices():
                answers = survey.answers(device)
                # A device on which a selector fails can end the search with an error.
                if answers.uses or answers.failing:
                    devices.append((device, answers))
            if not survey.is_isolated(devices):
                return None
            offer = survey.offer(node, devices)
            if offer is not None:
                groups.setdefault((allowed, offer), []).append(node)
    return NodeClasses(
        tuple(map(tuple, groups.values())), tuple(offer for _, offer in groups)
    )


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers about devices with one key: by the alternative's position, whether it is admitted and its charge."""

    uses: tuple[tuple[int, bool, Charge], ...]
    failing: bool
    counters: tuple[CounterIndex, ...]
    """What is charged by request."""


class _Survey:
    def __init__(self, problem: Problem, demands: Sequence[Demand]) -> None:
        self.problem = problem
        self.nodes = [
            None if demand.nodes is None else frozenset(demand.nodes)
            for demand in demands
        ]
        self.alternatives = [
            alternative
            for demand in demands
            for alternative in demand.alternatives()
        ]
        self.asks_for_all = any(
            alternative.count is None for alternative in self.alternatives
        )
        self.considers_all = self.asks_for_all or any(
            alternative.admin for alternative in self.alternatives
        )
        # Whoever asks for no device can be anywhere, whatever a node has.
        self.asks_for_nothing = any(
            not any(demand.alternatives()) for demand in demands
        )
        self.ledger = Ledger(problem)
        self.device_key = problem.eligibility.device_key
        self.known: dict[Hashable, _Answers] = {}
        self.numbers: dict[Hashable, int] = {}
        self.profiles: dict[tuple[int, ...], int] = {}
        self.seen: set[Hashable] = set()

    def allowed(self, node: NodeIndex) -> tuple[bool, ...]:
        """Return, by demand, whether it may go to the node."""
        return tuple(nodes is None or node in nodes for nodes in self.nodes)

    def is_isolated(
        self, devices: Sequence[tuple[DeviceIndex, _Answers]]
    ) -> bool:
        """Whether no node before reaches the same devices, counters or sets, and no device has several versions."""
        resources: set[Hashable] = set()
        for device_index, answers in devices:
            device = self.problem.devices[device_index]
            if (
                device.nodes is not None
                or device.slot in self.problem.several_versions
            ):
                return False
            resources.update(device.resources)
            resources.update(
                [("counter", counter) for counter in answers.counters]
            )
        isolated = self.seen.isdisjoint(resources)
        self.seen |= resources
        return isolated

    def offer(
        self, node: NodeIndex, devices: Sequence[tuple[DeviceIndex, _Answers]]
    ) -> Hashable | None:
        """A key of what the node has for the demands; None if nothing can happen there."""
        pools = self.problem.nodes[node].pools
        # Where a pool cannot be used, a request for all devices is an error, whatever there is.
        closed = self.asks_for_all and any(
            pool.state is not PoolState.USABLE for pool in pools
        )
        usable = [
            (device, answers)
            for device, answers in devices
            if self._is_usable(device, answers)
        ]
        if not (usable or closed or self.asks_for_nothing):
            return None
        counters: dict[CounterIndex, None] = {}
        for device, answers in usable:
            consumes = self.problem.devices[device].consumes
            counters.update(dict.fromkeys(counter for counter, _ in consumes))
            counters.update(dict.fromkeys(answers.counters))
        # Overdrawn counters close devices that do not draw on them, too.
        groups = dict.fromkeys(
            self.problem.devices[device].group for device, _ in usable
        )
        for group in groups:
            counters.update(dict.fromkeys(self.ledger.overdrawn(group)))
        usable_devices = [device for device, _ in usable]
        place_of = places(counters)
        return closed, _part_key(
            self.problem,
            [node],
            usable_devices,
            counters,
            lambda device: self.profile(device, place_of),
        )

    def _is_usable(self, device_index: DeviceIndex, answers: _Answers) -> bool:
        # ``All`` is an error where a device is in use, and admin access asks for devices in use, too.
        if self.considers_all or answers.failing:
            return True
        device = self.problem.devices[device_index]
        return self.ledger.is_free(device) and self.ledger.has_counters(
            device, _NOTHING
        )

    def answers(self, device: DeviceIndex) -> _Answers:
        """Return the answers of all alternatives about a device."""
        key = self.device_key(device)
        if key not in self.known:
            self.known[key] = self._ask(device)
        return self.known[key]

    def _ask(self, device: DeviceIndex) -> _Answers:
        offers, uses, failing = self.problem.eligibility, [], False
        for position, alternative in enumerate(self.alternatives):
            selected = offers.selects(alternative.index, device)
            failing |= isinstance(selected, AllocationError)
            charge = (
                offers.charge(alternative.index, device)
                if selected is True
                else None
            )
            if charge is not None:
                uses.append(
                    (position, offers.admits(alternative.index, device), charge)
                )
        counters = dict.fromkeys(
            counter for _, _, charge in uses for counter, _ in charge.counters
        )
        return _Answers(tuple(uses), failing, tuple(counters))

    def profile(
        self, device: DeviceIndex, counters: dict[CounterIndex, CounterIndex]
    ) -> Hashable:
        """Equal for devices of which the alternatives make the same; counters by their number in the part."""
        answers = self.answers(device)
        key = id(answers), *[counters[counter] for counter in answers.counters]
        if key not in self.profiles:
            uses = tuple(
                (
                    position,
                    admits,
                    charge.capacity,
                    renumbered(charge.counters, counters),
                )
                for position, admits, charge in answers.uses
            )
            self.profiles[key] = self.numbers.setdefault(
                (uses, answers.failing), len(self.numbers)
            )
        return self.profiles[key]
