"""Chooses a fence that the scheduler honours: by its release, and by asking it.

First what is known of releases and of the one that runs, then the choice between DeviceTaintRules and taints of nodes,
then the probe that asks the scheduler itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple
from uuid import uuid4

from dralloc.live.apply.fence import Fence, NodeTaintFence, TaintRuleFence
from dralloc.live.apply.marks import FENCE
from dralloc.live.apply.run_names import has_ended
from dralloc.live.snapshot import NODES, PODS, RULES, Json, LiveObjects, Refused
from dralloc.objects.api.selecting import CORDON_TAINT
from dralloc.objects.choices import FenceKind
from dralloc.objects.errors import ApplyError, SnapshotError
from dralloc.objects.features import GATES, Maturity
from dralloc.objects.names import ClaimKey

__all__ = [
    "KubernetesVersion",
    "RuleSupport",
    "RunningScheduler",
    "SchedulerProbe",
    "fence_for",
    "running_schedulers",
    "support_of",
]

# ----------------------------------------------------------------------------
# Which releases of kube-scheduler honour DeviceTaintRules, and what is known of the
# one that runs.
#
# Sources: KEP-5055; ``pkg/features/kube_features.go`` and
# ``staging/src/k8s.io/dynamic-resource-allocation/resourceslice/ tracker`` of
# kubernetes/kubernetes; its pull requests 139651 and 139681 and CHANGELOG-1.36 (the
# fix is in 1.36.3).


class RuleSupport(Enum):
    """The effect that DeviceTaintRules have on a kube-scheduler."""

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
        """Return the release that a text like ``v1.36.2-gke.100`` names; None if it names none."""
        match = re.match(r"v?1\.(\d+)(?:\.(\d+))?", text)
        return cls(int(match[1]), int(match[2] or 0)) if match else None

    def __str__(self) -> str:
        return f"1.{self.minor}.{self.patch}"


@dataclass(frozen=True, slots=True)
class SchedulerRelease:
    """The support of DeviceTaintRules from a release on.

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


