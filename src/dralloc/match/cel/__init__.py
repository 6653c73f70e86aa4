"""CEL selectors of devices, as upstream's device allocator understands them.

`compile_selector` compiles an expression, `convert_device` a device, and `Selector.matches` brings the two together.
The only user of the CEL parser's and the RE2 library.
"""

from __future__ import annotations

from dralloc.api import UNSET, AttributeValue, Unset, Version
from dralloc.match.cel.device import CelDevice, convert_device, device_from_wire
from dralloc.match.cel.failure import explain
from dralloc.match.cel.reads import Reads
from dralloc.match.cel.selector import Selector, compile_selector, estimated_cost

__all__ = [
    "UNSET",
    "AttributeValue",
    "CelDevice",
    "Reads",
    "Selector",
    "Unset",
    "Version",
    "compile_selector",
    "convert_device",
    "device_from_wire",
    "estimated_cost",
    "explain",
]
