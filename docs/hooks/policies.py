"""The page about policies, with the table from the code."""

from __future__ import annotations

from typing import Final

from tables import table

from dralloc.solvers.policies import POLICIES

__all__ = ["page"]

_INTRO: Final = """# Policies

Modes of a [study](study.md) beside the optimum. All place one demand after the other and give it nothing that others hold; they
differ in who comes next, and in which node he gets. Every answer passes the independent checker.

"""
_OPTIMUM: Final = ("`optimal`", "the optimum, with bound and proof")
_REST: Final = """
Size
:   The dominant share of a demand: of every counter, capacity and kind of dedicated devices the part that it takes of all
    there is, of these the largest (Ghodsi et al., "Dominant Resource Fairness", NSDI'11). With alternatives, of the cheapest.

Left
:   What is left of a node is the sum over its units: counter sets, such as GPUs that are cut into partitions, shareable
    devices, and devices of their own.

Expected fragmentation
:   The part of what is left that the next demand, drawn from the mix of all demands, is expected to be unable to use. The
    measure and the policy are those of Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
    Fragmentation Gradient Descent", USENIX ATC'23, with units in the place of GPUs.

Weight per size
:   The greedy order for the knapsack problem (Dantzig 1957).

The figures of the published policies were made with simulators of their own. Names are the same here where the idea is; the
numbers need not be.
"""


def page() -> str:
    """The page."""
    rows = [(f"`{policy.name}`", policy.summary) for policy in POLICIES.values()]
    return _INTRO + table(["mode", "what it does"], [*rows, _OPTIMUM]) + _REST
