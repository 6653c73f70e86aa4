"""Alibaba's trace of 2025: recommendation models whose GPUs are on nodes of their own."""

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
    whole_number,
    wire_amounts,
    wire_class,
    wire_device,
    wire_node,
    wire_request,
    wire_slice,
    with_attribute,
)

__all__ = ["gpu_v2025"]

_RDMA: Final = "bandwidth"
_PERCENT: Final = 100


class _ServiceKind(NamedTuple):
    """What instances of a service want: cores, GPUs, percent of an adapter, GiB, and how many of them a node takes."""

    service: str
    cpu: int
    gpus: int
    rdma: int
    memory: int
    density: int


def gpu_v2025(  # noqa: PLR0913 - the trace does not say what nodes are like
    trace: File,
    nodes: int,
    *,
    gpus: int = 8,
    adapters: int = 2,
    cpu: int = 192,
    memory: str = "1536Gi",
) -> ClusterTrace:
    """Read Alibaba's trace of 2025: the 7,386 instances with a GPU, from their creation to their deletion.

    A GPU is a device. An RDMA adapter is a device that can be shared, with 100 percent of its bandwidth as consumable
    capacity. At most so many instances of a service run on a node: that is an extended resource of each node with the
    service's name, of which an instance takes one, as anti-affinity counts no further than to one. Who was there when
    the trace began arrives at 0; who was there when it ended never leaves. The trace has no list of nodes:
    `dralloc.fewest_nodes` tells how many are needed for what runs at a time.

    Parameters
    ----------
    trace
        ``disaggregated_DLRM_trace.csv``.
    nodes
        How many nodes there are.
    gpus, adapters, cpu, memory
        What each of them has. These are assumptions.

    Raises
    ------
    DrallocError
        The file cannot be read, or is of another form.
    """
    kinds: dict[_ServiceKind, str] = {}

    def read(row: Mapping[str, str]) -> Arrival | None:
        kind = _ServiceKind(
            row["app_name"].replace("_", "-"),
            whole_number(row["cpu_request"]),
            whole_number(row["gpu_request"]),
            whole_number(row["rdma_request"]),
            whole_number(row["memory_request"]),
            int(row["max_instance_per_node"]),
        )
        if not kind.gpus:
            return None
        template = kinds.setdefault(kind, f"{kind.service}-{len(kinds)}")
        scheduled = seconds_of(row["scheduled_time"])
        created = seconds_of(row["creation_time"])
        end = seconds_of(row["deletion_time"])
        begin = 0.0 if created is None else created
        if end is not None and scheduled is not None:
            # It runs as long as it ran, whenever it gets a place.
            end = begin + end - scheduled
        return arrival_between(begin, end, template)

    arrivals = [arrival for arrival in read_rows(trace, read) if arrival]
    densities = {
        _density(kind.service): str(kind.density)
        for kind in kinds
        if kind.density >= 0
    }
    objects: list[Json] = []
    for node in range(nodes):
        name = f"node-{node:05}"
        objects.append(
            wire_node(name, cpu=str(cpu), memory=memory, **densities)
        )
        devices = [
            wire_device(f"gpu-{gpu}", {"type": "gpu"}) for gpu in range(gpus)
        ]
        devices += [
            wire_device(
                f"rdma-{adapter}",
                {"type": "rdma"},
                capacity=wire_amounts({_RDMA: str(_PERCENT)}),
                allowMultipleAllocations=True,
            )
            for adapter in range(adapters)
        ]
        objects.append(wire_slice(name, devices=devices))
    for kind, name in kinds.items():
        density = {_density(kind.service): "1"} if kind.density >= 0 else {}
        share = {"requests": {_RDMA: str(kind.rdma)}}
        requests = [
            wire_request("gpu", "gpu", count=kind.gpus),
            wire_request("rdma", "rdma", capacity=share),
        ]
        objects += template_pod(
            name,
            requests,
            cpu=str(kind.cpu),
            memory=f"{kind.memory}Gi",
            **density,
        )
    objects += [
        wire_class(kind, with_attribute("type", kind))
        for kind in ("gpu", "rdma")
    ]
    return trace_of(objects, arrivals)


def _density(service: str) -> str:
    return f"density.example.com/{service}"
