"""Whether demands may come one after the other, by what they are to rules between pods."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_neighbours import may_come
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    DomainLedger,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
)
from examples import INDEPENDENT, examples
from role_strategies import Neighbour, neighbourhoods

DOMAINS = {"node-0": "west", "node-1": "east"}


RULES: list[InterPodRule] = [
    Affinity((DOMAINS,), (frozenset(),)),
    Spread(DOMAINS, {}, 9),
    AntiAffinity(DOMAINS, frozenset({"west"}), frozenset({"west"})),
    OneDomain(DOMAINS),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_who_runs_comes_first_whatever_the_rules_say(
    rule: InterPodRule,
) -> None:
    running, newcomer = (
        Role(rule, carries=True, counts=True, runs=runs)
        for runs in (True, False)
    )
    ledger = DomainLedger()
    for node in DOMAINS:
        assert ledger.allows([running], node)
        ledger.enter([running], node)
    ledger.enter([newcomer], "node-0")
    assert not ledger.allows([running], "node-0")
    ledger.enter([newcomer], "node-0", -1)
    assert ledger.allows([running], "node-0")


def test_who_runs_asks_for_no_company_any_more() -> None:
    roles = [Role(rule, carries=True, counts=True).running for rule in RULES]
    assert [role.carries for role in roles] == [False, False, True, True]
    assert all(role.counts and role.runs for role in roles)


@settings(max_examples=examples(3000), backend=INDEPENDENT)
@given(neighbourhoods(most=6), st.randoms(use_true_random=False))
def test_who_comes_is_let_in_if_all_rules_hold(
    neighbours: list[Neighbour], random: Random
) -> None:
    """Also where somebody has left again before."""
    ledger = DomainLedger()
    there: list[Neighbour] = []
    # Who runs was there first.
    for newcomer in sorted(
        neighbours, key=lambda neighbour: not neighbour.runs
    ):
        if not newcomer.runs:
            expected = may_come(newcomer, there)
            assert ledger.allows(newcomer.roles, newcomer.node) == expected
        ledger.enter(newcomer.roles, newcomer.node)
        if newcomer.runs or random.random() < 0.7:
            there.append(newcomer)
        else:
            ledger.enter(newcomer.roles, newcomer.node, -1)
