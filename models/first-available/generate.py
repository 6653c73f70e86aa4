"""Write the YAML file of this model.

Run ``python models/first-available/generate.py``. The result depends on nothing but the constants below. The files
``expected.yaml`` and ``README.md`` are written by hand and stay untouched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

# --- sizes: what to change to make the model larger, smaller or tighter ---------------------------------------------

NODES = {"H200": 2, "H100": 2, "A100": 2}
GPUS_PER_NODE = 4


@dataclass(frozen=True)
class Workload:
    """A controller with ``replicas`` pods that wait, each for one of ``wishes``: so many GPUs of a model."""

    kind: str
    name: str
    replicas: int
    wishes: tuple[tuple[str, int], ...]


# In the order of arrival: the order in which first fit serves them.
WORKLOADS = [
    Workload("Deployment", "chat", 7, (("H200", 1), ("H100", 1), ("A100", 2))),
    Workload("Deployment", "summarise", 6, (("H100", 1), ("A100", 1))),
    Workload("Job", "long-context", 6, (("H200", 1),)),
    Workload("Job", "finetune", 2, (("H100", 2),)),
]

DRIVER = "gpu.example.com"
MEMORY = {"H200": "141Gi", "H100": "80Gi", "A100": "40Gi"}
Json = dict[str, Any]


def objects(times: int = 1) -> Iterator[Json]:
    """Everything; so many times as many nodes and pods."""
    yield from nodes(times)
    yield device_class()
    for workload in WORKLOADS:
        yield template(workload)
        yield controller(replace(workload, replicas=workload.replicas * times))


def nodes(times: int) -> Iterator[Json]:
    """Nodes, each with GPUs of one model."""
    for model, number in NODES.items():
        for name in (
            f"{model.lower()}-{place}" for place in range(1, number * times + 1)
        ):
            labels = {"kubernetes.io/hostname": name}
            yield {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
            }
            spec = {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {
                    "name": name,
                    "generation": 1,
                    "resourceSliceCount": 1,
                },
                "devices": [
                    gpu(model, number) for number in range(GPUS_PER_NODE)
                ],
            }
            metadata = {"name": f"{name}-{DRIVER}"}
            yield {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": metadata,
                "spec": spec,
            }


def gpu(model: str, number: int) -> Json:
    """A GPU, which can only be used whole."""
    capacity = {"memory": {"value": MEMORY[model]}}
    return {
        "name": f"gpu-{number}",
        "attributes": {"model": {"string": model}},
        "capacity": capacity,
    }


def device_class() -> Json:
    """Everything of the driver."""
    spec = {
        "selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": spec,
    }


def template(workload: Workload) -> Json:
    """The claim of each pod."""
    wishes = {
        f"{model.lower()}-x{count}": wish(model, count)
        for model, count in workload.wishes
    }
    several = {
        "firstAvailable": [
            {"name": name, **one} for name, one in wishes.items()
        ]
    }
    asked = (
        several if len(wishes) > 1 else {"exactly": next(iter(wishes.values()))}
    )
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": workload.name, "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", **asked}]}}},
    }


def wish(model: str, count: int) -> Json:
    """So many GPUs of a model."""
    expression = f"device.attributes['{DRIVER}'].model == '{model}'"
    return {
        "deviceClassName": DRIVER,
        "selectors": [{"cel": {"expression": expression}}],
        "count": count,
    }


def controller(workload: Workload) -> Json:
    """The controller; its pods are not there yet."""
    number = {"Deployment": "replicas", "Job": "parallelism"}[workload.kind]
    labels = {"app": workload.name}
    pod = {
        "containers": [
            {"name": "main", "image": f"registry.example.com/{workload.name}:1"}
        ],
        "resourceClaims": [
            {"name": "gpu", "resourceClaimTemplateName": workload.name}
        ],
    }
    return {
        "apiVersion": {"Deployment": "apps/v1", "Job": "batch/v1"}[
            workload.kind
        ],
        "kind": workload.kind,
        "metadata": {"name": workload.name, "namespace": "ml"},
        "spec": {
            number: workload.replicas,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def main() -> None:
    """Write the file."""
    text = yaml.safe_dump_all(
        objects(), sort_keys=False, explicit_start=True, width=120
    )
    Path(__file__).with_name("cluster.yaml").write_text(
        "# Written by generate.py.\n" + text
    )


if __name__ == "__main__":
    main()
