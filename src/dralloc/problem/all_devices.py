"""What claims for all devices (``allocationMode: All``) do without, and whether they have to.

Such a claim gets every matching device of its node, except for shareable ones of which others leave too little when it
is placed: these it passes over (upstream behaviour). Whoever moves others afterwards has to look at it: where a device
has room again, the claim lacks it.
"""

from __future__ import annotations

from collections.abc import Iterator

from dralloc.problem.indices import AlternativeIndex, DeviceIndex
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import Problem
from dralloc.problem.requests import Charge
from dralloc.problem.solution import Placement, grants_of

__all__ = ["lacks_a_device", "passed_over"]


def passed_over(
    problem: Problem, placement: Placement
) -> Iterator[tuple[DeviceIndex, Charge]]:
    """Yield the shareable devices that match a request for all of a placement and are not granted to it.

    Each comes with what the request would take of it.
    """
    granted: dict[AlternativeIndex, set[DeviceIndex]] = {}
    for _, alternative, grant in grants_of(problem, (placement,)):
        if alternative.count is None:
            granted.setdefault(alternative.index, set()).add(grant.device)
    if not granted:
        return
    eligibility = problem.eligibility
    for device in problem.nodes[placement.node].devices():
        # A pool may offer a node also what the node does not reach.
        is_within_reach = problem.on_node(device, placement.node)
        if not (problem.devices[device].shareable and is_within_reach):
            continue
        for alternative_index, devices in granted.items():
            if device in devices:
                continue
            matches = eligibility.selects(alternative_index, device) is True
            charge = eligibility.charge(alternative_index, device)
            if matches and charge is not None:
                yield device, charge


def lacks_a_device(
    problem: Problem, placement: Placement, others: Ledger
) -> bool:
    """Whether a placement passed over a device that has room for it.

    Parameters
    ----------
    others
        What is in use, without this placement.
    """
    return any(
        others.has_capacity(problem.devices[device], charge)
        for device, charge in passed_over(problem, placement)
    )
