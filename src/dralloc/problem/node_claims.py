"""CPU, memory and other resources of nodes in the problem's own terms: a synthetic device for each node.

First what demands take beside devices, as claims for one shareable device of each node; then what devices take of the
node on which they are used, as counters (KEP-5517).
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import permutations
from typing import Final

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import (
    ClaimKey,
    CounterID,
    DeviceID,
    PoolID,
    RequestName,
)
from dralloc.objects.quantity import NANOS
from dralloc.problem.indices import (
    AlternativeIndex,
    CounterIndex,
    DemandIndex,
    DeviceIndex,
    Numbered,
    SlotIndex,
    numbered,
)
from dralloc.problem.problem import Overlay, Problem
from dralloc.problem.requests import Alternative, Charge, Claim, Demand, Request
from dralloc.problem.supply import (
    NODE_DRIVER,
    Capacity,
    Counter,
    Device,
    Node,
    NodeFootprint,
    PoolAccess,
    PoolState,
)

__all__ = [
    "NodeStock",
    "PodUse",
    "before_footprints",
    "footprint_of",
    "node_resource",
    "resource_of",
    "with_footprints",
    "with_node_claims",
]

# ----------------------------------------------------------------------------
# What demands take of their nodes beside devices, as claims for one shareable device
# that each node has.
#
# CPU, memory, places for pods, ports: whatever a node has so much of and pods use up
# is a consumable capacity (KEP-5075) of one synthetic device per node. A demand takes
# a share of it by one synthetic claim more, its first. So the ledger, the searches,
# the model and the checker know these amounts without a word of their own. No answer
# shows them.

_PREFIX: Final = "node "
"""Of names, as no capacity of a device can have them: caps mean devices only."""

Amounts = Mapping[str, int]

_Profile = tuple[tuple[str, int], ...]
"""What a demand takes of its node, by name and in nanos."""


def node_resource(resource: str) -> str:
    """Return the name of a node's resource among the capacities of its synthetic device."""
    return f"{_PREFIX}{resource}"


def resource_of(name: str) -> str:
    """The resource of nodes that a name stands for; empty if it stands for something else."""
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""


@dataclass(frozen=True, slots=True)
class NodeStock:
    """The amounts that a node has for pods, by name and in nanos; a resource that is not listed is unlimited.

    Parameters
    ----------
    total
        All that there is.
    used
        What each pod on the node takes of it.
    """

    total: Amounts
    used: Mapping[ClaimKey, Amounts]

    def taken(self, name: str) -> int:
        """Return the amounts that all pods on the node take together."""
        return sum(amounts.get(name, 0) for amounts in self.used.values())


def with_node_claims(
    devices_only: Problem,
    stocks: Sequence[NodeStock],
    amounts_by_demand: Mapping[DemandIndex, Amounts],
    always: frozenset[str] = frozenset(),
    copies: int = 1,
) -> Problem:
    """The problem in which demands also take something of their nodes.

    Parameters
    ----------
    stocks
        By node.
    amounts_by_demand
        What demands take, by index.
    always
        What others take something of, too, so that it is never left out.
    copies
        How many there may be of each demand at once.

    Notes
    -----
    What can never run short on a node is left out there: of which it has enough for all demands together, or of which
    every demand takes a smaller part than of something else. If nothing is left, the problem stays as it is.
    """
    # Demands that take the same have one synthetic alternative: thousands of pods have few profiles.
    profiles: dict[_Profile, int] = {}
    profile_of: dict[int, int] = {}
    for demand, amounts in amounts_by_demand.items():
        profile = tuple(sorted(item for item in amounts.items() if item[1] > 0))
        profile_of[demand] = profiles.setdefault(profile, len(profiles))
    times = {
        profile: copies * demand_count
        for profile, demand_count in Tally(profile_of.values()).items()
    }
    scarcity = _Scarcity([dict(profile) for profile in profiles], times)
    limits = []
    for stock in stocks:
        required = {
            name: amount
            for name, amount in stock.total.items()
            if name in always
        }
        limits.append({**scarcity.limits(stock), **required})
    scarce = frozenset(name for limit in limits for name in limit)
    charges = [_only(profile, scarce) for profile in profiles]
    if not any(charges) and not always:
        return devices_only
    requests = [
        _request(profile) if amounts else None
        for profile, amounts in enumerate(charges)
    ]
    first_device = len(devices_only.devices)
    devices = _node_devices(devices_only, limits)
    usage = devices_only.usage
    shares = dict(usage.shares)
    consumed = dict(usage.consumed)
    for device, stock, limit in zip(devices, stocks, limits, strict=True):
        # A node is in use before any pod is: it is never opened, whatever counts opened devices.
        shares[device.slot] = 1 + len(stock.used)
        consumed[device.slot] = {name: stock.taken(name) for name in limit}
    nodes = []
    for node_index, node in enumerate(devices_only.nodes):
        pool = PoolAccess(
            PoolID(NODE_DRIVER, node.name),
            PoolState.USABLE,
            (DeviceIndex(first_device + node_index),),
        )
        nodes.append(Node(node.name, (*node.pools, pool)))
    return replace(
        devices_only,
        demands=tuple(
            _asking(demand, requests[profile_of[demand_index]])
            if demand_index in profile_of
            else demand
            for demand_index, demand in enumerate(devices_only.demands)
        ),
        nodes=tuple(nodes),
        devices=(*devices_only.devices, *devices),
        usage=replace(usage, shares=shares, consumed=consumed),
        eligibility=_NodeClaims(
            devices_only.eligibility,
            first_device,
            tuple(charges),
            tuple(map(frozenset, limits)),
        ),
    )


