"""The trace as Kubernetes objects.

A node has one device ``host``, with its cores and its memory as consumable capacities, and a device for each GPU, with
1000 thousandths as consumable capacity; all can be shared (KEP-5075). A pod asks for its part of the host, and for its
part of a GPU or for several whole ones. If it wants a certain model that is the class of the request; if several will
do, they are the entries of a prioritized list (KEP-4816), in the order of the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from benchmarks.objects import (
    DRIVER,
    Json,
    amounts,
    claim_spec,
    device,
    device_class,
    exactly,
    first_available,
    node,
    pod,
    resource_slice,
    template,
)
from benchmarks.openb.trace import WHOLE, TraceNode, TracePod

__all__ = ["GPU", "HOST", "MILLI", "objects"]

HOST: Final = "host"
GPU: Final = "gpu"
MILLI: Final = "milli"
"""Name of the capacity of which a GPU has 1000."""


def objects(
    nodes: Iterable[TraceNode], pods: Iterable[TracePod]
) -> Iterator[Json]:
    """Everything, nodes and pods in order; pods of equal wishes share a template."""
    models: dict[str, None] = {}
    for trace_node in nodes:
        yield node(trace_node.name)
        yield resource_slice(
            trace_node.name, trace_node.name, list(_devices(trace_node))
        )
        models.update({trace_node.model: None} if trace_node.gpus else {})
    templates: dict[TracePod, str] = {}
    for pod_index, wanted in enumerate(pods):
        kind = replace(wanted, name="")
        if kind not in templates:
            templates[kind] = f"kind-{len(templates):04d}"
            models.update(dict.fromkeys(kind.models))
            yield template(templates[kind], claim_spec(*_requests(kind)))
        yield pod(f"{pod_index:06d}-{wanted.name}", templates=[templates[kind]])
    yield device_class(HOST, _is(HOST))
    yield device_class(GPU, _is(GPU))
    for model in models:
        yield device_class(
            _class_of(model),
            f"{_is(GPU)} && device.attributes['{DRIVER}'].model == '{model}'",
        )


def _is(kind: str) -> str:
    return f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"


def _class_of(model: str) -> str:
    return f"{GPU}-{model.lower()}"


def _devices(trace_node: TraceNode) -> Iterator[Json]:
    host = amounts(cpu=f"{trace_node.cpu}m", memory=f"{trace_node.memory}Mi")
    yield device(
        HOST, {"type": HOST}, capacity=host, allowMultipleAllocations=True
    )
    for gpu in range(trace_node.gpus):
        yield device(
            f"{GPU}-{gpu}",
            {"type": GPU, "model": trace_node.model},
            capacity=amounts(milli=str(WHOLE)),
            allowMultipleAllocations=True,
        )


def _requests(kind: TracePod) -> Iterator[Json]:
    yield exactly(
        HOST,
        HOST,
        capacity={
            "requests": {"cpu": f"{kind.cpu}m", "memory": f"{kind.memory}Mi"}
        },
    )
    if not kind.gpus:
        return
    fields: Json = {
        "count": kind.gpus,
        "capacity": {"requests": {MILLI: str(kind.milli)}},
    }
    if len(kind.models) > 1:
        entries = [
            (model.lower(), _class_of(model), (), fields)
            for model in kind.models
        ]
        yield first_available(GPU, *entries)
    else:
        yield exactly(
            GPU, _class_of(kind.models[0]) if kind.models else GPU, **fields
        )
