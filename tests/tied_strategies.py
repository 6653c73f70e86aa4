"""Hypothesis strategies for pods that are tied to each other: by rules, claims in common, gangs, and a cap."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from dralloc.objects.user_rules import Budget
from dralloc.problem import Demand, Problem
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    Domains,
    InterPodRule,
    Role,
    Spread,
)
from inventory_strategies import rarely
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder

__all__ = ["tied_pods"]


@st.composite
def tied_pods(draw: st.DrawFn) -> Problem:
    """Draw up to twelve pods, and up to six nodes of two zones with a few devices each, which are shared for a cap.

    With a cap, some pods ask for a share of all devices of a node.
    """
    builder = ProblemBuilder(draw(st.sampled_from([4, 6, 2, 3, 5])))
    nodes = [f"node-{node}" for node in range(len(builder.own))]
    cap = draw(st.sampled_from([None, None, 6, 4, 8]))
    capacity = None if cap is None else {"memory": 2}
    asked = AlternativeSpec(capacity=None if cap is None else {"memory": 1})
    for node in range(len(nodes)):
        for _ in range(draw(st.sampled_from([2, 1, 3]))):
            builder.device(node, capacity=capacity)
    if draw(rarely()):
        builder.device(None, capacity=capacity)
    by_node = {node: node for node in nodes}
    by_zone = {node: "ab"[index % 2] for index, node in enumerate(nodes)}
    rules = draw(st.lists(_rules(by_node, by_zone), min_size=1, max_size=3))
    shared = [builder.claim(asked) for _ in range(2)]
    for _ in range(draw(st.sampled_from([8, 12, 4, 6, 10]))):
        is_for_all = cap is not None and draw(rarely())
        own = builder.claim(replace(asked, count=None) if is_for_all else asked)
        claims = draw(
            st.sampled_from(
                [[own], [own], [own], [own], shared[:1], [own, shared[1]]]
            )
        )
        builder.pod(
            *claims,
            weight=draw(st.sampled_from([1, 1, 20])),
            gang=draw(st.sampled_from(["", "", "", "", "", "g", "h"])),
        )
    problem = builder.problem()
    demands = [_with_roles(draw, demand, rules) for demand in problem.demands]
    budgets = (
        ()
        if cap is None
        else (Budget("default", "memory", used=0, total=36, most=cap),)
    )
    return replace(problem, demands=tuple(demands), budgets=budgets)


def _rules(
    by_node: Domains, by_zone: Domains
) -> st.SearchStrategy[InterPodRule]:
    domains = st.sampled_from([by_node, by_zone])
    return st.one_of(
        st.builds(AntiAffinity, domains),
        st.builds(
            lambda domains: Affinity((domains,), (frozenset(),)), domains
        ),
        st.builds(
            Spread,
            domains,
            st.just({}),
            st.integers(1, 2),
            st.sampled_from([1, 1, 3]),
        ),
    )


def _with_roles(
    draw: st.DrawFn, demand: Demand, rules: list[InterPodRule]
) -> Demand:
    """Draw the roles of a pod, which carries no more than one rule of affinity: all of its terms are one."""
    roles: list[Role] = []
    for rule in rules:
        carries, counts = draw(
            st.sampled_from(
                [(True, True), (False, True), (True, False), (False, False)]
            )
        )
        has_affinity = any(
            role.carries and isinstance(role.rule, Affinity) for role in roles
        )
        if isinstance(rule, Affinity) and has_affinity:
            carries = False
        if carries or counts:
            roles.append(Role(rule, carries, counts))
    return replace(demand, roles=tuple(roles))
