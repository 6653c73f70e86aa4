"""A small cluster and pods in the manner of the trace, for whoever does not have its files. The shares are invented."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

from benchmarks.openb.trace import WHOLE, TraceNode, TracePod

__all__ = ["NODES", "PODS", "sample", "write_sample"]

NODES: Final = "openb_node_list_gpu_node.csv"
PODS: Final = "openb_pod_list_{list}.csv"
"""The names of the trace's files."""

HOUR: Final = 3600
DAY: Final = 24 * HOUR

CORES: Final = 1000
GIB: Final = 1024

KINDS: Final = (
    ("A10", 1, 32),
    ("T4", 2, 64),
    ("P100", 2, 64),
    ("V100", 8, 96),
    ("G2", 8, 96),
)
"""Nodes in turn: model, GPUs and cores."""

SHARES: Final = (0, 100, 200, 250, 300, 400, 500, 600, 700)
"""Thousandths of one GPU; 0 is a pod without."""

WHOLES: Final = (1, 1, 1, 1, 2, 4, 8)
"""GPUs of pods that want whole ones."""


def sample(nodes: int, seed: int = 0) -> tuple[list[TraceNode], list[TracePod]]:
    """So many nodes, and kinds of pods to draw arrivals from: half of those with GPUs share one."""
    return list(_nodes(nodes)), list(_pods(Random(seed)))


def _nodes(count: int) -> Iterator[TraceNode]:
    for index in range(count):
        model, gpus, cores = KINDS[index % len(KINDS)]
        yield TraceNode(
            f"node-{index:04d}", cores * CORES, cores * 4 * GIB, gpus, model
        )


def _pods(random: Random, count: int = 500) -> Iterator[TracePod]:
    for index in range(count):
        milli = random.choice(SHARES) if random.random() < 0.5 else WHOLE
        gpus = random.choice(WHOLES) if milli == WHOLE else int(milli > 0)
        cores = random.choice((1, 2, 4, 6, 8)) * max(gpus, 1)
        models = (
            tuple(random.sample([kind[0] for kind in KINDS], 2))
            if random.random() < 0.2 and gpus == 1
            else ()
        )
        yield TracePod(
            f"pod-{index:04d}",
            cores * CORES,
            cores * 2 * GIB,
            gpus,
            milli,
            models,
        )


def write_sample(folder: Path, nodes: int, seed: int = 0) -> None:
    """Write a sample in the form of the trace's files; its pods come within a day and stay for hours."""
    cluster, pods = sample(nodes, seed)
    random = Random(f"times {seed}")
    with (folder / NODES).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("sn", "cpu_milli", "memory_mib", "gpu", "model"))
        for node in cluster:
            writer.writerow(
                (node.name, node.cpu, node.memory, node.gpus, node.model)
            )
    with (folder / PODS.format(list="sample")).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            (
                *("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"),
                *("gpu_spec", "creation_time", "deletion_time"),
            )
        )
        for pod in pods:
            begin = random.randrange(DAY)
            end = begin + random.randrange(HOUR, 12 * HOUR)
            asked = pod.cpu, pod.memory, pod.gpus, pod.milli
            models = "|".join(pod.models)
            writer.writerow((pod.name, *asked, models, begin, end))
