"""The Alibaba GPU trace of 2023 ("openb"): nodes and pods as its CSV files have them.

Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC'23; files of hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, TypeVar

from dralloc.objects.errors import DrallocError

__all__ = [
    "WHOLE",
    "TraceNode",
    "TracePod",
    "arrivals",
    "read_nodes",
    "read_pods",
]

WHOLE: Final = 1000
"""Thousandths of a GPU."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node: thousandths of cores, MiB, GPUs and their model."""

    name: str
    cpu: int
    memory: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class TracePod:
    """A pod: thousandths of cores, MiB, number of GPUs, thousandths of each, models that will do (empty: any)."""

    name: str
    cpu: int
    memory: int
    gpus: int
    milli: int
    models: tuple[str, ...]

    @property
    def asked(self) -> int:
        """Thousandths of GPUs in all."""
        return self.gpus * self.milli


def read_nodes(path: Path) -> list[TraceNode]:
    """The nodes of a file with columns sn, cpu_milli, memory_mib, gpu, model.

    Raises
    ------
    DrallocError
        The file cannot be read, or a row is not of this form.
    """
    return _read(
        path,
        lambda row: TraceNode(
            row["sn"],
            int(row["cpu_milli"]),
            int(row["memory_mib"]),
            int(row["gpu"]),
            row["model"].strip(),
        ),
    )


def read_pods(path: Path) -> list[TracePod]:
    """The pods of a file with columns name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec (models with ``|``).

    Some of the public lists end before gpu_spec: their pods wish for no model.

    Raises
    ------
    DrallocError
        The file cannot be read, or a row is not of this form.
    """
    return _read(path, _pod)


def _pod(row: dict[str, str]) -> TracePod:
    models = tuple(
        model.strip()
        for model in (row.get("gpu_spec") or "").split("|")
        if model.strip()
    )
    gpus, milli = int(row["num_gpu"]), int(row["gpu_milli"])
    if gpus > 1 and milli != WHOLE:
        raise ValueError(
            f"{gpus} GPUs of {milli} thousandths each: several GPUs are only asked for as a whole"
        )
    return TracePod(
        row["name"],
        int(row["cpu_milli"]),
        int(row["memory_mib"]),
        gpus,
        milli,
        models,
    )


def _read(path: Path, parse: Callable[[dict[str, str]], T]) -> list[T]:
    try:
        with path.open(newline="") as file:
            return [
                _parsed(path, line, row, parse)
                for line, row in enumerate(csv.DictReader(file), 2)
            ]
    except OSError as error:
        raise DrallocError(
            f"{path}: cannot be read: {error.strerror or error}"
        ) from None


def _parsed(
    path: Path,
    line: int,
    row: dict[str, str],
    parse: Callable[[dict[str, str]], T],
) -> T:
    try:
        return parse(row)
    except KeyError as error:
        raise DrallocError(
            f"{path}: there is no column {error.args[0]}"
        ) from None
    except (ValueError, AttributeError, TypeError) as error:
        raise DrallocError(f"{path}: line {line}: {error}") from None


def arrivals(
    pods: Sequence[TracePod], milli: int, seed: int
) -> Iterator[TracePod]:
    """Pods until they have asked for so many thousandths of GPUs: those of the trace in random order, then drawn again.

    As in the published experiments, whose figures are about the moment at which so much has been asked for. Less is the
    beginning of more.
    """
    random = Random(f"openb:{seed}")
    first = random.sample(pods, len(pods))
    asked = pod_count = 0
    while asked < milli and (pods and any(pod.asked for pod in pods)):
        pod = (
            first[pod_count] if pod_count < len(first) else random.choice(pods)
        )
        pod_count += 1
        asked += pod.asked
        if asked <= milli:
            yield pod
