"""What published devices take of the node where they are used (KEP-5517)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dralloc.api import NodeAllocatableMapping, NodeAllocatableOverhead, NodeAllocatableResource
from dralloc.problem import NodeFootprint
from dralloc.quantity import NANOS, Quantity

__all__ = ["footprints"]

_NO_MAPPING = NodeAllocatableMapping()
_NO_OVERHEAD = NodeAllocatableOverhead()


def footprints(resources: Mapping[str, NodeAllocatableResource]) -> Iterator[NodeFootprint]:
    """What a device takes of each resource of its node."""
    for name, entry in resources.items():
        mapping, overhead = entry.mapping or _NO_MAPPING, entry.overhead or _NO_OVERHEAD
        key = mapping.capacity_key or ""
        multiplier = _nanos(mapping.capacity_multiplier, NANOS) if key else _nanos(mapping.device_multiplier)
        yield NodeFootprint(name, key, multiplier, _nanos(overhead.per_pod), _nanos(overhead.per_container))


def _nanos(amount: Quantity | None, absent: int = 0) -> int:
    return absent if amount is None else amount.nanos
