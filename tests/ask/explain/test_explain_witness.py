"""Suggestions pass the checker of objects, which reads pods and nodes by itself."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dralloc import Mode, allocate, explain
from dralloc.ask.context.node_bars import NodeBars
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import CheckError
from examples import INDEPENDENT, examples
from scenario_strategies import bound_pod, crowded_clusters, tainted_node
from settled import held
from small_strategies import across_claims, grouped_pods, limited_pods
from wire import claim, cluster, device_class, gpus, request, resource_slice

THOROUGH = settings(
    max_examples=examples(20),
    backend=INDEPENDENT,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
CLUSTERS = st.one_of(
    crowded_clusters(company=True),
    st.one_of(grouped_pods(), limited_pods(), across_claims()).map(cluster),
)


def full(cpu: str) -> Cluster:
    """The only GPU is in use; a pod waits for it that asks for 3 CPUs."""
    return cluster(
        device_class(),
        tainted_node("a", cpu),
        resource_slice(gpus(1), pool="a", nodeName="a"),
        held("x", "a", "gpu-0"),
        bound_pod("r", "x", cpu="1", nodeName="a"),
        claim("c", request()),
        bound_pod("p", "c", cpu="3"),
    )


def test_what_the_objects_forbid_is_not_suggested_whatever_the_compiler_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is known of what pods take of their nodes."""
    monkeypatch.setattr(NodeBars, "of", lambda *_: ())
    assert explain(full("3"), pod="default/p").suggestions
    with pytest.raises(CheckError, match="pod default/p: no room on node a"):
        explain(full("2"), pod="default/p")


@THOROUGH
@given(CLUSTERS, st.sampled_from((Mode.FIRST_FIT, Mode.OPTIMAL)))
def test_no_suggestion_is_withheld(whole: Cluster, mode: Mode) -> None:
    plan = allocate(whole, mode)
    for waiting in plan.unplaced:
        if not whole.is_lone(waiting.key, [waiting.key]):
            assert not explain(whole, pod=waiting.key, mode=mode).placed
