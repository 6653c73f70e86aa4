"""Alibaba's GPU trace of 2023, "openb", with the lifetimes of its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from dralloc.lab.simulate import Arrival
from dralloc.lab.traces.cluster_trace import (
    ClusterTrace,
    File,
    Json,
    arrival_between,
    read_rows,
    seconds_of,
    template_pod,
    trace_of,
    wire_amounts,
    wire_class,
    wire_device,
    wire_node,
    wire_request,
    wire_slice,
    with_attribute,
)

__all__ = ["openb"]

_MILLI: Final = "milli"
_GPU_SHARE: Final = 1000


class _OpenbKind(NamedTuple):
    """What pods of the trace want: thousandths of cores, MiB, GPUs, thousandths of each, models that will do."""

    cpu: int
    memory: int
    gpus: int
    milli: int
    models: tuple[str, ...]


def openb(nodes: File, pods: File) -> ClusterTrace:
    """Read Alibaba's GPU trace of 2023: each pod arrives when it was created and runs until it was deleted.

    A GPU is a device with 1000 thousandths as consumable capacity, which can be shared; CPU and memory are the node's.
    Pods that ask for no GPU, of which the lists have some, are left out.

    Parameters
    ----------
    nodes
        ``openb_node_list_gpu_node.csv``.
    pods
        One of the lists ``openb_pod_list_*.csv`` with creation and deletion times.

    Raises
    ------
    DrallocError
        A file cannot be read, or is of another form.
    """
    models: dict[str, None] = {}
    objects: list[Json] = []

    def read_node(row: Mapping[str, str]) -> None:
        name, model = row["sn"], row["model"].strip()
        objects.append(
            wire_node(
                name,
                cpu=f"{row['cpu_milli']}m",
                memory=f"{row['memory_mib']}Mi",
            )
        )
        devices = [
            wire_device(
                f"gpu-{gpu}",
                {"type": "gpu", "model": model},
                capacity=wire_amounts({_MILLI: str(_GPU_SHARE)}),
                allowMultipleAllocations=True,
            )
            for gpu in range(int(row["gpu"]))
        ]
        if devices:
            models[model] = None
            objects.append(wire_slice(name, devices=devices))

    read_rows(nodes, read_node)
    kinds: dict[_OpenbKind, str] = {}

    def read_pod(row: Mapping[str, str]) -> Arrival | None:
        wanted = (row.get("gpu_spec") or "").split("|")
        kind = _OpenbKind(
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["num_gpu"]),
            int(row["gpu_milli"]),
            tuple(filter(None, map(str.strip, wanted))),
        )
        begin = seconds_of(row["creation_time"])
        if begin is None:
            raise ValueError("creation_time is empty")
        if not kind.gpus:
            return None
        # Pods that want the same are copies of one template.
        template = kinds.setdefault(kind, f"kind-{len(kinds):04}")
        # Requests name the classes of models, so there must be one even of a model that no node has.
        models.update(dict.fromkeys(kind.models))
        return arrival_between(
            begin, seconds_of(row["deletion_time"]), template
        )

    arrivals = [arrival for arrival in read_rows(pods, read_pod) if arrival]
    for kind, name in kinds.items():
        objects += template_pod(
            name,
            [_openb_request(kind)],
            cpu=f"{kind.cpu}m",
            memory=f"{kind.memory}Mi",
        )
    objects.append(wire_class("gpu", with_attribute("type", "gpu")))
    for model in models:
        objects.append(
            wire_class(_model_class(model), with_attribute("model", model))
        )
    return trace_of(objects, arrivals)


def _model_class(model: str) -> str:
    return f"gpu-{model.lower()}" if model else "gpu"


def _openb_request(kind: _OpenbKind) -> Json:
    fields: Json = {
        "count": kind.gpus,
        "capacity": {"requests": {_MILLI: str(kind.milli)}},
    }
    if len(kind.models) < 2:
        [device_class] = map(_model_class, kind.models or ("",))
        return wire_request("gpu", device_class, **fields)
    entries = [
        {
            "name": model.lower(),
            "deviceClassName": _model_class(model),
            **fields,
        }
        for model in kind.models
    ]
    return {"name": "gpu", "firstAvailable": entries}