_TRUE: Final = frozenset({"1", "t", "T", "true", "True", "TRUE"})
"""What Go takes for true."""
_TAINTS: Final = "DRADeviceTaints"
_RULES: Final = "DRADeviceTaintRules"
RELEASES: Final = (
    SchedulerRelease(KubernetesVersion(0), RuleSupport.NONE, {}),
    SchedulerRelease(
        KubernetesVersion(33), RuleSupport.WORKS, {_TAINTS: False}
    ),
    SchedulerRelease(
        KubernetesVersion(35),
        RuleSupport.WORKS,
        {_TAINTS: False, _RULES: False},
    ),
    # The tracker got rules of v1beta2 and handled them as rules of v1alpha3.
    SchedulerRelease(
        KubernetesVersion(36), RuleSupport.VOID, {_TAINTS: True, _RULES: False}
    ),
    SchedulerRelease(
        KubernetesVersion(36, 3),
        RuleSupport.WORKS,
        {_TAINTS: True, _RULES: False},
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
        """The effect that DeviceTaintRules have on it."""
        if self.version is None:
            return RuleSupport.UNKNOWN
        release = next(
            known_release
            for known_release in reversed(RELEASES)
            if known_release.since <= self.version
        )
        # Whoever sets all gates of a stage sets those that have no setting of their own.
        stage = GATES["DeviceTaintRules"].stage_in(self.version.minor)
        maturity = stage.maturity if stage else Maturity.ALPHA
        of_stage = self.gates.get(f"All{maturity.title()}")
        on = all(
            self.gates.get(name, default if of_stage is None else of_stage)
            for name, default in release.gates.items()
        )
        return (
            release.support
            if on or release.support is RuleSupport.NONE
            else RuleSupport.OFF
        )


def support_of(
    server: KubernetesVersion | None, schedulers: Iterable[RunningScheduler]
) -> RuleSupport:
    """Return what is sure of all schedulers of a cluster.

    Parameters
    ----------
    server
        The release of the API server. A scheduler that cannot be seen may be as new, or one minor version older
        (version skew policy), and has its default gates.
    schedulers
        Those that can be seen.
    """
    seen = [scheduler.support for scheduler in schedulers]
    if not seen and server is not None:
        oldest = RunningScheduler(KubernetesVersion(server.minor - 1), {})
        seen = [
            oldest.support
            if oldest.support is RuleSupport.WORKS
            else RuleSupport.UNKNOWN
        ]
    if RuleSupport.UNKNOWN in seen and server is not None:
        # No scheduler is newer than the API server, and one that is as new ignores rules.
        newest = RunningScheduler(server, {_TAINTS: True, _RULES: True})
        if newest.support is RuleSupport.VOID:
            return RuleSupport.VOID
    worst = (
        RuleSupport.VOID,
        RuleSupport.NONE,
        RuleSupport.OFF,
        RuleSupport.UNKNOWN,
    )
    for support in worst:
        if support in seen:
            return support
    return RuleSupport.WORKS if seen else RuleSupport.UNKNOWN


def running_schedulers(pods: Iterable[Json]) -> Iterator[RunningScheduler]:
    """Yield the kube-schedulers among pods: containers that run a program of this name, by release and gates."""
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
                str(container.get("image", ""))
                .partition("@")[0]
                .rpartition(":")
            )
            if name.endswith("kube-scheduler") or (
                words and words[0].endswith("kube-scheduler")
            ):
                # One that behaves as an earlier release has gates of that.
                is_plain = not any(_values(words, "--emulated-version"))
                version = KubernetesVersion.parse(tag) if is_plain else None
                yield RunningScheduler(version, dict(_gates(words)))


def _gates(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield the feature gates that a command line sets, as Kubernetes reads them; a later setting counts."""
    for settings in _values(words, "--feature-gates"):
        for setting in settings.split(","):
            component, _, gate = setting.rpartition(":")
            name, _, value = gate.partition("=")
            if component.strip() in ("", "kube"):
                yield name.strip(), value.strip() in _TRUE


def _values(words: Sequence[str], flag: str) -> Iterator[str]:
    """Yield the values of a flag, each behind an equals sign or as a word of its own."""
    for word, following in zip(words, (*words[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        if name == flag:
            yield value if equals else following


# ----------------------------------------------------------------------------
# Chooses the fence: DeviceTaintRules only where the scheduler is sure to honour them,
# else taints of nodes.

_SYSTEM = "kube-system"


@dataclass(frozen=True)
class FenceChoice:
    """A fence, and why it is this one."""

    fence: Fence
    why: str

    @property
    def reason(self) -> str:
        """Both, in a line."""
        return f"{self.fence.kind}: {self.why}"


def fence_for(
    kind: FenceKind,
    objects: LiveObjects,
    run: str,
    is_over: Callable[[str], bool] = has_ended,
) -> FenceChoice:
    """Return the fence of a run on a cluster.

    Parameters
    ----------
    is_over
        Whether another run writes nothing any more, by its name.

    Raises
    ------
    ApplyError
        DeviceTaintRules are asked for where they are known to keep nobody away.
    """
    rules, nodes = (
        TaintRuleFence(objects, run, is_over=is_over),
        NodeTaintFence(objects, run, is_over=is_over),
    )
    match kind:
        case FenceKind.NONE:
            return FenceChoice(Fence(), "as asked")
        case FenceKind.NODE_TAINTS:
            return FenceChoice(nodes, "as asked")
        case FenceKind.AUTO | FenceKind.DEVICE_TAINTS:
            support = _support(objects)
    served = RULES in objects.versions
    why = (
        f"kube-scheduler {support.value}"
        if served
        else "the API server serves no DeviceTaintRules"
    )
    # With ``auto``, rules are taken only where they are sure to be honoured; by name, also where nobody can say.
    if kind is FenceKind.AUTO:
        return FenceChoice(
            rules if served and support is RuleSupport.WORKS else nodes, why
        )
    if not served or support not in (RuleSupport.WORKS, RuleSupport.UNKNOWN):
        raise ApplyError(
            f"--fence device-taints: {why}; --fence node-taints works everywhere"
        )
    return FenceChoice(rules, why)


def _support(objects: LiveObjects) -> RuleSupport:
    """Ask what a cluster's schedulers do about DeviceTaintRules, by their pods and the version of the API server."""
    try:
        pods = objects.listed(PODS, namespace=_SYSTEM)["items"]
    except Refused:  # not everybody may look there
        pods = []
    try:
        server = KubernetesVersion.parse(
            str(objects.wire.send("GET", "/version").get("gitVersion"))
        )
    except Refused:
        server = None
    return support_of(server, running_schedulers(pods))


# ----------------------------------------------------------------------------
# Asks the scheduler whether it knows of a fence: by a pod that can run nowhere, and
# is told why.
#
# The pod may come to one node only, and asks for a label there that no node has.
# kube-scheduler looks at taints before it looks at labels (the order of its default
# plugins), and says what it found first.
#
# Of DeviceTaintRules it says nothing to anybody. That it answers a pod that was made
# after them shows that it runs, and is not behind: it may still hear of rules later
# than of pods, for which a run waits (``--settle``).

NOWHERE: Final = "dralloc.dev/nowhere"
"""A label that no node has."""
_TAINTED: Final = "untolerated taint"
"""What kube-scheduler says of a node whose taint a pod does not tolerate (``plugins/tainttoleration``)."""
_GONE: Final = 404
_INTERVAL: Final = 0.1
"""Seconds between two looks."""


@dataclass(frozen=True)
class SchedulerProbe:
    """Pods that ask.

    Parameters
    ----------
    namespace
        Where they are made.
    patience
        Seconds for the scheduler to know of a fence.
    """

    objects: LiveObjects
    namespace: str
    pause: Callable[[float], None]
    patience: float = 15.0

    def confirm(self, name: str, run: str) -> str:
        """Wait until the scheduler says that a node is tainted by a run; why it could not be asked, if so.

        Nodes come to the scheduler in the order in which they were changed: who knows of the last one knows of all.

        Parameters
        ----------
        name
            The node; if it is empty, the scheduler may say anything.

        Raises
        ------
        ApplyError
            It says something else, or nothing.
        """
        waited, said = 0.0, ""
        while waited < self.patience:
            key = ClaimKey(self.namespace, f"dralloc-probe-{uuid4().hex[:12]}")
            try:
                node = (
                    self.objects.get(NODES, ClaimKey("", name))
                    if name
                    else None
                )
                self.objects.create(PODS, _pod(key, node, run))
            except Refused as refusal:
                return str(refusal)
            try:
                while not (said := self._said(key)) and waited < self.patience:
                    self.pause(_INTERVAL)
                    waited += _INTERVAL
            except Refused as refusal:
                # Where somebody has deleted the pod, another one asks.
                if refusal.status != _GONE:
                    return str(refusal)
            finally:
                with suppress(Refused, SnapshotError):  # it can run nowhere
                    path = self.objects.path(PODS, key)
                    self.objects.wire.send(
                        "DELETE", path, {}, {"gracePeriodSeconds": 0}
                    )
            if _TAINTED in said or (said and not name):
                return ""
            self.pause(_INTERVAL)
            waited += _INTERVAL
        raise ApplyError(
            f"the scheduler does not know of the fence after {self.patience:g} s: pod {key} was told "
            f"{said or 'nothing'}; --probe '' does not ask"
        )

    def _said(self, key: ClaimKey) -> str:
        """Return what the scheduler says about a pod; empty as long as it says nothing."""
        conditions = (
            self.objects.get(PODS, key).get("status", {}).get("conditions")
            or ()
        )
        scheduled = (
            entry for entry in conditions if entry.get("type") == "PodScheduled"
        )
        return next(
            (str(entry.get("message") or "") for entry in scheduled), ""
        )


def _pod(key: ClaimKey, node: Json | None, run: str) -> Json:
    """Return a run's pod that can run nowhere.

    Parameters
    ----------
    node
        The node that it is for, whose taints but that of the fence it tolerates; None if for any.
    """
    term: Json = {"matchExpressions": [{"key": NOWHERE, "operator": "Exists"}]}
    tolerated_taints: list[Json] = []
    if node is not None:
        only = {
            "key": "metadata.name",
            "operator": "In",
            "values": [node["metadata"]["name"]],
        }
        term["matchFields"] = [only]
        tolerated_taints = [
            node_taint
            for node_taint in node.get("spec", {}).get("taints") or ()
            if node_taint.get("key") != FENCE
        ]
    # kube-scheduler looks for cordons before it looks for taints: of a cordoned node it would say nothing else.
    cordon = {"key": CORDON_TAINT.key, "effect": CORDON_TAINT.effect}
    required = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [term]
        }
    }
    # Namespaces with the Pod Security Standard "restricted" refuse pods without these security contexts.
    container = {
        "name": "probe",
        "image": "probe",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {"app.kubernetes.io/name": "dralloc-probe", FENCE: run},
        },
        "spec": {
            "containers": [container],
            "affinity": {"nodeAffinity": required},
            "tolerations": [
                {**_tolerated(taint), "operator": "Exists"}
                for taint in [*tolerated_taints, cordon]
            ],
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }


def _tolerated(taint: Json) -> Json:
    return {name: taint[name] for name in ("key", "effect") if taint.get(name)}
