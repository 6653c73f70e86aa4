"""Which node to take: the one with the lowest score, and the first of those in search order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dralloc.problem import Claim
from dralloc.solvers.policies.fragmentation import Fragmentation, typical
from dralloc.solvers.policies.scene import Scene

__all__ = ["LeastFragmentation", "LeastLeft", "Score", "Scoring"]


class Score(Protocol):
    """Rates nodes for claims."""

    def __call__(self, claims: Sequence[Claim], node: int) -> int | None:
        """How little the node suits: the same for nodes in the same state. None if the claims do not fit there."""


Scoring = Callable[[Scene], Score]
"""Sets up a score for a run."""


class LeastLeft:
    """Best fit: the node with the least left, as the sum over its units (see `dralloc.solvers.policies.states`).

    What the claims take is not subtracted: it is the same wherever they go.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def __call__(self, claims: Sequence[Claim], node: int) -> int | None:
        """What is left of the node."""
        if not self._scene.offers.could_serve(claims, node):
            return None
        states = self._scene.states
        return sum(states.left[state] for state, _ in states.ordered(node))


class LeastFragmentation:
    """Fragmentation gradient descent: the node on which placing the claims adds the least expected fragmentation.

    Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
    Descent", USENIX ATC'23, section 4. How fragmentation is measured here: `dralloc.solvers.policies.fragmentation`.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._fragmentation = Fragmentation(scene.offers, scene.states, typical(scene.problem))

    def __call__(self, claims: Sequence[Claim], node: int) -> int | None:
        """How much fragmentation is added, which can be less than nothing."""
        scene = self._scene
        if not scene.offers.could_serve(claims, node):
            return None
        before = self._fragmentation.of(node)
        with scene.trying(claims, node) as taken:
            return None if taken is None else self._fragmentation.of(node, taken) - before
