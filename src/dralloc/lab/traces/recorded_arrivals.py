"""The pods of a cluster, let arrive when they were made."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from dralloc.ask.scenario import Scenario
from dralloc.lab.simulate import Arrival
from dralloc.lab.simulate.arrivals.trace import LONGEST
from dralloc.lab.traces.cluster_trace import SECOND, ClusterTrace
from dralloc.objects.api import Pod
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError

__all__ = ["recorded_pods"]

_DURATION: Final = "dralloc.dev/duration"
"""Annotation of pods: for how many seconds they run."""


def recorded_pods(cluster: Cluster) -> ClusterTrace:
    """Let the pods of a cluster arrive when they were made, whether they wait or run.

    A pod without ``creationTimestamp`` does not arrive. It runs for as many seconds as its annotation
    ``dralloc.dev/duration`` says; without it, it never leaves. What arrives holds nothing in the beginning.

    Raises
    ------
    DrallocError
        A duration is no number of seconds.

    Examples
    --------
    >>> import dralloc
    >>> from dralloc.lab.traces import recorded_pods
    >>> recorded_pods(dralloc.example()).arrivals
    ()
    """
    made = {
        pod.key: datetime.fromisoformat(pod.metadata.creation_timestamp)
        for pod in cluster.pods
        if pod.metadata.creation_timestamp
    }
    first = min(made.values(), default=None)
    arrivals = [
        Arrival(
            (made[pod.key] - first) // timedelta(milliseconds=1),
            pod.key,
            _recorded_duration(pod),
        )
        for pod in cluster.pods
        if pod.key in made and first is not None
    ]
    claims = {
        claim for pod in made for claim in cluster.claims_of_pods.get(pod, ())
    }
    waiting = Scenario(cluster).release(claims).unbind(made.keys())
    in_order = sorted(arrivals, key=lambda arrival: arrival.time)
    return ClusterTrace(waiting.cluster, tuple(in_order))


def _recorded_duration(pod: Pod) -> int | None:
    """Return for how many milliseconds a pod runs; None if that is not said."""
    text = pod.metadata.annotations.get(_DURATION)
    if text is None:
        return None
    try:
        seconds = float(text)
        if not 0 <= seconds <= LONGEST:
            raise ValueError(
                f"{text} is not a number of seconds from 0 to {LONGEST}"
            )
    except ValueError as error:
        raise DrallocError(
            f"Pod {pod.key}: metadata.annotations[{_DURATION}]: {error}"
        ) from None
    return round(seconds * SECOND)
