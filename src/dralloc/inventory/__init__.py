"""What there is to allocate: newest complete pools, devices in search order, what allocated claims leave of them."""

from __future__ import annotations

from dralloc.inventory.catalog import Source
from dralloc.inventory.drift import Drift, find_drift
from dralloc.inventory.inventory import Inventory, take_inventory

__all__ = ["Drift", "Inventory", "Source", "find_drift", "take_inventory"]
