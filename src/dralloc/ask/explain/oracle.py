"""The feasibility oracle, which tries changes out.

`FeasibilityOracle.admit` says whether a demand could be placed if something were different, tried out and never
guessed: it looks for a node on which the changed demand fits beside everything that stays. A node is asked with first
fit, whose answer the checker must accept, and where that finds nothing with the exact model. One demand goes to one
node, so node by node is exact.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dralloc.ask.context.context import Context, Lift, Screening
from dralloc.ask.explain.changes import Change
from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.choices import Mode, Options
from dralloc.objects.errors import FatalError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, DemandIndex, NodeIndex, Problem
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.problem.subproblem import Subproblem, cut
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.stopping import Stop, Stopped, with_time_left

__all__ = [
    "Certificate",
    "FeasibilityOracle",
    "in_whole",
    "with_seconds_left",
]

_Grants = tuple[tuple[Grant, ...], ...]

_LEAST: Final = 1.0
"""Seconds that a run of the solver gets when time is over: the answer that is explained may have taken all of it."""


def with_seconds_left(options: Options, stop: Stop) -> Options:
    """Return the options with what is left of the time as their limit, and a second if that is over."""
    # No run gets more than the whole question, however little that is.
    limits = (_LEAST, options.time_limit)
    least = min(seconds for seconds in limits if seconds is not None)
    return with_time_left(options, stop, least=least)


class _AttemptEndedError(Exception):
    """First fit's attempt ended with an error, for every node: no other node is looked at."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A checked answer to a changed problem: the node, and for each claim what it gets (devices of the problem)."""

    node: NodeIndex
    grants: _Grants

    @property
    def placement(self) -> Placement:
        """Return the certificate as a placement of the only demand."""
        return Placement(DemandIndex(0), self.node, self.grants)


