"""Moves that admit what is pending, against trying everything; every plan is gone through step by step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from dralloc.check import check
from dralloc.problem.holdings import ClaimLedger, Holding
from dralloc.solution import Solution, Status, holdings_of
from dralloc.whatif.moves import Action, Estate, Outcome, rearrange
from estates import best_of_all, estates

EXAMPLES = int(os.environ.get("DRALLOC_MOVES_EXAMPLES", "60"))
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@THOROUGH
@given(estates(), st.integers(0, 3))
def test_against_trying_everything(estate: Estate, most: int) -> None:
    assume(estate.residents)
    found = rearrange(estate, most)
    assert found.status is Status.OPTIMAL
    weight, moves = best_of_all(estate, most)
    assert [tier.value for tier in found.tiers[:2]] == [weight, moves]
    assert sum(estate.problem.demands[number].weight for number in found.admitted) == weight
    assert len(found.moved) == moves <= most
    replayed(estate, found)


@THOROUGH
@given(estates(admin=True), st.integers(0, 3))
def test_with_admin_access(estate: Estate, most: int) -> None:
    assume(estate.residents)
    found = rearrange(estate, most)
    assert [tier.value for tier in found.tiers[:2]] == list(best_of_all(estate, most))
    replayed(estate, found)


def replayed(estate: Estate, found: Outcome) -> None:
    """Nothing is over-committed at any step; who moves holds the new devices before the old ones are given back."""
    held = {resident.key: resident.holdings for resident in estate.residents}
    for number, step in enumerate(found.steps):
        keys = [estate.residents[resident].key for resident in step.residents]
        if step.action in {Action.STOP, Action.RESTART}:
            held |= dict.fromkeys(keys, ())
        ledger = ClaimLedger(estate.problem)
        ledger.hold(one for holdings in held.values() for one in holdings)
        problem = replace(ledger.applied(), demands=step.demands)
        check(problem, Solution(step.placements))
        new = tuple(taken(estate, step))
        if step.action is Action.STOP:
            assert not new
        elif step.action is Action.ADMIT:
            assert number == len(found.steps) - 1
        else:
            assert step.action is not Action.START or not any(held[key] for key in keys)
            held |= dict.fromkeys(keys, ()) | {keys[0]: new}


def taken(estate: Estate, step) -> Iterator[Holding]:  # type: ignore[no-untyped-def]
    problem = replace(estate.problem, demands=step.demands)
    for placement in step.placements:
        yield from holdings_of(problem, placement)