def _only(profile: _Profile, names: frozenset[str]) -> _Profile:
    """Return a profile's amounts of the resources with these names."""
    return tuple((name, amount) for name, amount in profile if name in names)


def _request(profile: int) -> Request:
    """The request of a synthetic claim for what a profile takes."""
    name = RequestName("node")
    return Request("node", (Alternative(_index(profile), name, 0, 1),))


def _node_devices(
    devices_only: Problem, limits: Sequence[Amounts]
) -> tuple[Device, ...]:
    """A synthetic device for each node, with a slot and a group of its own: what is taken of it concerns one node."""
    slots = [device.slot for device in devices_only.devices]
    groups = [device.group for device in devices_only.devices]
    groups += [counter.group for counter in devices_only.counters]
    first_slot = 1 + max(slots, default=-1)
    first_group = 1 + max(groups, default=-1)
    return tuple(
        _device(
            node.name,
            SlotIndex(first_slot + node_index),
            first_group + node_index,
            limits[node_index],
        )
        for node_index, node in enumerate(devices_only.nodes)
    )


def _asking(demand: Demand, request: Request | None) -> Demand:
    """The demand with its synthetic claim: the first, as one look at it tells whether the node will do."""
    if not request:
        return demand
    claim = Claim(
        ClaimKey(demand.key.namespace, f"{demand.key.name}/node"),
        "",
        (request,),
        is_synthetic=True,
    )
    return replace(demand, claims=(claim, *demand.claims))


def _index(profile: int) -> AlternativeIndex:
    """The index of the synthetic alternative of a profile: below those of all others. It is its own inverse."""
    return AlternativeIndex(-1 - profile)


def _device(node: str, slot: SlotIndex, group: int, limits: Amounts) -> Device:
    capacity = {name: Capacity(name, limit) for name, limit in limits.items()}
    return Device(
        DeviceID(NODE_DRIVER, node, "node"),
        slot,
        group,
        True,
        capacity,
        (),
        {},
        None,
    )


class _Scarcity:
    """Tells which amounts can run short on a node.

    Parameters
    ----------
    profiles
        What demands take of their node.
    times
        How many demands there are of each profile.
    """

    def __init__(
        self, profiles: Sequence[Amounts], times: Mapping[int, int]
    ) -> None:
        self._names = sorted({name for profile in profiles for name in profile})
        self._all_demands: dict[str, int] = defaultdict(int)
        for profile, count in times.items():
            for name, amount in profiles[profile].items():
                self._all_demands[name] += count * amount
        self._parts = {
            (name, limiting): _largest_part(profiles, name, limiting)
            for name, limiting in permutations(self._names, 2)
        }
        # Nodes with the same stock have the same limits.
        self._limits_by_stock: dict[
            tuple[tuple[str, int, int], ...], Amounts
        ] = {}

    def limits(self, stock: NodeStock) -> Amounts:
        """Of what can run short, all that the node has."""
        key = tuple(
            (name, stock.total[name], stock.taken(name))
            for name in self._names
            if name in stock.total
        )
        if key not in self._limits_by_stock:
            free = {name: total - used for name, total, used in key}
            scarce = self._scarce(free)
            self._limits_by_stock[key] = {
                name: stock.total[name] for name in scarce
            }
        return self._limits_by_stock[key]

    def _scarce(self, free: Amounts) -> list[str]:
        """The resources that can run short, given what is free of each."""
        scarce = [
            name
            for name, amount in free.items()
            if amount < self._all_demands[name]
        ]
        # One after the other: of two that run out together, one has to stay.
        for name in list(scarce):
            for limiting in scarce:
                if limiting != name and self._runs_out_before(
                    limiting, name, free
                ):
                    scarce.remove(name)
                    break
        return scarce

    def _runs_out_before(self, limiting: str, name: str, free: Amounts) -> bool:
        """Whether the limiting resource runs out first: while it lasts, there is enough of the other resource.

        If nobody takes more than p of the one for each unit of the limiting one, all who share what is free of the
        limiting one, f, take p f of the other at most.
        """
        part = self._parts[name, limiting]
        return (
            part is not None
            and free[limiting] > 0
            and part * free[limiting] <= free[name]
        )


