"""Capabilities: which nodes could ever serve a demand, by what they are made of, whatever is in use."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Mapping

from dralloc.problem import (
    Alternative,
    DeviceIndex,
    NodeIndex,
    Problem,
    indices,
)
from dralloc.problem.equivalence import claim_key
from dralloc.problem.indices import DemandIndex
from dralloc.problem.supply import NODE_DRIVER

__all__ = ["NodeCapabilities"]


class NodeCapabilities:
    """Tells where a demand finds as many devices as it asks for, worked out once per kind of demand and of node.

    Attributes
    ----------
    node_types
        By node, the number of its type: nodes of a type offer as many devices of each device class.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        type_of_signature: dict[Hashable, int] = {}
        self.node_types: list[int] = []
        self._contents: list[Mapping[Hashable, tuple[DeviceIndex, int]]] = []
        device_keys: dict[DeviceIndex, Hashable] = {}
        for node in indices(problem.nodes):
            tally: Tally[Hashable] = Tally()
            sample: dict[Hashable, DeviceIndex] = {}
            for device in problem.nodes[node].devices():
                # What stands for the node itself, its CPU and memory, is no device of a class.
                if problem.devices[device].id.driver == NODE_DRIVER:
                    continue
                if device not in device_keys:
                    device_keys[device] = problem.eligibility.device_key(device)
                # Devices with equal keys are selected alike: one of them stands for all.
                tally[device_keys[device]] += 1
                sample.setdefault(device_keys[device], device)
            signature = frozenset(tally.items())
            if signature not in type_of_signature:
                type_of_signature[signature] = len(type_of_signature)
                contents = {
                    key: (sample[key], count) for key, count in tally.items()
                }
                self._contents.append(contents)
            self.node_types.append(type_of_signature[signature])
        self._shapes: dict[int, Hashable] = {}
        self._answers: dict[tuple[Hashable, int], int | None] = {}
        self._totals: dict[tuple[Hashable, int | None], int] = {}

    def shape(self, demand: DemandIndex) -> Hashable:
        """Return the key of a demand's device requests: equal for demands that differ only in their use of nodes."""
        if demand not in self._shapes:
            claims = self.problem.demands[demand].claims
            keys = tuple(
                claim_key(self.problem.eligibility, claim)
                for claim in claims
                if not claim.is_synthetic
            )
            self._shapes[demand] = keys
        return self._shapes[demand]

    def could_serve(self, node: NodeIndex, demand: DemandIndex) -> bool:
        """Whether the node has enough devices for each request of the demand, were nothing in use."""
        return self.candidates(node, demand) is not None

    def candidates(self, node: NodeIndex, demand: DemandIndex) -> int | None:
        """Return the number of the node's devices to choose from, over all requests; None if one has too few."""
        node_type = self.node_types[node]
        question = self.shape(demand), node_type
        if question not in self._answers:
            count = self._candidates(self._contents[node_type], demand)
            self._answers[question] = count
        return self._answers[question]

    def all_candidates(self, demand: DemandIndex) -> int:
        """Return the number of candidates on all nodes that the demand may go to."""
        nodes = self.problem.demands[demand].nodes
        # Demands with the same selection of nodes most often have the same object.
        question = self.shape(demand), None if nodes is None else id(nodes)
        if question not in self._totals:
            allowed = self.problem.candidate_nodes(self.problem.demands[demand])
            nodes_of_type = Tally(self.node_types[node] for node in allowed)
            sample = {self.node_types[node]: node for node in allowed}
            total = 0
            for node_type, node_count in nodes_of_type.items():
                # Nodes that have too few count as none.
                candidates = self.candidates(sample[node_type], demand)
                total += node_count * (candidates or 0)
            self._totals[question] = total
        return self._totals[question]

    def _candidates(
        self,
        contents: Mapping[Hashable, tuple[DeviceIndex, int]],
        demand: DemandIndex,
    ) -> int | None:
        total = 0
        for claim in self.problem.demands[demand].claims:
            if claim.is_synthetic:
                continue
            for request in claim.requests:
                enough = False
                for alternative in request.alternatives:
                    matching = self._matching(contents, alternative)
                    if matching >= (alternative.count or 1):
                        enough = True
                        total += matching
                if not enough:
                    return None
        return total

    def _matching(
        self,
        contents: Mapping[Hashable, tuple[DeviceIndex, int]],
        alternative: Alternative,
    ) -> int:
        selects = self.problem.eligibility.selects
        return sum(
            count
            for device, count in contents.values()
            if selects(alternative.index, device) is True
        )
