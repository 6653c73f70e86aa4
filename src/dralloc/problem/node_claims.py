"""What demands take of their nodes beside devices, as claims for one shareable device that each node has.

CPU, memory, places for pods, ports: whatever a node has so much of and pods use up is a consumable capacity (KEP-5075)
of one synthetic device per node. A demand takes a share of it by one synthetic claim more, its first. So the ledger,
the searches, the model and the checker know these amounts without a word of their own. No answer shows them.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey, DeviceID, PoolID, RequestName
from dralloc.problem.eligibility import Overlay
from dralloc.problem.problem import Problem
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


def node_resource(resource: str) -> str:
    """What a resource of nodes is called among the capacities of a synthetic device."""
    return f"{_PREFIX}{resource}"


def resource_of(name: str) -> str:
    """The resource of nodes that a name stands for; empty if it stands for something else."""
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else ""


@dataclass(frozen=True, slots=True)
class NodeStock:
    """What a node has for pods, by name and in nanos; of what is not in it, there is no end.

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
        """What the pods on the node take together."""
        return sum(amounts.get(name, 0) for amounts in self.used.values())


def with_node_claims(
    devices_only: Problem,
    stocks: Sequence[NodeStock],
    asked: Mapping[int, Amounts],
    kept: frozenset[str] = frozenset(),
    copies: int = 1,
) -> Problem:
    """The problem in which demands also take something of their nodes.

    Parameters
    ----------
    stocks
        By node.
    asked
        What demands take, by index.
    kept
        What others take something of, too, so that it is never left out.
    copies
        How many there may be of each demand at once.

    Notes
    -----
    What can never run short on a node is left out there: of which it has enough for all demands together, or of which
    every demand takes a smaller part than of something else. If nothing is left, the problem stays as it is.
    """
    kinds: dict[tuple[tuple[str, int], ...], int] = {}
    taken = {
        demand: tuple(sorted(item for item in each.items() if item[1] > 0))
        for demand, each in asked.items()
    }
    kind_of = {
        demand: kinds.setdefault(each, len(kinds)) for demand, each in taken.items()
    }
    times = Tally(
        {kind: copies * number for kind, number in Tally(kind_of.values()).items()}
    )
    scarcity = _Scarcity([dict(kind) for kind in kinds], times)
    needed = (
        {name: amount for name, amount in stock.total.items() if name in kept}
        for stock in stocks
    )
    limits = [
        {**scarcity.limits(stock), **also}
        for stock, also in zip(stocks, needed, strict=True)
    ]
    scarce = frozenset(name for limit in limits for name in limit)
    wanted = [
        tuple((name, amount) for name, amount in kind if name in scarce)
        for kind in kinds
    ]
    if not any(wanted) and not kept:
        return devices_only
    node = RequestName("node")
    offered = (
        Request("node", (Alternative(_index(kind), node, 0, 1),))
        for kind in range(len(wanted))
    )
    requests = [
        request if each else None for request, each in zip(offered, wanted, strict=True)
    ]
    first, slot = (
        len(devices_only.devices),
        1 + max((one.slot for one in devices_only.devices), default=-1),
    )
    groups = [device.group for device in devices_only.devices] + [
        one.group for one in devices_only.counters
    ]
    group = 1 + max(groups, default=-1)
    names = [node.name for node in devices_only.nodes]
    made = tuple(
        _device(name, slot + place, group, limits[place])
        for place, name in enumerate(names)
    )
    usage = devices_only.usage
    # A node is in use before any pod is: it is never opened, whatever counts opened devices.
    shares = {
        device.slot: 1 + len(stock.used)
        for device, stock in zip(made, stocks, strict=True)
    }
    consumed = {
        device.slot: {name: stock.taken(name) for name in limit}
        for device, stock, limit in zip(made, stocks, limits, strict=True)
    }
    return replace(
        devices_only,
        demands=tuple(
            _asking(demand, requests[kind_of[place]]) if place in kind_of else demand
            for place, demand in enumerate(devices_only.demands)
        ),
        nodes=tuple(
            Node(
                name,
                (
                    *node.pools,
                    PoolAccess(
                        PoolID(NODE_DRIVER, name), PoolState.USABLE, (first + place,)
                    ),
                ),
            )
            for place, (name, node) in enumerate(
                zip(names, devices_only.nodes, strict=True)
            )
        ),
        devices=(*devices_only.devices, *made),
        usage=replace(
            usage,
            shares={**usage.shares, **shares},
            consumed={**usage.consumed, **consumed},
        ),
        eligibility=_NodeClaims(
            devices_only.eligibility,
            first,
            tuple(wanted),
            tuple(map(frozenset, limits)),
        ),
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


def _index(kind: int) -> int:
    """Indices of synthetic alternatives are below those of all others, and so are their own inverse."""
    return -1 - kind


def _device(node: str, slot: int, group: int, limits: Amounts) -> Device:
    capacity = {name: Capacity(name, limit) for name, limit in limits.items()}
    return Device(
        DeviceID(NODE_DRIVER, node, "node"), slot, group, True, capacity, (), {}, None
    )


class _Scarcity:
    """Tells which amounts can run short on a node."""

    def __init__(self, kinds: Sequence[Amounts], times: Mapping[int, int]) -> None:
        self._names = sorted({name for kind in kinds for name in kind})
        self._everything = {
            name: sum(
                number * kinds[kind].get(name, 0) for kind, number in times.items()
            )
            for name in self._names
        }
        self._parts = {
            (name, other): _largest_part(kinds, name, other)
            for name in self._names
            for other in self._names
            if name != other
        }
        self._known: dict[tuple[tuple[str, int, int], ...], Amounts] = {}

    def limits(self, stock: NodeStock) -> Amounts:
        """Of what can run short, all that the node has."""
        key = tuple(
            (name, stock.total[name], stock.taken(name))
            for name in self._names
            if name in stock.total
        )
        if key not in self._known:
            self._known[key] = self._limits(
                {name: total - taken for name, total, taken in key}, stock.total
            )
        return self._known[key]

    def _limits(self, left: Amounts, total: Amounts) -> Amounts:
        kept = {
            name: amount
            for name, amount in left.items()
            if amount < self._everything[name]
        }
        for name in list(kept):
            if any(
                self._runs_out_before(other, name, kept)
                for other in kept
                if other != name
            ):
                del kept[name]
        return {name: total[name] for name in kept}

    def _runs_out_before(self, other: str, name: str, left: Amounts) -> bool:
        """Whether there is enough of something for all who find enough of the other."""
        part = self._parts[name, other]
        return part is not None and left[other] > 0 and part * left[other] <= left[name]


def _largest_part(kinds: Sequence[Amounts], name: str, other: str) -> Fraction | None:
    """What anybody takes of the one at most for each unit of the other; None if somebody takes nothing of the other."""
    taking = [kind for kind in kinds if kind.get(name, 0)]
    if not all(kind.get(other, 0) for kind in taking):
        return None
    return max(
        (Fraction(kind[name], kind[other]) for kind in taking), default=Fraction(0)
    )


@dataclass(eq=False)
class _NodeClaims(Overlay):
    """The answers about devices, and those about nodes: who asks for a node gets it, and nobody else.

    ``first``: the index of the first synthetic device. ``wanted``: by kind of synthetic alternative, what it takes.
    ``limited``: by synthetic device, what it has an end of.
    """

    first: int
    wanted: Sequence[tuple[tuple[str, int], ...]]
    limited: Sequence[frozenset[str]]

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        if alternative < 0 or device >= self.first:
            return alternative < 0 and device >= self.first
        return self.base.selects(alternative, device)

    def admits(self, alternative: int, device: int) -> bool:
        return alternative < 0 or self.base.admits(alternative, device)

    def charge(self, alternative: int, device: int) -> Charge | None:
        if alternative >= 0:
            return (
                self.base.charge(alternative, device) if device < self.first else None
            )
        if device < self.first:
            return None
        limited = self.limited[device - self.first]
        return Charge(
            tuple(
                each for each in self.wanted[_index(alternative)] if each[0] in limited
            )
        )

    def request_key(self, alternative: int) -> Hashable:
        return (
            (NODE_DRIVER, alternative)
            if alternative < 0
            else self.base.request_key(alternative)
        )

    def device_key(self, device: int) -> Hashable:
        if device < self.first:
            return self.base.device_key(device)
        return NODE_DRIVER, self.limited[device - self.first]
