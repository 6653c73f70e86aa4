"""What trials on a real control plane share: the two schedulers, the command, and what must hold in the end."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from dralloc.live.apply.fence import run_of
from dralloc.live.apply.pods import claims_of, gates_of
from dralloc.live.snapshot import key_of
from live.apply.schedules import RULES_ON, devices_of, scheduler_pod
from live_plane import KINDS, LivePlane, live
from wire import Json

__all__ = [
    "PATIENCE",
    "SCHEDULERS",
    "Done",
    "Plane",
    "State",
    "begun",
    "command",
    "planes",
    "run",
    "say",
    "until",
]

SCHEDULERS: Final = ("kube-scheduler", "kube-scheduler-fixed")
"""As released, and with kubernetes#139651, without which DeviceTaintRules are ignored."""
PATIENCE: Final = 120.0
TAGS: Final = {"kube-scheduler": "v1.36.2", "kube-scheduler-fixed": "v1.36.3"}
"""The releases that the pods of the schedulers say they are; the fix is in 1.36.3."""


def say(line: str) -> None:
    """Show how a trial went, for who asks for it by ``-s``."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass
class Plane:
    """A control plane with a scheduler that never ends.

    Parameters
    ----------
    name
        Which of the schedulers.
    """

    live: LivePlane
    scheduler: subprocess.Popen[bytes]
    name: str

    def begin(self, objects: Iterable[Json]) -> None:
        """Take everything away, and begin with these objects."""
        self.live.wipe()
        shown = scheduler_pod(TAGS[self.name], f"--feature-gates={RULES_ON}")
        self.live.add([shown, *objects])

    def of(self, kind: str) -> list[Json]:
        """The objects of a kind."""
        with self.live.objects() as (_, objects):
            items: list[Json] = (
                objects.listed(KINDS[kind])["items"]
                if KINDS[kind] in objects.versions
                else []
            )
        return [{**item, "kind": kind} for item in items]

    def state(self) -> State:
        """Everything that trials look at, as it is now."""
        pods = [
            pod
            for pod in self.of("Pod")
            if pod["metadata"]["namespace"] != "kube-system"
        ]
        return State(
            pods=pods,
            claims=self.of("ResourceClaim"),
            fenced=[
                f"{item['kind']} {item['metadata']['name']}"
                for item in (
                    *self.of("Node"),
                    *self.of("DeviceTaintRule"),
                    *pods,
                )
                if run_of(item)
            ],
        )

    @property
    def is_scheduled(self) -> bool:
        """Whether the scheduler has not ended since the beginning."""
        return self.scheduler.poll() is None


@dataclass(frozen=True)
class State:
    """What a cluster holds.

    Parameters
    ----------
    fenced
        What belongs to a fence.
    """

    pods: list[Json]
    claims: list[Json]
    fenced: list[str]

    @property
    def bound(self) -> dict[str, str]:
        """The nodes of pods."""
        return {
            str(key_of(pod)): pod["spec"]["nodeName"]
            for pod in self.pods
            if pod["spec"].get("nodeName")
        }

    @property
    def gated(self) -> set[str]:
        """The pods that have gates."""
        return {str(key_of(pod)) for pod in self.pods if gates_of(pod)}

    @property
    def released(self) -> set[str]:
        """The pods without gates."""
        return {str(key_of(pod)) for pod in self.pods} - self.gated

    @property
    def held(self) -> dict[str, Json]:
        """The claims that are allocated."""
        return {
            str(key_of(claim)): claim
            for claim in self.claims
            if devices_of(claim)
        }

    @property
    def twice(self) -> list[tuple[str, str, str]]:
        """The devices that more than one claim holds, where nobody may share them."""
        holders = Counter(
            (result["driver"], result["pool"], result["device"])
            for claim in self.held.values()
            for result in claim["status"]["allocation"]["devices"]["results"]
            if not result.get("shareID")
        )
        return [device for device, count in holders.items() if count > 1]

    @property
    def overused(self) -> list[str]:
        """GPUs in parts, and shared ones, of whose memory more is given away than there is."""
        used: dict[tuple[str, str], int] = defaultdict(int)
        for claim in self.held.values():
            for result in claim["status"]["allocation"]["devices"]["results"]:
                gpu = "-".join(result["device"].split("-")[:2])
                used[result["pool"], gpu] += _memory(result)
        return [
            f"{pool}/{gpu}"
            for (pool, gpu), amount in used.items()
            if amount > 80
        ]

    @property
    def split(self) -> list[str]:
        """Pods that are bound to a node other than that of their claims."""
        names: list[str] = []
        for pod in self.pods:
            where = pod["spec"].get("nodeName")
            pools = {
                result["pool"]
                for key in claims_of(pod)
                if str(key) in self.held
                for result in self.held[str(key)]["status"]["allocation"][
                    "devices"
                ]["results"]
            }
            if where and pools - {where}:
                names.append(str(key_of(pod)))
        return names

    def has_claims(self, name: str) -> bool:
        """Whether all claims of a pod are allocated."""
        return all(
            str(key) in self.held
            for pod in self.pods
            if str(key_of(pod)) == name
            for key in claims_of(pod)
        )

    def stranded_of(self, app: str) -> list[str]:
        """The pods with this label that are stranded."""
        labelled = {
            str(key_of(pod))
            for pod in self.pods
            if (pod["metadata"].get("labels") or {}).get("app") == app
        }
        return [name for name in self.stranded if name in labelled]

    @property
    def stranded(self) -> list[str]:
        """Pods without gates that are not bound, and lack an allocation."""
        return [
            str(key_of(pod))
            for pod in self.pods
            if not pod["spec"].get("nodeName")
            and not gates_of(pod)
            and any(str(key) not in self.held for key in claims_of(pod))
        ]

    def broken(self) -> list[str]:
        """What must never be, in words."""
        return [
            *(f"held twice: {device}" for device in self.twice),
            *(f"more than there is: {gpu}" for gpu in self.overused),
            *(f"bound beside its claims: {name}" for name in self.split),
        ]


def _memory(result: Json) -> int:
    """The Gi of a GPU that a result takes."""
    for size, amount in (("full", 80), ("half", 40), ("quarter", 20)):
        if f"-{size}-" in result["device"]:
            return amount
    shared = (result.get("consumedCapacity") or {}).get("memory", "0Gi")
    return int(str(shared).removesuffix("Gi"))


@contextmanager
def planes(folder: Path, name: str, *, rules: bool = True) -> Iterator[Plane]:
    """A control plane with one of the schedulers."""
    with (
        live(folder, rules=rules) as live_plane,
        live_plane.running_scheduler(name) as scheduler,
    ):
        yield Plane(live_plane, scheduler, name)


def command(plane: Plane, folder: Path, *options: str) -> list[str]:
    """The command line of ``dralloc apply``."""
    where = [
        "--kubeconfig",
        str(plane.live.kubeconfig),
        "--journal",
        str(folder / "journal"),
    ]
    return [
        sys.executable,
        "-m",
        "dralloc",
        "apply",
        "--json",
        "-q",
        *where,
        *options,
    ]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    answer: Any
    said: str


def run(plane: Plane, folder: Path, *options: str) -> Done:
    """Run ``dralloc apply`` to its end."""
    done = subprocess.run(
        command(plane, folder, *options), capture_output=True, check=False
    )
    said = done.stderr.decode()
    return Done(done.returncode, json.loads(done.stdout or b"null"), said)


def begun(journal: Path) -> list[Json]:
    """The entries of a journal that may be written at this moment."""
    lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    return [json.loads(line) for line in lines]


def until(
    holds: Callable[[], bool], seconds: float = PATIENCE, pause: float = 0.05
) -> float:
    """Wait until something holds; the seconds that it took."""
    start = time.monotonic()
    while not holds():
        if time.monotonic() - start > seconds:
            pytest.fail(f"that did not come within {seconds:g} s")
        time.sleep(pause)
    return time.monotonic() - start
