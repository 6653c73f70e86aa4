"""A real control plane on 127.0.0.1: etcd and kube-apiserver of ``KUBEBUILDER_ASSETS``, as envtest finds them.

kube-controller-manager and kube-scheduler run beside them if they are in the same directory. There is no kubelet: nodes
are objects, and pods stay bound and never run. Tests that ask for it are skipped where the binaries are not.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from dralloc.errors import SnapshotError
from dralloc.snapshot import ApiServer, Json, ReadLimits, Objects, Refused, ListedKind, connect, key_of, served
from dralloc.snapshot.kinds import LISTED_KINDS

TOKEN = "not-a-secret"
"""Of these servers only."""
GATES = "DRADeviceTaintRules=true,GenericWorkload=true,DRAWorkloadResourceClaims=true"
SCHEDULER_GATES = f"{GATES},DRAListTypeAttributes=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
CONTROLLERS = (
    "resourceclaim-controller,job-controller,namespace-controller,garbage-collector-controller,"
    "device-taint-eviction-controller,deployment-controller,replicaset-controller,statefulset-controller"
)
MORE = (
    ListedKind("events", "Event", namespaced=True),
    ListedKind("leases", "Lease", "coordination.k8s.io", namespaced=True),
    ListedKind("serviceaccounts", "ServiceAccount", namespaced=True),
    ListedKind("deployments", "Deployment", "apps", namespaced=True),
    ListedKind("statefulsets", "StatefulSet", "apps", namespaced=True),
    ListedKind("replicasets", "ReplicaSet", "apps", namespaced=True),
    ListedKind("jobs", "Job", "batch", namespaced=True),
)
KINDS = {kind.kind: kind for kind in (*LISTED_KINDS, *MORE)}
ORDER = list(KINDS)
KEPT = ("Namespace", "PriorityClass", "ServiceAccount", "Lease")
"""What is left between tests."""


def assets() -> Path:
    """Where the binaries are; skips the test if they are nowhere."""
    found = Path(os.environ.get("KUBEBUILDER_ASSETS", "nowhere"))
    if not (found / "kube-apiserver").exists():
        pytest.skip("KUBEBUILDER_ASSETS names no directory with kube-apiserver and etcd")
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass
class ControlPlane:
    """One that runs, in a directory of its own."""

    binaries: Path
    directory: Path
    port: int = field(default_factory=free_port)
    scheduler: subprocess.Popen[bytes] | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @contextmanager
    def objects(self) -> Iterator[tuple[ApiServer, Objects]]:
        """Its objects, for who may do anything."""
        with connect(self.kubeconfig, limits=ReadLimits(seconds=600)) as server:
            yield server, Objects(server.wire, served(server, (*LISTED_KINDS, *MORE)))

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one of the binaries; it ends with the control plane."""
        log: IO[bytes] = self._stack.enter_context((self.directory / f"{name}.log").open("ab"))
        process = subprocess.Popen([self.binaries / name, *arguments], stdout=log, stderr=log, cwd=self.directory)
        self._stack.callback(_stop, process)
        return process

    def start_scheduler(self) -> None:
        self.scheduler = self.start(
            "kube-scheduler", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0",
            "--authentication-skip-lookup", f"--feature-gates={SCHEDULER_GATES}", "--kube-api-qps=3000",
            "--kube-api-burst=6000",
        )  # fmt: skip

    def stop_scheduler(self) -> None:
        if self.scheduler is not None:
            _stop(self.scheduler)
            self.scheduler = None

    def add(self, given: Iterable[Json]) -> None:
        """Make objects as they are, with their status; nodes are ready, pods have an image."""
        every = list(given)
        with self.objects() as (_, objects):
            for namespace in {one["metadata"].get("namespace", "default") for one in every if _is_namespaced(one)}:
                if namespace != "default":
                    _made(objects, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            for one in sorted(every, key=lambda one: ORDER.index(one["kind"])):
                _made(objects, _fit(one))

    def wipe(self) -> None:
        """Delete what tests made."""
        with self.objects() as (_, objects):
            for kind in reversed(KINDS.values()):
                if kind in objects.versions and kind.kind not in KEPT:
                    for one in objects.listed(kind)["items"]:
                        _deleted(objects, kind, one)

    def close(self) -> None:
        self._stack.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _is_namespaced(one: Json) -> bool:
    return KINDS[one["kind"]].namespaced


def _fit(one: Json) -> Json:
    one = json.loads(json.dumps(one))
    metadata = one["metadata"]
    for name in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation", "ownerReferences"):
        metadata.pop(name, None)
    if _is_namespaced(one):
        metadata.setdefault("namespace", "default")
    if one["kind"] == "Node":
        status = one.setdefault("status", {})
        status["allocatable"] = {"cpu": "128", "memory": "1Ti", "pods": "500", **status.get("allocatable", {})}
        status["capacity"] = status["allocatable"]
        now = "2026-01-01T00:00:00Z"
        ready = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
        status["conditions"] = [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}]
    for pod in [one, one["spec"].get("template", {})] if "spec" in one else ():
        if one["kind"] == "Pod" or pod is not one:
            _fit_pod(one, pod)
    return one


