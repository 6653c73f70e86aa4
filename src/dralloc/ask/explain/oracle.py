"""The feasibility oracle: whether a demand could be placed if something were different, tried out and never guessed.

`FeasibilityOracle.admit` looks for a node on which the changed demand fits beside everything that stays. A node is
asked with first fit, whose answer the checker must accept, and where that finds nothing with the exact model. One
demand goes to one node, so node by node is exact.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from dralloc.ask.context.context import Context
from dralloc.ask.context.lift import Lift
from dralloc.ask.context.screening import Screening
from dralloc.ask.explain.change import Change
from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.choices import Mode
from dralloc.objects.errors import FatalError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.problem.subproblem import Subproblem, cut
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve, within_caps

__all__ = ["Certificate", "FeasibilityOracle", "in_whole"]

_Grants = tuple[tuple[Grant, ...], ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """A checked answer to a changed problem: the node, and for each claim what it gets (devices of the problem)."""

    node: int
    grants: _Grants

    @property
    def placement(self) -> Placement:
        """The same as a placement of the only demand."""
        return Placement(0, self.node, self.grants)


class FeasibilityOracle:
    """Tries changes out.

    Parameters
    ----------
    compiled
        The objects behind the snapshot's problem.
    mode
        With first fit, a selector that fails ends the attempt, and only first fit's search counts.
    """

    def __init__(
        self, snapshot: DemandSnapshot, compiled: CompiledCluster, mode: Mode
    ) -> None:
        self.snapshot = snapshot
        self.compiled = compiled
        self.exact = mode is Mode.OPTIMAL
        self._usable = frozenset(snapshot.nodes)
        self._screenings: dict[frozenset[ClaimKey], Screening] = {}
        self._known: dict[Hashable, _Grants | None] = {}
        self._orders: dict[tuple[frozenset[str], frozenset[ClaimKey]], list[int]] = {}

    def admit(
        self, change: Change, *, every: bool = False, nodes: Sequence[int] | None = None
    ) -> Certificate | None:
        """Where the changed demand fits, or None.

        Parameters
        ----------
        every
            Whether the model is asked about every node, also where screening shows too few devices.
        nodes
            The nodes to look at, as far as they are allowed; all of these if None.
        """
        found = self._search(change, nodes, every=every)
        return None if found is None or found.node < 0 else found

    def gives_up(self, change: Change) -> bool:
        """Whether an error ends the attempt for every node."""
        found = self._search(change, None, every=True)
        return found is not None and found.node < 0

    def _search(
        self, change: Change, nodes: Sequence[int] | None, *, every: bool
    ) -> Certificate | None:
        demand, lift, context = (
            self.wanted(change),
            self.lift(change),
            self.context(change),
        )
        screening = self._screening(change.released)
        among = (
            self.allowed(change)
            if nodes is None
            else [node for node in nodes if self._lets_in(change, node)]
        )
        for node in among:
            if every or not self.exact or screening.on(node, demand, lift):
                found = self.within(context.part([node], [demand], lift), demand, lift)
                if found is not None:
                    return found
        return None

    def wanted(self, change: Change) -> Demand:
        """The changed demand."""
        return change.of(self.snapshot.demand, self.snapshot.context.offers)

    def alone(self, change: Change) -> Problem:
        """The whole problem with the changed demand as the only one, to which certificates refer."""
        context = self.snapshot.context
        return replace(
            context.problem, demands=(self.wanted(change),), eligibility=context.offers
        )

    def lift(self, change: Change) -> Lift:
        """What does not count after the change."""
        return Lift(change.limits, lenient=self.exact)

    def context(self, change: Change) -> Context:
        """The context without the claims that are released, with the caps that are left."""
        return replace(
            self._screening(change.released).context,
            budgets=self.snapshot.caps.under(change),
        )

    def _screening(self, released: frozenset[ClaimKey]) -> Screening:
        if released not in self._screenings:
            ledger = self.snapshot.context.ledger.copy()
            ledger.release(released)
            self._screenings[released] = Screening(
                replace(self.snapshot.context, ledger=ledger)
            )
        return self._screenings[released]

    def allowed(self, change: Change) -> list[int]:
        """The nodes that the demand may go to, in search order; nodes that are let in only by the change come last."""
        key = change.rules, self._leaving(change)
        if key not in self._orders:
            usable = self.snapshot.nodes
            extra = (
                node
                for node in self.snapshot.problem.all_nodes
                if node not in self._usable
            )
            candidates = (*usable, *extra) if any(key) else usable
            self._orders[key] = [
                node for node in candidates if self._lets_in(change, node)
            ]
        return self._orders[key]

    def _lets_in(self, change: Change, node: int) -> bool:
        """Whether every rule that leaves a node out is one that does not count after a change."""
        return change.rules.issuperset(self.snapshot.rules(node, self._leaving(change)))

    def _leaving(self, change: Change) -> frozenset[ClaimKey]:
        """The claims that go, if it matters what their pods take of nodes and mean for others."""
        return change.released if self.snapshot.bars else frozenset()

    def fits_on(self, node: int) -> str:
        """What a suggestion comes to, in words."""
        return f"fits on {self.snapshot.problem.nodes[node].name}"

    def within(
        self, part: Subproblem, demand: Demand, lift: Lift
    ) -> Certificate | None:
        """An answer on the only node of a part of a context; one with node -1 if first fit gives up for every node."""
        key = demand.claims, lift, part.problem.budgets, inventory_key(part.problem)
        if key not in self._known:
            solution = self._solve(part.problem)
            if solution is None:
                return Certificate(-1, ())
            self._known[key] = (
                solution.placements[0].grants if solution.placements else None
            )
        found = self._known[key]
        return (
            None if found is None else Certificate(part.nodes[0], in_whole(part, found))
        )

    def _solve(self, problem: Problem) -> Solution | None:
        solution = first_fit(problem)
        if not self.exact and isinstance(solution.errors.get(0), FatalError):
            return None
        solution = replace(
            solution, placements=tuple(within_caps(problem, solution.placements))
        )
        if not solution.placements and self.exact:
            solution = solve(problem)
        check(problem, solution)
        return solution

    def fits(self, compiled: CompiledCluster, demand: Demand, node: int) -> bool:
        """Whether a demand of another cluster fits on a node there, alone and beside everything that binds it."""
        whole = compiled.whole
        if node not in whole.candidate_nodes(demand):
            return False
        part = cut(whole, [node], demands=[demand.by_itself(nodes=None)]).problem
        solution = self._solve(part if self.exact else replace(part, budgets=()))
        return solution is not None and bool(solution.placements)


def in_whole(part: Subproblem, grants: Sequence[Sequence[Grant]]) -> _Grants:
    """What claims are granted in a part, in the devices of the whole."""
    return tuple(
        tuple(one._replace(device=part.devices[one.device]) for one in claim)
        for claim in grants
    )
