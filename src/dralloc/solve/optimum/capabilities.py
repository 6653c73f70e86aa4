"""Which nodes could ever serve a demand: a look at what they are made of, not at what is in use."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Mapping

from dralloc.problem import Alternative, Problem
from dralloc.problem.equivalence import claim_key
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
        numbers: dict[Hashable, int] = {}
        self.node_types: list[int] = []
        self._contents: list[Mapping[Hashable, tuple[int, int]]] = []
        device_keys: dict[int, Hashable] = {}
        for node in range(len(problem.nodes)):
            tally: Tally[Hashable] = Tally()
            sample: dict[Hashable, int] = {}
            for device in problem.nodes[node].devices():
                if problem.devices[device].id.driver == NODE_DRIVER:
                    continue
                if device not in device_keys:
                    device_keys[device] = problem.eligibility.device_key(device)
                tally[device_keys[device]] += 1
                sample.setdefault(device_keys[device], device)
            signature = frozenset(tally.items())
            if signature not in numbers:
                numbers[signature] = len(numbers)
                self._contents.append(
                    {key: (sample[key], number) for key, number in tally.items()}
                )
            self.node_types.append(numbers[signature])
        self._shapes: dict[int, Hashable] = {}
        self._answers: dict[tuple[Hashable, int], int] = {}
        self._totals: dict[tuple[Hashable, int | None], int] = {}

    def shape(self, demand: int) -> Hashable:
        """What a demand asks of devices: equal for demands that only differ in what they take of nodes beside."""
        if demand not in self._shapes:
            claims = self.problem.demands[demand].claims
            keys = tuple(
                claim_key(self.problem.eligibility, claim)
                for claim in claims
                if not claim.is_synthetic
            )
            self._shapes[demand] = keys
        return self._shapes[demand]

    def could_serve(self, node: int, demand: int) -> bool:
        """Whether the node has enough devices for each request of the demand, were nothing in use."""
        return self.candidates(node, demand) >= 0

    def candidates(self, node: int, demand: int) -> int:
        """How many devices of the node there are to choose from for all requests together; -1 if they are too few."""
        question = self.shape(demand), self.node_types[node]
        if question not in self._answers:
            self._answers[question] = self._candidates(
                self._contents[self.node_types[node]], demand
            )
        return self._answers[question]

    def all_candidates(self, demand: int) -> int:
        """How many there are on all nodes that the demand may go to."""
        nodes = self.problem.demands[demand].nodes
        # Demands with the same selection of nodes most often have the same object.
        question = self.shape(demand), None if nodes is None else id(nodes)
        if question not in self._totals:
            allowed = self.problem.candidate_nodes(self.problem.demands[demand])
            types = Tally(self.node_types[node] for node in allowed)
            sample = {self.node_types[node]: node for node in allowed}
            numbers = (
                (number, self.candidates(sample[kind], demand))
                for kind, number in types.items()
            )
            self._totals[question] = sum(
                number * max(0, candidates) for number, candidates in numbers
            )
        return self._totals[question]

    def _candidates(
        self, contents: Mapping[Hashable, tuple[int, int]], demand: int
    ) -> int:
        total = 0
        for claim in self.problem.demands[demand].claims:
            for request in claim.requests if not claim.is_synthetic else ():
                enough = False
                for alternative in request.alternatives:
                    matching = self._matching(contents, alternative)
                    if matching >= (alternative.count or 1):
                        enough = True
                        total += matching
                if not enough:
                    return -1
        return total

    def _matching(
        self, contents: Mapping[Hashable, tuple[int, int]], alternative: Alternative
    ) -> int:
        selects = self.problem.eligibility.selects
        return sum(
            number
            for device, number in contents.values()
            if selects(alternative.index, device) is True
        )
