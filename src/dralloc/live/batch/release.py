"""Lets everything go that waits for a queue, so that it can be taken away from a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from dralloc.live.apply.fence import lift_all
from dralloc.live.apply.pods import gates_of, gates_without
from dralloc.live.batch.pod_notes import PodNotes
from dralloc.live.snapshot import (
    PODS,
    Json,
    LiveObjects,
    Refused,
    condition,
    is_current,
    key_of,
)

__all__ = ["release_all"]

_GONE: Final = 404


class ReleaseCount(NamedTuple):
    """The numbers of pods that were released, and of parts of fences that were lifted."""

    pods: int
    fences: int


def release_all(
    objects: LiveObjects, gate: str, is_over: Callable[[str], bool]
) -> ReleaseCount:
    """Lift the fences of runs that are over, and take a gate from every pod, wherever the scheduler then puts it.

    Raises
    ------
    Refused, SnapshotError
        Something may not be changed.
    """
    fences = lift_all(objects, is_over)
    gated = [
        pod for pod in objects.listed(PODS)["items"] if gate in gates_of(pod)
    ]
    released = sum(_is_released(objects, pod, gate) for pod in gated)
    PodNotes(objects, "").correct(objects.listed(PODS)["items"])
    return ReleaseCount(released, fences)


def _is_released(objects: LiveObjects, pod: Json, gate: str) -> bool:
    """Take the gate from a pod; false if it is gone."""
    change = {
        "metadata": condition(pod),
        "spec": {"schedulingGates": gates_without(pod, gate)},
    }
    try:
        if is_current(lambda: objects.patch(PODS, key_of(pod), change)):
            return True
        changed_pod = objects.get(PODS, key_of(pod))
    except Refused as refusal:
        if refusal.status != _GONE:
            raise
        return False
    return gate in gates_of(changed_pod) and _is_released(
        objects, changed_pod, gate
    )
