"""What bars a pod from a node because of its devices: what they take of the node is not there (KEP-5517)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dralloc.problem import Charge, Demand, Problem
from dralloc.problem.holdings import ClaimLedger
from dralloc.problem.node_claims import resource_of
from dralloc.problem.node_footprint import before_footprints
from dralloc.problem.subproblem import cut
from dralloc.solution import Placement
from dralloc.solvers.cpsat import solve
from dralloc.solvers.first_fit import first_fit

__all__ = ["footprint_shortages"]


def footprint_shortages(
    whole: Problem, ledger: ClaimLedger, demand: Demand, node: int, *, exact: bool
) -> Iterator[tuple[str, int, int, bool]]:
    """What upstream's allocator would find is too much for the node, or for the pod's own requests.

    Parameters
    ----------
    exact
        Whether other devices count, too, which upstream does not look for.

    Yields
    ------
    The resource, what is asked of it with the devices and what there is, in nanos, and whether the pod's requests as a
    whole are too small, and not the node.
    """
    if not whole.footprint_counters:
        return
    alone = demand.by_itself(nodes=None, roles=())
    part = cut(whole, [node], demands=[alone], ledger=ledger, counters=range(len(whole.counters))).problem
    found = first_fit(before_footprints(part))
    if not found.placements or first_fit(part).placements or (exact and solve(part).placements):
        return
    for counter, amount in _charged(part, found.placements[0]).items():
        known = part.counters[counter]
        if amount > known.free:
            yield resource_of(known.id.counter), amount, known.free, not known.id.pool


def _charged(problem: Problem, placement: Placement) -> Counter[int]:
    amounts: Counter[int] = Counter()
    for claim, grants in zip(problem.demands[placement.demand].claims, placement.grants, strict=True):
        for request, choice, number in grants:
            charge = problem.eligibility.charge(claim.requests[request].alternatives[choice].index, number) or Charge()
            amounts.update({each: amount for each, amount in charge.counters if each in problem.footprint_counters})
    return amounts
