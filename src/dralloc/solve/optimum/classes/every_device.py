"""Allocation mode ``All`` over classes: on nodes where *n* devices match and can be had, it is a request for *n*.

So such a request has one option for each number, on the nodes where so many match: who gets *n* of *n* devices has all
of them, and leaves none to others (KEP-4381). Nodes with a pool that is not usable, or with a device that matches but
cannot be had, have no option. Devices with consumable capacity are not covered: of those, full ones can be left out,
which depends on others (KEP-5075).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping

from dralloc.objects.errors import AllocationError
from dralloc.problem import Alternative, PoolState, Problem
from dralloc.problem.ledger import Ledger

__all__ = ["EveryDevice"]

NodesByNumber = Mapping[int, frozenset[int]]
"""The nodes where so many devices are all."""


class EveryDevice:
    """Finds out how many devices ``All`` stands for."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._ledger = Ledger(problem)
        self._known: dict[Hashable, NodesByNumber | None] = {}

    def of(self, spec: Alternative, attributes: frozenset[str]) -> NodesByNumber | None:
        """The options of an alternative that asks for devices with these attributes; None if it is not covered."""
        key = self.problem.eligibility.request_key(spec.index), attributes
        if key not in self._known:
            self._known[key] = self._options(spec.index, attributes)
        return self._known[key]

    def _options(
        self, alternative: int, attributes: frozenset[str]
    ) -> NodesByNumber | None:
        found: dict[int, set[int]] = defaultdict(set)
        for node in self.problem.all_nodes:
            number = self._number(alternative, attributes, node)
            if number is None:
                return None
            found[number].add(node)
        return {
            number: frozenset(nodes)
            for number, nodes in sorted(found.items())
            if number
        }

    def _number(
        self, alternative: int, attributes: frozenset[str], node: int
    ) -> int | None:
        """How many devices are all on a node; 0 if they cannot be had, None if that depends on others."""
        view, eligibility, number = (
            self.problem.nodes[node],
            self.problem.eligibility,
            0,
        )
        if any(pool.state is not PoolState.USABLE for pool in view.pools):
            return 0
        missing = False
        for index in view.devices():
            if self.problem.on_node(index, node):
                device, selected = (
                    self.problem.devices[index],
                    eligibility.selects(alternative, index),
                )
                if isinstance(selected, AllocationError):
                    return None
                charge = eligibility.charge(alternative, index) if selected else None
                if charge is None or not self._ledger.has_capacity(device, charge):
                    continue
                if charge.capacity:
                    return None
                number += 1
                missing |= not (
                    self._ledger.is_free(device)
                    and eligibility.admits(alternative, index)
                    and attributes <= device.attributes.keys()
                    and self._ledger.has_counters(device, charge)
                )
        return 0 if missing else number
