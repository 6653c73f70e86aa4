"""The best exchange: who stays, who moves where, in which order, and what is admitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dralloc.check import check
from dralloc.solution import Placement, Solution, Status, Tier
from dralloc.solvers.cpsat import Options
from dralloc.whatif.models.relocation import Relocation
from dralloc.whatif.moves.greedy import greedy_moves
from dralloc.whatif.moves.migration import Migration
from dralloc.whatif.moves.migration_problem import MigrationProblem
from dralloc.whatif.moves.order import Order
from dralloc.whatif.moves.steps import MigrationStep, Move, find_order, replay, steps_of

__all__ = ["MigrationPlan", "rearrange"]

_EFFORT: Final = 400_000
"""Of answers of the same worth so many are tried for fewer restarts that their candidates add up to this."""

_MOST_ORDERS: Final = 200


@dataclass(frozen=True)
class MigrationPlan:
    """Who moves, in which order, and what that admits.

    Parameters
    ----------
    steps
        The ordered plan; the checker has accepted every step.
    moves
        The moves, in order.
    admitted
        The pending demands that are placed, by index.
    restarts
        How many of the moves stop before they start.
    fewest
        Whether no answer of the same worth needs fewer restarts.
    tiers
        ``weight``, ``moves`` and ``alternatives``, with bounds.
    """

    steps: tuple[MigrationStep, ...]
    moves: tuple[Move, ...]
    admitted: tuple[int, ...]
    restarts: int
    fewest: bool
    status: Status
    tiers: tuple[Tier, ...]
    warnings: tuple[str, ...] = ()

    @property
    def moved(self) -> tuple[int, ...]:
        """The movable claims that move, by index, in order."""
        return tuple(mover for move in self.moves for mover in move.option.movers)


def rearrange(
    migration: Migration, most: int | None = None, options: Options | None = None, admitted: Sequence[Placement] = ()
) -> MigrationPlan:
    """Find the exchange of most weight, then with the fewest moves, then with the fewest restarts.

    Parameters
    ----------
    most
        How many claims may move; None for any number.
    admitted
        Placements of pending demands that are possible without any move, to start from.

    Raises
    ------
    CheckError
        The answer or a step of the plan breaks a rule: a defect of dralloc.
    """
    return _Rearrangement(MigrationProblem(migration, most), options or Options()).run(admitted)


class _Rearrangement:
    def __init__(self, whole: MigrationProblem, options: Options) -> None:
        self.whole = whole
        self.options = options

    def run(self, admitted: Sequence[Placement]) -> MigrationPlan:
        greedy = greedy_moves(self.whole)
        if greedy is not None and greedy.status is Status.OPTIMAL:
            order = find_order(self.whole.migration, self.whole.moves(greedy))
            if not order.restarts:
                return self._outcome(greedy, order, fewest=True)
        start = greedy.placements if greedy else (*self.whole.staying(), *self.whole.admitted(admitted))
        relocation = Relocation(self.whole.problem, self.whole.exchange, self.options, start)
        best = relocation.solve()
        order = self._ordered(best)
        if order.restarts and best.status is Status.OPTIMAL:
            return self._with_fewest_restarts(relocation, best, order)
        return self._outcome(best, order, fewest=not order.restarts)

    def _with_fewest_restarts(self, relocation: Relocation, best: Solution, order: Order) -> MigrationPlan:
        """Go through the answers of the same worth, until one needs no restart or there are no more."""
        fewest, last = order.proven, best
        for _ in range(min(_MOST_ORDERS, _EFFORT // (relocation.size + 1))):
            found = relocation.another(last)
            if found is None:
                return self._outcome(best, order, fewest=fewest and relocation.exhausted)
            shorter = self._ordered(found)
            fewest, last = fewest and shorter.proven, found
            if shorter.restarts < order.restarts:
                best, order = found, shorter
            if not order.restarts:
                return self._outcome(best, order, fewest=True)
        return self._outcome(best, order, fewest=False)

    def _ordered(self, solution: Solution) -> Order:
        check(self.whole.problem, solution)
        return find_order(self.whole.migration, self.whole.moves(solution))

    def _outcome(self, best: Solution, order: Order, *, fewest: bool) -> MigrationPlan:
        late = [one for one in best.placements if one.demand >= self.whole.first_pending]
        pending = [(self.whole.problem.demands[one.demand], one) for one in late]
        steps = steps_of(order, self.whole.moves(best), pending)
        replay(self.whole.migration, steps)
        return MigrationPlan(
            steps=steps,
            moves=tuple(move for step in steps if step.placements for move in step.moves),
            admitted=tuple(one.demand - self.whole.first_pending for one in late),
            restarts=order.restarts,
            fewest=fewest,
            status=best.status,
            tiers=best.tiers,
            warnings=best.warnings,
        )
