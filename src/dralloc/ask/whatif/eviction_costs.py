"""Who may be evicted, and what it costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import mul

from dralloc.compile.compiler.worth import WeightLevel
from dralloc.objects.api import Pod, PodGroup
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey

__all__ = [
    "EvictionCost",
    "EvictionUnit",
    "eviction_units",
    "group_of",
    "unit_weights",
]


class EvictionCost(StrEnum):
    """The objective of evictions, which is minimised.

    ``PODS``: how many pods are evicted; of equally many those of lower priority. ``PRIORITY``: how many pods of the
    highest priority are evicted, then how many of the next, and so on. Anything else is the key of an annotation of
    pods: the sum of its integers, 0 for pods without it; of equal sums as with ``PODS``.
    """

    PODS = "pods"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class EvictionUnit:
    """Pods that are evicted together: a single one, or all of a PodGroup that is disrupted as a whole.

    Parameters
    ----------
    group
        The PodGroup; None for a single pod.
    """

    pods: tuple[Pod, ...]
    priority: int
    group: ClaimKey | None = None


def eviction_units(cluster: Cluster) -> Iterator[EvictionUnit]:
    """Yield all pods that have a node, in units that are evicted together (KEP-5710).

    Source: ``framework/preemption/types.go`` of ``kubernetes/pkg/scheduler``. A group without a priority of its own has
    the highest of its pods.
    """
    members: dict[ClaimKey, list[Pod]] = defaultdict(list)
    for pod in cluster.pods:
        group = group_of(cluster, pod)
        if not pod.spec.node_name:
            continue
        if group is not None and group.spec.disrupted_as_whole:
            members[group.key].append(pod)
        else:
            yield EvictionUnit((pod,), pod.spec.priority or 0)
    for key, pods in members.items():
        group_priority = cluster.pod_groups[key].spec.priority
        highest = max(pod.spec.priority or 0 for pod in pods)
        yield EvictionUnit(
            tuple(pods),
            highest if group_priority is None else group_priority,
            key,
        )


def group_of(cluster: Cluster, pod: Pod) -> PodGroup | None:
    """The PodGroup of a pod."""
    return (
        None if pod.pod_group is None else cluster.pod_groups.get(pod.pod_group)
    )


def unit_weights(
    units: Sequence[EvictionUnit], cost: str
) -> tuple[list[int], list[WeightLevel]]:
    """Return the weight of each unit that stays, and the digits of these weights, the most important first.

    Raises
    ------
    DrallocError
        No pod has the annotation, or its value is no integer from 0.
    """
    priorities = sorted({unit.priority for unit in units}, reverse=True)
    # By digit, the most important first, how many of it each unit counts.
    columns: dict[str, list[int]] = {}
    if cost not in tuple(EvictionCost):
        columns[cost] = _annotated(units, cost)
    if cost != EvictionCost.PRIORITY:
        columns[EvictionCost.PODS.value] = [len(unit.pods) for unit in units]
    for priority in priorities:
        columns[f"pods@{priority}"] = [
            len(unit.pods) if unit.priority == priority else 0 for unit in units
        ]
    # One of a digit weighs more than all that there is of those behind it.
    levels: list[WeightLevel] = []
    scale = 1
    for name, column in reversed(columns.items()):
        levels.insert(0, WeightLevel(name, scale, sum(column)))
        scale *= 1 + sum(column)
    scales = [level.unit for level in levels]
    weights = [
        sum(map(mul, scales, digits))
        for digits in zip(*columns.values(), strict=True)
    ]
    return weights, levels


def _annotated(units: Sequence[EvictionUnit], name: str) -> list[int]:
    if units and not any(
        name in pod.metadata.annotations for unit in units for pod in unit.pods
    ):
        words = ", ".join(EvictionCost)
        raise DrallocError(
            f'cost "{name}": neither one of {words}, nor an annotation of a pod that could be evicted'
        )
    return [_value_of_unit(unit, name) for unit in units]


def _value_of_unit(unit: EvictionUnit, name: str) -> int:
    return sum(_value(pod, name) for pod in unit.pods)


def _value(pod: Pod, name: str) -> int:
    text = pod.metadata.annotations.get(name, "0")
    if not (text.isascii() and text.isdigit()):
        raise DrallocError(
            f'{pod.title}: metadata.annotations["{name}"]: "{text}" is no integer from 0'
        )
    return int(text)
