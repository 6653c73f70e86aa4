"""Hypothesis strategies of small clusters for `brute_clusters`, in wire form: a family for each kind of rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from brute_clusters import ACROSS, DRIVER, of_containers
from inventory_strategies import rarely
from wire import (
    Json,
    claim,
    device,
    device_class,
    first_available,
    node,
    request,
    resource_slice,
    sub,
)

__all__ = ["across_claims", "gangs_over_others", "grouped_pods", "limited_pods"]

KINDS = ("big", "small")
CLASSES = [
    device_class("any"),
    *(
        device_class(kind, f'device.attributes["{DRIVER}"].kind == "{kind}"')
        for kind in KINDS
    ),
]
CHOICES = (
    ("any",),
    ("any",),
    ("big",),
    ("small",),
    ("big", "any"),
    ("small", "big"),
)


def _kinds_of_devices() -> st.SearchStrategy[list[str]]:
    sizes = st.sampled_from((0, 1, 1, 2, 3))
    return sizes.flatmap(
        lambda size: st.lists(
            st.sampled_from(KINDS), min_size=size, max_size=size
        )
    )


def _slice(name: str, devices: Sequence[Json]) -> Json:
    return resource_slice(devices, name=name, pool=name, nodeName=name)


@st.composite
def _nodes(draw: st.DrawFn, most: int = 3) -> list[Json]:
    """Nodes with racks in blocks, some of them without one of the labels, and a few devices each."""
    objects: list[Json] = [*CLASSES]
    for node_index in range(draw(st.integers(1, most))):
        labels = {
            "rack": draw(st.sampled_from("ab")),
            "block": draw(st.sampled_from("xy")),
        }
        kept = {
            key: value for key, value in labels.items() if not draw(rarely())
        }
        devices = [
            device(f"d{index}", {"kind": kind})
            for index, kind in enumerate(draw(_kinds_of_devices()))
        ]
        objects.append(node(f"n{node_index}", **kept))
        if devices:
            objects.append(_slice(f"n{node_index}", devices))
    return objects


def _pod(
    name: str, *claims: str, annotations: Json | None = None, **spec: Any
) -> Json:
    entries = [
        {"name": f"c{index}", "resourceClaimName": name}
        for index, name in enumerate(claims)
    ]
    metadata = {
        "name": name,
        "namespace": "default",
        **({"annotations": annotations} if annotations else {}),
    }
    content: Json = {
        "containers": [{"name": "main"}],
        **({"resourceClaims": entries} if entries else {}),
        **spec,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": content,
    }


def _claim(name: str, classes: Sequence[str], **fields: Any) -> Json:
    """A claim for one device of the first of these classes that there is one of."""
    if len(classes) == 1:
        return claim(name, request("gpu", device_class=classes[0], **fields))
    return claim(
        name,
        first_available(
            "gpu", *(sub(wanted[0], device_class=wanted) for wanted in classes)
        ),
    )


@st.composite
def grouped_pods(draw: st.DrawFn, *, most_pods: int = 5) -> list[Json]:
    """Draw PodGroups, some of them in trees, with members that wait for devices, ask for none, run, or are gated."""
    objects = draw(_nodes())
    names = [
        document["metadata"]["name"]
        for document in objects
        if document["kind"] == "Node"
    ]
    groups = ("g0", "g1", "g2")[: draw(st.sampled_from((1, 1, 2, 3)))]
    composites = draw(_composites())
    parents = ["", *(composite["metadata"]["name"] for composite in composites)]
    for name in groups:
        objects.append(
            draw(
                _groups(
                    "PodGroup", name, draw(st.sampled_from(parents)), "minCount"
                )
            )
        )
    objects += composites
    for pod_index in range(
        draw(st.sampled_from((1, 2, 3, *[most_pods - 1, most_pods] * 2)))
    ):
        objects += draw(_members(pod_index, groups, names))
    return objects


@st.composite
def _composites(draw: st.DrawFn) -> list[Json]:
    """No groups of groups, one, or two of which one may be above the other; seldom in a circle, or below nothing."""
    count = draw(st.sampled_from((0, 0, 1, 2)))
    composites = []
    for composite_index in range(count):
        parents = ("", "", "t0") if composite_index else ("",)
        parent = (
            draw(st.sampled_from(("t1", "missing")))
            if draw(rarely())
            else draw(st.sampled_from(parents))
        )
        composites.append(
            draw(
                _groups(
                    "CompositePodGroup",
                    f"t{composite_index}",
                    parent,
                    "minGroupCount",
                )
            )
        )
    return composites


@st.composite
def _groups(
    draw: st.DrawFn, kind: str, name: str, parent: str, least: str
) -> Json:
    gang = draw(st.sampled_from((None, 1, 1, 1, 2, 2, 3)))
    spec: Json = {
        "schedulingPolicy": {"basic": {}}
        if gang is None
        else {"gang": {least: gang}}
    }
    key = draw(st.sampled_from(("", "rack", "rack", "block")))
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


@st.composite
def _members(
    draw: st.DrawFn, pod_index: int, groups: Sequence[str], nodes: Sequence[str]
) -> list[Json]:
    """A pod, most often of a group, most often with a claim."""
    name, spec = f"p{pod_index}", dict[str, Any]()
    group = "" if draw(rarely()) else draw(st.sampled_from(groups))
    if group:
        spec["schedulingGroup"] = {"podGroupName": group}
    spec["priority"] = draw(st.sampled_from((0, 0, 0, 5)))
    how = draw(
        st.sampled_from(
            (
                "asks",
                "asks",
                "asks",
                "asks",
                "idle",
                "idle",
                "idle",
                "runs",
                "gated",
            )
        )
    )
    if how == "runs":
        return [_pod(name, nodeName=draw(st.sampled_from(nodes)), **spec)]
    if how == "gated":
        spec["schedulingGates"] = [{"name": "later"}]
    if draw(rarely()):
        spec["nodeSelector"] = {"rack": draw(st.sampled_from("ab"))}
    if how == "idle":
        return [_pod(name, **spec)]
    return [
        _claim(f"c{pod_index}", draw(st.sampled_from(CHOICES))),
        _pod(name, f"c{pod_index}", **spec),
    ]


@st.composite
def limited_pods(draw: st.DrawFn) -> list[Json]:
    """Draw devices that take CPU of their nodes, on nodes that say what they have or not, and pods with requests."""
    objects: list[Json] = [*CLASSES]
    names = [f"n{index}" for index in range(draw(st.integers(1, 2)))]
    for name in names:
        listed = {
            "cpu": draw(st.sampled_from(("1", "2", "4"))),
            "memory": "8Gi",
            "pods": "9",
        }
        says = draw(st.booleans())
        objects.append(
            {
                **node(name),
                **({"status": {"allocatable": listed}} if says else {}),
            }
        )
        devices = [
            draw(_taking_devices(index))
            for index in range(draw(st.integers(1, 3)))
        ]
        objects.append(_slice(name, devices))
    for pod_index in range(draw(st.integers(1, 4))):
        objects += draw(_limited(pod_index, names))
    return objects


@st.composite
def _taking_devices(draw: st.DrawFn, device_index: int) -> Json:
    """A device that stands for CPU, costs some for each pod and container, or takes none."""
    amounts = st.sampled_from(("500m", "1", "2"))
    takes: Json = {}
    if draw(st.booleans()):
        takes["mapping"] = {"deviceMultiplier": draw(amounts)}
    if draw(rarely()):
        takes["overhead"] = {"perPod": draw(amounts)}
    elif draw(rarely()):
        takes["overhead"] = {"perContainer": draw(amounts)}
    more = {"nodeAllocatableResources": {"cpu": takes}} if takes else {}
    return device(
        f"d{device_index}", {"kind": draw(st.sampled_from(KINDS))}, **more
    )


@st.composite
def _limited(
    draw: st.DrawFn, pod_index: int, nodes: Sequence[str]
) -> list[Json]:
    """A pod with containers that ask for CPU, refer to its claim, or both, and with requests as a whole or without."""
    amounts = st.sampled_from(("500m", "1", "2"))

    def container(container_name: str) -> Json:
        asks = (
            {"requests": {"cpu": draw(amounts)}} if draw(st.booleans()) else {}
        )
        refers = {"claims": [{"name": "c0"}]} if draw(st.booleans()) else {}
        return {"name": container_name, "resources": {**asks, **refers}}

    name, spec = f"p{pod_index}", dict[str, Any]()
    runs = draw(rarely())
    containers = [
        container(f"m{index}") for index in range(draw(st.integers(1, 2)))
    ]
    if draw(rarely()):
        spec["initContainers"] = [container("init")]
    if runs:
        for idle in (*containers, *spec.get("initContainers", ())):
            idle["resources"].pop("claims", None)
        return [
            _pod(
                name,
                nodeName=draw(st.sampled_from(nodes)),
                **{**spec, "containers": containers},
            )
        ]
    spec["containers"] = containers
    # The API server refuses requests of the pod as a whole that are less than those of its containers.
    least = of_containers(spec)
    whole = draw(
        st.sampled_from(
            (
                None,
                *(
                    amount
                    for amount in ("1", "2", "3", "4")
                    if int(amount) >= least
                ),
            )
        )
    )
    if whole:
        spec["resources"] = {"requests": {"cpu": whole}}
    return [
        _claim(f"c{pod_index}", draw(st.sampled_from(CHOICES))),
        _pod(name, f"c{pod_index}", **spec),
    ]


@st.composite
def across_claims(draw: st.DrawFn) -> list[Json]:
    """Draw pods that share admin claims and others beside their own, some under constraints over all their claims."""
    objects: list[Json] = [*CLASSES, _privileged()]
    for node_index in range(draw(st.integers(1, 2))):
        name = f"n{node_index}"
        objects += [
            node(name),
            _slice(
                name,
                [
                    draw(_railed(index))
                    for index in range(draw(st.integers(1, 3)))
                ],
            ),
        ]
    shared = [f"s{index}" for index in range(draw(st.integers(1, 2)))]
    group = draw(_groups("PodGroup", "g0", "", "minCount"))
    group["metadata"]["annotations"] = draw(_constraints()) or {}
    objects.append(group)
    if draw(st.booleans()):
        objects += draw(_holder(objects))
        shared.append("held")
    used: set[str] = set()
    for pod_index in range(draw(st.integers(1, 4))):
        claims = draw(
            st.lists(st.sampled_from(shared), unique=True, max_size=2)
        )
        used.update(claims)
        if not claims or draw(st.booleans()):
            claims.append(f"c{pod_index}")
            admin = {"adminAccess": True} if draw(rarely()) else {}
            objects.append(
                _claim(
                    f"c{pod_index}",
                    draw(st.sampled_from(CHOICES[:4] if admin else CHOICES)),
                    **admin,
                )
            )
        spec: Json = {"priority": draw(st.sampled_from((0, 0, 5)))}
        if draw(rarely()):
            spec["schedulingGroup"] = {"podGroupName": "g0"}
        objects.append(
            _pod(
                f"p{pod_index}",
                *claims,
                annotations=draw(_constraints()),
                **spec,
            )
        )
    for name in sorted(used - {"held"}):
        admin = {"adminAccess": True} if draw(st.integers(0, 3)) else {}
        objects.append(
            _claim(name, draw(st.sampled_from(CHOICES[:4])), **admin)
        )
    return objects


@st.composite
def _holder(draw: st.DrawFn, objects: Sequence[Json]) -> list[Json]:
    """A pod that runs, most often in the group, with a device that others can use, too."""
    home = draw(
        st.sampled_from(
            [
                document["spec"]
                for document in objects
                if document["kind"] == "ResourceSlice"
            ]
        )
    )
    name = draw(st.sampled_from([held["name"] for held in home["devices"]]))
    spec: Json = (
        {} if draw(rarely()) else {"schedulingGroup": {"podGroupName": "g0"}}
    )
    return [
        _held("held", "old", home["nodeName"], name),
        _pod("old", "held", nodeName=home["nodeName"], **spec),
    ]


def _held(name: str, user: str, home: str, held: str) -> Json:
    """A claim that a pod holds a device by."""
    result = {"request": "gpu", "driver": DRIVER, "pool": home, "device": held}
    allocation = {"devices": {"results": [result]}, "nodeSelector": _only(home)}
    reserved = [{"resource": "pods", "name": user, "uid": user}]
    return {
        **_claim(name, ("any",)),
        "status": {"allocation": allocation, "reservedFor": reserved},
    }


def _only(home: str) -> Json:
    """A selector of a node by its name."""
    field = {"key": "metadata.name", "operator": "In", "values": [home]}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


def _constraints() -> st.SearchStrategy[Json | None]:
    """An annotation over several claims, or none."""
    kinds = st.sampled_from((None, "matchAttribute", "distinctAttribute"))
    return kinds.map(
        lambda kind: {ACROSS: f"{kind}={DRIVER}/rail"} if kind else None
    )


@st.composite
def _railed(draw: st.DrawFn, device_index: int) -> Json:
    """A device on one of two rails, seldom on none."""
    rail = {} if draw(rarely()) else {"rail": draw(st.sampled_from("ab"))}
    return device(
        f"d{device_index}", {"kind": draw(st.sampled_from(KINDS)), **rail}
    )


def _privileged() -> Json:
    """The namespace, in which admin access is allowed."""
    labels = {"resource.kubernetes.io/admin-access": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "labels": labels},
    }


@st.composite
def gangs_over_others(draw: st.DrawFn) -> list[Json]:
    """Draw pods of low priority that hold devices, and gangs with lists of alternatives that may take their place."""
    objects = draw(grouped_pods(most_pods=4))
    for document in objects:
        if document["kind"] == "Pod":
            document["spec"]["priority"] = 9
    slices = [
        document["spec"]
        for document in objects
        if document["kind"] == "ResourceSlice"
    ]
    devices = [
        (part["nodeName"], held["name"])
        for part in slices
        for held in part["devices"]
    ]
    for device_index, (home, name) in enumerate(devices):
        if draw(st.booleans()):
            old = f"old-{device_index}"
            objects.append(_held(old, old, home, name))
            objects.append(
                _pod(
                    old,
                    old,
                    nodeName=home,
                    priority=draw(st.sampled_from((0, 1, 20))),
                )
            )
    return objects
