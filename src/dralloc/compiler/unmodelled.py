"""What kube-scheduler looks at and first fit and the optimum do not: said once, where pods and nodes have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from dralloc.api import Node, Pod, PodSpec, Toleration
from dralloc.api.tolerating import CORDON_TAINT, all_tolerated
from dralloc.compiler.device_plugins import DevicePlugins
from dralloc.errors import Finding
from dralloc.problem import Demand

__all__ = ["unmodelled_remarks"]

_TITLES: Final[Mapping[str, str]] = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "ephemeral storage"}

_RULES: Final[Mapping[str, Callable[[PodSpec], object]]] = {
    "pod affinity": lambda spec: spec.affinity and (spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity),
    "topology spread": lambda spec: spec.topology_spread_constraints,
    "host ports": lambda spec: any(port.host_port for one in spec.containers for port in one.ports),
}


def unmodelled_remarks(
    pods: Sequence[Pod], nodes: Sequence[Node], demands: Sequence[Demand], plugins: DevicePlugins
) -> Iterator[Finding]:
    """Resources of nodes that pods ask for, what binds pods to others, and taints of nodes that pods do not tolerate.

    Parameters
    ----------
    pods
        Those of the cluster; only those that are to be placed count.
    nodes
        In the order of the problem.
    """
    asked = {demand.key: demand for demand in demands if not any(claim.defect for claim in demand.claims)}
    free = [pod for pod in pods if pod.key in asked and not pod.spec.node_name]
    times = Counter(name for pod in free for name in plugins.beside_devices(pod))
    parts = [f"{_TITLES.get(name, name)} ({_pods(times[name])})" for name in sorted(times, key=_order)]
    bound_by = ((title, sum(bool(binds(pod.spec)) for pod in free)) for title, binds in _RULES.items())
    parts += [f"{title} ({_pods(number)})" for title, number in bound_by if number]
    taints = _Taints(nodes)
    away = sum(taints.keep_away(pod, asked[pod.key]) for pod in free)
    parts += [f"taints of nodes (not tolerated by {_pods(away)})"] if away else []
    if parts:
        yield Finding("", "", "", f"first fit and the optimum do not look at: {', '.join(parts)}")


def _order(name: str) -> tuple[bool, str]:
    return name not in _TITLES, name


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"


class _Taints:
    """The taints of nodes, cordons excepted. Pods with equal rules get the same answer at once."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        own = ([one for one in node.spec.taints if one.key != CORDON_TAINT.key] for node in nodes)
        self._tainted = {index: taints for index, taints in enumerate(own) if taints}
        self._known: dict[tuple[Toleration, ...], frozenset[int]] = {}
        self._met: dict[tuple[frozenset[int], int], bool] = {}

    def keep_away(self, pod: Pod, demand: Demand) -> bool:
        """Whether a pod does not tolerate a node that it could be placed on otherwise."""
        tolerations = pod.spec.tolerations
        if tolerations not in self._known:
            homes = (node for node, taints in self._tainted.items() if not all_tolerated(taints, tolerations))
            self._known[tolerations] = frozenset(homes)
        closed = self._known[tolerations]
        if not closed or demand.nodes is None:
            return bool(closed)
        # Pods with equal rules have the same tuple of nodes, whose numbers need not be compared again.
        key = closed, id(demand.nodes)
        if key not in self._met:
            self._met[key] = not closed.isdisjoint(demand.nodes)
        return self._met[key]
