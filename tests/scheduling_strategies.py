"""Hypothesis strategies for clusters with all that kube-scheduler's default plugins look at, and for profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from cluster_strategies import CLASSES, DRIVERS, EXTENDED, NICS, pools
from cluster_strategies import pods as device_pods
from dralloc.problem import NodeIndex
from inventory_strategies import rarely
from scheduling_wire import configured, node, pod
from wire import Json

__all__ = ["CrowdedCluster", "crowded_clusters", "plugin_clusters"]

ZONE, HOST, RACK = (
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "rack",
)
PLUGIN = "x.com/fpga"
APPS = ("web", "db")
SPACES = ("default", "other")
_SIZES = ("50m", "500m", "1", "2")
_WEIGHTS = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "DynamicResources",
)


@dataclass(frozen=True)
class CrowdedCluster:
    """Objects, pods among them in the order of their attempts, with a scheduler's configuration."""

    objects: Sequence[Json]
    configuration: Json
    heard_of: Sequence[NodeIndex]


@st.composite
def crowded_clusters(draw: st.DrawFn) -> CrowdedCluster:
    """Draw some nodes, seldom so many that not all are looked at, and a dozen pods of few kinds, some of them bound."""
    size = draw(st.sampled_from([2, 3, 4, 5, 6, 6, 7, 8, 8, 104]))
    looks = draw(st.lists(_nodes(), min_size=1, max_size=6))
    nodes = [
        node(f"n{index}", **looks[index % len(looks)]) for index in range(size)
    ]
    objects: list[Json] = [*CLASSES, *nodes]
    for node_index in range(min(size, 6)):
        for driver in DRIVERS[: draw(st.integers(0, 2))]:
            objects += draw(
                pools(driver, f"n{node_index}", {"nodeName": f"n{node_index}"})
            )
    if draw(st.booleans()):
        objects += draw(pools(DRIVERS[1], "network", {"allNodes": True}))
    kinds = draw(st.lists(_kinds(), min_size=1, max_size=4))
    for pod_index in range(draw(st.integers(3, 12))):
        objects += draw(
            _pods(f"p{pod_index:02}", draw(st.sampled_from(kinds)), size)
        )
    return CrowdedCluster(
        objects,
        draw(_configurations()),
        draw(st.permutations([NodeIndex(i) for i in range(size)])),
    )


@st.composite
def plugin_clusters(draw: st.DrawFn) -> list[Json]:
    """One or two nodes with device plugins for some of two resources, devices for the others, and who asks for them."""
    objects: list[Json] = [*CLASSES]
    amounts = st.sampled_from(["0", "1", "2"])
    for index in range(draw(st.integers(1, 2))):
        name = f"n{index}"
        offered = {EXTENDED: draw(amounts), NICS: draw(amounts)}
        objects.append(node(name, {"cpu": "4", "pods": "9", **offered}))
        for driver in DRIVERS:
            objects += draw(pools(driver, name, {"nodeName": name}))
    requests = st.fixed_dictionaries(
        {}, optional={EXTENDED: amounts, NICS: amounts}
    )
    for index in range(draw(st.integers(1, 4))):
        objects.append(pod(f"p{index}", requests=draw(requests)))
    return objects


@st.composite
def _nodes(draw: st.DrawFn) -> Json:
    """What a node looks like."""
    labels = {
        ZONE: draw(st.sampled_from("ab")),
        RACK: draw(st.sampled_from("xyz")),
    }
    effects = st.sampled_from(
        ["NoSchedule", "PreferNoSchedule", "PreferNoSchedule"]
    )
    allocatable = {
        "cpu": draw(st.sampled_from(["2", "4"])),
        "memory": "4Gi",
        "pods": draw(st.sampled_from(["2", "9"])),
    }
    if draw(st.booleans()):
        allocatable |= {"ephemeral-storage": "10Gi", PLUGIN: "2"}
    if draw(rarely()):
        allocatable[EXTENDED] = "1"
    if draw(rarely()):
        allocatable[NICS] = "1"
    images = [
        {
            "names": ["main:1"],
            "sizeBytes": draw(st.sampled_from([10**7, 5 * 10**8])),
        }
    ]
    return {
        "labels": {
            key: value for key, value in labels.items() if not draw(rarely())
        },
        "taints": [{"key": "soft", "effect": draw(effects)}]
        if draw(rarely()) or draw(rarely())
        else [],
        "allocatable": {} if draw(rarely()) else allocatable,
        "images": images if draw(st.booleans()) else [],
        "unschedulable": draw(rarely()),
    }


@st.composite
def _kinds(draw: st.DrawFn) -> dict[str, Any]:
    """What equal pods have in common."""
    requests = {
        "cpu": draw(st.sampled_from(_SIZES)),
        "memory": draw(st.sampled_from(["100Mi", "1Gi"])),
    }
    requests |= draw(
        st.sampled_from([{}, {}, {PLUGIN: "1"}, {"ephemeral-storage": "1Gi"}])
    )
    kind: dict[str, Any] = {
        "labels": {"app": draw(st.sampled_from(APPS))},
        "requests": requests,
        "priority": draw(st.sampled_from([0, 0, 5])),
        "affinity": draw(_affinities()),
        "topologySpreadConstraints": draw(st.lists(_constraints(), max_size=2)),
        "tolerations": [{"key": "soft", "operator": "Exists"}]
        if draw(rarely())
        else [],
        "container": {
            "ports": [{"hostPort": 80, "containerPort": 80}]
            if draw(rarely())
            else []
        },
    }
    if draw(rarely()):
        kind["initContainers"] = [
            {
                "name": "init",
                "image": "init:1",
                "resources": {"requests": {"cpu": "3"}},
            }
        ]
    if draw(rarely()):
        kind["overhead"] = {"cpu": "100m"}
    return kind


