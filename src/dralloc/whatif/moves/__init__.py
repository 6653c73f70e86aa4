"""Moving what is allocated: who may move where, the best exchange, and an order in which nothing is over-committed.

- `dralloc.whatif.moves.migration`: the allocated claims of a problem that may move, and how;
- `dralloc.whatif.moves.migration_problem`: the problem in which each of them stays or moves;
- `dralloc.whatif.moves.rearrange`: its best answer;
- `dralloc.whatif.moves.order`: the order of moves with the fewest restarts;
- `dralloc.whatif.moves.steps`: the ordered plan, checked step by step;
- `dralloc.whatif.moves.claim_users` and `dralloc.whatif.moves.cluster_migration`: all of this from a cluster.
"""

from __future__ import annotations

from dralloc.whatif.moves.migration import Migration, MovableClaim, MoveOption
from dralloc.whatif.moves.rearrange import MigrationPlan, rearrange
from dralloc.whatif.moves.steps import Action, MigrationStep, replay

__all__ = ["Action", "Migration", "MigrationPlan", "MigrationStep", "MovableClaim", "MoveOption", "rearrange", "replay"]
