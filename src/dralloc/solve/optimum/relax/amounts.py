"""What demands take of amounts: of CPU, memory and whatever else nodes have beside devices, and of caps of namespaces.

It is the same wherever a demand goes. If it is not, the least counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dralloc.problem import (
    AlternativeIndex,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    numbered,
)
from dralloc.problem.ledger import Ledger
from dralloc.problem.supply import NODE_DRIVER
from dralloc.solve.optimum.relax.caps import capped_amounts_of
from dralloc.solve.optimum.relax.demand_kinds import DemandKinds, ResourceRow

__all__ = ["Amounts", "Integers", "amounts_of"]

Integers = npt.NDArray[np.int64]

_MOST_KINDS: Final = 64
"""Of more kinds of nodes than this it is not asked what demands take of them."""

_RowsByNode = dict[NodeIndex, int]


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts that are limited, of nodes and of caps.

    Parameters
    ----------
    names
        Of what.
    rows
        For each name by node: the row; none if there is no end of it.
    takes
        By demand: what it takes, by name.
    """

    names: Sequence[str]
    rows: Sequence[Mapping[NodeIndex, int]]
    takes: Mapping[DemandIndex, Mapping[str, int]]


def amounts_of(
    problem: Problem,
    demand_kinds: DemandKinds,
    ledger: Ledger,
    rows: list[ResourceRow],
) -> Amounts:
    """Enter a row for each amount that a node has an end of, and one for each cap, on which all nodes draw."""
    homes = _nodes_by_kind(problem)
    samples = [members[0][1] for members in homes.values()]
    takes: dict[DemandIndex, dict[str, int]] = {}
    for kind in demand_kinds.kinds:
        for member, claim in zip(kind.members, kind.claims, strict=True):
            takes[member] = (
                {} if claim is None else _least(problem, claim, samples)
            )
    # What nobody takes needs no row.
    names = {name for by_name in takes.values() for name in by_name}
    rows_of: dict[str, _RowsByNode] = {name: {} for name in sorted(names)}
    for node, device in sorted(
        pair for members in homes.values() for pair in members
    ):
        synthetic = problem.devices[device]
        for name in synthetic.capacity:
            if name in rows_of:
                rows_of[name][node] = len(rows)
                # Of a node that is overcommitted nothing is left.
                free = max(0, ledger.capacity_left(synthetic, name))
                role = "amount", name
                row_name = synthetic.id, name
                rows.append(ResourceRow(node, role, free, row_name))
    for capped in capped_amounts_of(problem):
        name = f"cap {capped.key.namespace}={capped.key.resource}"
        rows_of[name] = dict.fromkeys(problem.all_nodes, len(rows))
        rows.append(ResourceRow(None, name, capped.limit, name))
        for demand in takes.keys() & capped.takes.keys():
            takes[demand][name] = capped.takes[demand]
    return Amounts(list(rows_of), list(rows_of.values()), takes)


def _nodes_by_kind(
    problem: Problem,
) -> Mapping[Hashable, Sequence[tuple[NodeIndex, DeviceIndex]]]:
    """By kind of synthetic device, return the nodes with one, and the device; nothing if there are too many kinds."""
    homes: dict[Hashable, list[tuple[NodeIndex, DeviceIndex]]] = {}
    for node, view in numbered(problem.nodes):
        # The synthetic device of a node is in its last pool.
        for device in view.pools[-1].devices if view.pools else ():
            if problem.devices[device].id.driver == NODE_DRIVER:
                key = problem.eligibility.device_key(device)
                homes.setdefault(key, []).append((node, device))
    return homes if len(homes) <= _MOST_KINDS else {}


def _least(
    problem: Problem,
    alternative: AlternativeIndex,
    devices: Sequence[DeviceIndex],
) -> dict[str, int]:
    """Return what a synthetic alternative takes of the devices that have an end of it, at least.

    What it takes in counters (KEP-5517) is left out.
    """
    least: dict[str, int] = {}
    for device in devices:
        charge = problem.eligibility.charge(alternative, device)
        for name, amount in charge.capacity if charge else ():
            least[name] = min(amount, least.get(name, amount))
    return least
