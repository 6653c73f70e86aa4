"""What nodes have left, packed into integers, so that asking whether something fits is one subtraction.

A search through small changes asks that a hundred thousand times a second. What is left of all that devices draw on
(the devices themselves, their counters, their capacities) stands side by side in one integer, each amount with a guard
bit above it that is set. What is taken is packed in the same way. In the difference all guards are still set exactly if
of no amount more is taken than is left.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from dralloc.problem.indices import summed

__all__ = ["Cell", "PackedRow", "packed"]


class PackedRow(NamedTuple):
    """Where an amount stands in the integers of a cell.

    Parameters
    ----------
    shift
        So many bits are below it.
    mask
        As many ones as it has bits.
    total
        The amount when nothing is placed.
    """

    shift: int
    mask: int
    total: int


class Cell:
    """Amounts that are left on a node, or on several that have devices in common.

    Attributes
    ----------
    free
        What is left of each row, packed.
    guards
        A bit above each amount.
    """

    __slots__ = ("_bits", "_rows", "free", "guards")

    def __init__(self) -> None:
        self.free = 0
        self.guards = 0
        self._bits = 0
        self._rows: dict[Hashable, PackedRow] = {}

    def row(self, key: Hashable, total: int) -> PackedRow:
        """Return the row of a key; if it is new, so much is left of it."""
        row = self._rows.get(key)
        if row is None:
            # One bit more than the total has, so that two needs up to the total add up without a carry.
            width = total.bit_length() + 1
            row = PackedRow(self._bits, (1 << width) - 1, total)
            self._rows[key] = row
            self._bits += width + 1
            self.free |= total << row.shift
            self.guards |= 1 << (row.shift + width)
        return row

    def fits(self, need: int) -> bool:
        """Whether so much is left."""
        return ((self.free | self.guards) - need) & self.guards == self.guards


def packed(amounts: Iterable[tuple[PackedRow, int]]) -> int | None:
    """Return amounts of rows side by side; None if one is more than there ever is."""
    need = 0
    for row, amount in summed(amounts).items():
        if amount > row.total:
            return None
        need |= amount << row.shift
    return need
