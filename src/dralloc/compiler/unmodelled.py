"""What kube-scheduler looks at and an answer does not: said once, where pods have it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from dralloc.api import Pod, PodSpec
from dralloc.choices import Ignored
from dralloc.errors import Finding
from dralloc.problem import Demand

__all__ = ["unmodelled_remarks"]

_RULES: Final[Mapping[str, Callable[[PodSpec], object]]] = {
    "pod affinity": lambda spec: spec.affinity and (spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity),
    "topology spread": lambda spec: spec.topology_spread_constraints,
}


def unmodelled_remarks(
    pods: Sequence[Pod], demands: Sequence[Demand], ignored: Collection[Ignored]
) -> Iterator[Finding]:
    """What was left out on request, and what binds pods to others.

    Parameters
    ----------
    pods
        Those of the cluster; only those that are to be placed count.
    """
    if ignored:
        yield Finding("", "", "", f"first fit and the optimum ignore, as asked: {', '.join(sorted(ignored))}")
    asked = {demand.key for demand in demands if not any(claim.defect for claim in demand.claims)}
    free = [pod for pod in pods if pod.key in asked and not pod.spec.node_name]
    bound_by = ((title, sum(bool(binds(pod.spec)) for pod in free)) for title, binds in _RULES.items())
    parts = [f"{title} ({_pods(number)})" for title, number in bound_by if number]
    if parts:
        yield Finding("", "", "", f"first fit and the optimum do not look at: {', '.join(parts)}")


def _pods(number: int) -> str:
    return "1 pod" if number == 1 else f"{number} pods"
