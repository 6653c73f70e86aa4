"""Nodes taken apart: for demands of one device each, what shares nothing might as well be nodes of their own.

A GPU with all its partitions draws on counters that no other GPU draws on. As long as every demand wants a single
device, what is placed on the one has nothing to do with the other, so that equal GPUs stand for each other on whatever
nodes they are (KEP-4815).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from dralloc.problem import Charge, Demand, Node, Problem
from dralloc.problem.subproblem import separated
from dralloc.whatif.partitions import read_single

__all__ = ["Divided", "divide"]


@dataclass(frozen=True, slots=True)
class Divided:
    """The problem with a node for each part, the demands there, and for each part the node that it is of."""

    problem: Problem
    demands: Sequence[Demand]
    homes: Sequence[int]


def divide(problem: Problem, demands: Sequence[Demand]) -> Divided:
    """Take nodes apart; they stay whole if a demand wants more than one device."""
    if any(read_single(demand) is None for demand in demands):
        return Divided(problem, demands, problem.all_nodes)
    charges = _Charges(problem, demands)
    nodes: list[Node] = []
    homes: list[int] = []
    for number, node in enumerate(problem.nodes):
        wanted = [device for device in node.devices() if charges.of(device)]
        for members in map(frozenset, separated(problem, wanted, charges.counters)):
            pools = (replace(pool, devices=tuple(one for one in pool.devices if one in members)) for pool in node.pools)
            nodes.append(Node(f"{node.name} #{len(nodes)}", tuple(pool for pool in pools if pool.devices)))
            homes.append(number)
    return Divided(replace(problem, nodes=tuple(nodes)), [_moved(demand, homes) for demand in demands], homes)


def _moved(demand: Demand, homes: Sequence[int]) -> Demand:
    """The demand, which may go to the parts of the nodes that it may go to."""
    if demand.nodes is None:
        return demand
    allowed = frozenset(demand.nodes)
    return replace(demand, nodes=tuple(part for part, home in enumerate(homes) if home in allowed))


class _Charges:
    """What demands would take of devices; equal devices are asked once, as far as they charge no counters."""

    def __init__(self, problem: Problem, demands: Sequence[Demand]) -> None:
        self.eligibility = problem.eligibility
        self.alternatives = [one.index for demand in demands for one in demand.alternatives()]
        self.known: dict[Hashable, list[Charge]] = {}

    def of(self, device: int) -> list[Charge]:
        """The charges of a device that is equal to this one; none if no demand selects it."""
        key = self.eligibility.device_key(device)
        if key not in self.known:
            self.known[key] = list(self._asked(device))
        return self.known[key]

    def counters(self, device: int) -> Iterator[int]:
        """The counters that are charged by request."""
        if any(charge.counters for charge in self.of(device)):
            yield from (counter for charge in self._asked(device) for counter, _ in charge.counters)

    def _asked(self, device: int) -> Iterator[Charge]:
        offers = self.eligibility
        for alternative in self.alternatives:
            charge = offers.charge(alternative, device) if offers.selects(alternative, device) is True else None
            if charge is not None:
                yield charge
