"""A real control plane with its controllers and scheduler, where ``KUBEBUILDER_ASSETS`` names them, too.

There is no kubelet: nodes are objects, and pods stay bound and never run.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Final

import pytest

from control_plane import TOKEN, ControlPlane, assets, program, running
from dralloc.live.snapshot import (
    ApiServer,
    ListedKind,
    LiveObjects,
    ReadLimits,
    Refused,
    connect,
    key_of,
    served,
)
from dralloc.live.snapshot.client import LISTED_KINDS
from live.snapshot.recorded import write_kubeconfig
from wire import Json

GATES = ("DRADeviceTaintRules", "GenericWorkload", "DRAWorkloadResourceClaims")
SCHEDULER_GATES = (
    *GATES,
    "DRAListTypeAttributes",
    "GangScheduling",
    "TopologyAwareWorkloadScheduling",
)
RULES = "DRADeviceTaintRules"
VERSIONS_OF_RULES = ("resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3")
CONTROLLERS = (
    "resourceclaim-controller,job-controller,namespace-controller,garbage-collector-controller,"
    "device-taint-eviction-controller,deployment-controller,replicaset-controller,statefulset-controller"
)
MORE = (
    ListedKind("events", "Event", namespaced=True),
    ListedKind("leases", "Lease", "coordination.k8s.io", namespaced=True),
    ListedKind("serviceaccounts", "ServiceAccount", namespaced=True),
    # Before those that make them: `wipe` goes from the end, and what is deleted must not be made again.
    ListedKind("replicasets", "ReplicaSet", "apps", namespaced=True),
    ListedKind("deployments", "Deployment", "apps", namespaced=True),
    ListedKind("statefulsets", "StatefulSet", "apps", namespaced=True),
    ListedKind("jobs", "Job", "batch", namespaced=True),
)
KINDS = {kind.kind: kind for kind in (*LISTED_KINDS, *MORE)}
ORDER = list(KINDS)
KEPT = ("Namespace", "PriorityClass", "ServiceAccount", "Lease")
"""What is left between tests."""


GATES_ON = dict.fromkeys(SCHEDULER_GATES, True)

TIMES: Final = Fraction(os.environ.get("DRALLOC_LIVE", "1/25"))
"""So many of the trials that take long; 1 are as many as the figures in benchmarks/README.md are of."""


def trials(count: int) -> int:
    """Return how many trials to make where so many are made at full strength."""
    return ceil(count * TIMES)


@dataclass
class LivePlane:
    """A control plane in which controllers run, with DeviceTaintRules or without."""

    plane: ControlPlane
    rules: bool = True

    @property
    def kubeconfig(self) -> Path:
        return self.plane.folder / "kubeconfig"

    def gates(self, names: Iterable[str]) -> str:
        """The flag that switches features on, as far as the API server has what they need."""
        return f"--feature-gates={','.join(f'{name}={str(self.rules or name != RULES).lower()}' for name in names)}"

    @contextmanager
    def objects(self) -> Iterator[tuple[ApiServer, LiveObjects]]:
        """Its objects, for who may do anything."""
        with connect(self.kubeconfig, limits=ReadLimits(seconds=600)) as server:
            yield (
                server,
                LiveObjects(
                    server.wire, served(server, (*LISTED_KINDS, *MORE))
                ),
            )

    @contextmanager
    def running_scheduler(
        self, binary: str = "kube-scheduler"
    ) -> Iterator[subprocess.Popen[bytes]]:
        """kube-scheduler, or another build of it, as long as this lasts."""
        flags = (
            f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0",
            "--authentication-skip-lookup", self.gates(SCHEDULER_GATES),
            "--kube-api-qps=3000", "--kube-api-burst=6000",
        )  # fmt: skip
        if not (assets() / binary).is_file():
            pytest.skip(f"KUBEBUILDER_ASSETS names no directory with {binary}")
        with program(self.plane.folder, assets() / binary, *flags) as process:
            yield process

    def add(self, given: Iterable[Json]) -> None:
        """Make objects as they are, with their status; nodes are ready, pods have an image."""
        every = list(given)
        with self.objects() as (_, objects):
            for namespace in {
                manifest["metadata"].get("namespace", "default")
                for manifest in every
                if _is_namespaced(manifest)
            }:
                if namespace != "default":
                    _made(
                        objects,
                        {
                            "apiVersion": "v1",
                            "kind": "Namespace",
                            "metadata": {"name": namespace},
                        },
                    )
            for manifest in sorted(
                every, key=lambda manifest: ORDER.index(manifest["kind"])
            ):
                _made(objects, _fit(manifest))

    def wipe(self, kinds: Iterable[str] = ()) -> None:
        """Delete what tests made, of some kinds or all."""
        wanted = [
            KINDS[kind] for kind in kinds or reversed(KINDS) if kind not in KEPT
        ]
        with self.objects() as (_, objects):
            for kind in wanted:
                while kind in objects.versions and (
                    items := objects.listed(kind)["items"]
                ):
                    made = [
                        item
                        for item in items
                        if not item["metadata"]["name"].startswith("system-")
                    ]
                    for item in made:
                        _deleted(objects, kind, item)
                    if not made:
                        break


def _is_namespaced(manifest: Json) -> bool:
    return KINDS[manifest["kind"]].namespaced


def _fit(manifest: Json) -> Json:
    manifest = json.loads(json.dumps(manifest))
    metadata = manifest["metadata"]
    for name in (
        "resourceVersion",
        "uid",
        "creationTimestamp",
        "managedFields",
        "generation",
        "ownerReferences",
    ):
        metadata.pop(name, None)
    if _is_namespaced(manifest):
        metadata.setdefault("namespace", "default")
    if manifest["kind"] == "Node":
        status = manifest.setdefault("status", {})
        status["allocatable"] = {
            "cpu": "128",
            "memory": "1Ti",
            "pods": "500",
            **status.get("allocatable", {}),
        }
        status["capacity"] = status["allocatable"]
        now = "2026-01-01T00:00:00Z"
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "x",
            "message": "x",
        }
        status["conditions"] = [
            {**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}
        ]
    for pod in (
        [manifest, manifest["spec"].get("template", {})]
        if "spec" in manifest
        else ()
    ):
        if manifest["kind"] == "Pod" or pod is not manifest:
            _fit_pod(manifest, pod)
    return manifest


def _fit_pod(owner: Json, pod: Json) -> None:
    """What the API server wants of pods and of their templates, and examples leave out."""
    if "spec" not in pod or owner["kind"] == "ResourceClaimTemplate":
        return
    for container in pod["spec"].setdefault("containers", [{"name": "c"}]):
        container.setdefault("image", "x")
    if owner["kind"] == "Job":
        pod["spec"].setdefault("restartPolicy", "Never")
    elif owner is not pod and "selector" not in owner["spec"]:
        owner["spec"]["selector"] = {
            "matchLabels": pod.setdefault("metadata", {}).setdefault(
                "labels", {"app": "x"}
            )
        }
    if owner is pod:
        pod.pop("status", None)


def _made(objects: LiveObjects, manifest: Json) -> None:
    kind = KINDS[manifest["kind"]]
    status = manifest.pop("status", None)
    try:
        made = objects.create(
            kind,
            {
                key: part
                for key, part in manifest.items()
                if key not in ("apiVersion", "kind")
            },
        )
    except Refused as refusal:
        if refusal.status != 409:
            raise
        made = objects.get(kind, key_of(manifest))
    if status:
        objects.patch(kind, key_of(made), {"status": status}, "status")
    if kind.kind == "Node":
        objects.patch(
            kind,
            key_of(made),
            {"spec": {"taints": manifest.get("spec", {}).get("taints")}},
        )


def _deleted(objects: LiveObjects, kind: ListedKind, item: Json) -> None:
    try:
        if item["metadata"].get("finalizers"):
            objects.patch(
                kind, key_of(item), {"metadata": {"finalizers": None}}
            )
        path = objects.path(kind, key_of(item))
        objects.wire.send(
            "DELETE",
            path,
            {},
            {"gracePeriodSeconds": 0, "propagationPolicy": "Background"},
        )
    except Refused as refusal:
        if refusal.status != 404:
            raise


@contextmanager
def live(folder: Path, *, rules: bool = True) -> Iterator[LivePlane]:
    """A control plane with controllers; its scheduler is started by who wants it.

    Parameters
    ----------
    rules
        Whether it has DeviceTaintRules.
    """
    controllers = assets() / "kube-controller-manager"
    if not controllers.is_file():
        pytest.skip(
            "KUBEBUILDER_ASSETS names no directory with kube-controller-manager"
        )
    with running(
        folder, {**GATES_ON, RULES: rules}, () if rules else VERSIONS_OF_RULES
    ) as plane:
        live_plane = LivePlane(plane, rules)
        write_kubeconfig(folder, f"https://127.0.0.1:{plane.port}", TOKEN)
        flags = (
            f"--kubeconfig={live_plane.kubeconfig}", "--authentication-skip-lookup", "--secure-port=0",
            "--leader-elect=false", live_plane.gates(GATES), "--kube-api-qps=3000", "--kube-api-burst=6000",
            "--service-account-private-key-file=key", f"--controllers={CONTROLLERS}",
        )  # fmt: skip
        with program(folder, controllers, *flags):
            yield live_plane
