"""Questions about clusters of which nobody has thought: the check accepts every answer."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.workloads.varied import varied
from dralloc.ask.whatif import defragment, drain, preempt
from examples import examples
from wire import cluster, device_class, gpus, node, pod, resource_slice

SECONDS = 0.5
"""For each question; how good the answer is does not matter here."""

VARIED = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_who_comes_for_an_extended_resource_does_not_ask_its_node_for_it() -> (
    None
):
    kind = device_class()
    kind["spec"]["extendedResourceName"] = "example.com/gpu"
    container = {
        "name": "c",
        "resources": {"requests": {"example.com/gpu": "1"}},
    }
    home = {
        **node("node-0"),
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    answer = defragment(
        cluster(
            kind,
            home,
            resource_slice(gpus(1), nodeName="node-0"),
            pod("new", containers=[container]),
        ),
        0,
    )
    assert len(answer.admitted) == 1


@VARIED
@given(st.integers(3, 12), st.integers(0, 2**32), st.integers(0, 2))
def test_moves(nodes: int, seed: int, moves: int) -> None:
    answer = defragment(varied(nodes, seed), moves, time_limit=SECONDS)
    assert answer.moves <= moves


@VARIED
@given(st.integers(3, 12), st.integers(0, 2**32))
def test_drained_nodes(nodes: int, seed: int) -> None:
    whole = varied(nodes, seed)
    name = whole.nodes[seed % len(whole.nodes)].metadata.name
    drain(whole, name, time_limit=SECONDS)


@VARIED
@given(st.integers(3, 12), st.integers(0, 2**32))
def test_evictions(nodes: int, seed: int) -> None:
    whole = varied(nodes, seed)
    waiting = [
        pod
        for pod in whole.pods
        if not pod.spec.node_name and whole.pod_claims(pod)
    ]
    if waiting:
        key = waiting[seed % len(waiting)].key
        preempt(whole, pod=f"{key.namespace}/{key.name}", time_limit=SECONDS)
