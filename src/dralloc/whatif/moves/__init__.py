"""Moving what is allocated: who may move where, the best exchange, and an order in which nothing is over-committed.

- `dralloc.whatif.moves.estate`: the allocated claims of a problem that may move, and the ways in which they can;
- `dralloc.whatif.moves.exchange`: the problem in which each of them stays or moves;
- `dralloc.whatif.moves.rearrange`: its best answer;
- `dralloc.whatif.moves.order`: the order of moves with the fewest restarts;
- `dralloc.whatif.moves.steps`: the ordered plan, checked step by step;
- `dralloc.whatif.moves.tenants` and `dralloc.whatif.moves.tenancy`: all of this from a cluster.
"""

from __future__ import annotations

from dralloc.whatif.moves.estate import Estate, Resident, Way
from dralloc.whatif.moves.rearrange import Outcome, rearrange
from dralloc.whatif.moves.steps import Action, Step, replay

__all__ = ["Action", "Estate", "Outcome", "Resident", "Step", "Way", "rearrange", "replay"]
