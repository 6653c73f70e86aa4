"""Nodes taken apart: for demands of one device each, what shares nothing might as well be nodes of their own.

A GPU with all its partitions draws on counters that no other GPU draws on. As long as every demand wants a single
device, what is placed on the one has nothing to do with the other, so that equal GPUs stand for each other on whatever
nodes they are (KEP-4815).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from networkx.utils import UnionFind

from dralloc.problem import Charge, Demand, Node, Problem
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
    offers = _Offers(problem, demands)
    nodes: list[Node] = []
    homes: list[int] = []
    for number, node in enumerate(problem.nodes):
        for devices in offers.parts(node):
            pools = (replace(pool, devices=tuple(one for one in pool.devices if one in devices)) for pool in node.pools)
            nodes.append(Node(f"{node.name} #{len(nodes)}", tuple(pool for pool in pools if pool.devices)))
            homes.append(number)
    return Divided(replace(problem, nodes=tuple(nodes)), [_moved(demand, homes) for demand in demands], homes)


def _moved(demand: Demand, homes: Sequence[int]) -> Demand:
    """The demand, which may go to the parts of the nodes that it may go to."""
    if demand.nodes is None:
        return demand
    allowed = frozenset(demand.nodes)
    return replace(demand, nodes=tuple(part for part, home in enumerate(homes) if home in allowed))


class _Offers:
    """The devices that demands could have, and what else depends on them."""

    def __init__(self, problem: Problem, demands: Sequence[Demand]) -> None:
        self.problem = problem
        singles = (read_single(demand) for demand in demands)
        self.alternatives = [one.index for single in singles if single is not None for one in single.alternatives]
        self.known: dict[Hashable, tuple[bool, bool]] = {}

    def parts(self, node: Node) -> Iterator[frozenset[int]]:
        """The devices of a node that matter, those apart that share nothing."""
        forest: UnionFind[Hashable] = UnionFind()
        devices = [device for device in node.devices() if self._look(device)[0]]
        for device in devices:
            forest.union(device, *self._keys(device))
        parts: dict[Hashable, list[int]] = {}
        for device in devices:
            parts.setdefault(forest[device], []).append(device)
        return map(frozenset, parts.values())

    def _look(self, device: int) -> tuple[bool, bool]:
        """Whether some demand selects the device, and whether that charges counters by request."""
        device_key = self.problem.eligibility.device_key(device)
        if device_key not in self.known:
            charges = list(self._charges(device))
            self.known[device_key] = bool(charges), any(charge.counters for charge in charges)
        return self.known[device_key]

    def _charges(self, device: int) -> Iterator[Charge]:
        offers = self.problem.eligibility
        for alternative in self.alternatives:
            charge = offers.charge(alternative, device) if offers.selects(alternative, device) is True else None
            if charge is not None:
                yield charge

    def _keys(self, device: int) -> Iterator[Hashable]:
        """What the device has in common with those that it is not apart from."""
        yield from self.problem.devices[device].resources
        if self._look(device)[1]:
            yield from (("counter", number) for charge in self._charges(device) for number, _ in charge.counters)
