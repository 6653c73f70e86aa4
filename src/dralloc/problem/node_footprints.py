"""What devices take of CPU, memory and other resources of the node where they are used (KEP-5517).

Of a resource that devices take something of, each node has a counter. Who asks the node itself for the resource charges
it, and so does every allocation of such a device, for the pod that uses it. The requests of a pod as a whole are the
limit of what its containers and its devices take together (KEP-2837): then its devices charge a counter of the pod, and
nothing of the node. So the ledger, the searches, the model and the checker know these amounts without a word of their
own; only upstream's allocator does not: it looks at devices first, and at what they take of the node in the end.

Amounts are rounded up to what the scheduler counts in, for each allocation. Source:
``framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`` of ``kubernetes/pkg/scheduler``, 1.37.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dralloc.objects.names import ClaimKey, CounterID
from dralloc.objects.quantity import NANOS
from dralloc.problem.indices import (
    AlternativeIndex,
    CounterIndex,
    DeviceIndex,
    Numbered,
    numbered,
)
from dralloc.problem.node_claims import node_resource
from dralloc.problem.problem import Overlay, Problem
from dralloc.problem.requests import Alternative, Charge, Demand
from dralloc.problem.supply import NODE_DRIVER, Counter, Device, NodeFootprint

__all__ = ["PodUse", "before_footprints", "footprint_of", "with_footprints"]

_THOUSANDTH: Final = NANOS // 1000


@dataclass(frozen=True, slots=True)
class PodUse:
    """How a pod uses its claims.

    Parameters
    ----------
    containers
        How many of its containers refer to each claim.
    caps
        What its requests as a whole leave for devices, by resource and in nanos.
    """

    containers: Mapping[ClaimKey, int]
    caps: Mapping[str, int]


def footprint_of(
    parts: Iterable[NodeFootprint], consumed: Mapping[str, int], containers: int
) -> Mapping[str, int] | None:
    """Return the amounts that an allocation takes of its node, by resource and in nanos.

    Parameters
    ----------
    consumed
        What it consumes of the device's capacities.
    containers
        How many containers of the pod use it.

    Returns
    -------
    Mapping or None
        None if it follows a capacity and nothing is consumed of any: the scheduler's attempt ends with an error.
    """
    amounts: dict[str, int] = {}
    for part in parts:
        if part.capacity and not consumed:
            return None
        # Without a capacity each allocation counts once: one, in nanos.
        times = consumed.get(part.capacity, 0) if part.capacity else NANOS
        # What the scheduler counts in: thousandths of a CPU, whole units of everything
        # else.
        unit = _THOUSANDTH if part.resource == "cpu" else NANOS
        amount = (
            -(-part.multiplier * times // NANOS)
            + part.per_pod
            + containers * part.per_container
        )
        amounts[part.resource] = (
            amounts.get(part.resource, 0) + -(-amount // unit) * unit
        )
    return amounts


def with_footprints(
    problem: Problem, pods: Mapping[int, PodUse], copies: int = 1
) -> Problem:
    """The problem in which devices take something of their nodes.

    Parameters
    ----------
    problem
        With node claims (see `dralloc.problem.node_claims`).
    pods
        By demand. A claim that several pods use takes what it does for the first of them.
    copies
        How many there may be of each demand at once.

    Notes
    -----
    A device that several nodes reach takes of none.
    """
    homes = _homes(problem)
    if not homes:
        return problem
    names = {
        part.resource
        for device in homes
        for part in problem.devices[device].footprint
    }
    node_counters = _Counters(problem, names)
    demands = list(problem.demands)
    users: dict[int, _User] = {}
    for demand, use in pods.items():
        capped = {name: cap for name, cap in use.caps.items() if name in names}
        # Its containers alone ask for more than the pod as a whole may have.
        if any(cap < 0 for cap in capped.values()):
            demands[demand] = replace(demands[demand], nodes=())
        ample = (
            _ample_caps(problem, demands[demand], use, capped, homes)
            if copies > 1
            else frozenset()
        )
        limits: dict[str, CounterIndex | None] = dict.fromkeys(ample)
        limits |= node_counters.of_pod(
            demands[demand],
            {name: cap for name, cap in capped.items() if name not in ample},
        )
        for claim in demands[demand].claims:
            for alternative in claim.alternatives():
                users.setdefault(
                    alternative.index,
                    _User(use.containers.get(claim.key, 0), limits),
                )
    return replace(
        problem,
        demands=tuple(demands),
        devices=tuple(node_counters.devices),
        counters=tuple(node_counters.counters),
        usage=replace(problem.usage, consumed=node_counters.consumed),
        eligibility=_Footprints(
            problem.eligibility,
            problem.devices,
            users,
            homes,
            node_counters.of_nodes,
            node_counters.of_device,
        ),
    )


def _ample_caps(
    problem: Problem,
    demand: Demand,
    use: PodUse,
    caps: Mapping[str, int],
    homes: Iterable[DeviceIndex],
) -> frozenset[str]:
    """Return the resources of which a pod's requests as a whole leave enough for any devices that it can get.

    Copies of a demand have one counter in common, and each of them has requests of its own: they need no counter then.
    """
    most: Tally[str] = Tally()
    for claim in demand.claims:
        containers = use.containers.get(claim.key, 0)
        for request in claim.requests:
            if any(choice.count is None for choice in request.alternatives):
                return frozenset()
            of_alternatives = [
                _most_taken(problem, alternative, homes, containers)
                for alternative in request.alternatives
            ]
            most.update(_largest(of_alternatives))
    return frozenset(name for name, cap in caps.items() if most[name] <= cap)


def _most_taken(
    problem: Problem,
    alternative: Alternative,
    homes: Iterable[DeviceIndex],
    containers: int,
) -> Mapping[str, int]:
    """Return what an alternative for a number of devices takes of a node at most, by resource."""
    of_devices = []
    for device in homes:
        charge = problem.eligibility.charge(alternative.index, device)
        if charge is not None:
            recorded = {name: size.nanos for name, size in charge.recorded}
            footprint = problem.devices[device].footprint
            amounts = footprint_of(footprint, recorded, containers)
            of_devices.append(amounts or {})
    device_count = alternative.count or 0
    return {
        name: device_count * amount
        for name, amount in _largest(of_devices).items()
    }


def _largest(footprints: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """Return the largest amount of each resource."""
    largest: dict[str, int] = {}
    for amounts in footprints:
        for name, amount in amounts.items():
            largest[name] = max(largest.get(name, 0), amount)
    return largest


def before_footprints(problem: Problem) -> Problem:
    """The problem as upstream's allocator sees it: devices take nothing of nodes."""
    if not problem.footprint_counters:
        return problem
    unseen = _Unseen(
        problem.eligibility, problem.devices, problem.footprint_counters
    )
    return replace(problem, eligibility=unseen)


