"""Expected fragmentation: how much of what is left the next demand is expected to be unable to use.

Weng et al. (ATC'23, section 3) measure it in GPUs: a task that does not fit on a node can use nothing of what is left
there, one that does fit can use the GPUs with enough left for it; the rest is fragmented for the task, and the mean
over the mix of tasks is the expected fragmentation of the node. Here components take the place of GPUs (see
`dralloc.solve.policies.node_components`), each counts for the part of it that is left, a component can be used if it
has a device for some request of the demand, and a demand is taken to fit if each of its requests does.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Hashable, Sequence
from typing import Final

import numpy as np

from dralloc.problem import Alternative, Claim, Problem
from dralloc.solve.first_fit.claim_classes import ClaimClass, ClaimClasses
from dralloc.solve.policies.component_offers import ComponentOffers, Integers
from dralloc.solve.policies.component_states import ComponentStates
from dralloc.solve.policies.node_components import NodeComponent

__all__ = ["ExpectedFragmentation", "typical"]

_MOST: Final = 256
"""ClaimClasses of demands that are enough to know the mix; the most frequent ones."""

Mix = Sequence[tuple[Sequence[Claim], int]]
"""Claims, and how often demands ask for such."""


def typical(problem: Problem) -> Mix:
    """The mix of all demands of a problem."""
    classes = ClaimClasses(problem)
    tally: Tally[ClaimClass] = Tally()
    examples: dict[ClaimClass, Sequence[Claim]] = {}
    for demand in problem.demands:
        claim_class = classes.of(demand.claims)
        if claim_class is not None and all(claim.requests for claim in demand.claims):
            tally[claim_class] += 1
            examples.setdefault(claim_class, demand.claims)
    return [
        (examples[claim_class], count)
        for claim_class, count in tally.most_common(_MOST)
    ]


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
            for request in (request for claim in claims for request in claim.requests):
                requests.append(len(need))
                for one in request.alternatives:
                    column, _ = self._columns.setdefault(
                        offers.column(one), (len(self._columns), one)
                    )
                    column_of.append(column)
                    need.append(one.count or 1)
        self._column_of, self._need = (
            np.array(column_of, dtype=np.intp),
            np.array(need, dtype=np.int64),
        )
        self._requests = np.array(requests, dtype=np.intp)
        self._first_of_class = np.array(firsts, dtype=np.intp).reshape(-1, 2)
        self._popularity: Integers = np.array(
            [count for _, count in mix], dtype=np.int64
        )
        self._offered: dict[int, tuple[Integers, Integers]] = {}
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, node: int, taken: Collection[int] = ()) -> int:
        """The expected fragmentation of a node, after some devices were taken there.

        Returns
        -------
        int
            The sum over all demands of the mix, in millionths of a component.
        """
        components = self._states.after(node, taken)
        key = tuple(sorted([state for state, _ in components]))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._measure(components)
        return found

    def _measure(self, components: Sequence[tuple[int, NodeComponent]]) -> int:
        left = sum([self._states.left[state] for state, _ in components])
        if not components or not len(self._popularity):
            return 0
        each = [self._component(state, component) for state, component in components]
        counts = sum(counts for counts, _ in each)
        usable = sum(usable for _, usable in each)
        enough = np.logical_or.reduceat(
            np.take(counts, self._column_of) >= self._need, self._requests
        )
        fits = np.logical_and.reduceat(enough, self._first_of_class[:, 1])
        return int(self._popularity.sum()) * left - int(
            self._popularity @ (usable * fits)
        )

    def _component(
        self, state: int, component: NodeComponent
    ) -> tuple[Integers, Integers]:
        """How many devices a component offers for each column, and what each class could use of it."""
        found = self._offered.get(state)
        if found is None:
            counts = self._offers.counts(
                [alternative for _, alternative in self._columns.values()], component
            )
            usable = np.logical_or.reduceat(
                counts[self._column_of] > 0, self._first_of_class[:, 0]
            )
            found = self._offered[state] = counts, usable * self._states.left[state]
        return found
