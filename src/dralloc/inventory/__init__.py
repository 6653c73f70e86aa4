"""What there is to allocate: newest complete pools, devices in search order, what allocated claims leave of them."""

from __future__ import annotations

from dralloc.inventory.catalog import Source
from dralloc.inventory.inventory import Inventory, take_inventory

__all__ = ["Inventory", "Source", "take_inventory"]