def _largest_part(
    profiles: Sequence[Amounts], name: str, limiting: str
) -> Fraction | None:
    """The most that a profile takes for each unit of the limiting resource; None if one takes nothing of that."""
    taking = [profile for profile in profiles if profile.get(name, 0)]
    if not all(profile.get(limiting, 0) for profile in taking):
        return None
    parts = (Fraction(profile[name], profile[limiting]) for profile in taking)
    return max(parts, default=Fraction(0))


@dataclass(eq=False)
class _NodeClaims(Overlay):
    """The answers about devices, and those about nodes: a request for a node gets that node, and no other does.

    ``first``: the index of the first synthetic device. ``charges``: by profile, what it takes. ``limited``: by
    synthetic device, what it has an end of.
    """

    first: int
    charges: Sequence[_Profile]
    limited: Sequence[frozenset[str]]

    def selects(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool | AllocationError:
        if alternative < 0 or device >= self.first:
            return alternative < 0 and device >= self.first
        return self.base.selects(alternative, device)

    def admits(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        return alternative < 0 or self.base.admits(alternative, device)

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        if alternative >= 0:
            return (
                self.base.charge(alternative, device)
                if device < self.first
                else None
            )
        if device < self.first:
            return None
        limited = self.limited[device - self.first]
        return Charge(_only(self.charges[_index(alternative)], limited))

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        return (
            (NODE_DRIVER, alternative)
            if alternative < 0
            else self.base.request_key(alternative)
        )

    def device_key(self, device: DeviceIndex) -> Hashable:
        if device < self.first:
            return self.base.device_key(device)
        return NODE_DRIVER, self.limited[device - self.first]


# ----------------------------------------------------------------------------
# What devices take of CPU, memory and other resources of the node where they are used
# (KEP-5517).
#
# Of a resource that devices take something of, each node has a counter. Who asks the
# node itself for the resource charges it, and so does every allocation of such a
# device, for the pod that uses it. The requests of a pod as a whole are the limit of
# what its containers and its devices take together (KEP-2837): then its devices
# charge a counter of the pod, and nothing of the node. So the ledger, the searches,
# the model and the checker know these amounts without a word of their own; only
# upstream's allocator does not: it looks at devices first, and at what they take of
# the node in the end.
#
# Amounts are rounded up to what the scheduler counts in, for each allocation. Source:
# ``framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`` of
# ``kubernetes/pkg/scheduler``, 1.37.

_THOUSANDTH: Final = NANOS // 1000
Counters = tuple[tuple[CounterIndex, int], ...]


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


def with_footprints(problem: Problem, pods: Mapping[int, PodUse]) -> Problem:
    """The problem in which devices take something of their nodes.

    Parameters
    ----------
    problem
        With node claims (see `dralloc.problem.node_claims`).
    pods
        By demand. A claim that several pods use takes what it does for the first of them.

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
        limits = node_counters.of_pod(demands[demand], capped)
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
    """The user of an alternative's devices: its number of containers, and the counters it charges instead of nodes'."""

    containers: int
    caps: Mapping[str, CounterIndex]

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
        counters = {**self.of_nodes[self.homes[device]], **user.caps}
        footprint = tuple(
            (counters[name], amount)
            for name, amount in amounts.items()
            if amount and name in counters
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
