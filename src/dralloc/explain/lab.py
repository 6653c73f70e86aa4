"""Whether a demand could be placed if something were different: tried out, never guessed.

`Lab.admit` looks for a node on which the changed demand fits beside everything that stays. A node is asked with first
fit, whose answer the checker must accept, and where that finds nothing with the exact model. One demand goes to one
node, so node by node is exact.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from dralloc.check import check
from dralloc.choices import Mode
from dralloc.context.context import Context
from dralloc.context.lift import Lift
from dralloc.context.node_rules import SHARED, Exclusions
from dralloc.context.screening import Screening
from dralloc.errors import FatalError
from dralloc.explain.change import Change
from dralloc.explain.turn import Turn
from dralloc.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.holdings import ClaimLedger
from dralloc.problem.subproblem import Subproblem
from dralloc.solution import Grant, Solution
from dralloc.solvers.cpsat import solve, within_caps
from dralloc.solvers.first_fit import first_fit

__all__ = ["Lab", "Witness"]


@dataclass(frozen=True, slots=True)
class Witness:
    """A checked answer to a changed problem: the node, and for each claim what it gets (devices of the problem)."""

    node: int
    grants: tuple[tuple[Grant, ...], ...]


class Lab:
    """Tries changes out.

    Parameters
    ----------
    turn
        The demand and what is in use at its turn.
    problem
        The whole problem.
    exclusions
        The rules that leave nodes out.
    mode
        With first fit, a selector that fails ends the attempt, and only first fit's search counts.
    """

    def __init__(self, turn: Turn, problem: Problem, exclusions: Exclusions, mode: Mode) -> None:
        self.turn = turn
        self.exact = mode is Mode.OPTIMAL
        self._whole = problem.demands[turn.number]
        self._exclusions = exclusions
        self._usable = frozenset(turn.nodes)
        self._ledgers: dict[frozenset[ClaimKey], ClaimLedger] = {frozenset(): turn.context.ledger}
        self._known: dict[Hashable, tuple[tuple[Grant, ...], ...] | None] = {}
        self._orders: dict[frozenset[str], list[int]] = {}

    def admit(self, change: Change, *, every: bool = False, nodes: Sequence[int] | None = None) -> Witness | None:
        """Where the changed demand fits, or None.

        Parameters
        ----------
        every
            Whether the model is asked about every node, also where too few devices show at a glance.
        nodes
            The nodes to look at; all that are allowed if None.
        """
        found = self._search(change, nodes, every=every)
        return None if found is None or found.node < 0 else found

    def gives_up(self, change: Change) -> bool:
        """Whether an error ends the attempt for every node."""
        found = self._search(change, None, every=True)
        return found is not None and found.node < 0

    def _search(self, change: Change, nodes: Sequence[int] | None, *, every: bool) -> Witness | None:
        demand, lift = self.wanted(change), self.lift(change)
        context = self.context(change)
        screening = Screening(context, demand, lift)
        for node in self.allowed(change) if nodes is None else nodes:
            if every or not self.exact or screening.on(node):
                found = self.on(context, node, demand, lift)
                if found is not None:
                    return found
        return None

    def wanted(self, change: Change) -> Demand:
        """The changed demand."""
        return change.of(self.turn.demand, self.turn.context.offers)

    def lift(self, change: Change) -> Lift:
        """What does not count after the change."""
        return Lift(change.counters, change.capacities, change.groups, lenient=self.exact)

    def context(self, change: Change) -> Context:
        """The context without the claims that are released, with the caps that are left."""
        if change.released not in self._ledgers:
            ledger = self.turn.context.ledger.copy()
            ledger.release(change.released)
            self._ledgers[change.released] = ledger
        return replace(self.turn.context, ledger=self._ledgers[change.released], budgets=self.turn.caps.under(change))

    def rules(self, node: int) -> tuple[str, ...]:
        """The rules that leave a node out."""
        shared = () if node in self.turn.reachable else (SHARED,)
        return (*self._exclusions.rules(self._whole, node), *shared)

    def allowed(self, change: Change) -> list[int]:
        """The nodes that the demand may go to, in search order; nodes that are let in only by the change come last."""
        if change.rules not in self._orders:
            count = len(self.turn.context.problem.nodes)
            extra = [node for node in range(count) if node not in self._usable and change.rules]
            let_in = [node for node in extra if change.rules.issuperset(self.rules(node))]
            self._orders[change.rules] = [*self.turn.nodes, *let_in]
        return self._orders[change.rules]

    def on(self, context: Context, node: int, demand: Demand, lift: Lift) -> Witness | None:
        """An answer on the node; one with node -1 if first fit has to give up for every node."""
        return self.within(context.part([node], [demand], lift), demand, lift)

    def within(self, part: Subproblem, demand: Demand, lift: Lift) -> Witness | None:
        """An answer on the only node of a part of a context, as `on` gives it."""
        key = demand.claims, lift, part.problem.budgets, inventory_key(part.problem)
        if key not in self._known:
            solution = self._solve(part)
            if solution is None:
                return Witness(-1, ())
            self._known[key] = solution.placements[0].grants if solution.placements else None
        found = self._known[key]
        return None if found is None else Witness(part.nodes[0], tuple(_renumbered(part, found)))

    def _solve(self, part: Subproblem) -> Solution | None:
        solution = first_fit(part.problem)
        if not self.exact and isinstance(solution.errors.get(0), FatalError):
            return None
        solution = replace(solution, placements=tuple(within_caps(part.problem, solution.placements)))
        if not solution.placements and self.exact:
            solution = solve(part.problem)
        check(part.problem, solution)
        return solution


def _renumbered(part: Subproblem, grants: Sequence[Sequence[Grant]]) -> Iterator[tuple[Grant, ...]]:
    for claim in grants:
        yield tuple(grant._replace(device=part.devices[grant.device]) for grant in claim)
