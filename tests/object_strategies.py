"""Hypothesis strategies for clusters in which pods have rules about each other, their nodes and their groups."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from hypothesis import strategies as st

from inventory_strategies import rarely
from wire import Json, claim, device_class, gpus, node, request, resource_slice

__all__ = ["ruled_clusters"]

HOST, ZONE, RACK = "kubernetes.io/hostname", "zone", "rack"
SPACES = ("default", "other")
VERSION = "scheduling.k8s.io/v1alpha3"
_HARD = "requiredDuringSchedulingIgnoredDuringExecution"


@st.composite
def ruled_clusters(draw: st.DrawFn, most_pods: int = 4) -> list[Json]:
    """Draw two to four nodes with a few devices, pods that ask for one, and others that run or ask for none."""
    names = [
        f"n{node_index}"
        for node_index in range(draw(st.sampled_from([2, 3, 3, 4])))
    ]
    kinds = draw(st.lists(_kinds(), min_size=1, max_size=3))
    objects: list[Json] = [
        device_class(),
        *(draw(_nodes(name)) for name in names),
    ]
    gpu_counts = [draw(st.sampled_from([1, 1, 2, 4])) for _ in names]
    slices = (gpus(gpu_count) for gpu_count in gpu_counts)
    objects += (
        resource_slice(devices, name=name, pool=name, nodeName=name)
        for name, devices in zip(names, slices, strict=True)
    )
    labels = (
        draw(st.dictionaries(st.just("team"), st.sampled_from("ab")))
        if draw(rarely())
        else {}
    )
    objects.append(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": SPACES[1], "labels": labels},
        }
    )
    groups = draw(_groups()) if draw(st.booleans()) else []
    objects += groups
    leaves = [
        group["metadata"]["name"]
        for group in groups
        if group["kind"] == "PodGroup"
    ]
    for pod_index in range(draw(st.integers(2, most_pods))):
        objects += draw(_pods(f"p{pod_index}", kinds, leaves, has_claim=True))
    for pod_index in range(draw(st.sampled_from([0, 1, 1, 2, 3]))):
        runs = draw(st.booleans())
        # A pod may run before its claim is allocated.
        pod, *claims = draw(
            _pods(
                f"r{pod_index}",
                kinds,
                leaves,
                has_claim=runs and draw(rarely()),
            )
        )
        if runs:
            pod["spec"]["nodeName"] = draw(st.sampled_from(names))
        elif draw(rarely()):
            pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        objects += [pod, *claims]
    return objects


@st.composite
def _nodes(draw: st.DrawFn, name: str) -> Json:
    labels = {
        HOST: name,
        ZONE: draw(st.sampled_from("ab")),
        RACK: draw(st.sampled_from("12")),
    }
    node_object = node(name)
    node_object["metadata"]["labels"] = {
        key: value for key, value in labels.items() if not draw(rarely())
    }
    node_object["spec"] = {}
    if draw(rarely()):
        effect = draw(
            st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
        )
        node_object["spec"]["taints"] = [
            {"key": "dedicated", "value": "x", "effect": effect}
        ]
    if draw(rarely()):
        node_object["spec"]["unschedulable"] = True
    if draw(rarely()):
        stock = {
            "cpu": draw(st.sampled_from(["2", "3500m"])),
            "memory": "4Gi",
            "pods": draw(st.sampled_from("23")),
        }
        node_object["status"] = {"allocatable": stock}
    return node_object


@st.composite
def _kinds(draw: st.DrawFn) -> Json:
    """What equal pods have in common: labels, and a specification."""
    labels = {"app": draw(st.sampled_from(["web", "db"]))}
    if draw(rarely()):
        labels["version"] = draw(st.sampled_from("12"))
    container: Json = {"name": "main", "image": "main"}
    spec: Json = {"containers": [container]}
    affinity: Json = {}
    for way in ("podAffinity", "podAntiAffinity"):
        terms = draw(
            st.lists(_terms(), max_size=draw(st.sampled_from([0, 0, 1, 2])))
        )
        if terms:
            affinity[way] = {_HARD: terms}
    if draw(rarely()):
        expression = {
            "key": RACK,
            "operator": draw(st.sampled_from(["In", "NotIn", "Gt", "Exists"])),
            "values": ["1"],
        }
        if expression["operator"] == "Exists":
            del expression["values"]
        affinity["nodeAffinity"] = {
            _HARD: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        }
    if affinity:
        spec["affinity"] = affinity
    most = draw(st.sampled_from([0, 0, 1, 2]))
    spread = draw(
        st.lists(
            _constraints(),
            max_size=most,
            unique_by=itemgetter("topologyKey", "whenUnsatisfiable"),
        )
    )
    if spread:
        spec["topologySpreadConstraints"] = spread
    if draw(rarely()):
        spec["tolerations"] = [draw(st.sampled_from(_TOLERATIONS))]
    if draw(rarely()):
        spec["nodeSelector"] = {ZONE: "a"}
    if draw(rarely()):
        container["ports"] = [draw(_ports())]
    _take_resources(draw, spec)
    return {"labels": labels, "spec": spec}


_TOLERATIONS = (
    {"operator": "Exists"},
    {"key": "dedicated", "operator": "Equal", "value": "x"},
    {"key": "dedicated", "operator": "Exists", "effect": "NoExecute"},
    {"key": "dedicated", "value": "y"},
)


def _take_resources(draw: st.DrawFn, spec: Json) -> None:
    cpu = st.sampled_from(["500m", "1", "2"]).map(
        lambda amount: {"requests": {"cpu": amount}}
    )
    if draw(st.booleans()):
        spec["containers"][0]["resources"] = draw(cpu)
    if draw(rarely()):
        init = {"name": "init", "image": "init", "resources": draw(cpu)}
        sidecar = {
            "name": "sidecar",
            "image": "sidecar",
            "restartPolicy": "Always",
            "resources": draw(cpu),
        }
        spec["initContainers"] = draw(st.permutations([init, sidecar]))
    if draw(rarely()):
        spec["overhead"] = {"cpu": "250m"}
    if draw(rarely()):
        spec["resources"] = {"requests": {"cpu": "1"}}
        spec["containers"][0].pop("resources", None)
        spec.pop("initContainers", None)


@st.composite
def _ports(draw: st.DrawFn) -> Json:
    port: Json = {
        "hostPort": 80,
        "containerPort": 80,
        "protocol": draw(st.sampled_from(["TCP", "TCP", "UDP"])),
    }
    address = draw(st.sampled_from(["", "", "10.0.0.1", "10.0.0.2"]))
    return {**port, "hostIP": address} if address else port


@st.composite
def _selectors(draw: st.DrawFn) -> Json:
    app = draw(st.sampled_from(["web", "db"]))
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = {"values": ["1"]} if operator in ("In", "NotIn") else {}
    condition = {"key": "version", "operator": operator, **values}
    by_label: Json = {"matchLabels": {"app": app}}
    by_condition: Json = {"matchExpressions": [condition]}
    return draw(
        st.sampled_from(
            [
                by_label,
                by_label,
                by_label,
                {},
                by_condition,
                {**by_label, **by_condition},
            ]
        )
    )


@st.composite
def _terms(draw: st.DrawFn) -> Json:
    term: Json = {"topologyKey": draw(st.sampled_from([ZONE, HOST, RACK]))}
    if not draw(rarely()):
        term["labelSelector"] = draw(_selectors())
    if draw(rarely()):
        term["namespaces"] = draw(
            st.sampled_from([["default"], ["other"], list(SPACES)])
        )
    if draw(rarely()):
        term["namespaceSelector"] = draw(st.sampled_from(_SPACES_SELECTED))
    if draw(rarely()) and "labelSelector" in term:
        term[draw(st.sampled_from(["matchLabelKeys", "mismatchLabelKeys"]))] = [
            "version"
        ]
    return term


_SPACES_SELECTED: Sequence[Json] = (
    {},
    {"matchLabels": {"team": "a"}},
    {"matchLabels": {"kubernetes.io/metadata.name": "other"}},
    {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
)


@st.composite
def _constraints(draw: st.DrawFn) -> Json:
    constraint: Json = {
        "maxSkew": draw(st.sampled_from([1, 1, 2])),
        "topologyKey": draw(st.sampled_from([ZONE, HOST, RACK])),
        "whenUnsatisfiable": "ScheduleAnyway"
        if draw(rarely())
        else "DoNotSchedule",
    }
    if not draw(rarely()):
        constraint["labelSelector"] = draw(_selectors())
    for field, word in (
        ("nodeTaintsPolicy", "Honor"),
        ("nodeAffinityPolicy", "Ignore"),
    ):
        if draw(rarely()):
            constraint[field] = word
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw(rarely()):
        constraint["minDomains"] = draw(st.integers(1, 3))
    if "labelSelector" in constraint and draw(rarely()):
        constraint["matchLabelKeys"] = ["version"]
    return constraint


@st.composite
def _groups(draw: st.DrawFn) -> list[Json]:
    """One or two groups of pods, perhaps below a group of groups, of which one may be below another."""
    groups = []
    above = draw(st.sampled_from([[], [], ["root"], ["root", "lower"]]))
    for group_index in range(draw(st.integers(1, 2))):
        policy = (
            {}
            if draw(rarely())
            else {"gang": {"minCount": draw(st.integers(1, 3))}}
        )
        groups.append(
            _group(
                "PodGroup",
                f"g{group_index}",
                policy,
                draw(_near()),
                draw(st.sampled_from([None, *above])),
            )
        )
    for level, name in enumerate(above):
        policy = (
            {}
            if draw(rarely())
            else {"gang": {"minGroupCount": draw(st.integers(1, 2))}}
        )
        groups.append(
            _group(
                "CompositePodGroup",
                name,
                policy,
                draw(_near()),
                "root" if level else None,
            )
        )
    return groups


def _near() -> st.SearchStrategy[str]:
    return st.sampled_from(["", "", ZONE, RACK])


def _group(
    kind: str, name: str, policy: Json, key: str, parent: str | None
) -> Json:
    spec: Json = {"schedulingPolicy": policy or {"basic": {}}}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    return {
        "apiVersion": VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


@st.composite
def _pods(
    draw: st.DrawFn,
    name: str,
    kinds: Sequence[Json],
    groups: Sequence[str],
    *,
    has_claim: bool,
) -> list[Json]:
    kind = draw(st.sampled_from(kinds))
    group = draw(st.sampled_from([None, *groups, *groups]))
    space = SPACES[1] if group is None and draw(rarely()) else SPACES[0]
    metadata = {
        "name": name,
        "namespace": space,
        "labels": dict(kind["labels"]),
    }
    spec: dict[str, Any] = dict(kind["spec"])
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
    }
    if not has_claim:
        return [pod]
    wanted = claim(f"{name}-gpu", request())
    wanted["metadata"]["namespace"] = space
    spec["resourceClaims"] = [
        {"name": "gpu", "resourceClaimName": f"{name}-gpu"}
    ]
    if draw(rarely()):
        spec["priority"] = 1
    return [pod, wanted]
