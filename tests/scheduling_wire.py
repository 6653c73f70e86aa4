"""Short ways to write pods and nodes for the scheduler, and to ask it about one pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import wire
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.names import ClaimKey
from dralloc.solve.scheduler import Attempt, Profile, Scheduler
from wire import Json

AMPLE = {"cpu": "8", "memory": "16Gi", "pods": "110"}


def node(name: str, allocatable: Json | None = None, **fields: Any) -> Json:
    """A node with labels, taints, images and whether it is unschedulable; underscores in names of labels are dashes."""
    labels = {"kubernetes.io/hostname": name, **fields.pop("labels", {})}
    spec = {
        key: fields.pop(key)
        for key in ("taints", "unschedulable")
        if key in fields
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "allocatable": AMPLE if allocatable is None else allocatable,
            **fields,
        },
    }


def pod(
    name: str,
    *,
    on: str = "",
    labels: Json | None = None,
    requests: Json | None = None,
    **spec: Any,
) -> Json:
    """A pod with one container."""
    container = {
        "name": "main",
        "image": "main:1",
        "resources": {"requests": requests or {}},
        **spec.pop("container", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels or {},
        },
        "spec": {
            "containers": [container],
            **({"nodeName": on} if on else {}),
            **spec,
        },
    }


def configured(**profile: Any) -> Json:
    """A scheduler's configuration with one profile."""
    head = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    return {**head, "profiles": [profile]}


def scheduler(
    *objects: Json | Sequence[Json], profile: Profile | None = None
) -> Scheduler:
    """A scheduler of a cluster."""
    return Scheduler(
        compile_cluster(wire.cluster(*objects)), [profile or Profile()]
    )


def attempt(
    *objects: Json | Sequence[Json],
    profile: Profile | None = None,
    name: str = "pod",
) -> Attempt:
    """The first attempt for a pod."""
    return scheduler(*objects, profile=profile).attempt(
        ClaimKey("default", name)
    )


def feasible(outcome: Attempt) -> list[str]:
    """Names of the feasible nodes."""
    return [node_info.name for node_info in outcome.feasible]


def scores(outcome: Attempt, plugin: str) -> dict[str, int]:
    """Scores of a plugin, with its weight."""
    return dict(zip(feasible(outcome), outcome.scores[plugin], strict=True))
