"""What claims for all devices pass over, and whether they have to."""

from __future__ import annotations

from dataclasses import replace

from dralloc.problem import NodeIndex
from dralloc.problem.all_devices import lacks_a_device, passed_over
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, charged_grants
from dralloc.solve.first_fit import first_fit
from solve.optimum.problem_builder import (
    AlternativeSpec,
    ProblemBuilder,
    all_but_a_full_device,
)

PROBLEM = all_but_a_full_device()
FILLING, ASKING, *_ = first_fit(PROBLEM).placements


def in_use(*placements: Placement) -> Ledger:
    ledger = Ledger(PROBLEM)
    for _, device, charge in charged_grants(PROBLEM, placements):
        ledger.enter(PROBLEM.devices[device], charge, share=True)
    return ledger


def test_a_full_device_is_passed_over_with_what_it_would_be_charged() -> None:
    [(device, charge)] = passed_over(PROBLEM, ASKING)
    assert device == 0
    assert dict(charge.capacity) == {"memory": 1, "cores": 0}


def test_who_does_not_ask_for_all_passes_nothing_over() -> None:
    assert list(passed_over(PROBLEM, FILLING)) == []


def test_a_device_is_lacking_as_soon_as_nobody_fills_it() -> None:
    assert not lacks_a_device(PROBLEM, ASKING, in_use(FILLING))
    assert lacks_a_device(PROBLEM, ASKING, in_use())


def test_what_the_node_does_not_reach_is_not_passed_over() -> None:
    """One pool for two nodes, with a shared device for each of them."""
    builder = ProblemBuilder(nodes=2)
    for node in (0, 1):
        index = builder.device(None, capacity={"memory": 1})
        reached_from = frozenset({NodeIndex(node)})
        builder.devices[index] = replace(
            builder.devices[index], nodes=reached_from
        )
    builder.pod(builder.claim(AlternativeSpec(None)))
    problem = builder.problem()
    [placement] = first_fit(problem).placements
    assert list(passed_over(problem, placement)) == []
