"""What is remembered of nodes changes no answer: every attempt is as if nothing were known."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings

import wire
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.choices import Mode
from dralloc.objects.cluster import Cluster
from dralloc.solve.scheduler import Attempt, Profile, Scheduler, profiles_of
from examples import examples
from mixed_strategies import mixed_clusters
from plain_scheduler import PlainScheduler
from scheduling_strategies import CrowdedCluster, crowded_clusters
from wire import Json


def answer(found: Attempt) -> Json:
    return {
        "feasible": [one.name for one in found.feasible],
        "evaluated": found.evaluated,
        "scores": {plugin: scores.tolist() for plugin, scores in found.scores.items()},
        "rejected": {one.name: rejection for one, rejection in found.rejected.items()},
        "message": found.message,
    }


@settings(max_examples=examples(30))
@given(crowded_clusters())
def test_an_attempt_is_as_if_nothing_were_known(crowded: CrowdedCluster) -> None:
    compiled = compile_cluster(wire.cluster(*crowded.objects))
    agree(compiled, profiles_of(crowded.configuration, "test"), crowded.heard_of)


@settings(
    max_examples=examples(5),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(mixed_clusters(most_nodes=3))
def test_so_it_is_where_everything_is_mixed(cluster: Cluster) -> None:
    compiled = compile_cluster(cluster, modes={Mode.SCHEDULER})
    agree(compiled, [Profile()], compiled.problem.all_nodes)


def agree(
    compiled: CompiledCluster, profiles: Sequence[Profile], heard_of: Sequence[int]
) -> None:
    quick = Scheduler(compiled, profiles, heard_of)
    plain = PlainScheduler(compiled, profiles, heard_of)
    waiting = [pod.key for pod in compiled.cluster.pods if not pod.spec.node_name]
    bound = set()
    # Whoever has no node is tried again at the end: by then much is known, and some of it is outdated.
    for key in (*waiting, *waiting):
        if key in bound:
            continue
        found, expected = quick.attempt(key), plain.attempt(key)
        assert answer(found) == answer(expected)
        if expected.feasible:
            assert found.chosen.name == expected.chosen.name
            bound.add(key)
            quick.bind(key, found.chosen)
            plain.bind(key, expected.chosen.name)
