"""Why a demand does not fit on a node: what can be said, node by node and over groups of nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from dralloc.problem.ledger import Scarcity

__all__ = ["ADVICE", "Code", "FilterReason", "NodeGroup", "NodeReason", "grouped"]


class Code(StrEnum):
    """Kinds of causes, in the order in which they are looked for."""

    NODE = "node not allowed"
    FULL = "node barred by pods"
    ERROR = "error"
    CEL = "selector error"
    POOL_INVALID = "pool invalid"
    POOL_INCOMPLETE = "pool incomplete"
    NO_DEVICE = "no device"
    CLASS = "class"
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
"""For every kind of cause one thing to do; what would be enough is found out by trying (see `suggestions`)."""


@dataclass(frozen=True, slots=True)
class FilterReason:
    """What rules out one request, or the demand as a whole.

    Parameters
    ----------
    subject
        Claim and request (or subrequest) that it is about; empty for the demand as a whole.
    text
        The rule, in words that are the same for every node it applies to.
    devices
        How many devices of the node it excludes; 0 if it is not about single devices.
    excluded
        All exclusions in the filter trace of the request with the number of devices, this one included.
    details
        What is particular to the node: amounts, what is free, who holds it.
    """

    code: Code
    text: str
    subject: str = ""
    devices: int = 0
    excluded: tuple[tuple[str, int], ...] = ()
    details: tuple[str, ...] = ()

    @property
    def fatal(self) -> bool:
        """Whether it ends the attempt for every node."""
        return self.code in (Code.ERROR, Code.CEL)

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}" if self.subject else self.text


@dataclass(frozen=True, slots=True)
class NodeReason:
    """What holds for one node: the demand fits, or the causes why not (one for each alternative that is looked at)."""

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
    groups: dict[tuple[tuple[Code, str], ...], list[NodeReason]] = defaultdict(list)
    for reason in reasons:
        if not reason.fits:
            groups[tuple((cause.code, str(cause)) for cause in reason.causes)].append(
                reason
            )
    found = [
        NodeGroup(tuple(one.node for one in members), _summed(members))
        for members in groups.values()
    ]
    return tuple(sorted(found, key=lambda group: -len(group.nodes)))


def _summed(members: list[NodeReason]) -> tuple[FilterReason, ...]:
    return tuple(
        replace(
            cause,
            devices=sum(member.causes[place].devices for member in members),
            excluded=_tally(member.causes[place] for member in members),
        )
        for place, cause in enumerate(members[0].causes)
    )


def _tally(causes: Iterable[FilterReason]) -> tuple[tuple[str, int], ...]:
    counts = Counter[str]()
    for cause in causes:
        counts.update(dict(cause.excluded))
    return tuple(counts.items())
