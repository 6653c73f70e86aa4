"""A neighbourhood is the same problem wherever it is cut out."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

import wire
from company_strategies import companies
from dralloc.compile.compiler import compile_cluster
from dralloc.problem import indices
from dralloc.solve.backends import Parcel
from dralloc.solve.excerpt import Cutting
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum.component import build
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent
from dralloc.solve.optimum.improve.neighbourhood import neighbourhood
from examples import INDEPENDENT, examples
from wire import Json

PART = 0.5
"""Of the blocks, so many are free at random."""


def model_of(cutting: Cutting) -> str:
    return str(build(cutting.excerpt().problem).cp.proto)


@settings(max_examples=examples(100), backend=INDEPENDENT, deadline=None)
@given(companies(max_waiting=8), st.randoms(use_true_random=False))
def test_whoever_stands_by_knows_the_rules_of_those_who_are_free_elsewhere_too(
    objects: Sequence[Json], random: Random
) -> None:
    problem = compile_cluster(wire.cluster(objects)).whole
    incumbent = Incumbent(problem, first_fit(problem).placements)
    bonds = Bonds(problem)
    blocks = [
        block for block in indices(bonds.blocks) if random.random() < PART
    ]
    area = neighbourhood(
        Parcel(problem), incumbent, bonds, blocks, problem.all_nodes
    )
    sent = pickle.loads(pickle.dumps(area.cutting))
    excerpt = sent.excerpt()
    demands = dict(zip(excerpt.demands, excerpt.problem.demands, strict=True))
    rules = {
        role.rule for demand in area.freed for role in demands[demand].roles
    }
    for demand in area.standing_by:
        assert demands[demand].roles
        assert {role.rule for role in demands[demand].roles} <= rules
    assert model_of(sent) == model_of(area.cutting)
