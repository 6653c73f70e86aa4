"""Whether demands may come one after the other, by what they are to rules between pods."""

from __future__ import annotations

import pytest

from dralloc.problem.inter_pod import Affinity, AntiAffinity, DomainLedger, InterPodRule, OneDomain, Role, Spread

DOMAINS = {"node-0": "west", "node-1": "east"}


@pytest.mark.parametrize(
    ("rule", "is_ordered"),
    [
        (Affinity((DOMAINS,), (frozenset(),)), True),
        (Spread(DOMAINS, {}, 9), True),
        (AntiAffinity(DOMAINS), False),
        (OneDomain(DOMAINS), False),
    ],
    ids=["affinity", "spread", "anti-affinity", "one domain"],
)
def test_who_runs_comes_first_where_the_order_matters(rule: InterPodRule, *, is_ordered: bool) -> None:
    running, newcomer = (Role(rule, carries=False, counts=True, runs=runs) for runs in (True, False))
    ledger = DomainLedger()
    ledger.enter([running], "node-0")
    assert ledger.allows([running], "node-0")
    ledger.enter([newcomer], "node-0")
    assert ledger.allows([newcomer], "node-0")
    assert ledger.allows([running], "node-0") is not is_ordered
    ledger.enter([newcomer], "node-0", -1)
    assert ledger.allows([running], "node-0")


def test_who_runs_asks_for_no_company_any_more() -> None:
    carried: list[InterPodRule] = [
        Affinity((DOMAINS,), (frozenset(),)),
        Spread(DOMAINS, {}, 1),
        AntiAffinity(DOMAINS),
        OneDomain(DOMAINS),
    ]
    roles = [Role(rule, carries=True, counts=True).running for rule in carried]
    assert [role.carries for role in roles] == [False, False, True, True]
    assert all(role.counts and role.runs for role in roles)
