"""CPU, memory and other resources of nodes in the problem's own terms: a synthetic device for each node.

What demands take of their nodes beside devices, as claims for one shareable device that each node has. What devices
take of the node on which they are used, as counters (KEP-5517), is in `dralloc.problem.node_footprints`.

CPU, memory, places for pods, ports: whatever a node has so much of and pods use up is a consumable capacity (KEP-5075)
of one synthetic device per node. A demand takes a share of it by one synthetic claim more, its first. So the ledger,
the searches, the model and the checker know these amounts without a word of their own. No answer shows them.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from typing import Final

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem.indices import (
    AlternativeIndex,
    DemandIndex,
    DeviceIndex,
    SlotIndex,
)
from dralloc.problem.problem import Overlay, Problem
from dralloc.problem.requests import Alternative, Charge, Claim, Demand, Request
from dralloc.problem.supply import (
    NODE_DRIVER,
    Capacity,
    Device,
    Node,
    PoolAccess,
    PoolState,
)

__all__ = ["NodeStock", "node_resource", "resource_of", "with_node_claims"]

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
