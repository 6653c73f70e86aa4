"""What to do about each kind of cause, in general; what would be enough is found out by trying (see `suggestions`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dralloc.explain.reasons import Code

__all__ = ["ADVICE"]

ADVICE: Final[Mapping[Code, str]] = {
    Code.FULL: "request less of the node or bind the pod to others less, free what others hold, or add a node",
    Code.NODE: "change the pod's node selection, or make the node schedulable",
    Code.ERROR: "correct what the error names",
    Code.CEL: "guard the attribute in the selector, with has() or .?",
    Code.POOL_INVALID: "correct the slices that the driver publishes for the pool",
    Code.POOL_INCOMPLETE: "wait until the driver has published the whole pool",
    Code.NO_DEVICE: "ask for fewer devices, or add nodes with more of them",
    Code.CLASS: "choose another class, or add nodes with devices of this one",
    Code.SELECTOR: "widen the selector, or add nodes with devices that match it",
    Code.FEATURE: "turn the feature gate on",
    Code.AMOUNT: "ask for an amount that the devices offer",
    Code.IN_USE: "release who holds the devices, or add nodes",
    Code.TAINT: "tolerate the taint, or remove it from the devices",
    Code.COUNTER: "ask for a smaller partition, or release who holds the counter",
    Code.GROUPS: "ask for a device of the group in use, or release who uses the counter set",
    Code.CAPACITY: "ask for less, or release who holds the capacity",
    Code.CONSTRAINT: "drop the constraint, or add nodes whose devices meet it",
    Code.TOO_MANY: "divide the devices among several claims",
    Code.TOGETHER: "ask for fewer devices, or release who holds them",
}
"""For every kind of cause one thing to do, in the imperative."""
