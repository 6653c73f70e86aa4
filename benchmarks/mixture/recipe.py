"""What goes into a mixed cluster, and the randomness of each of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

__all__ = ["HARDWARE", "INGREDIENTS", "Recipe"]

HARDWARE: Final = ("gpus", "mig", "sharing")
"""The kinds of nodes."""

INGREDIENTS: Final = (
    *HARDWARE,
    "usage",
    "cpu",
    "gangs",
    "racks",
    "priorities",
    "taints",
    "cordons",
    "zones",
    "alternatives",
)
"""What can be left out: kinds of nodes; running pods with claims; CPU and memory of nodes and pods; gangs, and
their racks; priorities; taints of nodes and devices; cordoned nodes; zones that pods choose or spread over; prioritized
lists.
"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A mixed cluster to generate.

    Parameters
    ----------
    nodes
        How many there are.
    seed
        What every source of randomness starts from.
    without
        Which of the `INGREDIENTS` are left out.

    Raises
    ------
    ValueError
        Something is left out that is no ingredient, or every kind of nodes is.
    """

    nodes: int
    seed: int
    without: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if unknown := sorted(self.without.difference(INGREDIENTS)):
            raise ValueError(
                f"mixed has no ingredient {', '.join(unknown)}; it has {', '.join(INGREDIENTS)}"
            )
        if self.without.issuperset(HARDWARE):
            raise ValueError("mixed needs a kind of nodes")

    def has(self, ingredient: str) -> bool:
        """Whether an ingredient is part of it."""
        return ingredient not in self.without

    def source(self, purpose: str) -> Random:
        """The randomness for one purpose: leaving something else out does not change what it gives."""
        return Random(f"{self.seed}:{self.nodes}:{purpose}")
