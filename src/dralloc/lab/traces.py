"""Public traces as clusters with arrivals, read where the user has the files; and a month of a MIG cluster.

Each adapter reads the files as they were published and returns a cluster with nodes and templates, and the arrivals to
be let loose on it by `dralloc.simulate`. No file of a trace is part of dralloc. Sources, licences and columns:
the page "Public traces".
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from dralloc.ask.scenario import Scenario
from dralloc.lab.simulate import Arrival, PoissonArrivals
from dralloc.objects.api import Pod
from dralloc.objects.choices import Durations
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.load import load_documents
from dralloc.objects.names import ClaimKey

__all__ = [
    "ClusterTrace",
    "MigMonth",
    "gpu_v2025",
    "mig_month",
    "openb",
    "philly",
    "recorded_pods",
]

# ----------------------------------------------------------------------------
# What all traces share: files, objects in wire form, times.

_API: Final = "resource.k8s.io/v1"
_DRIVER: Final = "gpu.example.com"
_NAMESPACE: Final = "default"
_SECOND: Final = 1000
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


def _read(file: File, parse: Callable[[dict[str, str]], T]) -> list[T]:
    """Return what a function makes of each row of a CSV file.

    Raises
    ------
    DrallocError
        The file cannot be read, or a row is not of the form that it should have.
    """
    path = Path(file)
    parsed: list[T] = []
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            for row in reader:
                try:
                    parsed.append(parse(row))
                except KeyError as error:
                    raise DrallocError(
                        f"{path}: there is no column {error.args[0]}"
                    ) from None
                except (ValueError, TypeError, AttributeError) as error:
                    raise DrallocError(
                        f"{path}: line {reader.line_num}: {error}"
                    ) from None
    except OSError as error:
        raise DrallocError(
            f"{path}: cannot be read: {error.strerror or error}"
        ) from None
    except UnicodeDecodeError:
        raise DrallocError(
            f"{path}: cannot be read: is no text in UTF-8"
        ) from None
    return parsed


_DURATION: Final = "dralloc.dev/duration"
"""Annotation of pods: for how many seconds they run."""


def recorded_pods(cluster: Cluster) -> ClusterTrace:
    """Let the pods of a cluster arrive when they were made, whether they wait or run.

    A pod without ``creationTimestamp`` does not arrive. It runs for as many seconds as its annotation
    ``dralloc.dev/duration`` says; without it, it never leaves. What arrives holds nothing in the beginning.

    Raises
    ------
    DrallocError
        A duration is no number of seconds.

    Examples
    --------
    >>> import dralloc
    >>> from dralloc.lab.traces import recorded_pods
    >>> recorded_pods(dralloc.example()).arrivals
    ()
    """
    made = {
        pod.key: datetime.fromisoformat(pod.metadata.creation_timestamp)
        for pod in cluster.pods
        if pod.metadata.creation_timestamp
    }
    first = min(made.values(), default=None)
    arrivals = [
        Arrival(
            (made[pod.key] - first) // timedelta(milliseconds=1),
            pod.key,
            _recorded_duration(pod),
        )
        for pod in cluster.pods
        if pod.key in made and first is not None
    ]
    claims = {
        claim for pod in made for claim in cluster.claims_of_pods.get(pod, ())
    }
    waiting = Scenario(cluster).release(claims).unbind(made.keys())
    in_order = sorted(arrivals, key=lambda arrival: arrival.time)
    return ClusterTrace(waiting.cluster, tuple(in_order))


def _recorded_duration(pod: Pod) -> int | None:
    """Return for how many milliseconds a pod runs; None if that is not said."""
    text = pod.metadata.annotations.get(_DURATION)
    if text is None:
        return None
    try:
        seconds = float(text)
        if not isfinite(seconds) or seconds < 0:
            raise ValueError(f"{text} is not a number of seconds from 0")
    except ValueError as error:
        raise DrallocError(
            f"Pod {pod.key}: metadata.annotations[{_DURATION}]: {error}"
        ) from None
    return round(seconds * _SECOND)


def _whole(text: str) -> int:
    """Return a number that may be written as a float, rounded up."""
    value = float(text)
    if not isfinite(value) or value < 0:
        raise ValueError(f"{text} is not a number from 0")
    return -int(-value // 1)


def _seconds(text: str) -> float | None:
    """Return a time in seconds; None if the trace does not know it."""
    if text.strip().lower() in ("", "nan"):
        return None
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is no number of seconds")
    return value


def _arrival(
    begin: float, end: float | None, template: str, **fields: Any
) -> Arrival:
    """Return an arrival that runs from one time to another, or for ever; who ends before the beginning runs no time."""
    time = round(max(0.0, begin) * _SECOND)
    duration = None if end is None else max(0, round(end * _SECOND) - time)
    return Arrival(time, ClaimKey(_NAMESPACE, template), duration, **fields)


def _node(name: str, **allocatable: str) -> Json:
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


def _slice(node: str, name: str = "", slices: int = 1, **spec: Any) -> Json:
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


def _device(name: str, attributes: Mapping[str, str], **fields: Any) -> Json:
    wire = {key: {"string": value} for key, value in attributes.items()}
    return {"name": name, "attributes": wire, **fields}


def _amounts(amounts: Mapping[str, str]) -> Json:
    return {name: {"value": value} for name, value in amounts.items()}


def _class(name: str, expression: str) -> Json:
    selector = {"cel": {"expression": expression}}
    return {
        "apiVersion": _API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }


def _has(attribute: str, value: str) -> str:
    """Return the CEL expression of devices with an attribute."""
    return (
        f"device.driver == '{_DRIVER}' && "
        f"device.attributes['{_DRIVER}'].{attribute} == '{value}'"
    )


def _request(name: str, device_class: str, **fields: Any) -> Json:
    return {
        "name": name,
        "exactly": {"deviceClassName": device_class, **fields},
    }


def _template_pod(
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


# ----------------------------------------------------------------------------
# Alibaba's GPU trace of 2023, "openb", with the lifetimes of its pods.

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
            _node(
                name,
                cpu=f"{row['cpu_milli']}m",
                memory=f"{row['memory_mib']}Mi",
            )
        )
        devices = [
            _device(
                f"gpu-{gpu}",
                {"type": "gpu", "model": model},
                capacity=_amounts({_MILLI: str(_GPU_SHARE)}),
                allowMultipleAllocations=True,
            )
            for gpu in range(int(row["gpu"]))
        ]
        if devices:
            models[model] = None
            objects.append(_slice(name, devices=devices))

    _read(nodes, read_node)
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
        begin = _seconds(row["creation_time"])
        if begin is None:
            raise ValueError("creation_time is empty")
        if not kind.gpus:
            return None
        template = kinds.setdefault(kind, f"kind-{len(kinds):04}")
        models.update(dict.fromkeys(kind.models))
        return _arrival(begin, _seconds(row["deletion_time"]), template)

    arrivals = [arrival for arrival in _read(pods, read_pod) if arrival]
    for kind, name in kinds.items():
        objects += _template_pod(
            name,
            [_openb_request(kind)],
            cpu=f"{kind.cpu}m",
            memory=f"{kind.memory}Mi",
        )
    objects.append(_class("gpu", _has("type", "gpu")))
    for model in models:
        objects.append(_class(_model_class(model), _has("model", model)))
    return _trace(objects, arrivals)


def _model_class(model: str) -> str:
    return f"gpu-{model.lower()}" if model else "gpu"


def _openb_request(kind: _OpenbKind) -> Json:
    fields: Json = {
        "count": kind.gpus,
        "capacity": {"requests": {_MILLI: str(kind.milli)}},
    }
    if len(kind.models) < 2:
        [device_class] = map(_model_class, kind.models or ("",))
        return _request("gpu", device_class, **fields)
    entries = [
        {
            "name": model.lower(),
            "deviceClassName": _model_class(model),
            **fields,
        }
        for model in kind.models
    ]
    return {"name": "gpu", "firstAvailable": entries}


def _trace(
    objects: Iterable[Json], arrivals: Iterable[Arrival]
) -> ClusterTrace:
    in_order = sorted(arrivals, key=lambda arrival: arrival.time)
    return ClusterTrace(load_documents(list(objects)), tuple(in_order))


# ----------------------------------------------------------------------------
# Alibaba's trace of 2025: recommendation models whose GPUs are on nodes of their own.

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
            _whole(row["cpu_request"]),
            _whole(row["gpu_request"]),
            _whole(row["rdma_request"]),
            _whole(row["memory_request"]),
            int(row["max_instance_per_node"]),
        )
        if not kind.gpus:
            return None
        template = kinds.setdefault(kind, f"{kind.service}-{len(kinds)}")
        scheduled = _seconds(row["scheduled_time"])
        created = _seconds(row["creation_time"])
        end = _seconds(row["deletion_time"])
        begin = 0.0 if created is None else created
        if end is not None and scheduled is not None:
            # It runs as long as it ran, whenever it gets a place.
            end = begin + end - scheduled
        return _arrival(begin, end, template)

    arrivals = [arrival for arrival in _read(trace, read) if arrival]
    densities = {
        _density(kind.service): str(kind.density)
        for kind in kinds
        if kind.density >= 0
    }
    objects: list[Json] = []
    for node in range(nodes):
        name = f"node-{node:05}"
        objects.append(_node(name, cpu=str(cpu), memory=memory, **densities))
        devices = [
            _device(f"gpu-{gpu}", {"type": "gpu"}) for gpu in range(gpus)
        ]
        devices += [
            _device(
                f"rdma-{adapter}",
                {"type": "rdma"},
                capacity=_amounts({_RDMA: str(_PERCENT)}),
                allowMultipleAllocations=True,
            )
            for adapter in range(adapters)
        ]
        objects.append(_slice(name, devices=devices))
    for kind, name in kinds.items():
        density = {_density(kind.service): "1"} if kind.density >= 0 else {}
        share = {"requests": {_RDMA: str(kind.rdma)}}
        requests = [
            _request("gpu", "gpu", count=kind.gpus),
            _request("rdma", "rdma", capacity=share),
        ]
        objects += _template_pod(
            name,
            requests,
            cpu=str(kind.cpu),
            memory=f"{kind.memory}Gi",
            **density,
        )
    objects += [_class(kind, _has("type", kind)) for kind in ("gpu", "rdma")]
    return _trace(objects, arrivals)


def _density(service: str) -> str:
    return f"density.example.com/{service}"


# ----------------------------------------------------------------------------
# Microsoft's Philly trace, in the form in which the artifacts of Sia have it.


def philly(trace: File, machines: Mapping[int, int]) -> ClusterTrace:
    """Read the jobs of Microsoft's Philly trace: when they came, how long they ran, how many GPUs they had.

    A job of more GPUs than a machine has is a group of pods, each with a whole machine's GPUs and the last one with the
    rest, placed together or not at all. Its virtual cluster is its namespace.

    Parameters
    ----------
    trace
        ``philly.csv`` with columns timestamp, duration, num_gpus and cluster.
    machines
        By number of GPUs, how many machines have so many. The file does not say.

    Raises
    ------
    DrallocError
        The file cannot be read, or is of another form; or no machine is given.
    """
    largest = max(
        (size for size, count in machines.items() if count), default=0
    )
    if not largest:
        raise DrallocError("machines: none of them has a GPU")

    def read(row: Mapping[str, str]) -> tuple[float, float, int, str]:
        time = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC)
        duration = _seconds(row["duration"])
        if duration is None:
            raise ValueError("duration is empty")
        return (
            time.timestamp(),
            duration,
            int(row["num_gpus"]),
            row["cluster"],
        )

    jobs = _read(trace, read)
    first = min((time for time, *_ in jobs), default=0.0)
    arrivals: list[Arrival] = []
    counts: dict[int, None] = {}
    for job, (time, duration, gpus, cluster) in enumerate(jobs):
        whole, rest = divmod(gpus, largest)
        parts = [largest] * whole + ([rest] if rest else [])
        group = f"job-{job}" if len(parts) > 1 else ""
        for part in parts:
            counts[part] = None
            begin = time - first
            arrivals.append(
                _arrival(
                    begin,
                    begin + duration,
                    f"gpus-{part}",
                    namespace=f"vc-{cluster}",
                    group=group,
                )
            )
    objects = [_class("gpu", _has("type", "gpu"))]
    for size, count in machines.items():
        for node in range(count):
            name = f"gpus-{size}-node-{node:04}"
            devices = [
                _device(f"gpu-{gpu}", {"type": "gpu"}) for gpu in range(size)
            ]
            objects += [_node(name), _slice(name, devices=devices)]
    for part in counts:
        objects += _template_pod(
            f"gpus-{part}", [_request("gpu", "gpu", count=part)]
        )
    return _trace(objects, arrivals)


# ----------------------------------------------------------------------------
# A month of a MIG cluster: our own generator.
#
# The placements of an H100 with 80 GB, as NVIDIA's documentation of MIG has them:
# streaming multiprocessors, memory slices, and the slices at which an instance begins.

_SLICES: Final = 8
_MULTIPROCESSORS: Final = 132


class _MigProfile(NamedTuple):
    """A part of a GPU."""

    multiprocessors: int
    slices: int
    starts: tuple[int, ...]


_PROFILES: Final = {
    "1g.10gb": _MigProfile(16, 1, (0, 1, 2, 3, 4, 5, 6)),
    "1g.20gb": _MigProfile(26, 2, (0, 2, 4, 6)),
    "2g.20gb": _MigProfile(32, 2, (0, 2, 4)),
    "3g.40gb": _MigProfile(60, 4, (0, 4)),
    "4g.40gb": _MigProfile(64, 4, (0,)),
    "7g.80gb": _MigProfile(132, 8, (0,)),
}

_USUAL_MIX: Final = {
    "1g.10gb": 40,
    "2g.20gb": 25,
    "3g.40gb": 20,
    "4g.40gb": 5,
    "7g.80gb": 10,
}


@dataclass(frozen=True)
class MigMonth:
    """A cluster of H100s, and a process that draws who arrives there.

    Parameters
    ----------
    cluster
        Nodes with GPUs in all placements of their MIG profiles, and a pod for each profile.
    arrivals
        Drawn anew for each seed.
    """

    cluster: Cluster
    arrivals: PoissonArrivals


def mig_month(  # noqa: PLR0913 - all with usual values
    nodes: int = 8,
    gpus: int = 4,
    *,
    load: float = 0.9,
    days: float = 30,
    mean_hours: float = 6,
    mix: Mapping[str, float] | None = None,
) -> MigMonth:
    """Make a cluster of H100s, and arrivals by day and night that ask for MIG profiles for log-normal durations.

    Parameters
    ----------
    nodes, gpus
        How many nodes, with so many GPUs each.
    load
        What arrivals ask for on average, as a part of all memory slices.
    days
        For how long they arrive.
    mean_hours
        How long they run on average.
    mix
        How often each profile is asked for beside the others.

    Raises
    ------
    DrallocError
        There is no such profile, or a number is out of its range.
    """
    shares = dict(mix or _USUAL_MIX)
    unknown = shares.keys() - _PROFILES.keys()
    if unknown:
        raise DrallocError(
            f"mix: no profile {min(unknown)!r}; there are {', '.join(_PROFILES)}"
        )
    objects: list[Json] = []
    for node in range(nodes):
        objects += _mig_node(f"node-{node:04}", gpus)
    for profile in _PROFILES:
        objects.append(_class(_mig_class(profile), _has("profile", profile)))
        objects += _template_pod(
            _mig_class(profile), [_request("mig", _mig_class(profile))]
        )
    slices_per_arrival = sum(
        share * _PROFILES[profile].slices for profile, share in shares.items()
    ) / sum(shares.values())
    per_hour = load * nodes * gpus * _SLICES / slices_per_arrival / mean_hours
    arrivals = PoissonArrivals(
        {_mig_class(profile): share for profile, share in shares.items()},
        per_hour=per_hour,
        hours=24 * days,
        mean_hours=mean_hours,
        durations=Durations.LOGNORMAL,
        shape=1.0,
        swing=0.3,
    )
    return MigMonth(load_documents(objects), arrivals)


def _mig_class(profile: str) -> str:
    return f"mig-{profile.replace('.', '-')}"


def _mig_node(node: str, gpus: int) -> Iterator[Json]:
    whole = _MigProfile(_MULTIPROCESSORS, _SLICES, (0,))
    sets = [
        {
            "name": f"gpu-{gpu}",
            "counters": _amounts(_mig_counters(whole, 0)),
        }
        for gpu in range(gpus)
    ]
    yield _node(node)
    yield _slice(node, f"{node}-counters", 1 + gpus, sharedCounters=sets)
    for gpu in range(gpus):
        devices: list[Json] = []
        for name, profile in _PROFILES.items():
            for start in profile.starts:
                counters = _amounts(_mig_counters(profile, start))
                devices.append(
                    _device(
                        f"gpu-{gpu}-{_mig_class(name)}-{start}",
                        {"profile": name},
                        consumesCounters=[
                            {"counterSet": f"gpu-{gpu}", "counters": counters}
                        ],
                    )
                )
        yield _slice(node, f"{node}-{gpu}", 1 + gpus, devices=devices)


def _mig_counters(profile: _MigProfile, start: int) -> dict[str, str]:
    slices = {
        f"memory-slice-{memory_slice}": "1"
        for memory_slice in range(start, start + profile.slices)
    }
    return {"multiprocessors": str(profile.multiprocessors), **slices}
