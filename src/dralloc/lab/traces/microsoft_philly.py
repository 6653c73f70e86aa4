"""Microsoft's Philly trace, in the form in which the artifacts of Sia have it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from dralloc.lab.simulate import Arrival
from dralloc.lab.traces.cluster_trace import (
    ClusterTrace,
    File,
    arrival_between,
    read_rows,
    seconds_of,
    template_pod,
    trace_of,
    wire_class,
    wire_device,
    wire_node,
    wire_request,
    wire_slice,
    with_attribute,
)
from dralloc.objects.errors import DrallocError

__all__ = ["philly"]


def philly(trace: File, machines: Mapping[int, int]) -> ClusterTrace:
    """Read the jobs of Microsoft's Philly trace: when they came, how long they ran, how many GPUs they had.

    A job of more GPUs than a machine has is a group of pods, each with a whole machine's GPUs and the last one with the
    rest, placed together or not at all. A job without GPUs is left out. The virtual cluster of a job is its namespace.

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
        time = datetime.fromisoformat(row["timestamp"])
        # Most say nothing of their zone: it is the same for all then.
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        duration = seconds_of(row["duration"])
        if duration is None:
            raise ValueError("duration is empty")
        gpus = int(row["num_gpus"])
        if gpus < 0:
            raise ValueError(f"num_gpus is {gpus}")
        return time.timestamp(), duration, gpus, row["cluster"]

    jobs = read_rows(trace, read)
    # Timestamps are dates: the trace begins with the earliest job.
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
                arrival_between(
                    begin,
                    begin + duration,
                    f"gpus-{part}",
                    namespace=f"vc-{cluster}",
                    group=group,
                )
            )
    objects = [wire_class("gpu", with_attribute("type", "gpu"))]
    for size, count in machines.items():
        for node in range(count):
            name = f"gpus-{size}-node-{node:04}"
            devices = [
                wire_device(f"gpu-{gpu}", {"type": "gpu"})
                for gpu in range(size)
            ]
            objects += [wire_node(name), wire_slice(name, devices=devices)]
    for part in counts:
        objects += template_pod(
            f"gpus-{part}", [wire_request("gpu", "gpu", count=part)]
        )
    return trace_of(objects, arrivals)
