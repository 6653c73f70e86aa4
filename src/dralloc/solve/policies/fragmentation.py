"""Expected fragmentation: how much of what is left the next demand is expected to be unable to use.

A node falls into components, devices that share counters or one device by itself
(`dralloc.solve.policies.node_components`). Equal components in the same state
(`dralloc.solve.policies.component_states`) offer the same (`dralloc.solve.policies.component_offers`), so that what an
alternative could get is worked out once per state, and the expectation is a sum over states.

Weng et al. (ATC'23, section 3) measure it in GPUs: a task that does not fit on a node can use nothing of what is left
there, one that does fit can use the GPUs with enough left for it; the rest is fragmented for the task, and the mean
over the mix of tasks is the expected fragmentation of the node. Here components take the place of GPUs, each counts for
the part of it that is left, a component can be used if it has a device for some request of the demand, and a demand is
taken to fit if each of its requests does.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import Alternative, Claim, DeviceIndex, NodeIndex, Problem
from dralloc.solve.first_fit.candidates import ClaimClass, ClaimClasses
from dralloc.solve.policies.component_offers import ComponentOffers, Integers
from dralloc.solve.policies.component_states import ComponentStates
from dralloc.solve.policies.node_components import NodeComponent

__all__ = ["ExpectedFragmentation", "Mix", "NodeParts", "typical"]

_MOST_CLASSES: Final = 256
"""Classes of demands that are enough to know the mix; the most frequent ones."""

Mix = Sequence[tuple[Sequence[Claim], int]]
"""Claims, and how often demands ask for such."""


def typical(problem: Problem) -> Mix:
    """The mix of all demands of a problem."""
    classes = ClaimClasses(problem)
    tally: Tally[ClaimClass] = Tally()
    examples: dict[ClaimClass, Sequence[Claim]] = {}
    for demand in problem.demands:
        claim_class = classes.of(demand.claims)
        if claim_class is not None and all(
            claim.requests for claim in demand.claims
        ):
            tally[claim_class] += 1
            examples.setdefault(claim_class, demand.claims)
    return [
        (examples[claim_class], count)
        for claim_class, count in tally.most_common(_MOST_CLASSES)
    ]


class NodeParts(NamedTuple):
    """The free part of a node, and how each class of demands of the mix could use it.

    Parameters
    ----------
    left
        All that is left, in millionths of a component.
    usable
        By class, what is left of components that have a device for some request of it.
    fits
        By class, whether each of its requests has devices enough.
    """

    left: int
    usable: Integers
    fits: NDArray[np.bool_]


class ExpectedFragmentation:
    """Measures nodes. What was found for a component or a node in one state is kept."""

    def __init__(
        self, offers: ComponentOffers, states: ComponentStates, mix: Mix
    ) -> None:
        self._offers = offers
        self._states = states
        self._columns: dict[Hashable, tuple[int, Alternative]] = {}
        column_of: list[int] = []
        need: list[int] = []
        requests: list[int] = []
        firsts: list[tuple[int, int]] = []
        for claims, _ in mix:
            firsts.append((len(need), len(requests)))
            for request in (
                request for claim in claims for request in claim.requests
            ):
                requests.append(len(need))
                for alternative in request.alternatives:
                    column, _ = self._columns.setdefault(
                        offers.column(alternative),
                        (len(self._columns), alternative),
                    )
                    column_of.append(column)
                    need.append(alternative.count or 1)
        # The alternatives of all classes stand in one row; requests and classes are
        # known by the position of their first one, as numpy's ``reduceat`` wants it.
        self._column_of = np.array(column_of, dtype=np.intp)
        self._need = np.array(need, dtype=np.int64)
        self._requests = np.array(requests, dtype=np.intp)
        self._first_of_class = np.array(firsts, dtype=np.intp).reshape(-1, 2)
        popularity = [count for _, count in mix]
        self._popularity: Integers = np.array(popularity, dtype=np.int64)
        self._offered: dict[int, tuple[Integers, Integers]] = {}
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, node: NodeIndex, devices: Collection[DeviceIndex] = ()) -> int:
        """The expected fragmentation of a node, after some devices were taken there.

        Returns
        -------
        int
            The sum over all demands of the mix, in millionths of a component.
        """
        components = self._states.after(node, devices)
        key = tuple(sorted([state for state, _ in components]))
        if key not in self._known:
            self._known[key] = self._measure(components)
        return self._known[key]

    def parts(self, node: NodeIndex) -> NodeParts | None:
        """Return the free part of a node for each class; None if it has no devices, or if no class asks for any."""
        return self._parts(self._states.after(node, ()))

    def _measure(self, components: Sequence[tuple[int, NodeComponent]]) -> int:
        """For each demand all that is left, less what the demand could use of it."""
        parts = self._parts(components)
        if parts is None:
            return 0
        used = int(self._popularity @ (parts.usable * parts.fits))
        return int(self._popularity.sum()) * parts.left - used

    def _parts(
        self, components: Sequence[tuple[int, NodeComponent]]
    ) -> NodeParts | None:
        free_parts = sum([self._states.left[state] for state, _ in components])
        if not components or not len(self._popularity):
            return None
        offers = [
            self._component(state, component) for state, component in components
        ]
        counts = sum(counts for counts, _ in offers)
        usable = np.add.reduce([usable for _, usable in offers])
        alternative_fits = np.take(counts, self._column_of) >= self._need
        request_fits = np.logical_or.reduceat(alternative_fits, self._requests)
        class_fits = np.logical_and.reduceat(
            request_fits, self._first_of_class[:, 1]
        )
        return NodeParts(free_parts, usable, class_fits)

    def _component(
        self, state: int, component: NodeComponent
    ) -> tuple[Integers, Integers]:
        """Return the number of devices that a component offers for each column, and how each class could use it."""
        if state not in self._offered:
            alternatives = [
                alternative for _, alternative in self._columns.values()
            ]
            counts = self._offers.counts(alternatives, component)
            usable = np.logical_or.reduceat(
                counts[self._column_of] > 0, self._first_of_class[:, 0]
            )
            self._offered[state] = counts, usable * self._states.left[state]
        return self._offered[state]
