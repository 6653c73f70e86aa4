"""The table is true: what is modelled changes the answer, what is ignored is named, and strictness refuses it."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from typing import Any, Final

import pytest

import dralloc
import wire
from dralloc import Mode
from dralloc.compile.modelled.field_rows import Fate
from dralloc.compile.modelled.table import TABLE, row_of
from dralloc.objects.errors import InputError
from scheduling_wire import node, pod
from wire import Json

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
INDEX: Final = f"{wire.DRIVER}/index"
"""An attribute that all devices have."""
GROUP: Final[Json] = {
    "apiVersion": "scheduling.k8s.io/v1alpha3",
    "kind": "PodGroup",
    "metadata": {"name": "g", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}},
}
OBJECTS: Final[dict[str, Json]] = {
    manifest["kind"]: manifest
    for manifest in (
        node("a", labels={"zone": "east"}),
        wire.device_class(),
        wire.resource_slice(wire.gpus(1), name="s", pool="a", nodeName="a"),
        wire.claim(
            "c", wire.request(), constraints=[{"matchAttribute": INDEX}]
        ),
        pod(
            "p",
            resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}],
            schedulingGroup={"podGroupName": "g"},
        ),
        GROUP,
    )
}
"""A pod that gets its GPU."""

_ASKED: Final = "ResourceClaim spec.devices.requests.0.exactly"
_ELSEWHERE: Final = {"key": "zone", "operator": "In", "values": ["west"]}
_NOBODY: Final = {
    "topologyKey": "zone",
    "labelSelector": {"matchLabels": {"job": "x"}},
}
FIELDS: Final[dict[str, Any]] = {
    "Node spec.unschedulable": True,
    "Node spec.taints.0": {"key": "t", "effect": "NoSchedule"},
    "Node status.allocatable": {"cpu": "8", "pods": "0"},
    "Pod spec.nodeSelector": {"zone": "west"},
    f"Pod spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms.0.matchExpressions.0": _ELSEWHERE,
    f"Pod spec.affinity.podAffinity.{REQUIRED}.0": _NOBODY,
    "Pod spec.topologySpreadConstraints.0": {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
    },
    "Pod spec.containers.0.resources.requests": {"cpu": "99"},
    "Pod spec.overhead": {"cpu": "99"},
    "Pod spec.schedulingGates.0": {"name": "wait"},
    "Pod spec.schedulerName": "other",
    "Pod spec.nodeName": "b",
    "Pod spec.volumes.0.persistentVolumeClaim": {"claimName": "data"},
    "Pod spec.volumes.0.ephemeral": {},
    "Pod spec.volumes.0.csi": {"driver": "d"},
    "Pod spec.volumes.0.iscsi": {"lun": 1},
    "Pod spec.volumes.0.emptyDir": {},
    "Pod spec.containers.0.restartPolicyRules.0.action": "RestartAllContainers",
    "Pod spec.runtimeClassName": "fast",
    "Pod status.nominatedNodeName": "b",
    "PodGroup spec.schedulingPolicy.gang.minCount": 2,
    "PodGroup spec.schedulingConstraints.topology.0": {"key": "rack"},
    "DeviceClass spec.selectors.0.cel.expression": "false",
    f"{_ASKED}.selectors.0.cel.expression": "false",
    f"{_ASKED}.count": 2,
    f"{_ASKED}.capacity.requests": {"memory": "1Gi"},
    f"{_ASKED}.derivedAttributes.0": {
        "name": INDEX,
        "expression": 'device.attributes["gpu.example.com"].nothing',
    },
    "ResourceClaim spec.devices.constraints.0": {
        "matchAttribute": "gpu.example.com/numa"
    },
    "ResourceSlice spec.nodeName": "b",
    "ResourceSlice spec.pool.resourceSliceCount": 2,
    "ResourceSlice spec.devices.0.taints.0": {
        "key": "t",
        "effect": "NoSchedule",
    },
    "ResourceSlice spec.devices.0.nodeAllocatableResources.cpu.mapping": {
        "deviceMultiplier": "99"
    },
    "ResourceSlice spec.devices.0.nodeAllocatableResources.cpu.overhead": {
        "perPod": "99"
    },
    "ResourceSlice spec.devices.0.nodeAllocatableResourceMappings.cpu": {
        "allocationMultiplier": "99"
    },
}
"""Fields, by kind and location, each with a value that would let the pod wait where it counts."""


def with_field(
    objects: dict[str, Json], location: str, value: Any
) -> list[Json]:
    """The objects with a field more; steps that are numbers lead into lists."""
    kind, path = location.split()
    manifests = deepcopy(objects)
    inner: Any = manifests[kind]
    steps: list[str | int] = [
        int(step) if step.isdecimal() else step for step in path.split(".")
    ]
    for step, following in pairwise(steps):
        if isinstance(step, str):
            inner = inner.setdefault(
                step, [] if isinstance(following, int) else {}
            )
        else:
            inner.extend([{}] * (step + 1 - len(inner)))
            inner = inner[step]
    if isinstance(inner, list):
        inner.insert(int(steps[-1]), value)
    else:
        inner[steps[-1]] = value
    return list(manifests.values())


def field(location: str) -> str:
    return ".".join(
        step
        for step in location.split()[1].split(".")
        if not step.isdecimal() and step != "cpu"
    )


def fate(location: str, mode: Mode) -> Fate:
    kind, path = location.partition(" ")[0], field(location)
    row = row_of(kind, path) or row_of(
        kind, f"{path}.{next(iter(FIELDS[location]))}"
    )
    assert row is not None
    return row.fates[mode]


@pytest.mark.parametrize("mode", Mode)
def test_without_any_of_them_the_pod_gets_its_device(mode: Mode) -> None:
    assert (
        len(
            dralloc.allocate(
                wire.cluster(*OBJECTS.values()), mode
            ).solution.placements
        )
        == 1
    )


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("location", FIELDS)
def test_what_is_modelled_lets_the_pod_wait_and_what_is_ignored_is_named(
    location: str, mode: Mode
) -> None:
    cluster = wire.cluster(*with_field(OBJECTS, location, FIELDS[location]))
    plan = dralloc.allocate(cluster, mode)
    assert len(plan.solution.placements) == (
        fate(location, mode) is not Fate.MODELLED
    )
    named = [
        finding
        for finding in plan.unmodelled
        if field(location) in _plain(finding.path)
    ]
    assert bool(named) == (fate(location, mode) is Fate.IGNORED)
    if named:
        with pytest.raises(InputError) as refused:
            dralloc.allocate(cluster, mode, strict=True)
        assert named[0] in refused.value.findings


def _plain(path: str) -> str:
    return "".join(
        part.partition("]")[2] if "]" in part else part
        for part in path.split("[")
    )


def test_every_rule_that_is_ignored_has_its_case() -> None:
    known = {field(location) for location in FIELDS}
    rules = {row.rule for row in TABLE if Fate.IGNORED in row.fates.values()}
    shown = {
        row.rule
        for row in TABLE
        if any(row.path.startswith(path) for path in known)
    }
    assert rules - shown == {
        "a pod being resized takes the more of what it had and gets"
    }