def _fit_pod(owner: Json, pod: Json) -> None:
    """What the API server wants of pods and of their templates, and examples leave out."""
    if "spec" not in pod or owner["kind"] == "ResourceClaimTemplate":
        return
    for container in pod["spec"].setdefault("containers", [{"name": "c"}]):
        container.setdefault("image", "x")
    if owner["kind"] == "Job":
        pod["spec"].setdefault("restartPolicy", "Never")
    elif owner is not pod and "selector" not in owner["spec"]:
        owner["spec"]["selector"] = {"matchLabels": pod.setdefault("metadata", {}).setdefault("labels", {"app": "x"})}
    if owner is pod:
        pod.pop("status", None)


def _made(objects: Objects, one: Json) -> None:
    kind = KINDS[one["kind"]]
    status = one.pop("status", None)
    try:
        made = objects.create(kind, {key: part for key, part in one.items() if key not in ("apiVersion", "kind")})
    except Refused as refusal:
        if refusal.status != 409:
            raise
        made = objects.get(kind, key_of(one))
    if status:
        objects.patch(kind, key_of(made), {"status": status}, "status")
    if kind.kind == "Node":
        objects.patch(kind, key_of(made), {"spec": {"taints": one.get("spec", {}).get("taints")}})


def _deleted(objects: Objects, kind: ListedKind, one: Json) -> None:
    if one["metadata"]["name"].startswith("system-"):
        return
    try:
        if one["metadata"].get("finalizers"):
            objects.patch(kind, key_of(one), {"metadata": {"finalizers": None}})
        path = objects.path(kind, key_of(one))
        objects.wire.send("DELETE", path, {}, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
    except Refused as refusal:
        if refusal.status != 404:
            raise


@contextmanager
def running(directory: Path) -> Iterator[ControlPlane]:
    """Start a control plane, without its scheduler."""
    plane = ControlPlane(assets(), directory)
    etcd, peers = free_port(), free_port()
    try:
        plane.start(
            "etcd", f"--data-dir={directory / 'etcd'}", f"--listen-client-urls=http://127.0.0.1:{etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd}", f"--listen-peer-urls=http://127.0.0.1:{peers}",
            "--unsafe-no-fsync",
        )  # fmt: skip
        _write_files(plane)
        plane.start(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", f"--secure-port={plane.port}",
            "--bind-address=127.0.0.1", "--service-cluster-ip-range=10.0.0.0/24", f"--cert-dir={directory / 'certs'}",
            "--service-account-key-file=sa.pub", "--service-account-signing-key-file=sa.key",
            "--service-account-issuer=https://kubernetes.default.svc", "--token-auth-file=tokens.csv",
            "--authorization-mode=RBAC", "--runtime-config=api/all=true", f"--feature-gates={SCHEDULER_GATES}",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        )  # fmt: skip
        _wait_until_ready(plane)
        if (plane.binaries / "kube-controller-manager").exists():
            plane.start(
                "kube-controller-manager", f"--kubeconfig={plane.kubeconfig}", "--authentication-skip-lookup",
                "--secure-port=0", "--leader-elect=false", f"--feature-gates={GATES}", "--kube-api-qps=3000",
                "--kube-api-burst=6000", "--service-account-private-key-file=sa.key", f"--controllers={CONTROLLERS}",
            )  # fmt: skip
        yield plane
    finally:
        plane.close()


def _write_files(plane: ControlPlane) -> None:
    key = plane.directory / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    public = plane.directory / "sa.pub"
    subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
    users = {"admin": TOKEN, "batch": f"{TOKEN}-batch"}
    groups = {"admin": "system:masters", "batch": "system:authenticated"}
    accounts = {"batch": "system:serviceaccount:dralloc-system:dralloc-batch"}
    rows = (f'{token},{accounts.get(name, name)},{name},"{groups[name]}"' for name, token in users.items())
    (plane.directory / "tokens.csv").write_text("\n".join(rows) + "\n")
    url = f"https://127.0.0.1:{plane.port}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "admin",
        "clusters": [{"name": "here", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": name, "user": {"token": token}} for name, token in users.items()],
        "contexts": [{"name": name, "context": {"cluster": "here", "user": name}} for name in users],
    }
    plane.kubeconfig.write_text(json.dumps(config))


def _wait_until_ready(plane: ControlPlane, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            with connect(plane.kubeconfig, limits=ReadLimits(seconds=10, retries=0)) as server:
                server.wire.send("GET", "/api/v1/namespaces/default")
                return
        except (Refused, SnapshotError):
            if time.monotonic() > end:
                raise
            time.sleep(0.5)
