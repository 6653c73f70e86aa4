"""Expected fragmentation over time: how much of what is left the next pod is expected to be unable to use.

As Weng et al. measure it (ATC'23, section 3), for the mix of all arrivals; see
`dralloc.solve.policies.fragmentation` for what takes the place of GPUs here. It is looked at a number of times in a
run, evenly spread, as each look goes over all devices.

What is left is fragmented for a demand for one of four causes, theirs in the terms of devices: the node would not serve
it if it were empty ("no access"); too few devices are left for it there ("lack GPU"); devices are left, but not CPU,
memory or whatever else nodes give ("lack CPU"); or the node can serve it, but not with this part of what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from dralloc.lab.simulate.arrivals.incoming import Incoming
from dralloc.lab.simulate.placing import Placer
from dralloc.objects.names import ClaimKey
from dralloc.problem import Alternative, Charge, NodeIndex, Problem
from dralloc.problem.ledger import Ledger
from dralloc.problem.supply import Usage
from dralloc.solve.first_fit.candidates import CandidateIndex
from dralloc.solve.first_fit.search_ledger import SearchLedger
from dralloc.solve.policies.component_offers import ComponentOffers
from dralloc.solve.policies.component_states import ComponentStates
from dralloc.solve.policies.fragmentation import (
    ExpectedFragmentation,
    Mix,
    NodeParts,
    typical,
)

__all__ = [
    "FragmentationCause",
    "FragmentationLook",
    "FragmentationMeter",
    "emptied",
]


class FragmentationCause(StrEnum):
    """The reason why something that is left is of no use for a demand.

    ``OTHER_HARDWARE``: the node could not serve it if it were empty. ``DEVICES``: the node could, but too few devices
    are left. ``NODE``: devices are left, but not enough CPU, memory, pods or other resources of nodes.
    ``SMALL_PARTS``: the node can serve it, but not with that which is left of some of its components.
    """

    OTHER_HARDWARE = "other hardware"
    DEVICES = "devices"
    NODE = "node resources"
    SMALL_PARTS = "small parts"


@dataclass(frozen=True, slots=True)
class FragmentationLook:
    """A look at what is left.

    Parameters
    ----------
    time
        Milliseconds.
    shares
        By cause, the part of all that is left that the next demand is expected to be unable to use.
    """

    time: int
    shares: Mapping[FragmentationCause, float]

    @property
    def share(self) -> float:
        """The part that it cannot use for whatever cause."""
        return sum(self.shares.values())


class FragmentationMeter:
    """Measures a run.

    Attributes
    ----------
    looks
        In order of time; without those at which nothing was left.
    """

    def __init__(
        self, incoming: Incoming, placer: Placer, warm_up: int, looks: int
    ) -> None:
        problem = incoming.compiled.problem
        last = max((arrival.time for arrival in incoming.arrivals), default=0)
        span = max(0, last - warm_up)
        # Times are looked for in the end first.
        self._times = (
            [warm_up + span * look // looks for look in range(looks, 0, -1)]
            if span
            else []
        )
        self._nodes = problem.all_nodes
        index = CandidateIndex(problem)
        self._states = ComponentStates(problem, placer.ledger)
        offers = ComponentOffers(problem, placer.ledger, self._states, index)
        self._mix = typical(problem)
        self._expected = ExpectedFragmentation(offers, self._states, self._mix)
        self._popularity = np.array([count for _, count in self._mix], np.int64)
        self._placer = placer
        self._node_requests = _node_requests(incoming.problem, self._mix)
        self._able_if_empty = _fits_by_node(problem, index, self._mix)
        self.looks: list[FragmentationLook] = []

    def look(self, time: int) -> None:
        """Measure, if it is time to."""
        if not (self._times and time >= self._times[-1]):
            return
        # Several times may have come since the last event: one look stands for all of them.
        while self._times and time >= self._times[-1]:
            self._times.pop()
        amounts = dict.fromkeys(FragmentationCause, 0)
        free = 0
        ledger = self._placer.whole_ledger()
        for node in self._nodes:
            # `of_node` also reads the states of the node's components anew, by which `parts` goes.
            self._states.of_node(node)
            parts = self._expected.parts(node)
            if parts is None:
                continue
            free += parts.left
            for cause, amount in self._by_cause(node, parts, ledger):
                amounts[cause] += amount
        # Amounts are sums over all demands of the mix, so that what is free counts once for each of them.
        whole = int(self._popularity.sum()) * free
        if whole:
            shares = {
                cause: amount / whole for cause, amount in amounts.items()
            }
            self.looks.append(FragmentationLook(time, shares))

    @property
    def mean(self) -> float | None:
        """The mean of all looks; None if there was nothing to be seen."""
        shares = [look.share for look in self.looks]
        return sum(shares) / len(shares) if shares else None

    def _by_cause(
        self, node: NodeIndex, parts: NodeParts, ledger: Ledger
    ) -> Iterator[tuple[FragmentationCause, int]]:
        """Yield what is left of a node and of no use, summed up over the mix."""
        able = self._able_if_empty[node]
        roomy = np.array(
            [
                alternative is None or _has_room(ledger, node, alternative)
                for alternative in self._node_requests
            ]
        )
        served = parts.fits & roomy
        for cause, mask, amount in (
            (FragmentationCause.OTHER_HARDWARE, ~able, parts.left),
            (FragmentationCause.DEVICES, able & ~parts.fits, parts.left),
            (FragmentationCause.NODE, able & parts.fits & ~roomy, parts.left),
            (
                FragmentationCause.SMALL_PARTS,
                able & served,
                parts.left - parts.usable,
            ),
        ):
            yield cause, int((self._popularity * mask * amount).sum())


def _node_requests(problem: Problem, mix: Mix) -> list[Alternative | None]:
    """Return for each class of demands what the first of them asks for of its node beside devices."""
    requests: dict[ClaimKey, Alternative] = {}
    for demand in problem.demands:
        of_node = [claim for claim in demand.claims if claim.is_synthetic]
        if of_node:
            [alternative] = of_node[0].alternatives()
            requests.update((claim.key, alternative) for claim in demand.claims)
    return [requests.get(claims[0].key) for claims, _ in mix]


def _has_room(
    ledger: Ledger, node: NodeIndex, alternative: Alternative
) -> bool:
    """Return whether a node has what a pod asks for of it beside devices."""
    problem = ledger.problem
    # What stands for the node is the only device of its last pool.
    device_index = problem.nodes[node].pools[-1].devices[0]
    charge = (
        problem.eligibility.charge(alternative.index, device_index) or Charge()
    )
    device = problem.devices[device_index]
    return all(
        ledger.capacity_left(device, name) >= amount
        for name, amount in charge.capacity
    )


def emptied(problem: Problem) -> Problem:
    """Return a problem in which nothing is in use."""
    counters = tuple(
        replace(counter, free=counter.total) for counter in problem.counters
    )
    usage = Usage(frozenset(), {}, {})
    return replace(problem, counters=counters, usage=usage)


def _fits_by_node(
    problem: Problem, index: CandidateIndex, mix: Mix
) -> list[NDArray[np.bool_]]:
    """Return for each node whether it could serve each class of demands if it were empty."""
    empty = SearchLedger(emptied(problem))
    states = ComponentStates(problem, empty)
    offers = ComponentOffers(problem, empty, states, index)
    expected = ExpectedFragmentation(offers, states, mix)
    by_node: list[NDArray[np.bool_]] = []
    for node in problem.all_nodes:
        states.of_node(node)
        parts = expected.parts(node)
        nobody = np.zeros(len(mix), np.bool_)
        by_node.append(nobody if parts is None else parts.fits)
    return by_node
