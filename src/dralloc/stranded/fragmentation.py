"""The fragmentation measure of Weng et al. (USENIX ATC 2023), in the terms of devices and claims.

Source: Q. Weng and others, "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", section 3. For a node and a kind of task, all free GPU capacity counts as fragmented if the task cannot run on
the node, and otherwise the free capacity of those GPUs that cannot serve it; the measure is the mean over the mix of
tasks. Here a GPU is a unit of a pool (a counter set, or a device), and a task is a claim, each as if it came alone.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence

from dralloc.stranded.grants import Found
from dralloc.stranded.quantities import Key, Quantities

__all__ = ["fragmented"]


def fragmented(
    quantities: Quantities, found: Mapping[int, Sequence[Found]], counts: Sequence[int]
) -> Mapping[Key, int]:
    """The fragmented amount of each quantity in nanos, times the number of claims in the mix: an exact integer.

    Parameters
    ----------
    found
        What each demand of the mix finds on its nodes.
    counts
        How many claims there are of each demand.
    """
    total: Tally[Key] = Tally()
    for demand, findings in found.items():
        devices = {device for each in findings for device in each.serving}
        served = {_unit(quantities, key) for device in devices for key in quantities.keys(device)}
        for key, one in quantities.by_key.items():
            if _unit(quantities, key) not in served:
                total[key] += counts[demand] * one.free
    return total


def _unit(quantities: Quantities, key: Key) -> tuple[object, str, bool]:
    one = quantities.by_key[key]
    return one.pool, one.unit, key[0] == "counter"
