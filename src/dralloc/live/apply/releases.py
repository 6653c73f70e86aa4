"""Which releases of kube-scheduler honour DeviceTaintRules, and what is known of the one that runs.

Sources: KEP-5055; ``pkg/features/kube_features.go`` and ``staging/src/k8s.io/dynamic-resource-allocation/resourceslice/
tracker`` of kubernetes/kubernetes; its pull requests 139651 and 139681 and CHANGELOG-1.36 (the fix is in 1.36.3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from dralloc.live.snapshot import Json

__all__ = [
    "RELEASES",
    "KubernetesVersion",
    "RuleSupport",
    "RunningScheduler",
    "running_schedulers",
    "support_of",
]


class RuleSupport(Enum):
    """What a kube-scheduler does about DeviceTaintRules."""

    NONE = "knows no DeviceTaintRules"
    OFF = "has DeviceTaintRules switched off"
    VOID = "ignores DeviceTaintRules, or panics where there are any (kubernetes/kubernetes pull request 139651)"
    WORKS = "honours DeviceTaintRules"
    UNKNOWN = "cannot be seen"


class KubernetesVersion(NamedTuple):
    """A release of Kubernetes."""

    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> KubernetesVersion | None:
        """The release that a text like ``v1.36.2-gke.100`` names; None if it names none."""
        found = re.match(r"v?1\.(\d+)(?:\.(\d+))?", text)
        return cls(int(found[1]), int(found[2] or 0)) if found else None

    def __str__(self) -> str:
        return f"1.{self.minor}.{self.patch}"


@dataclass(frozen=True, slots=True)
class SchedulerRelease:
    """What holds from a release on.

    Parameters
    ----------
    support
        What the scheduler does once its gates are on.
    gates
        The feature gates that it needs, with whether they are on by default.
    """

    since: KubernetesVersion
    support: RuleSupport
    gates: Mapping[str, bool]


_TAINTS: Final = "DRADeviceTaints"
_RULES: Final = "DRADeviceTaintRules"
RELEASES: Final = (
    SchedulerRelease(KubernetesVersion(0), RuleSupport.NONE, {}),
    SchedulerRelease(KubernetesVersion(33), RuleSupport.WORKS, {_TAINTS: False}),
    SchedulerRelease(
        KubernetesVersion(35), RuleSupport.WORKS, {_TAINTS: False, _RULES: False}
    ),
    # The tracker got rules of v1beta2 and handled them as rules of v1alpha3.
    SchedulerRelease(
        KubernetesVersion(36), RuleSupport.VOID, {_TAINTS: True, _RULES: False}
    ),
    SchedulerRelease(
        KubernetesVersion(36, 3), RuleSupport.WORKS, {_TAINTS: True, _RULES: False}
    ),
    SchedulerRelease(
        KubernetesVersion(37), RuleSupport.WORKS, {_TAINTS: True, _RULES: True}
    ),
)
"""The releases in which something changed, in order."""


@dataclass(frozen=True, slots=True)
class RunningScheduler:
    """A kube-scheduler, as its pod shows it.

    Parameters
    ----------
    version
        Its release; None if the image does not say.
    gates
        The feature gates that its command line sets.
    """

    version: KubernetesVersion | None
    gates: Mapping[str, bool]

    @property
    def support(self) -> RuleSupport:
        """What it does about DeviceTaintRules."""
        if self.version is None:
            return RuleSupport.UNKNOWN
        release = next(one for one in reversed(RELEASES) if one.since <= self.version)
        on = all(
            self.gates.get(name, default) for name, default in release.gates.items()
        )
        return (
            release.support
            if on or release.support is RuleSupport.NONE
            else RuleSupport.OFF
        )


def support_of(
    server: KubernetesVersion | None, schedulers: Iterable[RunningScheduler]
) -> RuleSupport:
    """What is sure of all schedulers of a cluster.

    Parameters
    ----------
    server
        The release of the API server. A scheduler that cannot be seen may be one minor version older (version skew
        policy), and has its default gates.
    schedulers
        Those that can be seen.
    """
    seen = [one.support for one in schedulers]
    if not seen and server is not None:
        oldest = RunningScheduler(KubernetesVersion(server.minor - 1), {})
        seen = [
            oldest.support
            if oldest.support is RuleSupport.WORKS
            else RuleSupport.UNKNOWN
        ]
    worst = (RuleSupport.VOID, RuleSupport.NONE, RuleSupport.OFF, RuleSupport.UNKNOWN)
    return next(
        (one for one in worst if one in seen),
        RuleSupport.WORKS if seen else RuleSupport.UNKNOWN,
    )


def running_schedulers(pods: Iterable[Json]) -> Iterator[RunningScheduler]:
    """The kube-schedulers among pods: containers that run a program of this name, by release and gates."""
    for pod in pods:
        for container in pod.get("spec", {}).get("containers") or ():
            words = [
                str(word)
                for word in (
                    *(container.get("command") or ()),
                    *(container.get("args") or ()),
                )
            ]
            name, _, tag = (
                str(container.get("image", "")).partition("@")[0].rpartition(":")
            )
            if name.endswith("kube-scheduler") or (
                words and words[0].endswith("kube-scheduler")
            ):
                yield RunningScheduler(
                    KubernetesVersion.parse(tag), dict(_gates(words))
                )


def _gates(words: Iterable[str]) -> Iterator[tuple[str, bool]]:
    for word in words:
        flag, _, settings = word.partition("=")
        for setting in settings.split(",") if flag == "--feature-gates" else ():
            name, _, value = setting.partition("=")
            yield name, value.lower() == "true"
