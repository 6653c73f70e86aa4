"""Why a demand does not fit on a node: what can be said, node by node and over groups of nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from dralloc.problem.ledger import Scarcity

__all__ = [
    "ADVICE",
    "Code",
    "FilterReason",
    "NodeGroup",
    "NodeReason",
    "grouped",
]


class Code(StrEnum):
    """Kinds of causes, in the order in which they are looked for."""

    NODE = "node not allowed"
    FULL = "node barred by pods"
    ERROR = "error"
    NO_CLASS = "class missing"
    POOL_INVALID = "pool invalid"
    POOL_INCOMPLETE = "pool incomplete"
    NO_DEVICE = "no device"
    CLASS = "class"
    CEL = "selector error"
    SELECTOR = "selector"
    FEATURE = "feature off"
    AMOUNT = "amount not offered"
    IN_USE = "in use"
    TAINT = "taint"
    COUNTER = "counter short"
    GROUPS = Scarcity.GROUPS.value
    CAPACITY = "capacity short"
    CONSTRAINT = "constraint"
    TOO_MANY = "too many results"
    TOGETHER = "together"


ADVICE: Final[Mapping[Code, str]] = {
    Code.FULL: "lower the requests or relax the affinity of the pod, free what others hold, or add a node",
    Code.NODE: "change the node selection or the tolerations of the pod, or make the node schedulable",
    Code.ERROR: "correct what the message names",
    Code.NO_CLASS: "create the DeviceClass, or name one that exists",
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
"""For every kind of cause one thing to do; what would be enough is found out by trying (see `suggestions`)."""


@dataclass(frozen=True, slots=True)
class FilterReason:
    """The rules that exclude devices for one request, or for the pod or claim as a whole.

    Parameters
    ----------
    text
        The rule, in words that are the same for every node it applies to.
    excluded
        All exclusions in the filter trace of the request with the number of devices, this one included.
    """

    code: Code
    text: str
    subject: str = ""
    """Claim and request that it is about; empty for the whole."""
    devices: int = 0
    """How many devices of the node it excludes."""
    excluded: tuple[tuple[str, int], ...] = ()
    details: tuple[str, ...] = ()
    """What is particular to the node: amounts, what is free, who holds it."""

    @property
    def fatal(self) -> bool:
        """Whether it ends the attempt for every node."""
        return self.code in (Code.ERROR, Code.NO_CLASS, Code.CEL)

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}" if self.subject else self.text


@dataclass(frozen=True, slots=True)
class NodeReason:
    """The result for one node: the demand fits, or the causes why not (one for each alternative that was tried)."""

    node: str
    causes: tuple[FilterReason, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the demand fits on the node."""
        return not self.causes


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are ruled out by the same causes. ``causes`` sums up the devices, with the first node's details."""

    nodes: tuple[str, ...]
    causes: tuple[FilterReason, ...]


def grouped(reasons: Iterable[NodeReason]) -> tuple[NodeGroup, ...]:
    """The nodes that do not fit, by cause, most nodes first."""
    groups: dict[tuple[tuple[Code, str], ...], list[NodeReason]] = defaultdict(
        list
    )
    for reason in reasons:
        if not reason.fits:
            groups[
                tuple((cause.code, str(cause)) for cause in reason.causes)
            ].append(reason)
    node_groups = []
    for members in groups.values():
        nodes = tuple(reason.node for reason in members)
        node_groups.append(NodeGroup(nodes, _summed(members)))
    return tuple(sorted(node_groups, key=lambda group: -len(group.nodes)))


def _summed(members: list[NodeReason]) -> tuple[FilterReason, ...]:
    """The causes of nodes that are ruled out by the same, with the devices of all of them."""
    summed = []
    for causes in zip(*(member.causes for member in members), strict=True):
        devices = sum(cause.devices for cause in causes)
        summed.append(
            replace(causes[0], devices=devices, excluded=_tally(causes))
        )
    return tuple(summed)


def _tally(causes: Iterable[FilterReason]) -> tuple[tuple[str, int], ...]:
    counts = Counter[str]()
    for cause in causes:
        counts.update(dict(cause.excluded))
    return tuple(counts.items())
