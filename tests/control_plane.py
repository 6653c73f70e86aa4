"""A real control plane: the etcd and kube-apiserver in the directory that ``KUBEBUILDER_ASSETS`` names.

That is the convention of envtest, whose ``setup-envtest`` fetches them; without it, tests that need one are skipped.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from wire import Json

__all__ = ["Answer", "ControlPlane", "Daemon", "assets", "program", "running"]

TOKEN: Final = "test-admin"
PATIENCE: Final = 120.0
"""Seconds that a program may take to be ready, or to end."""

_PATHS: Final = {
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
    "DeviceTaintRule": "devicetaintrules",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
}
_OF_CLUSTER: Final = {
    "ResourceSlice",
    "DeviceClass",
    "DeviceTaintRule",
    "Namespace",
    "Node",
}


class Answer(NamedTuple):
    """What the API server says; status 0 if it drops the connection."""

    status: int
    body: Json

    @property
    def accepted(self) -> bool:
        """Whether it did as asked."""
        return 200 <= self.status < 300


class ControlPlane:
    """A running API server.

    Parameters
    ----------
    port
        Where it listens, on 127.0.0.1.
    folder
        What it wrote, the logs among it.
    daemons
        Its programs, by name, for who takes one away for a while.
    """

    def __init__(
        self, port: int, folder: Path, daemons: Mapping[str, Daemon]
    ) -> None:
        self.port = port
        self.folder = folder
        self.daemons = daemons
        # Its certificate is made at its start, by itself.
        self._trust = ssl._create_unverified_context()

    def request(
        self, method: str, path: str, body: Json | None = None
    ) -> Answer:
        """Ask for something."""
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
        }
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self._trust, timeout=60
        )
        try:
            # As compact as clients in Go write it: the server measures some fields in the bytes that it is sent.
            text = (
                None
                if body is None
                else json.dumps(
                    body, separators=(",", ":"), ensure_ascii=False
                ).encode()
            )
            connection.request(method, path, text, headers)
            response = connection.getresponse()
            answer = response.read()
        except (http.client.HTTPException, OSError):
            return Answer(0, {})
        finally:
            connection.close()
        is_json = response.headers.get_content_type() == "application/json"
        return Answer(
            response.status,
            json.loads(answer) if is_json else {"message": answer.decode()},
        )

    def create(self, api_object: Json) -> Answer:
        """Create an object, and then its status if it has one."""
        created = self.request(
            "POST", path_of(api_object, named=False), api_object
        )
        if not (created.accepted and "status" in api_object):
            return created
        return self.request(
            "PUT",
            f"{path_of(api_object)}/status",
            {**created.body, "status": api_object["status"]},
        )

    def delete(self, api_object: Json) -> Answer:
        """Take an object away."""
        return self.request("DELETE", path_of(api_object))


def path_of(api_object: Json, *, named: bool = True) -> str:
    """Where the API has an object, or its kind."""
    version, kind, meta = (
        api_object["apiVersion"],
        api_object["kind"],
        api_object["metadata"],
    )
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = (
        ""
        if kind in _OF_CLUSTER
        else f"/namespaces/{meta.get('namespace', 'default')}"
    )
    return f"{group}{scope}/{_PATHS[kind]}" + (
        f"/{meta['name']}" if named else ""
    )


def assets() -> Path:
    """The directory with the programs; skips the test without."""
    folder = Path(os.environ.get("KUBEBUILDER_ASSETS", ""))
    if not (folder / "kube-apiserver").is_file():
        pytest.skip("KUBEBUILDER_ASSETS names no directory with kube-apiserver")
    return folder


@contextmanager
def running(
    folder: Path,
    gates: Mapping[str, bool] | None = None,
    without: Collection[str] = (),
) -> Iterator[ControlPlane]:
    """A control plane that keeps what it writes in the folder.

    Parameters
    ----------
    gates
        Feature gates beside those of its version.
    without
        Groups with their versions that it does not serve.
    """
    programs = assets()
    api, clients, peers = _free_ports(3)
    subprocess.run(
        ["openssl", "genrsa", "-out", "key", "2048"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (folder / "tokens.csv").write_text(
        f'{TOKEN},admin,admin,"system:masters"\n'
    )
    etcd = f"http://127.0.0.1:{clients}"
    flags = ",".join(
        f"{name}={str(on).lower()}" for name, on in (gates or {}).items()
    )
    with ExitStack() as stack:
        data = [
            "--data-dir=etcd",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
        ]
        peer = f"--listen-peer-urls=http://127.0.0.1:{peers}"
        store = Daemon(
            folder, programs / "etcd", (*data, peer, "--unsafe-no-fsync")
        )
        store.start()
        stack.callback(store.stop)
        server = [
            f"--etcd-servers={etcd}",
            f"--secure-port={api}",
            "--bind-address=127.0.0.1",
            "--cert-dir=certs",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-key-file=key",
            "--service-account-signing-key-file=key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--token-auth-file=tokens.csv",
            "--authorization-mode=RBAC",
            f"--runtime-config={','.join(('api/all=true', *(f'{version}=false' for version in without)))}",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            f"--feature-gates={flags}",
        ]
        front = Daemon(folder, programs / "kube-apiserver", tuple(server))
        process = front.start()
        stack.callback(front.stop)
        plane = ControlPlane(
            api, folder, {"etcd": store, "kube-apiserver": front}
        )
        _wait(lambda: plane.request("GET", "/readyz").accepted, process, folder)
        _wait(
            lambda: plane.request("GET", "/api/v1/namespaces/default").accepted,
            process,
            folder,
        )
        yield plane


@dataclass
class Daemon:
    """A program that runs in a folder and adds to its log there; it can be killed, and started again as it was."""

    folder: Path
    binary: Path
    arguments: tuple[str, ...]
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> subprocess.Popen[bytes]:
        """Start it."""
        with (self.folder / f"{self.binary.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.binary, *self.arguments],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        return self.process

    def kill(self) -> None:
        """End it without a warning."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """End it, and wait until it has ended."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def program(
    folder: Path, binary: Path, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs in the folder and logs there, as long as this lasts."""
    daemon = Daemon(folder, binary, arguments)
    try:
        yield daemon.start()
    finally:
        daemon.stop()


def _wait(
    ready: Callable[[], bool], process: subprocess.Popen[bytes], folder: Path
) -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(
                f"the API server is not ready; see {folder}/kube-apiserver.log"
            )
        time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]
