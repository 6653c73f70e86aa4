"""A crowd that is planned for, and rivals without gates that the scheduler places meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from live.trials.clusters import crowd, rows_of_gpus
from live.trials.planes import Plane
from wire import Json, claim, request

__all__ = ["PLANNED", "planned_crowd", "rivals"]

PLANNED: Final = "app=train"
"""Whom a run is about, by label."""
_SINGLES: Final = 8


def planned_crowd(nodes: int, devices: int) -> list[Json]:
    """Equal nodes; eight pods that wait alone, two with a claim in common, and a gang of three."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    singles = crowd(f"single-{pod_index}" for pod_index in range(_SINGLES))
    both = list(crowd(iter(["both-0", "both-1"])))
    for pod in both:
        pod["spec"]["resourceClaims"] = [
            {"name": "gpu", "resourceClaimName": "common"}
        ]
    members = list(crowd(f"gang-{pod_index}" for pod_index in range(3)))
    for pod in members:
        pod["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
    pods = [*singles, *both, *members]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "train"}
    return [
        *rows_of_gpus(nodes, devices),
        claim("common", request()),
        group,
        *pods,
    ]


@contextmanager
def rivals(plane: Plane, count: int, interval: float) -> Iterator[None]:
    """Pods without gates, which come one after the other as long as this lasts."""
    ended = Event()

    def come() -> None:
        for rival in crowd(
            (f"rival-{pod_index}" for pod_index in range(count)), gated=False
        ):
            if ended.wait(interval):
                return
            plane.live.add([rival])

    coming = Thread(target=come)
    coming.start()
    try:
        yield
    finally:
        ended.set()
        coming.join()
