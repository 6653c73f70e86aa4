"""Moves that admit what is pending, against trying everything; every plan is gone through step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, Phase, assume, given, reject, settings
from hypothesis import strategies as st

from dralloc.ask.whatif.moves import Action, Migration, MigrationPlan, rearrange
from dralloc.ask.whatif.moves.rearrange import MigrationProblem
from dralloc.check import check
from dralloc.objects.choices import Options, Thresholds
from dralloc.objects.errors import ModelError
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.ledger import Holding
from dralloc.problem.solution import Solution, Status, holdings_of
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.component import build_for
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop
from examples import examples
from migrations import best_of_all, migrations

EXAMPLES = examples(60)
THOROUGH = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@THOROUGH
@given(migrations(), st.integers(0, 3))
def test_against_trying_everything(migration: Migration, most: int) -> None:
    assume(migration.movers)
    plan = rearrange(migration, most)
    assert plan.status is Status.OPTIMAL
    weight, moves = best_of_all(migration, most)
    assert [tier.value for tier in plan.tiers[:2]] == [weight, moves]
    assert (
        sum(
            migration.problem.demands[demand].weight for demand in plan.admitted
        )
        == weight
    )
    assert len(plan.moved) == moves <= most
    replayed(migration, plan)


@THOROUGH
@given(migrations(admin=True), st.integers(0, 3))
def test_with_admin_access(migration: Migration, most: int) -> None:
    assume(migration.movers)
    plan = rearrange(migration, most)
    assert [tier.value for tier in plan.tiers[:2]] == list(
        best_of_all(migration, most)
    )
    replayed(migration, plan)


@settings(THOROUGH, max_examples=examples(25))
@given(migrations(), st.integers(0, 3))
def test_searched_moves(migration: Migration, most: int) -> None:
    """What is too large for one model is searched: here, where all is one neighbourhood, the best is found, too."""
    assume(migration.movers)
    options = Options(thresholds=Thresholds(surveyed=0))
    plan = rearrange(migration, most, options)
    weight, moves = best_of_all(migration, most)
    assert [tier.value for tier in plan.tiers[:2]] == [weight, moves]
    assert plan.tiers[0].bound >= weight
    assert len(plan.moved) == moves
    replayed(migration, plan)


@settings(THOROUGH, max_examples=examples(25))
@given(migrations())
def test_who_cannot_stay_among_some_nodes_moves(migration: Migration) -> None:
    """A claim that has moved does not vanish where it is decided anew among nodes without its old one."""
    assume(migration.movers)
    problem = MigrationProblem(migration, None)
    stays = set(problem.places.values())
    sites = {
        demand: demand_sites
        for demand, demand_sites in survey(problem.problem).sites.items()
        if demand not in stays
    }
    model = build_for(problem.problem, sites, Stop())
    problem.exchange.add_to(model)
    fewest = problem.exchange.moves().terms(model)
    try:
        values = minimise(model.cp, fewest, Options(), Stop()).values
    except ModelError:
        # Somebody could only stay.
        reject()
    assert values is not None
    placed = {
        problem.demands[placement.demand].gang
        for placement in model.placements(
            lambda variable: values[variable.index]
        )
    }
    possible = {problem.demands[demand].gang for demand in sites}
    for stay, move_options in problem.exchange.stay_options:
        if stay is not None and possible.intersection(move_options):
            assert len(placed.intersection(move_options)) == 1


def replayed(migration: Migration, plan: MigrationPlan) -> None:
    """Nothing is over-committed at any step; who moves holds the new devices before the old ones are given back."""
    held = {mover.key: mover.holdings for mover in migration.movers}
    for step_index, step in enumerate(plan.steps):
        movers = (mover for move in step.moves for mover in move.option.movers)
        keys = [migration.movers[mover].key for mover in movers]
        if step.action in {Action.STOP, Action.RESTART}:
            held |= dict.fromkeys(keys, ())
        ledger = ClaimLedger(migration.problem)
        ledger.hold(
            holding for holdings in held.values() for holding in holdings
        )
        problem = replace(ledger.applied(), demands=step.demands)
        check(problem, Solution(step.placements))
        new = tuple(taken(migration, step))
        if step.action is Action.STOP:
            assert not new
        elif step.action is Action.ADMIT:
            assert step_index == len(plan.steps) - 1
        else:
            if step.action is Action.START:
                assert not any(held[key] for key in keys)
            held |= dict.fromkeys(keys, ()) | {keys[0]: new}


def taken(migration: Migration, step) -> Iterator[Holding]:  # type: ignore[no-untyped-def]
    problem = replace(migration.problem, demands=step.demands)
    for placement in step.placements:
        yield from holdings_of(problem, placement)
