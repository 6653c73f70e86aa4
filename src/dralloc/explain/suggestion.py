"""A single change that would admit a demand, and how such changes are ranked."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from dralloc.explain.change import Change

__all__ = ["Cost", "Suggestion"]


class Cost(IntEnum):
    """How changes are ranked: what the claim's author can do comes before what others have to give up or buy."""

    TOLERATE = 1
    CONSTRAINT = 2
    SELECTOR = 3
    LESS = 4
    OTHER = 5
    NODES = 6
    CAP = 7
    MOVE = 8
    RELEASE = 9
    CLASS = 10
    NODE = 11


@dataclass(frozen=True)
class Suggestion:
    """A change that admits the demand.

    Parameters
    ----------
    text
        What to change.
    outcome
        What then happens, as it was found by trying.
    cost
        Its kind.
    amount
        How much of it, to rank changes of one kind.
    change
        What was tried.
    """

    text: str
    outcome: str
    cost: Cost
    amount: int = 0
    change: Change = field(default_factory=Change, repr=False, compare=False)
