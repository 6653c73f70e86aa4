"""Where claims could go that leave devices to the demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dralloc.ask.context.context import Context
from dralloc.ask.context.node_bars import Resettling
from dralloc.ask.context.offers import TableOffers
from dralloc.ask.context.screening import Screening
from dralloc.ask.explain.caps import charged
from dralloc.ask.explain.change import Change
from dralloc.ask.explain.oracle import FeasibilityOracle, in_whole
from dralloc.check import check
from dralloc.compile.match.requests import compile_claim
from dralloc.objects.budget import Budget
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.problem.holdings import ClaimLedger
from dralloc.problem.solution import Placement, holdings_of
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import within_caps

__all__ = ["Mover"]


class Mover:
    """Finds new homes for claims."""

    def __init__(self, oracle: FeasibilityOracle) -> None:
        self._oracle = oracle
        self._context = oracle.snapshot.context
        self._budgets: tuple[Budget, ...] = ()

    def homes(
        self, node: int, claims: Sequence[ClaimKey]
    ) -> dict[ClaimKey, int] | None:
        """A node for each claim once the demand is on its node; None if one of them finds none."""
        change = Change(released=frozenset(claims))
        certificate = self._oracle.admit(change, nodes=[node])
        demands = [self._demand(key) for key in claims]
        if certificate is None or not all(demands):
            return None
        context = self._oracle.context(change)
        ledger, self._budgets = context.ledger.copy(), context.budgets
        self._enter(self._oracle.alone(change), certificate.placement, ledger)
        bars = self._oracle.snapshot.bars
        if bars is None:
            return self._homes(demands, ledger, None)
        with bars.resettling(node, claims) as resettling:
            return self._homes(demands, ledger, resettling)

    def _homes(
        self,
        demands: Sequence[Demand | None],
        ledger: ClaimLedger,
        resettling: Resettling | None,
    ) -> dict[ClaimKey, int] | None:
        homes: dict[ClaimKey, int] = {}
        for demand in demands:
            home = (
                self._settle(demand, ledger, resettling) if demand is not None else None
            )
            if demand is None or home is None:
                return None
            homes[demand.claims[0].key] = home
        return homes

    def _demand(self, key: ClaimKey) -> Demand | None:
        """The claim as something to be placed anew; None if its pods make that too hard to say."""
        cluster, offers = self._oracle.compiled.cluster, self._context.offers
        if not isinstance(offers, TableOffers) or key in self._oracle.snapshot.placed:
            return None
        claim = cluster.claim(key)
        pods = [pod for pod in cluster.pods if key in cluster.pod_claims(pod)]
        if (
            claim is None
            or len(pods) > 1
            or (pods and len(cluster.pod_claims(pods[0])) > 1)
        ):
            return None
        wanted = compile_claim(
            claim, cluster.classes, offers.table, offers.table.features
        )
        owner = pods[0].key if pods else key
        return Demand(owner, (wanted,), nodes=self._nodes(owner))

    def _nodes(self, owner: ClaimKey) -> tuple[int, ...]:
        """The nodes that a pod could be started on again."""
        by_name = {
            node.metadata.name: node for node in self._oracle.compiled.cluster.nodes
        }
        exclusions, running = self._oracle.snapshot.exclusions, Demand(owner, ())
        return tuple(
            number
            for number, node in enumerate(
                by_name[each.name] for each in self._context.problem.nodes
            )
            if not node.spec.unschedulable and not exclusions.of_running(running, node)
        )

    def _settle(
        self, demand: Demand, ledger: ClaimLedger, resettling: Resettling | None
    ) -> int | None:
        """Place the claim on the first node that holds it and its pod, and enter that."""
        pod = resettling.demand(demand.key) if resettling else None
        context = Context(
            self._context.problem, self._context.offers, ledger, self._budgets
        )
        free = replace(demand, nodes=None)
        screening = Screening(context)
        for node in (node for node in demand.nodes or () if screening.on(node, free)):
            if resettling and pod and not resettling.may_go(pod, node):
                continue
            part = context.part([node], [free])
            solution = first_fit(part.problem)
            if within_caps(part.problem, solution.placements):
                check(part.problem, solution)
                placement = Placement(
                    0, node, in_whole(part, solution.placements[0].grants)
                )
                whole = replace(
                    self._context.problem,
                    demands=(free,),
                    eligibility=self._context.offers,
                )
                self._enter(whole, placement, ledger)
                if resettling and pod:
                    resettling.settle(pod, node)
                return node
        return None

    def _enter(self, whole: Problem, placement: Placement, ledger: ClaimLedger) -> None:
        ledger.hold(holdings_of(whole, placement))
        self._budgets = charged(self._budgets, whole, [placement])
