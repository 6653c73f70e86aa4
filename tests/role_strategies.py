"""Hypothesis strategies of pods on nodes that have roles in rules between pods."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    Domains,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)
from inventory_strategies import rarely

__all__ = ["NODES", "Neighbour", "neighbourhoods"]

NODES = ("n0", "n1", "n2", "n3")


@dataclass(frozen=True)
class Neighbour:
    """A pod on a node."""

    roles: tuple[Role, ...]
    node: str

    @property
    def runs(self) -> bool:
        """Whether it was there before others came."""
        return any(role.runs for role in self.roles)


@st.composite
def neighbourhoods(draw: st.DrawFn, most: int = 5) -> list[Neighbour]:
    """Draw pods with roles in a few rules, in the same domains or in others."""
    topologies = [draw(_domains()) for _ in range(draw(st.integers(1, 2)))]
    rules = [
        draw(_rules(topologies))
        for _ in range(draw(st.sampled_from((1, 2, 2, 3))))
    ]
    return [
        Neighbour(draw(_roles(rules)), draw(st.sampled_from(NODES)))
        for _ in range(draw(st.integers(1, most)))
    ]


@st.composite
def _domains(draw: st.DrawFn) -> Domains:
    """Draw the domain of each node, which some nodes lack now and then."""
    nodes = [node for node in NODES if not draw(rarely())] or [NODES[0]]
    return {node: draw(st.sampled_from("ab")) for node in nodes}


@st.composite
def _rules(draw: st.DrawFn, topologies: list[Domains]) -> InterPodRule:
    domains = draw(st.sampled_from(topologies))
    match draw(
        st.sampled_from((Affinity, AntiAffinity, Spread, Spread, OneDomain))
    ):
        case kind if kind is Affinity:
            terms = (
                domains,
                *draw(st.lists(st.sampled_from(topologies), max_size=1)),
            )
            return Affinity(terms, tuple(draw(_few_domains()) for _ in terms))
        case kind if kind is AntiAffinity:
            return AntiAffinity(
                domains, draw(_few_domains()), draw(_few_domains())
            )
        case kind if kind is Spread:
            present = sorted(set(domains.values()))
            counted = draw(
                st.dictionaries(
                    st.sampled_from(present), st.integers(1, 2), max_size=1
                )
            )
            return Spread(
                domains,
                counted,
                draw(st.sampled_from((1, 1, 2))),
                draw(st.sampled_from((1, 1, 3))),
            )
        case _:
            return OneDomain(domains)


def _few_domains() -> st.SearchStrategy[frozenset[str]]:
    return st.sampled_from(
        (frozenset(), frozenset(), frozenset(), frozenset("a"))
    )


_SHARES = (
    (True, True),
    (True, True),
    (True, False),
    (False, True),
    (False, False),
)
"""Whether a pod carries a rule, and whether it counts for it."""


@st.composite
def _roles(draw: st.DrawFn, rules: list[InterPodRule]) -> tuple[Role, ...]:
    runs = draw(rarely())
    roles: list[Role] = []
    for rule in rules:
        carries, counts = draw(st.sampled_from(_SHARES))
        if isinstance(rule, OneDomain):
            # Whoever has a part in such a rule is bound by it.
            counts = carries
        # All terms of a pod's affinity are one rule.
        if isinstance(rule, Affinity) and any(
            role.carries and isinstance(role.rule, Affinity) for role in roles
        ):
            carries = False
        if carries or counts:
            roles.append(Role(rule, carries, counts))
    return tuple(role.running if runs else role for role in roles)
