"""What kube-scheduler looks at and this package does not: said once, where pods and nodes have something of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dralloc.api import Node, Pod, Taint
from dralloc.api.tolerating import CORDON_TAINT, all_tolerated
from dralloc.compiler.plugins import Plugins
from dralloc.errors import Finding
from dralloc.problem import Demand

__all__ = ["unmodelled_remarks"]

_TITLES: Final[Mapping[str, str]] = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "ephemeral storage"}


def unmodelled_remarks(
    pods: Sequence[Pod], nodes: Sequence[Node], demands: Sequence[Demand], plugins: Plugins
) -> Iterator[Finding]:
    """Resources of nodes that pods ask for, and taints of nodes that pods do not tolerate.

    Parameters
    ----------
    pods
        Those of the cluster; only those that are to be placed count.
    nodes
        In the order of the problem.
    """
    asked = {demand.key: demand for demand in demands}
    free = [pod for pod in pods if pod.key in asked and not pod.spec.node_name]
    times = Counter(name for pod in free for name in plugins.beside_devices(pod))
    parts = [f"{_TITLES.get(name, name)} ({_pods(times[name])})" for name in sorted(times, key=_order)]
    tainted = {index: taints for index, node in enumerate(nodes) if (taints := _taints(node))}
    if tainted:
        away = sum(_does_not_tolerate(pod, asked[pod.key], tainted) for pod in free)
        parts += [f"taints of nodes (not tolerated by {_pods(away)})"] if away else []
    if parts:
        yield Finding("", "", "", f"kube-scheduler looks at it, dralloc does not: {', '.join(parts)}")


def _order(name: str) -> tuple[bool, str]:
    return name not in _TITLES, name


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


def _taints(node: Node) -> list[Taint]:
    """What a node is marked with, cordons excepted."""
    return [taint for taint in node.spec.taints if taint.key != CORDON_TAINT.key]


def _does_not_tolerate(pod: Pod, demand: Demand, tainted: Mapping[int, Sequence[Taint]]) -> bool:
    """Whether some node that the pod could be placed on keeps it away."""
    homes = tainted if demand.nodes is None else tainted.keys() & demand.nodes
    return not all(all_tolerated(tainted[node], pod.spec.tolerations) for node in homes)
