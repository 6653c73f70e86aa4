"""What there is to allocate: newest complete pools, devices in search order, what allocated claims leave of them."""

from __future__ import annotations

from dralloc.inventory.catalog import PublishedDevice
from dralloc.inventory.drift import Drift, find_drift
from dralloc.inventory.inventory import Inventory, list_published, take_inventory
from dralloc.inventory.reach import NodeIndex, find_reach
from dralloc.inventory.usage import held_results
from dralloc.inventory.values import compared_values

__all__ = [
    "Drift",
    "Inventory",
    "NodeIndex",
    "PublishedDevice",
    "compared_values",
    "find_drift",
    "find_reach",
    "held_results",
    "list_published",
    "take_inventory",
]
