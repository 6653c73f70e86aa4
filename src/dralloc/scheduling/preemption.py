"""What preemption would say: a dry run, in which nobody is evicted.

Source: ``framework/plugins/defaultpreemption/default_preemption.go``, ``framework/preemption/preemption.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dralloc.scheduling.attempt import checks_of, first_rejection
from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.message import fit_error
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import Rejection

__all__ = ["after_filters"]

_NO_VICTIMS: Final = Rejection(("No preemption victims found for incoming pod",))
_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


def after_filters(cycle: Cycle, rejected: Mapping[NodeInfo, Rejection]) -> str:
    """What plugins say once every node is rejected; nothing if pods could be evicted for this one."""
    # Who is turned away before nodes are looked at has not come as far as to its claims.
    claims = (
        "still not schedulable" if rejected and cycle.devices.claims_of(cycle.pod) else "no new claims to deallocate"
    )
    if cycle.pod.kind.spec.preemption_policy == "Never":
        return f"{claims}, preemption: not eligible due to preemptionPolicy=Never."
    looked_at: list[Rejection] = []
    for node, rejection in rejected.items():
        if rejection.resolvable:
            without = _without_victims(cycle, node)
            if without is None:
                return ""
            looked_at.append(without)
    return f"{claims}, preemption: {fit_error(len(cycle.snapshot.nodes), looked_at, _NOT_HELPFUL)}"


def _without_victims(cycle: Cycle, node: NodeInfo) -> Rejection | None:
    """What is against the node without the pods of lower priority; None if nothing is."""
    victims = [pod for pod in node.pods if pod.kind.priority < cycle.pod.kind.priority]
    if not victims:
        return _NO_VICTIMS
    for pod in victims:
        cycle.snapshot.remove(pod, node)
    checks = [check for _, check in checks_of(cycle) if not isinstance(check, Rejection)]
    rejection = first_rejection(checks, node)
    for pod in victims:
        cycle.snapshot.add(pod, node)
    return rejection
