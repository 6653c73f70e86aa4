"""Right answers to problems with one thing changed: those that break a rule are refused, and no others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from random import Random
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brute_force import best_solution, every_solution, feasible
from brute_pods import is_bound_right
from dralloc.check import violations
from dralloc.problem import Charge, Problem, indices
from dralloc.problem.solution import (
    Grant,
    Placement,
    Solution,
    with_node_grants,
)
from dralloc.solve.first_fit import first_fit
from examples import INDEPENDENT, examples
from pod_strategies import BoundPods, bound_pods
from strategies import TableEligibility, problems

T = TypeVar("T")
LOG = logging.getLogger(__name__)

Mutant = tuple[str, Problem, Solution]
"""What was changed, and the problem and the answer with the change."""

MOST = 25
"""So many changes are made to an answer."""

thoroughly = settings(
    deadline=None,
    database=None,
    max_examples=max(40, examples(40)),
    backend=INDEPENDENT,
    suppress_health_check=list(HealthCheck),
)


def test_all_mutations_of_grants_that_break_a_rule_are_refused_and_no_others() -> (
    None
):
    tried: Counter[tuple[str, bool]] = Counter()

    @thoroughly
    @given(problems(), st.booleans(), st.integers(0, 99))
    def mutate(drawn: Problem, is_best: bool, seed: int) -> None:
        answer = best_solution(drawn) if is_best else first_fit(drawn)
        assert violations(drawn, answer) == []
        every = list(mutants(drawn, Solution(answer.placements)))
        for kind, problem, mutant in Random(seed).sample(
            every, min(MOST, len(every))
        ):
            keeps_rules = feasible(problem, mutant) and is_in_order(mutant)
            messages = violations(problem, mutant)
            assert (messages == []) == keeps_rules, (kind, mutant, messages)
            tried[kind, keeps_rules] += 1

    mutate()
    has_both(tried, examples(40))


def test_all_mutations_of_places_that_break_a_rule_are_refused_and_no_others() -> (
    None
):
    tried: Counter[tuple[str, bool]] = Counter()

    @thoroughly
    @given(bound_pods(max_pods=3), st.randoms(use_true_random=False))
    def mutate(pods: BoundPods, random: Random) -> None:
        every = [
            solution
            for solution in islice(every_solution(pods.devices), 2000)
            if solution.placements
        ]
        right = [
            solution
            for solution in random.sample(every, min(20, len(every)))
            if is_bound_right(pods, solution.placements)
        ]
        for answer in right[:3]:
            for _ in range(MOST if every else 0):
                kind, mutant = with_others(answer, random.choice(every), random)
                keeps_rules = feasible(pods.devices, mutant) and is_bound_right(
                    pods, mutant.placements
                )
                whole = Solution(
                    tuple(with_node_grants(pods.whole, mutant.placements))
                )
                messages = violations(pods.whole, whole)
                assert (messages == []) == keeps_rules, (kind, mutant, messages)
                tried[kind, keeps_rules] += 1

    mutate()
    has_both(tried, examples(40))


def has_both(tried: Counter[tuple[str, bool]], least: int) -> None:
    """Make sure that changes of both sorts were made, and note how many."""
    LOG.info(
        "mutations, and whether they keep the rules: %s",
        dict(sorted(tried.items())),
    )
    breaking, harmless = (
        sum(n for (_, keeps), n in tried.items() if keeps is sort)
        for sort in (False, True)
    )
    assert min(breaking, harmless) >= least


def is_in_order(answer: Solution) -> bool:
    return all(
        placement.demand < other.demand
        for placement, other in pairwise(answer.placements)
    )


def with_others(
    answer: Solution, other: Solution, random: Random
) -> tuple[str, Solution]:
    """The answer in which some pod is where it is in another one; it may be nowhere in either."""
    ours, theirs = (
        {placement.demand: placement for placement in solution.placements}
        for solution in (answer, other)
    )
    demand = random.choice(sorted({*ours, *theirs}))
    kind = (
        "moved"
        if demand in ours and demand in theirs
        else "left out"
        if demand in ours
        else "added"
    )
    changed = {
        demand_index: placement
        for demand_index, placement in ours.items()
        if demand_index != demand
    }
    if demand in theirs:
        changed[demand] = theirs[demand]
    return kind, Solution(
        tuple(changed[demand_index] for demand_index in sorted(changed))
    )


def mutants(problem: Problem, answer: Solution) -> Iterator[Mutant]:
    """The answer, or what it takes of the problem, with one change of each kind, wherever it can be made."""
    for kind, mutant in _mutants_of_answer(problem, answer):
        yield kind, problem, mutant
    for kind, changed in _with_other_amounts(problem, answer):
        yield kind, changed, answer


def _mutants_of_answer(
    problem: Problem, answer: Solution
) -> Iterator[tuple[str, Solution]]:
    placements = answer.placements
    if len(placements) > 1:
        yield "order reversed", Solution(placements[::-1])
    for position, placement in enumerate(placements):
        before, after = placements[:position], placements[position + 1 :]
        yield "left out", Solution((*before, *after))
        for node in problem.all_nodes:
            if node != placement.node:
                yield (
                    "moved",
                    Solution((*before, replace(placement, node=node), *after)),
                )
        for kind, grants in _other_grants(problem, placement):
            yield (
                kind,
                Solution((*before, replace(placement, grants=grants), *after)),
            )
        yield from (
            ("shared claim moved", mutant)
            for mutant in _at_other_homes(problem, answer, position)
        )


def _other_grants(
    problem: Problem, placement: Placement
) -> Iterator[tuple[str, tuple[tuple[Grant, ...], ...]]]:
    for claim_index, grants in enumerate(placement.grants):

        def among(
            *changed: Grant, claim_index: int = claim_index
        ) -> tuple[tuple[Grant, ...], ...]:
            return (
                *placement.grants[:claim_index],
                changed,
                *placement.grants[claim_index + 1 :],
            )

        for which, grant in enumerate(grants):
            before, after = grants[:which], grants[which + 1 :]
            yield "device missing", among(*before, *after)
            yield "granted twice", among(*before, grant, grant, *after)
            for device in indices(problem.devices):
                if device != grant.device:
                    yield (
                        "device swapped",
                        among(*before, grant._replace(device=device), *after),
                    )
                    yield (
                        "device more",
                        among(
                            *before,
                            grant,
                            grant._replace(device=device),
                            *after,
                        ),
                    )
            request = (
                problem.demands[placement.demand]
                .claims[claim_index]
                .requests[grant.request]
            )
            for choice in range(len(request.alternatives)):
                if choice != grant.alternative:
                    yield (
                        "alternative",
                        among(
                            *(
                                _of_alternative(claim_grant, grant, choice)
                                for claim_grant in grants
                            )
                        ),
                    )


def _of_alternative(grant: Grant, changed: Grant, choice: int) -> Grant:
    return (
        grant._replace(alternative=choice)
        if grant.request == changed.request
        else grant
    )


def _at_other_homes(
    problem: Problem, answer: Solution, home: int
) -> Iterator[Solution]:
    """The answer with what a claim of some placement got with the others that list it; once with each."""
    placement = answer.placements[home]
    for claim_index, claim in enumerate(
        problem.demands[placement.demand].claims
    ):
        for position, other in enumerate(answer.placements):
            keys = [
                other_claim.key
                for other_claim in problem.demands[other.demand].claims
            ]
            if (
                position != home
                and claim.key in keys
                and placement.grants[claim_index]
            ):
                changed = list(answer.placements)
                changed[home] = _with(placement, claim_index, ())
                changed[position] = _with(
                    other, keys.index(claim.key), placement.grants[claim_index]
                )
                yield Solution(tuple(changed))


def _with(
    placement: Placement, claim_index: int, grants: tuple[Grant, ...]
) -> Placement:
    return replace(
        placement,
        grants=(
            *placement.grants[:claim_index],
            grants,
            *placement.grants[claim_index + 1 :],
        ),
    )


def _with_other_amounts(
    problem: Problem, answer: Solution
) -> Iterator[tuple[str, Problem]]:
    """The problem in which something takes more or less, or in which more or less is in use, where the answer is."""
    table = problem.eligibility
    assert isinstance(table, TableEligibility)
    for placement in answer.placements:
        for claim, grants in zip(
            problem.demands[placement.demand].claims,
            placement.grants,
            strict=True,
        ):
            for request, choice, device in grants:
                key = claim.requests[request].alternatives[choice].index, device
                for charge in _other_charges(table.charge(*key)):
                    changed = replace(
                        table, charges={**table.charges, key: charge}
                    )
                    yield (
                        "charge changed",
                        replace(problem, eligibility=changed),
                    )
    usage = problem.usage
    for slot, amounts in usage.consumed.items():
        for name in amounts:
            for step in (-1, 1):
                consumed = {
                    **usage.consumed,
                    slot: {**amounts, name: max(0, amounts[name] + step)},
                }
                yield (
                    "consumed capacity changed",
                    replace(problem, usage=replace(usage, consumed=consumed)),
                )
    for counter_index, counter in enumerate(problem.counters):
        for step in (-1, 1):
            other = replace(
                counter, free=min(counter.total, counter.free + step)
            )
            yield (
                "counter changed",
                replace(
                    problem,
                    counters=_put(
                        tuple(problem.counters), counter_index, other
                    ),
                ),
            )


def _other_charges(charge: Charge | None) -> Iterator[Charge | None]:
    yield None
    known = charge or Charge()
    for position, (name, amount) in enumerate(known.capacity):
        for step in (-1, 1):
            yield replace(
                known,
                capacity=_put(
                    known.capacity, position, (name, max(0, amount + step))
                ),
            )
    for position, (counter, amount) in enumerate(known.counters):
        for step in (-1, 1):
            yield replace(
                known,
                counters=_put(
                    known.counters, position, (counter, max(0, amount + step))
                ),
            )


def _put(values: tuple[T, ...], position: int, value: T) -> tuple[T, ...]:
    return (*values[:position], value, *values[position + 1 :])
