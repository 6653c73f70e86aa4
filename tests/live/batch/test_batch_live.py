"""The batch queue on a real control plane, with no more rights than deploy/ gives it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from live.apply.runs import GATE
from live.apply.schedules import devices_of, taints_of
from live.snapshot.recorded import write_kubeconfig
from live_plane import KINDS, LivePlane, live
from wire import Json, device_class, gpus, node, pod, request, resource_slice

PATIENCE = 180
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_INSIDE = "/namespaces/dralloc-system"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1{_INSIDE}/serviceaccounts",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "Role": f"{_RBAC}{_INSIDE}/roles",
    "RoleBinding": f"{_RBAC}{_INSIDE}/rolebindings",
}


def account(
    plane: LivePlane, root: Path, folder: Path, *, taints_nodes: bool = True
) -> Path:
    """A kubeconfig for the service account that deploy/ makes.

    Parameters
    ----------
    taints_nodes
        Whether it may taint nodes, as it has to where the scheduler cannot be seen.
    """
    names = ("rbac.yaml", *(("node-taints.yaml",) if taints_nodes else ()))
    files = [root / "deploy" / name for name in names]
    with plane.objects() as (server, _):
        for manifest in (
            manifest
            for file in files
            for manifest in yaml.safe_load_all(file.read_text())
        ):
            server.wire.send("POST", PATHS[manifest["kind"]], {}, manifest)
        wanted = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {},
        }
        answer = server.wire.send(
            "POST", f"{PATHS['ServiceAccount']}/dralloc-batch/token", {}, wanted
        )
    return write_kubeconfig(
        folder,
        f"https://127.0.0.1:{plane.plane.port}",
        answer["status"]["token"],
    )


@contextmanager
def replica(
    root: Path, kubeconfig: Path, name: str
) -> Iterator[subprocess.Popen[bytes]]:
    options = [
        "--interval",
        "3",
        "--at-least",
        "6",
        "--port",
        "0",
        "--identity",
        name,
        "--settle",
        "0.5",
        "--probe",
        "dralloc-system",
    ]
    command = [
        sys.executable,
        "-m",
        "dralloc",
        "batch",
        "--kubeconfig",
        str(kubeconfig),
        *options,
    ]
    with subprocess.Popen(
        command, cwd=root, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def waiting(pod_index: int) -> Json:
    entry = {"name": "gpu", "resourceClaimTemplateName": "one"}
    containers = [{"name": "c", "image": "x"}]
    return pod(
        f"p{pod_index}",
        resourceClaims=[entry],
        schedulingGates=[{"name": GATE}],
        containers=containers,
    )


def crowd() -> list[Json]:
    spec = {"spec": {"devices": {"requests": [request()]}}}
    metadata = {"name": "one", "namespace": "default"}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": spec,
    }
    slices = (
        resource_slice(
            gpus(4),
            name=f"s-{node_index}",
            pool=f"p-{node_index}",
            nodeName=f"node-{node_index}",
        )
        for node_index in (0, 1)
    )
    return [node("node-0"), node("node-1"), device_class(), template, *slices]


def told(pod_object: Json) -> bool:
    return any(
        condition["type"] == "dralloc.dev/Placed"
        for condition in pod_object["status"].get("conditions", ())
    )


def test_all_pods_are_bound_or_told_why_although_leaders_are_killed(
    root: Path, tmp_path: Path
) -> None:
    (plane_folder := tmp_path / "plane").mkdir()
    with live(plane_folder) as plane, plane.running_scheduler():
        kubeconfig = account(plane, root, tmp_path)
        plane.add(crowd())
        with replica(root, kubeconfig, "one") as first:
            plane.add(waiting(pod_index) for pod_index in range(4))
            until(plane, lambda: progress(plane) == (4, 0))
            plane.add(waiting(pod_index) for pod_index in range(4, 10))
            until(plane, lambda: bool(fenced(plane)))
            first.kill()
        assert fenced(plane) != []
        with replica(root, kubeconfig, "two") as second:
            until(plane, lambda: len(held(plane)) > 5)
            second.kill()
        assert fenced(plane) != []
        with (
            replica(root, kubeconfig, "three"),
            replica(root, kubeconfig, "four"),
        ):
            until(plane, lambda: progress(plane) == (8, 0))
            until(plane, lambda: fenced(plane) == [])
        assert len(held(plane)) == len(set(held(plane))) == 8


def test_without_device_taint_rules_nodes_are_tainted_meanwhile(
    root: Path, tmp_path: Path
) -> None:
    (plane_folder := tmp_path / "plane").mkdir()
    with live(plane_folder, rules=False) as plane, plane.running_scheduler():
        kubeconfig = account(plane, root, tmp_path)
        plane.add(crowd())
        plane.add(waiting(pod_index) for pod_index in range(6))
        with replica(root, kubeconfig, "one"):
            until(plane, lambda: bool(fenced(plane)))
            until(plane, lambda: progress(plane) == (6, 0))
            until(plane, lambda: fenced(plane) == [])
        assert len(set(held(plane))) == 6


def listed(plane: LivePlane, kind: str) -> list[Json]:
    with plane.objects() as (_, objects):
        items: list[Json] = objects.listed(KINDS[kind])["items"]
    return items


def fenced(plane: LivePlane) -> list[str]:
    return [
        item["metadata"]["name"]
        for item in listed(plane, "Node")
        if taints_of(item)
    ]


def held(plane: LivePlane) -> list[tuple[str, str]]:
    return [
        device
        for item in listed(plane, "ResourceClaim")
        for device in devices_of(item)
    ]


def progress(plane: LivePlane) -> tuple[int, int]:
    """How many pods are bound, and how many of the others know nothing."""
    pods = listed(plane, "Pod")
    others = [item for item in pods if not item["spec"].get("nodeName")]
    return len(pods) - len(others), sum(not told(item) for item in others)


def until(plane: LivePlane, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            pytest.fail(
                f"{progress(plane)} pods are bound, and were told nothing; {len(held(plane))} devices are held"
            )
        time.sleep(0.02)
