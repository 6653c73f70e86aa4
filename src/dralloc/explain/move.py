"""Where claims could go that make room for the demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dralloc.budget import Budget
from dralloc.check import check
from dralloc.context.context import Context
from dralloc.context.lift import NO_LIFT
from dralloc.context.node_rules import Exclusions
from dralloc.context.offers import TableOffers
from dralloc.context.screening import Screening
from dralloc.explain.caps import charged
from dralloc.explain.change import Change
from dralloc.explain.situation import Situation
from dralloc.match.requests import compile_claim
from dralloc.names import ClaimKey
from dralloc.problem import Demand
from dralloc.problem.holdings import ClaimLedger
from dralloc.solution import Placement, holdings_of
from dralloc.solvers.cpsat import within_caps
from dralloc.solvers.first_fit import first_fit

__all__ = ["Mover"]


class Mover:
    """Finds new homes for claims."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._context = situation.lab.turn.context
        self._exclusions = Exclusions(situation.compiled)
        self._budgets: tuple[Budget, ...] = ()

    def homes(self, node: int, claims: Sequence[ClaimKey]) -> dict[ClaimKey, int] | None:
        """A node for each claim once the demand is on its node; None if one of them finds none."""
        change = Change(released=frozenset(claims))
        lab = self._situation.lab
        witness = lab.admit(change, nodes=[node])
        demands = [self._demand(key) for key in claims]
        if witness is None or not all(demands):
            return None
        ledger = lab.context(change).ledger.copy()
        whole = replace(self._situation.problem, demands=(lab.wanted(change),), eligibility=self._context.offers)
        placement = Placement(0, node, witness.grants)
        ledger.hold(holdings_of(whole, placement))
        self._budgets = charged(lab.context(change).budgets, whole, [placement])
        homes: dict[ClaimKey, int] = {}
        for key, demand in zip(claims, demands, strict=True):
            home = self._settle(demand, ledger) if demand is not None else None
            if home is None:
                return None
            homes[key] = home
        return homes

    def _demand(self, key: ClaimKey) -> Demand | None:
        """The claim as something to be placed anew; None if its pods make that too hard to say."""
        compiled, offers = self._situation.compiled, self._context.offers
        if compiled is None or not isinstance(offers, TableOffers) or key in self._situation.lab.turn.placed:
            return None
        claim = compiled.cluster.claim(key)
        pods = [pod for pod in compiled.cluster.pods if key in compiled.cluster.pod_claims(pod)]
        if claim is None or len(pods) > 1 or (pods and len(compiled.cluster.pod_claims(pods[0])) > 1):
            return None
        wanted = compile_claim(claim, compiled.cluster.classes, offers.table, offers.table.features)
        owner = pods[0].key if pods else key
        return Demand(owner, (wanted,), nodes=self._nodes(owner))

    def _nodes(self, owner: ClaimKey) -> tuple[int, ...]:
        compiled = self._situation.compiled
        if compiled is None:
            return ()
        by_name = {node.metadata.name: node for node in compiled.cluster.nodes}
        nodes = [by_name[node.name] for node in compiled.problem.nodes]
        running = Demand(owner, ())
        return tuple(
            number
            for number, node in enumerate(nodes)
            if not node.spec.unschedulable and not self._exclusions.of_running(running, node)
        )

    def _settle(self, demand: Demand, ledger: ClaimLedger) -> int | None:
        """Place the claim on the first node that holds it, and enter that."""
        context = Context(self._context.problem, self._context.offers, ledger, self._budgets)
        free = replace(demand, nodes=None)
        screening = Screening(context, free, NO_LIFT)
        for node in demand.nodes or ():
            if not screening.on(node):
                continue
            part = context.part([node], [free])
            solution = first_fit(part.problem)
            if within_caps(part.problem, solution.placements):
                check(part.problem, solution)
                grants = tuple(
                    tuple(grant._replace(device=part.devices[grant.device]) for grant in claim)
                    for claim in solution.placements[0].grants
                )
                whole = replace(self._situation.problem, demands=(free,), eligibility=self._context.offers)
                placement = Placement(0, node, grants)
                ledger.hold(holdings_of(whole, placement))
                self._budgets = charged(self._budgets, whole, [placement])
                return node
        return None
