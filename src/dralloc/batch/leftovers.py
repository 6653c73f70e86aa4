"""What a replica leaves behind that ended in the middle of a batch: fences, and units that are written by halves.

No journal outlives it. What is to be done follows from marks on the cluster: fences and claims name their run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress

from dralloc.apply import Executor, WriteJournal
from dralloc.apply.executor import LeftAlone
from dralloc.apply.fence import lift_all
from dralloc.apply.marks import RUN
from dralloc.apply.selection import LiveView
from dralloc.apply.units import WrittenClaim, allocation_to_wire
from dralloc.names import ClaimKey
from dralloc.snapshot import LiveObjects

__all__ = ["clean_up"]


def clean_up(objects: LiveObjects, view: LiveView, gate: str, runs: str) -> tuple[int, int]:
    """Lift the fences of runs, and take back what they wrote of units that were not written whole.

    Parameters
    ----------
    runs
        How the names of the runs start, which are all over.

    Returns
    -------
    tuple
        How many parts of fences were lifted, and how many claims taken back.

    Raises
    ------
    Refused, SnapshotError
        A fence is still there.
    """
    executor = Executor(objects, WriteJournal(), gate)
    taken = 0
    for claim in _half_written(view, gate, runs):
        with suppress(LeftAlone):
            executor.retract(claim)
            taken += 1
    return lift_all(objects, runs), taken


def _half_written(view: LiveView, gate: str, runs: str) -> Iterator[WrittenClaim]:
    """Claims that runs allocated, all of whose pods wait for other claims, or for pods of their group.

    A pod that waits for nothing more is released as it is.
    """
    ready = {one.key for unit in view.ready(gate) for one in unit.demands}
    halves = {key for key, names in view.gates.items() if names == [gate]} - ready
    users: dict[ClaimKey, set[ClaimKey]] = defaultdict(set)
    for pod in view.cluster.pods:
        for name in view.cluster.pod_claims(pod):
            users[name].add(pod.key)
    for claim in view.cluster.claims:
        allocation = claim.status.allocation
        mine = claim.metadata.annotations.get(RUN, "").startswith(runs)
        if mine and allocation is not None and set() < users[claim.key] <= halves:
            yield WrittenClaim(claim.key, claim.metadata.uid, allocation_to_wire(allocation))
