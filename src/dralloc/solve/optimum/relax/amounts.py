"""CPU, memory and whatever else nodes have beside devices, and what demands take of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dralloc.problem import Problem
from dralloc.problem.ledger import Ledger
from dralloc.problem.supply import NODE_DRIVER
from dralloc.solve.optimum.relax.demand_kinds import DemandKinds
from dralloc.solve.optimum.relax.rows import ResourceRow

__all__ = ["Amounts", "Integers", "amounts_of"]

Integers = npt.NDArray[np.int64]

_MOST_KINDS: Final = 64
"""Of more kinds of nodes than this it is not asked what demands take of them."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What nodes have beside devices.

    Parameters
    ----------
    names
        Of what.
    rows
        For each name by node: the row; none if there is no end of it.
    asked
        By synthetic alternative: what it takes, by name.
    """

    names: Sequence[str]
    rows: Sequence[Mapping[int, int]]
    asked: Mapping[int, Mapping[str, int]]


def amounts_of(
    problem: Problem, wanted: DemandKinds, ledger: Ledger, rows: list[ResourceRow]
) -> Amounts:
    """Enter a row for each amount that a node has an end of.

    Notes
    -----
    A synthetic alternative takes the same of a name wherever there is an end of it. If it did not, the least would
    count. What it takes in counters (KEP-5517) is left out.
    """
    homes: dict[Hashable, list[tuple[int, int]]] = {}
    for node, seen in enumerate(problem.nodes):
        for device in seen.pools[-1].devices if seen.pools else ():
            if problem.devices[device].id.driver == NODE_DRIVER:
                homes.setdefault(problem.eligibility.device_key(device), []).append(
                    (node, device)
                )
    if len(homes) > _MOST_KINDS:
        homes = {}
    alternatives = sorted(
        {claim for kind in wanted.kinds for claim in kind.claims if claim is not None}
    )
    samples = [members[0][1] for members in homes.values()]
    asked = {
        alternative: _least(problem, alternative, samples)
        for alternative in alternatives
    }
    names = sorted({name for amounts in asked.values() for name in amounts})
    rows_of: dict[str, dict[int, int]] = {name: {} for name in names}
    for node, device in sorted(pair for members in homes.values() for pair in members):
        view = problem.devices[device]
        for name in view.capacity:
            if name in rows_of:
                rows_of[name][node] = len(rows)
                rows.append(
                    ResourceRow(
                        node, ("amount", name), max(0, ledger.capacity_left(view, name))
                    )
                )
    return Amounts(names, [rows_of[name] for name in names], asked)


def _least(
    problem: Problem, alternative: int, devices: Sequence[int]
) -> Mapping[str, int]:
    """What the alternative takes of the devices that have an end of it, at least."""
    found: dict[str, int] = {}
    for device in devices:
        charge = problem.eligibility.charge(alternative, device)
        for name, amount in charge.capacity if charge else ():
            found[name] = min(amount, found.get(name, amount))
    return found
