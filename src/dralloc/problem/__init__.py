"""The hub: what is to be placed and what there is to place it on, as plain frozen data.

A `Problem` is compiled from a cluster once and read by both solvers, by the checker and by the writer. It holds no
YAML, no API objects and no CEL. Amounts are integers in nanos (see `dralloc.objects.quantity`), so nothing is ever
rounded; a solver that needs small numbers divides by a common factor of its own.

Things are referred to by their index in the problem's tuples: demands, devices, nodes, slots, counters and
alternatives by types of their own (`dralloc.problem.indices`). Which device may serve which alternative is asked
through `Eligibility`, because the answer is lazy: first fit must not evaluate a selector for a device that its search
does not reach (KEP-4381 leaves this to the allocator; upstream evaluates on the way).
"""

from __future__ import annotations

from dralloc.objects.names import CounterID
from dralloc.problem.indices import (
    AlternativeIndex,
    CounterIndex,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Numbered,
    SlotIndex,
    indices,
    numbered,
)
from dralloc.problem.problem import Eligibility, Problem
from dralloc.problem.requests import (
    MAX_RESULTS,
    Alternative,
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    ParentGroup,
    Request,
    Scope,
    are_admitted,
    quorum_of,
)
from dralloc.problem.supply import (
    NO_GROUPS,
    Capacity,
    Counter,
    Device,
    Node,
    NodeFootprint,
    PoolAccess,
    PoolState,
    Resource,
    Scalar,
    Usage,
)

__all__ = [
    "MAX_RESULTS",
    "NO_GROUPS",
    "Alternative",
    "AlternativeIndex",
    "Capacity",
    "Charge",
    "Claim",
    "Constraint",
    "ConstraintKind",
    "Counter",
    "CounterID",
    "CounterIndex",
    "Demand",
    "DemandIndex",
    "Device",
    "DeviceIndex",
    "Eligibility",
    "Node",
    "NodeFootprint",
    "NodeIndex",
    "Numbered",
    "ParentGroup",
    "PoolAccess",
    "PoolState",
    "Problem",
    "Request",
    "Resource",
    "Scalar",
    "Scope",
    "SlotIndex",
    "Usage",
    "are_admitted",
    "indices",
    "numbered",
    "quorum_of",
]
