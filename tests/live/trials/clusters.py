"""Clusters for a real control plane, by seed: mixed hardware, running pods, bare nodes, and a crowd that waits."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from live.apply.runs import GATE
from wire import (
    DRIVER,
    Json,
    claim,
    consumes,
    counters,
    device,
    device_class,
    node,
    pod,
    request,
    resource_slice,
)

__all__ = ["GANG", "crowd", "drawn_cluster", "rows_of_gpus", "template"]

NETWORK: Final = "nic.example.com"
RACK: Final = "example.com/rack"
GANG: Final = 3
"""Pods of the gang of a drawn cluster, which runs in one rack."""
KINDS: Final = ("whole", "parted", "shared")


def drawn_cluster(seed: int) -> list[Json]:
    """Five to eight nodes with devices of three kinds, two without any, pods that run, and 18 to 28 that wait."""
    random = Random(seed)
    kinds = [*KINDS, *random.choices(KINDS, k=random.randrange(2, 6))]
    random.shuffle(kinds)
    bare = [node(f"bare-{node_index}") for node_index in range(2)]
    objects = [
        device_class("gpu", f'device.driver == "{DRIVER}"'),
        device_class("nic", f'device.driver == "{NETWORK}"'),
        *bare,
    ]
    for node_index, kind in enumerate(kinds):
        name = f"node-{node_index}"
        objects.append(node(name, **{RACK: f"rack-{node_index % 2}"}))
        objects += _hardware(random, name, kind)
    whole = [
        f"node-{node_index}"
        for node_index, kind in enumerate(kinds)
        if kind == "whole"
    ]
    objects += _running("runs-0", random.choice(whole))
    return [*objects, *_gang(), *_waiting(random)]


def _hardware(random: Random, name: str, kind: str) -> Iterator[Json]:
    """Yield the slices of a node: GPUs of a kind, and network adapters."""
    gpus = [f"gpu-{gpu_index}" for gpu_index in range(random.randrange(2, 5))]
    match kind:
        case "whole":
            devices = [device(gpu, {"kind": kind}) for gpu in gpus]
        case "shared":
            devices = [
                device(
                    gpu,
                    {"kind": kind},
                    allowMultipleAllocations=True,
                    capacity={"memory": {"value": "80Gi"}},
                )
                for gpu in gpus
            ]
        case _:
            devices = [part for gpu in gpus for part in _parts(gpu)]
    slices = 2 if kind == "parted" else 1
    own: Json = {"pool": name, "nodeName": name}
    yield resource_slice(devices, name=name, count=slices, **own)
    if kind == "parted":
        sets = [counters(gpu, memory="80Gi") for gpu in gpus]
        yield resource_slice(
            name=f"{name}-counters", sharedCounters=sets, count=slices, **own
        )
    adapters = [
        device(f"nic-{adapter_index}")
        for adapter_index in range(random.randrange(1, 3))
    ]
    yield resource_slice(adapters, name=f"{name}-nic", driver=NETWORK, **own)


def _parts(gpu: str) -> Iterator[Json]:
    """Yield a GPU whole, and as halves and quarters of its memory."""
    for size, amount, count in (
        ("full", "80Gi", 1),
        ("half", "40Gi", 2),
        ("quarter", "20Gi", 4),
    ):
        for index in range(count):
            yield device(
                f"{gpu}-{size}-{index}",
                {"kind": "parted", "size": size},
                consumesCounters=consumes(gpu, memory=amount),
            )


def _running(name: str, where: str) -> list[Json]:
    """A pod that is bound, with a claim that is allocated."""
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": where,
        "device": "gpu-0",
    }
    held = {"allocation": {"devices": {"results": [result]}}}
    return [
        claim(name, request(), status=held),
        pod(name, name, nodeName=where),
    ]


def _gang() -> Iterator[Json]:
    """Yield a gang that runs in one rack or not at all, each pod with a whole GPU."""
    policy = {"gang": {"minCount": GANG}}
    constraints = {"topology": [{"key": RACK}]}
    yield {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {
            "schedulingPolicy": policy,
            "schedulingConstraints": constraints,
        },
    }
    for pod_index in range(GANG):
        name = f"gang-{pod_index}"
        group = {"schedulingGroup": {"podGroupName": "gang"}}
        yield claim(name, request())
        yield _gated(name, name, **group)


def _waiting(random: Random) -> Iterator[Json]:
    """Yield pods that wait for all kinds of devices, some of them with a claim in common, or made of a template."""
    yield template("one", request())
    for pod_index in range(random.randrange(15, 25)):
        name = f"waits-{pod_index}"
        cpu = random.choice(["1", "4", "16"])
        containers = [
            {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        ]
        match random.randrange(5):
            case 0:
                entry = {"name": "gpu", "resourceClaimTemplateName": "one"}
                yield _gated(
                    name, resourceClaims=[entry], containers=containers
                )
            case 1:
                yield claim(name, request(), request("nic", device_class="nic"))
                yield _gated(name, name, containers=containers)
            case 2:
                yield claim(name, request())
                yield _gated(name, name, containers=containers)
                yield _gated(f"{name}-too", name, containers=containers)
            case 3:
                yield claim(
                    name,
                    _of_kind(
                        "parted",
                        ' && device.attributes["gpu.example.com"].size == "half"',
                    ),
                )
                yield _gated(name, name, containers=containers)
            case _:
                memory = random.choice(["20Gi", "30Gi"])
                part = _of_kind(
                    "shared", "", capacity={"requests": {"memory": memory}}
                )
                yield claim(name, part)
                yield _gated(name, name, containers=containers)


def _of_kind(kind: str, more: str, **fields: Any) -> Json:
    return request(
        "gpu",
        f'device.attributes["gpu.example.com"].kind == "{kind}"{more}',
        **fields,
    )


def _gated(name: str, *claims: str, **spec: Any) -> Json:
    return pod(name, *claims, schedulingGates=[{"name": GATE}], **spec)


def template(name: str, *requests: Json) -> Json:
    """A pattern of claims."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def rows_of_gpus(nodes: int, devices: int) -> Iterator[Json]:
    """Yield equal nodes with whole GPUs, and a template for one of them."""
    yield device_class()
    yield template("one", request())
    for node_index in range(nodes):
        name = f"node-{node_index}"
        gpus = [device(f"gpu-{index}") for index in range(devices)]
        yield node(name)
        yield resource_slice(gpus, name=name, pool=name, nodeName=name)


def crowd(names: Iterator[str], *, gated: bool = True) -> Iterator[Json]:
    """Yield pods for a GPU each."""
    entry = {"name": "gpu", "resourceClaimTemplateName": "one"}
    for name in names:
        pod_object = pod(
            name,
            resourceClaims=[entry],
            containers=[{"name": "c", "image": "x"}],
        )
        if gated:
            pod_object["spec"]["schedulingGates"] = [{"name": GATE}]
        yield pod_object
