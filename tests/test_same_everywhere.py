"""The same cluster gives the same problem, model and answer in every process: none goes by the order of a set."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import wire
from company_strategies import companies
from dralloc.objects.cluster import Cluster
from examples import INDEPENDENT, examples
from mixed_strategies import mixed_teams

ANSWER = """
import pickle, sys
from dralloc import allocate
from dralloc.compile.compiler import compile_cluster
from dralloc.solve.optimum import build

with open(sys.argv[1], "rb") as file:
    clusters = pickle.load(file)
for cluster in clusters:
    print(build(compile_cluster(cluster).whole).cp.proto)
    for words in {"mode": "first-fit"}, {"mode": "scheduler"}, {"steps": 5}:
        plan = allocate(cluster, **words)
        print(words, plan.solution.placements)
        print([(tier.name, tier.value, tier.bound) for tier in plan.tiers])
"""


CLUSTERS = st.one_of(
    mixed_teams(most_nodes=3), companies(max_waiting=8).map(wire.cluster)
)


def answers(clusters: Path, hash_seed: int) -> str:
    """What a process says that has its sets of strings in another order, and its objects at other addresses."""
    done = subprocess.run(
        [sys.executable, "-c", ANSWER, str(clusters)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.minutes
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
# To make a sample smaller takes longer than to look at what differs.
@settings(
    max_examples=examples(6),
    phases=[Phase.generate],
    backend=INDEPENDENT,
    deadline=None,
)
@given(st.lists(CLUSTERS, min_size=6, max_size=12))
def test_the_same_clusters_are_answered_the_same_in_every_process(
    tmp_path_factory: pytest.TempPathFactory, clusters: Sequence[Cluster]
) -> None:
    path = tmp_path_factory.mktemp("same") / "clusters.pickle"
    path.write_bytes(pickle.dumps(clusters))
    first, second = (answers(path, hash_seed) for hash_seed in (1, 2))
    assert first.splitlines() == second.splitlines()
