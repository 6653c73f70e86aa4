"""What there is to allocate: newest complete pools, devices in search order, what allocated claims leave of them."""

from __future__ import annotations

from dralloc.compile.inventory.catalog import (
    PublishedDevice,
    compared_values,
    product_name,
    product_names,
)
from dralloc.compile.inventory.inventory import (
    Inventory,
    list_published,
    take_inventory,
)
from dralloc.compile.inventory.pools import NodeSelections, find_reach
from dralloc.compile.inventory.usage import Drift, find_drift, held_results

__all__ = [
    "Drift",
    "Inventory",
    "NodeSelections",
    "PublishedDevice",
    "compared_values",
    "find_drift",
    "find_reach",
    "held_results",
    "list_published",
    "product_name",
    "product_names",
    "take_inventory",
]