@st.composite
def _affinities(draw: st.DrawFn) -> Json:
    affinity: Json = {}
    for way in ("podAffinity", "podAntiAffinity"):
        if draw(rarely()) or draw(rarely()):
            affinity[way] = {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    draw(_terms())
                ]
            }
        elif draw(rarely()) or draw(rarely()):
            preferred = {
                "weight": draw(st.sampled_from([1, 50])),
                "podAffinityTerm": draw(_terms()),
            }
            affinity[way] = {
                "preferredDuringSchedulingIgnoredDuringExecution": [preferred]
            }
    if draw(rarely()):
        terms = {
            "nodeSelectorTerms": [{"matchExpressions": [draw(_expressions())]}]
        }
        affinity["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": terms
        }
    elif draw(rarely()):
        affinity["nodeAffinity"] = draw(_preferences())
    return affinity


def _expressions() -> st.SearchStrategy[Json]:
    return st.sampled_from("xyz").map(
        lambda rack: {"key": RACK, "operator": "In", "values": [rack, "x"]}
    )


def _preferences() -> st.SearchStrategy[Json]:
    return _expressions().map(
        lambda expression: {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 7, "preference": {"matchExpressions": [expression]}}
            ]
        }
    )


@st.composite
def _terms(draw: st.DrawFn) -> Json:
    term: Json = {
        "topologyKey": draw(st.sampled_from([ZONE, HOST, RACK])),
        "labelSelector": draw(_selectors()),
    }
    if draw(rarely()):
        term["namespaces"] = list(SPACES)
    return term


def _selectors() -> st.SearchStrategy[Json]:
    return st.sampled_from(APPS).map(lambda app: {"matchLabels": {"app": app}})


@st.composite
def _constraints(draw: st.DrawFn) -> Json:
    action = draw(
        st.sampled_from(["DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"])
    )
    constraint: Json = {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(st.sampled_from([ZONE, HOST, RACK])),
        "whenUnsatisfiable": action,
        "labelSelector": draw(_selectors()),
    }
    if draw(rarely()):
        constraint["nodeTaintsPolicy"] = "Honor"
    if action == "DoNotSchedule" and draw(rarely()):
        constraint["minDomains"] = 2
    return constraint


@st.composite
def _pods(
    draw: st.DrawFn, name: str, kind: dict[str, Any], nodes: int
) -> list[Json]:
    """A pod of a kind: without claims, with some of its own, or on a node already."""
    if draw(rarely()):
        return [pod(name, on=f"n{draw(st.integers(0, nodes - 1))}", **kind)]
    pod_object = pod(name, **kind)
    if draw(rarely()):
        pod_object["metadata"]["namespace"] = SPACES[1]
        return [pod_object]
    if draw(rarely()):
        pod_object["metadata"]["ownerReferences"] = [
            {
                "kind": "ReplicaSet",
                "name": "set",
                "controller": True,
                "uid": "u",
            }
        ]
    if draw(st.booleans()):
        return [pod_object]
    asking, *claims = draw(
        device_pods(name, ["p00-0"] if name != "p00" else [])
    )
    pod_object["spec"]["resourceClaims"] = asking["spec"]["resourceClaims"]
    if "containers" in asking["spec"]:
        pod_object["spec"]["containers"][0]["resources"] |= asking["spec"][
            "containers"
        ][0]["resources"]
    return [pod_object, *claims]


@st.composite
def _configurations(draw: st.DrawFn) -> Json:
    """The default profile, or one with other weights, arguments and plugins."""
    if draw(st.booleans()):
        return configured()
    ratio = {
        "shape": [
            {"utilization": 0, "score": 2},
            {"utilization": 60, "score": 10},
        ]
    }
    strategy = draw(
        st.sampled_from(
            [
                {"type": "MostAllocated"},
                {
                    "type": "MostAllocated",
                    "resources": [
                        {"name": "cpu", "weight": 3},
                        {"name": PLUGIN, "weight": 2},
                    ],
                },
                {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": ratio,
                },
            ]
        )
    )
    spreading = draw(
        st.sampled_from(
            [{}, {"defaultingType": "List", "defaultConstraints": [_BY_RACK]}]
        )
    )
    weights = {
        name: draw(st.integers(1, 9))
        for name in draw(st.sets(st.sampled_from(_WEIGHTS), max_size=2))
    }
    off = draw(
        st.sampled_from(
            [
                "ImageLocality",
                "InterPodAffinity",
                "NodePorts",
                "NodeResourcesBalancedAllocation",
            ]
        )
    )
    return configured(
        plugins={
            "multiPoint": {"disabled": [{"name": off}]},
            "score": {
                "enabled": [
                    {"name": name, "weight": weight}
                    for name, weight in weights.items()
                ]
            },
        },
        pluginConfig=[
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}},
            {"name": "PodTopologySpread", "args": spreading},
            {
                "name": "NodeAffinity",
                "args": {"addedAffinity": draw(_preferences())}
                if draw(st.booleans())
                else {},
            },
            {
                "name": "InterPodAffinity",
                "args": {
                    "hardPodAffinityWeight": draw(st.sampled_from([0, 1, 40]))
                },
            },
        ],
        percentageOfNodesToScore=draw(st.sampled_from([0, 70, 100])),
    )


_BY_RACK = {
    "maxSkew": 1,
    "topologyKey": RACK,
    "whenUnsatisfiable": "ScheduleAnyway",
}
