"""Moves of allocated claims: options, the best exchange, and an order in which nothing is over-committed.

- `dralloc.ask.whatif.moves.migration`: the allocated claims of a problem that may move, and how;
- `dralloc.ask.whatif.moves.rearrange`: the problem in which each of them stays or moves, and its best answer;
- `dralloc.ask.whatif.moves.steps`: the order of moves with the fewest restarts, and the plan, checked step by step;
- `dralloc.ask.whatif.moves.cluster_migration`: all of this from a cluster.
"""

from __future__ import annotations

from dralloc.ask.whatif.moves.migration import (
    Migration,
    MovableClaim,
    MoveOption,
)
from dralloc.ask.whatif.moves.rearrange import MigrationPlan, rearrange
from dralloc.ask.whatif.moves.steps import Action, MigrationStep, replay

__all__ = [
    "Action",
    "Migration",
    "MigrationPlan",
    "MigrationStep",
    "MovableClaim",
    "MoveOption",
    "rearrange",
    "replay",
]
