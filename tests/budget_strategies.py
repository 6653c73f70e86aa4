"""Hypothesis strategies of what namespaces may use: caps, and something to share."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dralloc.objects.names import ClaimKey
from dralloc.objects.user_rules import Budget
from dralloc.problem import Alternative, Claim, Demand, Problem, Request

__all__ = ["NAMESPACES", "budgeted", "renamed"]

NAMESPACES = ("blue", "green", "red")


@st.composite
def budgeted(draw: st.DrawFn, problem: Problem) -> Problem:
    """The problem with its demands in several namespaces with caps, with something to share, or both."""
    demands = tuple(
        renamed(demand, draw(st.sampled_from(NAMESPACES)))
        for demand in problem.demands
    )
    fair, capped = draw(
        st.sampled_from([(True, False), (False, True), (True, True)])
    )
    resource = draw(st.sampled_from(["memory", "counter-0", "counter-1"]))
    budgets = tuple(
        Budget(
            namespace=namespace,
            resource=resource,
            used=draw(st.integers(0, 2)),
            total=12,
            most=draw(st.integers(0, 5)) if capped else None,
            fair=fair
            and any(demand.key.namespace == namespace for demand in demands),
        )
        for namespace in NAMESPACES
    )
    return replace(problem, demands=demands, budgets=budgets)


def renamed(demand: Demand, namespace: str) -> Demand:
    """Put the demand into another namespace, with claims of its own and without defects of single alternatives."""
    claims = tuple(
        replace(
            claim,
            key=ClaimKey(namespace, f"{demand.key.name}-{claim.key.name}"),
            requests=sound(claim),
        )
        for claim in demand.claims
    )
    return replace(
        demand, key=ClaimKey(namespace, demand.key.name), claims=claims
    )


def sound(claim: Claim) -> tuple[Request, ...]:
    return tuple(
        replace(
            request,
            alternatives=tuple(map(without_defect, request.alternatives)),
        )
        for request in claim.requests
    )


def without_defect(alternative: Alternative) -> Alternative:
    return replace(alternative, defect="")
