"""First fit's answer for every node, with the first reason that rules it out.

Which devices are excluded by what, for one request on one node, is in `dralloc.ask.explain.filter_trace`; why requests
do not fit together although each of them does alone, in `dralloc.ask.explain.joint_reasons`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from dralloc.ask.explain.filter_trace import FilterTrace
from dralloc.ask.explain.joint_reasons import JointReason
from dralloc.ask.explain.reasons import Code, FilterReason, NodeReason
from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.ask.explain.wording import Wording
from dralloc.objects.errors import NodeError
from dralloc.problem import NodeIndex, PoolState
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.subproblem import Subproblem
from dralloc.solve.first_fit import first_fit

__all__ = ["Diagnosis"]


def _reason_of_error(message: str) -> FilterReason:
    """Return the reason for an error of upstream; what helps is said beside it, as for every reason."""
    if ": CEL " in message:
        return FilterReason(Code.CEL, message.partition(". consider using")[0])
    if ": could not retrieve device class " in message:
        return FilterReason(Code.NO_CLASS, message)
    return FilterReason(Code.ERROR, message)


_PUBLISHED = {Code.NO_DEVICE, Code.CLASS, Code.SELECTOR, Code.AMOUNT}
"""Causes that devices of a pool which cannot be used might have met."""


class Diagnosis:
    """Says for each node whether the demand fits there, and if not, why.

    Equal nodes are searched once. Whether the demand fits is always first fit's own answer.
    """

    def __init__(self, snapshot: DemandSnapshot, wording: Wording) -> None:
        self._snapshot = snapshot
        self._wording = wording
        self._trace = FilterTrace(snapshot.context, wording)
        self._allowed = frozenset(snapshot.nodes)
        self._known: dict[Hashable, bool] = {}
        self._joint: dict[Hashable, FilterReason] = {}

    def reason(self, node: NodeIndex) -> NodeReason:
        """The reason for a node; it has no causes if the demand fits there."""
        return NodeReason(
            self._snapshot.problem.nodes[node].name, self._causes(node)
        )

    def _causes(self, node: NodeIndex) -> tuple[FilterReason, ...]:
        if node not in self._allowed:
            if excluding := self._snapshot.exclusion(node):
                return (FilterReason(Code.NODE, "; ".join(excluding)),)
            bars = self._snapshot.bars_of(node)
            details = tuple(bar.detail for bar in bars if bar.detail)
            return (
                FilterReason(
                    Code.FULL,
                    "; ".join(bar.text for bar in bars),
                    details=details,
                ),
            )
        part = self._snapshot.context.part([node], [self._snapshot.demand])
        demand = self._snapshot.demand.by_itself(nodes=None)
        key = inventory_key(part.problem)
        if key in self._known:
            return () if self._known[key] else self._unfit(node, part, key)
        solution = first_fit(replace(part.problem, demands=(demand,)))
        # Errors name devices of this node, so they are not kept for equal ones.
        error = solution.errors.get(0)
        if error is not None and not isinstance(error, NodeError):
            return (_reason_of_error(str(error)),)
        self._known[key] = bool(solution.placements)
        return () if solution.placements else self._unfit(node, part, key)

    def _unfit(
        self, node: NodeIndex, part: Subproblem, key: Hashable
    ) -> tuple[FilterReason, ...]:
        words = self._pools(node, PoolState.INVALID)[:1]
        invalid = (
            [FilterReason(Code.POOL_INVALID, "pool is invalid", details=words)]
            if words
            else []
        )
        short = self._short(node)
        if not short:
            if key not in self._joint:
                self._joint[key] = JointReason(
                    self._snapshot.context, node, self._snapshot.demand, part
                ).reason()
            return (*invalid, self._joint[key])
        return (*invalid, *self._incomplete(node, short), *short)

    def _incomplete(
        self, node: NodeIndex, short: Sequence[FilterReason]
    ) -> Iterator[FilterReason]:
        # Devices that are not published yet would help only where published ones are missing.
        words = self._pools(node, PoolState.INCOMPLETE)[:3]
        if words and all(cause.code in _PUBLISHED for cause in short):
            yield FilterReason(
                Code.POOL_INCOMPLETE, "a pool is incomplete", details=words
            )

    def _pools(self, node: NodeIndex, state: PoolState) -> tuple[str, ...]:
        pools = self._snapshot.problem.nodes[node].pools
        return tuple(
            self._wording.pool(pool) for pool in pools if pool.state is state
        )

    def _short(self, node: NodeIndex) -> tuple[FilterReason, ...]:
        """The causes of the first request that cannot be served even alone, one for each of its alternatives."""
        for claim in self._snapshot.demand.claims:
            for request in claim.requests:
                causes = [
                    self._trace.shortage(claim, alternative, node)
                    for alternative in request.alternatives
                ]
                if causes and all(causes):
                    return tuple(cause for cause in causes if cause is not None)
        return ()
