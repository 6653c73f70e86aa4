"""Replicas of the batch queue on a real control plane, with no more rights than deploy/ gives them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dralloc.live.apply.fence import run_of
from dralloc.live.apply.pods import gates_of
from dralloc.live.snapshot import RULES, LiveObjects, Refused
from dralloc.objects.errors import SnapshotError
from dralloc.objects.names import ClaimKey
from live.apply.schedules import devices_of
from live_plane import KINDS
from wire import Json

__all__ = ["LEASE", "Look", "Replicas"]

LEASE: Final = ClaimKey("dralloc-system", "dralloc-batch")


@dataclass
class Replicas:
    """Processes by the name that they hold the Lease with.

    Parameters
    ----------
    kubeconfig
        Of the account that deploy/ makes.
    options
        Of ``dralloc batch``, beside where it is and who.
    """

    kubeconfig: Path
    options: Iterable[str]
    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    begun: int = 0

    def start(self) -> str:
        """Begin another one; its name."""
        self.begun += 1
        name = f"replica-{self.begun}"
        where = ["--kubeconfig", str(self.kubeconfig), "--identity", name]
        command = [sys.executable, "-m", "dralloc", "batch"]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [*command, *where, *self.options], stderr=log, stdout=log
            )
        return name

    def send(self, name: str, signal_number: signal.Signals) -> None:
        """Send a signal to one."""
        self.processes[name].send_signal(signal_number)

    def log(self, name: str) -> str:
        """What one said."""
        return (self.folder / f"{name}.log").read_text()

    @property
    def ended(self) -> list[str]:
        """Those that ended although nobody ended them."""
        return [
            name
            for name, process in self.processes.items()
            if process.poll() is not None
        ]

    def forget(self, name: str) -> None:
        """Let one be over, once it has ended."""
        self.processes.pop(name).wait(60)

    def stop(self) -> None:
        """End all of them."""
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@dataclass
class Look:
    """Looks at a cluster again and again, also while its API server is away: then it sees nothing."""

    objects: LiveObjects

    def of(self, kind: str) -> list[Json]:
        """The objects of a kind."""
        self.objects.wire.renew()
        try:
            items: list[Json] = self.objects.listed(KINDS[kind])["items"]
        except (Refused, SnapshotError):
            return []
        return items

    @property
    def holder(self) -> str:
        """Who holds the Lease; empty if nobody does, or nobody can say."""
        lease = self._lease()
        return str(lease.get("spec", {}).get("holderIdentity") or "")

    @property
    def renewed(self) -> str:
        """When the Lease was renewed last."""
        return str(self._lease().get("spec", {}).get("renewTime") or "")

    def _lease(self) -> Json:
        self.objects.wire.renew()
        with suppress(Refused, SnapshotError):
            return self.objects.get(KINDS["Lease"], LEASE)
        return {}

    @property
    def is_fenced(self) -> bool:
        """Whether anything is."""
        nodes = [{**node, "kind": "Node"} for node in self.of("Node")]
        rules = (
            self.of("DeviceTaintRule") if RULES in self.objects.versions else []
        )
        return bool(rules) or any(map(run_of, nodes))

    def is_written(self, wave: str) -> bool:
        """Whether a claim of a pod of a wave is allocated."""
        return any(
            devices_of(claim)
            for claim in self.of("ResourceClaim")
            if claim["metadata"]["name"].startswith(f"{wave}-")
        )

    def is_released(self, wave: str) -> bool:
        """Whether a pod of a wave has lost its gate."""
        return any(not gates_of(pod) for pod in self._pods(wave))

    def is_bound(self, wave: str) -> bool:
        """Whether all pods of a wave are bound."""
        pods = self._pods(wave)
        return bool(pods) and all(pod["spec"].get("nodeName") for pod in pods)

    def _pods(self, wave: str) -> list[Json]:
        return [
            pod
            for pod in self.of("Pod")
            if pod["metadata"]["name"].startswith(f"{wave}-")
        ]
