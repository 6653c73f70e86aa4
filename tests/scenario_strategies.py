"""Hypothesis strategies for clusters in which nodes bind: taints, CPU, memory, ports, selectors; some pods run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from dralloc.objects.api.base import changed
from dralloc.objects.cluster import Cluster
from inventory_strategies import rarely
from settled import started
from wire import (
    Json,
    claim,
    cluster,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

__all__ = ["TAINT", "bound_pod", "crowded_clusters", "tainted_node"]

TAINT: Json = {
    "key": "example.com/gpu",
    "value": "present",
    "effect": "NoSchedule",
}
"""Of nodes with devices, as clusters usually have it."""

TOLERATION: Json = {
    "key": "example.com/gpu",
    "operator": "Exists",
    "effect": "NoSchedule",
}
ZONES = ("x", "y")
APPS = ("a", "b")


def tainted_node(
    name: str,
    cpu: str = "8",
    *,
    taints: tuple[Json, ...] = (TAINT,),
    **labels: str,
) -> Json:
    """A node with resources; with the usual taint."""
    node_object = node(name, **labels)
    node_object["metadata"]["labels"]["kubernetes.io/hostname"] = name
    node_object["spec"] = {"taints": list(taints)}
    node_object["status"] = {
        "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    }
    return node_object


def bound_pod(name: str, *claims: str, cpu: str = "1", **spec: Any) -> Json:
    """A pod that tolerates the usual taint and takes CPU."""
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return pod(
        name,
        *claims,
        containers=containers,
        **{"tolerations": [TOLERATION], **spec},
    )


@st.composite
def _nodes(draw: st.DrawFn, name: str) -> Json:
    node_object = tainted_node(
        name,
        taints=(TAINT,) if draw(st.booleans()) else (),
        zone=draw(st.sampled_from(ZONES)),
    )
    if draw(rarely()):
        del node_object["status"]
    else:
        sizes = {
            "cpu": draw(st.integers(1, 4)),
            "memory": draw(st.integers(1, 4)),
            "pods": draw(st.integers(1, 4)),
        }
        node_object["status"]["allocatable"] = {
            key: str(size) for key, size in sizes.items()
        }
    return node_object


@st.composite
def _spec(draw: st.DrawFn) -> Json:
    """What a pod says about nodes."""
    amounts = {
        "cpu": str(draw(st.integers(0, 2))),
        "memory": str(draw(st.integers(0, 2))),
    }
    container: Json = {"name": "main", "resources": {"requests": amounts}}
    if draw(rarely()):
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    spec: Json = {
        "containers": [container],
        "priority": draw(st.integers(0, 1)),
    }
    if draw(st.booleans()):
        spec["tolerations"] = [TOLERATION]
    elif draw(rarely()):
        spec["tolerations"] = [{"operator": "Exists"}]
    if draw(rarely()):
        spec["nodeSelector"] = {"zone": draw(st.sampled_from(ZONES))}
    elif draw(rarely()):
        terms = [
            {
                "matchExpressions": [
                    {
                        "key": "zone",
                        "operator": "NotIn",
                        "values": [draw(st.sampled_from(ZONES))],
                    }
                ]
            }
        ]
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": terms
                }
            }
        }
    return spec


@st.composite
def _company(draw: st.DrawFn) -> Json:
    """What a pod says about other pods: something, or nothing."""
    meant = {
        "labelSelector": {"matchLabels": {"app": draw(st.sampled_from(APPS))}}
    }
    where = {
        "topologyKey": draw(
            st.sampled_from(("zone", "zone", "kubernetes.io/hostname"))
        )
    }
    match draw(
        st.sampled_from(("", "", "podAffinity", "podAntiAffinity", "spread"))
    ):
        case "":
            return {}
        case "spread":
            most = {
                "maxSkew": draw(st.integers(1, 2)),
                "whenUnsatisfiable": "DoNotSchedule",
            }
            return {"topologySpreadConstraints": [{**meant, **where, **most}]}
        case kind:
            return {
                "affinity": {
                    kind: {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {**meant, **where}
                        ]
                    }
                }
            }


@st.composite
def crowded_clusters(
    draw: st.DrawFn, *, most_claims: int = 1, company: bool = False
) -> Cluster:
    """Two or three nodes, of which something may be short or forbidden, and pods; first fit has started some of them.

    Afterwards a node may be cordoned or get its taint: those that run there do so all the same.

    Parameters
    ----------
    company
        Whether pods may say something about other pods.
    """
    names = [f"node-{index}" for index in range(draw(st.integers(2, 3)))]
    nodes = [draw(_nodes(name)) for name in names]
    slices = [
        resource_slice(gpus(size), name=name, pool=name, nodeName=name)
        for name in names
        if (size := draw(st.integers(0, 3)))
    ]
    objects: list[Json] = [device_class(), *nodes, *slices]
    pods = [f"pod-{index}" for index in range(draw(st.integers(1, 5)))]
    for name in pods:
        claims = [
            f"{name}-{index}"
            for index in range(draw(st.integers(1, most_claims)))
        ]
        objects += [
            claim(claim_name, request(count=draw(st.sampled_from((1, 1, 2)))))
            for claim_name in claims
        ]
        document = pod(name, *claims, **draw(_spec()))
        if company:
            document["metadata"]["labels"] = {
                "app": draw(st.sampled_from(APPS))
            }
            document["spec"] |= draw(_company())
        objects.append(document)
    whole = cluster(objects)
    waiting = draw(st.sets(st.sampled_from(pods), max_size=2))
    early = replace(
        whole,
        pods=tuple(
            reversed(
                [
                    pod_object
                    for pod_object in whole.pods
                    if pod_object.name not in waiting
                ]
            )
        ),
    )
    running = started(whole, early)
    late = draw(st.sampled_from([None, None, *names]))
    return replace(
        running,
        nodes=tuple(
            _later(node_object, draw)
            if node_object.name == late
            else node_object
            for node_object in running.nodes
        ),
    )


def _later(node_object: Any, draw: st.DrawFn) -> Any:
    """The node as it is once pods run there."""
    if draw(st.booleans()):
        return changed(
            node_object, spec=changed(node_object.spec, unschedulable=True)
        )
    tainted = cluster(tainted_node(node_object.name)).nodes[0]
    return changed(
        node_object, spec=changed(node_object.spec, taints=tainted.spec.taints)
    )