def _homes(problem: Problem) -> dict[DeviceIndex, int]:
    """The node of each device that takes something of it."""
    if not any(device.footprint for device in problem.devices):
        return {}
    nodes_of: dict[DeviceIndex, list[int]] = defaultdict(list)
    for node_index, node in numbered(problem.nodes):
        for device in node.devices():
            if problem.devices[device].footprint and problem.on_node(
                device, node_index
            ):
                nodes_of[device].append(node_index)
    # A device that several nodes reach takes nothing of any of them.
    return {
        device: nodes[0]
        for device, nodes in nodes_of.items()
        if len(nodes) == 1
    }


class _Counters:
    """Makes counters of what nodes have of some resources, in the place of capacities, and of requests of pods.

    ``of_nodes``: by node, the counter of each resource. ``of_device``: the same by synthetic device and capacity.
    """

    def __init__(self, problem: Problem, names: Iterable[str]) -> None:
        self.devices = list(problem.devices)
        self.counters = list(problem.counters)
        self.consumed = dict(problem.usage.consumed)
        self.of_nodes: list[dict[str, CounterIndex]] = []
        self.of_device: dict[DeviceIndex, dict[str, CounterIndex]] = {}
        self._group = 1 + max(device.group for device in problem.devices)
        moved = {node_resource(name): name for name in names}
        for node in problem.nodes:
            # What stands for the node itself is alone in its last pool.
            index = node.pools[-1].devices[0]
            scarce = [
                name for name in self.devices[index].capacity if name in moved
            ]
            counters = {
                name: self._add(
                    node.name, "node", name, *self._taken_off(index, name)
                )
                for name in scarce
            }
            self.of_device[index] = counters
            self.of_nodes.append(
                {moved[name]: counter for name, counter in counters.items()}
            )
            # Each node has a group of its own: a counter that is overdrawn closes nothing elsewhere.
            self._group += 1

    def of_pod(
        self, demand: Demand, caps: Mapping[str, int]
    ) -> Mapping[str, CounterIndex]:
        """Counters of what a pod may take beyond its containers, by resource."""
        self._group += 1
        return {
            name: self._add("", str(demand.key), node_resource(name), cap, cap)
            for name, cap in caps.items()
        }

    def _taken_off(self, index: int, name: str) -> tuple[int, int]:
        """The total of a capacity, which the device loses, and what is free of it."""
        device = self.devices[index]
        used = dict(self.consumed.get(device.slot, {}))
        capacities = dict(device.capacity)
        total = capacities.pop(name).total
        free = total - used.pop(name, 0)
        self.consumed[device.slot] = used
        self.devices[index] = replace(
            device, group=self._group, capacity=capacities
        )
        return total, free

    def _add(
        self, pool: str, counter_set: str, name: str, total: int, free: int
    ) -> CounterIndex:
        self.counters.append(
            Counter(
                CounterID(NODE_DRIVER, pool, counter_set, name),
                total,
                free,
                self._group,
            )
        )
        return CounterIndex(len(self.counters) - 1)