class FeasibilityOracle:
    """Tries changes out.

    Parameters
    ----------
    compiled
        The objects behind the snapshot's problem.
    mode
        With first fit, a selector that fails ends the attempt, and only first fit's search counts.
    stop
        When what is not known yet is not found out any more: whoever asks about it is told by `Stopped`.
    """

    def __init__(
        self,
        snapshot: DemandSnapshot,
        compiled: CompiledCluster,
        mode: Mode,
        stop: Stop | None = None,
    ) -> None:
        self.stop = stop or Stop()
        self.snapshot = snapshot
        self.compiled = compiled
        self.exact = mode is Mode.OPTIMAL
        self._usable = frozenset(snapshot.nodes)
        self._screenings: dict[frozenset[ClaimKey], Screening] = {}
        self._known: dict[Hashable, _Grants | None] = {}
        self._orders: dict[
            tuple[frozenset[str], frozenset[ClaimKey]], list[NodeIndex]
        ] = {}

    def admit(
        self,
        change: Change,
        *,
        all_nodes: bool = False,
        nodes: Sequence[NodeIndex] | None = None,
    ) -> Certificate | None:
        """Return a certificate of where the changed demand fits; None if it fits nowhere.

        Parameters
        ----------
        all_nodes
            Whether the model is asked about every node, also where screening shows too few devices.
        nodes
            The nodes to look at, as far as they are allowed; all of these if None.

        Raises
        ------
        Stopped
            The time was over before it was known.
        """
        try:
            return self._search(change, nodes, all_nodes=all_nodes)
        except _AttemptEndedError:
            return None

    def gives_up(self, change: Change) -> bool:
        """Whether an error ends the attempt for every node."""
        try:
            self._search(change, None, all_nodes=True)
        except _AttemptEndedError:
            return True
        return False

    def _search(
        self,
        change: Change,
        nodes: Sequence[NodeIndex] | None,
        *,
        all_nodes: bool,
    ) -> Certificate | None:
        demand, lift = self.changed_demand(change), self.lift(change)
        context, screening = (
            self.context(change),
            self._screening(change.released),
        )
        candidates = (
            self.allowed(change)
            if nodes is None
            else [node for node in nodes if self._lets_in(change, node)]
        )
        for node in self.stop.each(candidates):
            # First fit is not screened: an error on a hopeless node ends its attempt.
            if all_nodes or not self.exact or screening.on(node, demand, lift):
                part = context.part([node], [demand], lift)
                certificate = self._within(part, demand, lift)
                if certificate is not None:
                    return certificate
        return None

    def changed_demand(self, change: Change) -> Demand:
        """The changed demand."""
        return change.of(self.snapshot.demand, self.snapshot.context.offers)

    def alone(self, change: Change) -> Problem:
        """The whole problem with the changed demand as the only one, to which certificates refer."""
        context = self.snapshot.context
        return replace(
            context.problem,
            demands=(self.changed_demand(change),),
            eligibility=context.offers,
        )

    def lift(self, change: Change) -> Lift:
        """The limits that do not count after the change."""
        return Lift(change.limits, lenient=self.exact)

    def context(self, change: Change) -> Context:
        """The context without the claims that are released, with the caps that are left."""
        return replace(
            self._screening(change.released).context,
            budgets=self.snapshot.caps.under(change),
        )

    def _screening(self, released: frozenset[ClaimKey]) -> Screening:
        if released not in self._screenings:
            # Many changes release the same claims: their ledgers are made once.
            ledger = self.snapshot.context.ledger.copy()
            ledger.release(released)
            self._screenings[released] = Screening(
                replace(self.snapshot.context, ledger=ledger)
            )
        return self._screenings[released]

    def allowed(self, change: Change) -> list[NodeIndex]:
        """The nodes that the demand may go to, in search order; nodes that are let in only by the change come last."""
        key = change.rules, self._leaving(change)
        if key not in self._orders:
            usable = self.snapshot.nodes
            further = (
                node
                for node in self.snapshot.problem.all_nodes
                if node not in self._usable
            )
            # A change that takes away no rule about nodes lets no further node in.
            candidates = (*usable, *further) if any(key) else usable
            self._orders[key] = [
                node for node in candidates if self._lets_in(change, node)
            ]
        return self._orders[key]

    def _lets_in(self, change: Change, node: NodeIndex) -> bool:
        """Whether every rule that leaves a node out is one that does not count after a change."""
        return change.rules.issuperset(
            self.snapshot.rules(node, self._leaving(change))
        )

    def _leaving(self, change: Change) -> frozenset[ClaimKey]:
        """The claims that go, if it matters what their pods take of nodes and mean for others."""
        return change.released if self.snapshot.bars else frozenset()

    def fits_on(self, node: NodeIndex) -> str:
        """Say where the demand fits after a change."""
        return f"fits on {self.snapshot.problem.nodes[node].name}"

    def _within(
        self, part: Subproblem, demand: Demand, lift: Lift
    ) -> Certificate | None:
        """An answer on the only node of a part of a context.

        Raises
        ------
        _AttemptEndedError
            First fit gives up for every node.
        """
        # Equal nodes give equal answers (see `inventory_key`).
        key = (
            demand.claims,
            lift,
            part.problem.budgets,
            inventory_key(part.problem),
        )
        if key not in self._known:
            solution = self._solve(part.problem)
            if solution is None:
                raise _AttemptEndedError
            self._known[key] = (
                solution.placements[0].grants if solution.placements else None
            )
        grants = self._known[key]
        if grants is None:
            return None
        return Certificate(part.nodes[0], in_whole(part, grants))

    def _solve(self, problem: Problem) -> Solution | None:
        solution = first_fit(problem)
        if not self.exact and isinstance(solution.errors.get(0), FatalError):
            return None
        # First fit knows nothing of caps. The model is only asked where it finds no way.
        solution = replace(
            solution,
            placements=tuple(within_caps(problem, solution.placements)),
        )
        if not solution.placements and self.exact:
            self.stop.check()
            solution = solve(problem, with_seconds_left(Options(), self.stop))
            # That nothing was found in time does not say that there is nothing.
            if not (solution.placements or solution.tiers[0].proven):
                raise Stopped
        check(problem, solution)
        return solution

    def fits(
        self, compiled: CompiledCluster, demand: Demand, node: NodeIndex
    ) -> bool:
        """Whether a demand of another cluster fits on a node there, alone and beside everything that binds it."""
        problem = compiled.whole
        if node not in problem.candidate_nodes(demand):
            return False
        part = cut(
            problem, [node], demands=[demand.by_itself(nodes=None)]
        ).problem
        solution = self._solve(
            part if self.exact else replace(part, budgets=())
        )
        return solution is not None and bool(solution.placements)


def in_whole(part: Subproblem, grants: Sequence[Sequence[Grant]]) -> _Grants:
    """Return grants of a part of the problem with the devices as the whole problem numbers them."""
    in_whole_problem = []
    for of_claim in grants:
        renumbered = (
            grant._replace(device=part.devices[grant.device])
            for grant in of_claim
        )
        in_whole_problem.append(tuple(renumbered))
    return tuple(in_whole_problem)
