"""Devices of varied clusters that several nodes reach: of a rack, of four hosts, of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from benchmarks.objects import (
    Json,
    amounts,
    claim_spec,
    consumes,
    device,
    exactly,
    resource_slice,
)
from benchmarks.variety.hardware import class_of, has

__all__ = [
    "BLOCK",
    "FABRIC",
    "HOSTS",
    "LICENCE",
    "block",
    "block_claim",
    "fabric",
    "fabric_claim",
    "licence_claim",
    "licences",
]

FABRIC: Final = "fabric"
LICENCE: Final = "licence"
BLOCK: Final = "block"
"""Types of devices."""

HOSTS: Final = 4
"""Nodes of a block."""

_LANES: Final = 4
"""Devices that a rack has for all its nodes."""

_LICENCES: Final = 3
_SEATS: Final = ("1", "1", "2", "5")
"""Licences that a cluster has, and seats that a pod takes of one."""


def fabric(rack: str, label: str) -> Json:
    """The devices of a rack, which all of its nodes reach: they have the rack's name as ``label``."""
    lanes = [device(f"lane-{lane}", {"type": FABRIC}) for lane in range(_LANES)]
    name = f"fabric-{rack}"
    return _reached(name, _nodes_with(label, [rack]), lanes)


def fabric_claim() -> Json:
    """A claim for a device of the rack."""
    return claim_spec(exactly("lane", class_of(FABRIC)))


def licences(nodes: int) -> Json:
    """Licences with seats (KEP-5075), which all nodes reach; about one seat for two nodes."""
    seats = amounts(seats=str(max(2, nodes // (2 * _LICENCES))))
    products = [
        device(
            f"licence-{index}",
            {"type": LICENCE},
            capacity=seats,
            allowMultipleAllocations=True,
        )
        for index in range(_LICENCES)
    ]
    return _reached("licences", {"allNodes": True}, products)


def licence_claim(random: Random) -> Json:
    """A claim for some seats of a licence."""
    seats = {"requests": {"seats": random.choice(_SEATS)}}
    return claim_spec(exactly("seats", class_of(LICENCE), capacity=seats))


def block(name: str, hosts: Sequence[str], label: str) -> Iterator[Json]:
    """Chips of some hosts that can be used as one device, of which one, two or all of the hosts are (KEP-4815).

    Parameters
    ----------
    name
        The name of the pool.
    hosts
        The names of the nodes, which they have as ``label``, too.
    """
    # One set with a counter per host: the API allows a device no more than two sets.
    chips_of_hosts = {f"host_{index}": "4" for index in range(len(hosts))}
    sets = [{"name": "chips", "counters": amounts(**chips_of_hosts)}]
    yield _reached(name, {"allNodes": True}, [], sharedCounters=sets, slices=2)
    partitions = []
    for size in (1, 2, HOSTS):
        for start in range(0, len(hosts) - size + 1, size):
            members = range(start, start + size)
            drawn = {f"host_{index}": "4" for index in members}
            names = [hosts[host_index] for host_index in members]
            partition = device(
                f"hosts-{size}-{start}",
                {"type": BLOCK, "hosts": size},
                consumesCounters=consumes("chips", amounts(**drawn)),
            )
            partitions.append(partition | _nodes_with(label, names))
    of_each = {"perDeviceNodeSelection": True}
    yield _reached(name, of_each, partitions, slices=2)


def block_claim(hosts: int) -> Json:
    """A claim for a device that so many hosts share."""
    wanted = has("hosts", hosts)
    return claim_spec(exactly("block", class_of(BLOCK), wanted))


def _nodes_with(label: str, values: Sequence[str]) -> Json:
    expression = {"key": label, "operator": "In", "values": list(values)}
    term = {"matchExpressions": [expression]}
    return {"nodeSelector": {"nodeSelectorTerms": [term]}}


def _reached(
    name: str,
    nodes: Mapping[str, object],
    devices: Sequence[Json],
    **spec: Any,
) -> Json:
    """A slice of a pool that is no node's; ``nodes`` are the fields that say who reaches it."""
    kind = "devices" if devices else "counters"
    element = resource_slice(f"{name}-{kind}", "", devices, pool=name, **spec)
    del element["spec"]["nodeName"]
    element["spec"] |= nodes
    return element
