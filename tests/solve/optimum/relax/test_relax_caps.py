"""What demands use at least of what has a cap, and what follows from that."""

from __future__ import annotations

from dataclasses import replace

from dralloc.objects.user_rules import Budget
from dralloc.problem import Problem
from dralloc.solve.optimum.objective import placed_weight
from dralloc.solve.optimum.relax import relaxed_bounds
from dralloc.solve.optimum.relax.caps import capped_amounts_of
from dralloc.solve.optimum.stopping import Stop
from solve.optimum.problem_builder import AlternativeSpec, ProblemBuilder


def with_cap(builder: ProblemBuilder, most: int) -> Problem:
    """A problem in which claims may use so much memory."""
    cap = Budget("default", "memory", used=1, total=100, most=1 + most)
    return replace(builder.problem(), budgets=(cap,))


def memory(amount: int) -> AlternativeSpec:
    return AlternativeSpec(capacity={"memory": amount})


def test_the_least_of_all_alternatives_and_devices_counts() -> None:
    builder = ProblemBuilder()
    shared = builder.device(capacity={"memory": 50})
    builder.device()
    two = AlternativeSpec(2, only=[shared], capacity={"memory": 5})
    common = builder.claim(memory(7))
    builder.pod(builder.claim(AlternativeSpec(only=[shared])))
    builder.pod(builder.claim(AlternativeSpec()))
    builder.pod(builder.claim(two, memory(3)))
    builder.pod(builder.claim([two, AlternativeSpec(only=[shared])]))
    builder.pod(builder.claim(AlternativeSpec(admin=True)))
    builder.pod(common)
    builder.pod(common)
    [capped] = capped_amounts_of(with_cap(builder, 20))
    assert capped.limit == 20
    # The second pod may have the device without memory, and so may one request of the third one.
    assert capped.takes == {0: 50, 2: 10, 3: 10}


def test_no_more_is_placed_than_a_cap_lets() -> None:
    builder = ProblemBuilder(nodes=2)
    for node in (0, 0, 0, 1, 1, 1):
        builder.device(node, capacity={"memory": 10})
    for amount in (2, 3, 4, 4):
        builder.pod(builder.claim(memory(amount)))
    problem = with_cap(builder, 9)
    [tier] = placed_weight(problem)
    *_, best = relaxed_bounds(problem, [tier], Stop())
    assert best.costs == (1,)
