"""First fit's answer for every node, with the first reason that rules it out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from dralloc.context.node_rules import SHARED, Exclusions
from dralloc.errors import AllocationError, NodeError
from dralloc.explain.funnel import Funnel
from dralloc.explain.joint import joint_cause
from dralloc.explain.reasons import Cause, Code, NodeReason
from dralloc.explain.turn import Turn
from dralloc.explain.wording import Wording
from dralloc.problem import PoolState, Problem
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.subproblem import Subproblem
from dralloc.solvers.first_fit import first_fit

__all__ = ["Diagnosis"]

_PUBLISHED = {Code.NO_DEVICE, Code.CLASS, Code.SELECTOR, Code.AMOUNT}
"""Causes that devices of a pool which cannot be used might have met."""


class Diagnosis:
    """Says for each node whether the demand fits there at its turn, and if not, why.

    Equal nodes are searched once. Whether the demand fits is always first fit's own answer.
    """

    def __init__(self, turn: Turn, problem: Problem, exclusions: Exclusions, wording: Wording) -> None:
        self._turn = turn
        self._whole = problem.demands[turn.number]
        self._exclusions = exclusions
        self._wording = wording
        self._funnel = Funnel(turn.context, wording)
        self._known: dict[Hashable, bool] = {}
        self._joint: dict[Hashable, Cause] = {}

    def reasons(self, nodes: Sequence[int]) -> Iterator[NodeReason]:
        """The reason for each of the nodes."""
        return (self.reason(node) for node in nodes)

    def reason(self, node: int) -> NodeReason:
        """The reason for a node; it has no causes if the demand fits there."""
        return NodeReason(self._turn.context.problem.nodes[node].name, self._causes(node))

    def _causes(self, node: int) -> tuple[Cause, ...]:
        if node not in self._allowed:
            shared = () if node in self._turn.reachable else (SHARED,)
            return (Cause(Code.NODE, "; ".join((*self._exclusions.rules(self._whole, node), *shared))),)
        part = self._turn.context.part([node], [self._turn.demand])
        demand = replace(self._turn.demand, nodes=None, gang="")
        signature = inventory_key(part.problem)
        if signature in self._known:
            return () if self._known[signature] else self._unfit(node, part, signature)
        solution = first_fit(replace(part.problem, demands=(demand,)))
        error = solution.errors.get(0)
        if error is not None and not isinstance(error, NodeError):
            return (self._failed(error),)
        self._known[signature] = bool(solution.placements)
        return () if solution.placements else self._unfit(node, part, signature)

    @property
    def _allowed(self) -> frozenset[int]:
        if self._nodes is None:
            self._nodes = frozenset(self._turn.nodes)
        return self._nodes

    _nodes: frozenset[int] | None = None

    def _failed(self, error: AllocationError) -> Cause:
        text = str(error)
        return Cause(Code.CEL if ": CEL " in text else Code.ERROR, text)

    def _unfit(self, node: int, part: Subproblem, signature: Hashable) -> tuple[Cause, ...]:
        pools = self._turn.context.problem.nodes[node].pools
        invalid = tuple(
            Cause(Code.POOL_INVALID, "pool is invalid", details=(self._wording.pool(pool),))
            for pool in pools
            if pool.state is PoolState.INVALID
        )[:1]
        short = self._short(node)
        if not short:
            if signature not in self._joint:
                self._joint[signature] = joint_cause(self._turn.context, node, self._turn.demand, part)
            return (*invalid, self._joint[signature])
        return (*invalid, *self._incomplete(node, short), *short)

    def _incomplete(self, node: int, short: Sequence[Cause]) -> Iterator[Cause]:
        if all(cause.code in _PUBLISHED for cause in short):
            pools = self._turn.context.problem.nodes[node].pools
            texts = tuple(self._wording.pool(pool) for pool in pools if pool.state is PoolState.INCOMPLETE)
            if texts:
                yield Cause(Code.POOL_INCOMPLETE, "a pool is incomplete", details=texts[:3])

    def _short(self, node: int) -> tuple[Cause, ...]:
        """The causes of the first request that cannot be served even alone, one for each of its alternatives."""
        for claim in self._turn.demand.claims:
            for request in claim.requests:
                causes = [self._funnel.shortage(claim, each, node) for each in request.alternatives]
                if causes and all(causes):
                    return tuple(cause for cause in causes if cause is not None)
        return ()
