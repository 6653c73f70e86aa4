"""What all traces share: files, objects in wire form, times."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeVar

from dralloc.lab.simulate import Arrival
from dralloc.lab.simulate.arrivals.trace import LONGEST
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.load import load_documents
from dralloc.objects.names import ClaimKey

__all__ = [
    "SECOND",
    "ClusterTrace",
    "File",
    "Json",
    "arrival_between",
    "read_rows",
    "seconds_of",
    "template_pod",
    "trace_of",
    "whole_number",
    "wire_amounts",
    "wire_class",
    "wire_device",
    "wire_node",
    "wire_request",
    "wire_slice",
    "with_attribute",
]

_API: Final = "resource.k8s.io/v1"
_DRIVER: Final = "gpu.example.com"
_NAMESPACE: Final = "default"
SECOND: Final = 1000
"""Milliseconds."""

_PODS: Final = "512"
"""Pods that a node takes: none of the traces has a limit."""

Json = dict[str, Any]
T = TypeVar("T")
File = str | PathLike[str]


@dataclass(frozen=True)
class ClusterTrace:
    """A cluster, and who arrives there.

    Parameters
    ----------
    cluster
        Nodes, devices, and a pod of each kind that arrives.
    arrivals
        In order of time.
    """

    cluster: Cluster
    arrivals: tuple[Arrival, ...]


def read_rows(file: File, parse: Callable[[dict[str, str]], T]) -> list[T]:
    """Return what a function makes of each row of a CSV file.

    Raises
    ------
    DrallocError
        The file cannot be read, or a row is not of the form that it should have.
    """
    path = Path(file)
    parsed: list[T] = []
    try:
        # A byte order mark, as spreadsheets write it, must not become part of the first column's name.
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            for row in reader:
                try:
                    parsed.append(parse(row))
                except KeyError as error:
                    raise DrallocError(
                        f"{path}: there is no column {error.args[0]}"
                    ) from None
                except (ValueError, TypeError, AttributeError) as error:
                    # A line that is too short has None in the columns that it lacks.
                    raise DrallocError(
                        f"{path}: line {reader.line_num}: {error}"
                    ) from None
    except csv.Error as error:
        # A quotation mark that is never closed, for instance.
        raise DrallocError(f"{path}: line {reader.line_num}: {error}") from None
    except OSError as error:
        raise DrallocError(
            f"{path}: cannot be read: {error.strerror or error}"
        ) from None
    except UnicodeDecodeError:
        raise DrallocError(
            f"{path}: cannot be read: is no text in UTF-8"
        ) from None
    return parsed


def whole_number(text: str) -> int:
    """Return a number that may be written as a float, rounded up."""
    value = float(text)
    if not isfinite(value) or value < 0:
        raise ValueError(f"{text} is not a number from 0")
    return -int(-value // 1)


def seconds_of(text: str) -> float | None:
    """Return a time in seconds; None if the trace does not know it."""
    if text.strip().lower() in ("", "nan"):
        return None
    value = float(text)
    if not abs(value) <= LONGEST:
        raise ValueError(f"{text} is no number of seconds up to {LONGEST}")
    return value


def arrival_between(
    begin: float, end: float | None, template: str, **fields: Any
) -> Arrival:
    """Return an arrival that runs from one time to another, or for ever; who ends before the beginning runs no time."""
    time = round(max(0.0, begin) * SECOND)
    duration = None if end is None else max(0, round(end * SECOND) - time)
    return Arrival(time, ClaimKey(_NAMESPACE, template), duration, **fields)


def wire_node(name: str, **allocatable: str) -> Json:
    """Return a node with what it has for pods; without a limit if nothing is said."""
    status = {}
    if allocatable:
        status = {"allocatable": {"pods": _PODS, **allocatable}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name},
        },
        "status": status,
    }


def wire_slice(node: str, name: str = "", slices: int = 1, **spec: Any) -> Json:
    """Return a slice of the pool of a node, with devices or with their counters."""
    return {
        "apiVersion": _API,
        "kind": "ResourceSlice",
        "metadata": {"name": name or node},
        "spec": {
            "driver": _DRIVER,
            "nodeName": node,
            "pool": {
                "name": node,
                "generation": 1,
                "resourceSliceCount": slices,
            },
            **spec,
        },
    }


def wire_device(
    name: str, attributes: Mapping[str, str], **fields: Any
) -> Json:
    """Return a device with attributes that are words."""
    wire = {key: {"string": value} for key, value in attributes.items()}
    return {"name": name, "attributes": wire, **fields}


def wire_amounts(amounts: Mapping[str, str]) -> Json:
    """Return capacities or counters by name."""
    return {name: {"value": value} for name, value in amounts.items()}


def wire_class(name: str, expression: str) -> Json:
    """Return the class of the devices that a CEL expression selects."""
    selector = {"cel": {"expression": expression}}
    return {
        "apiVersion": _API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }


def with_attribute(attribute: str, value: str) -> str:
    """Return the CEL expression of devices with an attribute."""
    return (
        f"device.driver == '{_DRIVER}' && "
        f"device.attributes['{_DRIVER}'].{attribute} == '{value}'"
    )


def wire_request(name: str, device_class: str, **fields: Any) -> Json:
    """Return a request for devices of one class."""
    return {
        "name": name,
        "exactly": {"deviceClassName": device_class, **fields},
    }


def template_pod(
    name: str, requests: Iterable[Json], **node_requests: str
) -> Iterator[Json]:
    """Yield a pod of which arrivals are copies, and its claim of the same name."""
    container: Json = {"name": "main"}
    if node_requests:
        container["resources"] = {"requests": node_requests}
    yield {
        "apiVersion": _API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "spec": {"devices": {"requests": list(requests)}},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "devices", "resourceClaimName": name}],
        },
    }


def trace_of(
    objects: Iterable[Json], arrivals: Iterable[Arrival]
) -> ClusterTrace:
    """Return the cluster of some objects, with arrivals in order of time."""
    in_order = sorted(arrivals, key=lambda arrival: arrival.time)
    return ClusterTrace(load_documents(list(objects)), tuple(in_order))