@dataclass(frozen=True, slots=True)
class _User:
    """The user of an alternative's devices: its number of containers, and the counters it charges instead of nodes'.

    None stands for a resource of which its requests as a whole are always enough.
    """

    containers: int
    caps: Mapping[str, CounterIndex | None]

    @property
    def key(self) -> Hashable:
        return self.containers, tuple(sorted(self.caps.items()))


@dataclass(eq=False)
class _Footprints(Overlay):
    """The answers about devices that do not mind what these take of nodes, with what they do.

    ``users``: by alternative. ``homes``: by device the node. ``of_nodes``, ``of_device``: as in `_Counters`.
    """

    devices: Numbered[DeviceIndex, Device]
    users: Mapping[int, _User]
    homes: Mapping[DeviceIndex, int]
    of_nodes: Sequence[Mapping[str, CounterIndex]]
    of_device: Mapping[DeviceIndex, Mapping[str, CounterIndex]]
    _known: dict[tuple[int, DeviceIndex], Charge | None] = field(
        default_factory=dict
    )

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        if device not in self.homes and device not in self.of_device:
            return self.base.charge(alternative, device)
        key = alternative, device
        if key not in self._known:
            charge = self.base.charge(alternative, device)
            self._known[key] = (
                None
                if charge is None
                else self._with_counters(charge, alternative, device)
            )
        return self._known[key]

    def _with_counters(
        self, charge: Charge, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        if device in self.of_device:
            return _moved(charge, self.of_device[device])
        user = self.users.get(alternative)
        if user is None:
            return charge
        consumed = {name: amount.nanos for name, amount in charge.recorded}
        amounts = footprint_of(
            self.devices[device].footprint, consumed, user.containers
        )
        if amounts is None:
            return None
        # A pod with requests of its own charges its counter, and not the node's: these
        # have been taken off the node already.
        counters: dict[str, CounterIndex | None] = {
            **self.of_nodes[self.homes[device]],
            **user.caps,
        }
        footprint = tuple(
            (counter, amount)
            for name, amount in amounts.items()
            if amount and (counter := counters.get(name)) is not None
        )
        return replace(charge, counters=(*charge.counters, *footprint))

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        key, user = (
            self.base.request_key(alternative),
            self.users.get(alternative),
        )
        return key if user is None else (key, user.key)

    def device_key(self, device: DeviceIndex) -> Hashable:
        key = self.base.device_key(device)
        if device in self.homes:
            return key, self.homes[device], self.devices[device].footprint
        return (key, device) if self.of_device.get(device) else key


def _moved(charge: Charge, counters: Mapping[str, CounterIndex]) -> Charge:
    """The charge of a synthetic device that has counters in the place of some capacities."""
    capacity = []
    counted = []
    for name, amount in charge.capacity:
        if name in counters:
            counted.append((counters[name], amount))
        else:
            capacity.append((name, amount))
    return Charge(tuple(capacity), tuple(counted))


@dataclass(eq=False)
class _Unseen(Overlay):
    """The answers about devices, as if these took nothing of nodes."""

    devices: Numbered[DeviceIndex, Device]
    of_nodes: frozenset[int]

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        charge = self.base.charge(alternative, device)
        if (
            charge is None
            or not charge.counters
            or self.devices[device].id.driver == NODE_DRIVER
        ):
            return charge
        of_devices = [
            (counter, amount)
            for counter, amount in charge.counters
            if counter not in self.of_nodes
        ]
        return replace(charge, counters=tuple(of_devices))
