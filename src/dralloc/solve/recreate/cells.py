"""What nodes have left, packed into integers, so that asking whether something fits is one subtraction.

A search through small changes asks that a hundred thousand times a second. What is left of all that devices draw on
(the devices themselves, their counters, their capacities) stands side by side in one integer, each amount with a guard
bit above it that is set. What is taken is packed in the same way. In the difference all guards are still set exactly if
of no amount more is taken than is left.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from dralloc.problem import NodeIndex
from dralloc.problem.indices import summed

__all__ = ["Cell", "NodeCells", "PackedRow", "bits_of", "mask_of", "packed"]


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
    """Amounts that are left on a node, or of what several nodes have in common.

    Parameters
    ----------
    first_bit
        Where its first row begins.

    Attributes
    ----------
    free
        What is left of each row, packed.
    guards
        A bit above each amount.
    """

    __slots__ = ("_bits", "_rows", "free", "guards")

    def __init__(self, first_bit: int = 0) -> None:
        self.free = 0
        self.guards = 0
        self._bits = first_bit
        self._rows: dict[Hashable, PackedRow] = {}

    def row(self, key: Hashable, total: int) -> PackedRow:
        """Return the row of a key; if it is new, so much is left of it."""
        row = self._rows.get(key)
        if row is None:
            width = _width(total)
            row = PackedRow(self._bits, (1 << width) - 1, total)
            self._rows[key] = row
            self._bits += width + 1
            self.free |= total << row.shift
            self.guards |= 1 << (row.shift + width)
        return row

    def fits(self, need: int) -> bool:
        """Whether so much is left."""
        return ((self.free | self.guards) - need) & self.guards == self.guards


class NodeCells:
    """What is left on nodes, and of what several of them have in common.

    Common amounts stand above those of any node, so that one integer says both.

    Parameters
    ----------
    nodes
        How many there are.
    node_bits
        So many bits are enough for the rows of any node (see `bits_of`); None if nodes have nothing in common.
    """

    def __init__(self, nodes: int, node_bits: int | None) -> None:
        self._of_nodes = [Cell() for _ in range(nodes)]
        self._common = Cell(node_bits or 0)
        self._mask_of_node = -1 if node_bits is None else (1 << node_bits) - 1

    def cell(self, node: NodeIndex, *, is_common: bool) -> Cell:
        """Return the cell for an amount of a node, or for one that is common."""
        return self._common if is_common else self._of_nodes[node]

    def guards(self, node: NodeIndex) -> int:
        """Return the guards of what a node has, and of what is common."""
        return self._of_nodes[node].guards | self._common.guards

    def left(self, node: NodeIndex, mask: int) -> int:
        """Return what is left for a node in the bits of a mask."""
        free = self._of_nodes[node].free
        if mask & self._mask_of_node != mask:
            free |= self._common.free
        return free & mask

    def take(self, node: NodeIndex, need: int) -> None:
        """Let somebody on a node take something, which must be there."""
        of_node = need & self._mask_of_node
        self._of_nodes[node].free -= of_node
        if of_node != need:
            self._common.free -= need - of_node

    def give_back(self, node: NodeIndex, need: int) -> None:
        """Give back what somebody on a node took."""
        of_node = need & self._mask_of_node
        self._of_nodes[node].free += of_node
        if of_node != need:
            self._common.free += need - of_node


def bits_of(totals: Iterable[int]) -> int:
    """Return how many bits rows with these totals take in a cell."""
    return sum(_width(total) + 1 for total in totals)


def _width(total: int) -> int:
    """Return the bits of an amount: one more than the total has, so that two needs up to it add up without a carry."""
    return total.bit_length() + 1


def mask_of(rows: Iterable[PackedRow]) -> int:
    """Return a mask of the bits where rows stand."""
    mask = 0
    for row in rows:
        mask |= row.mask << row.shift
    return mask


def packed(amounts: Iterable[tuple[PackedRow, int]]) -> int | None:
    """Return amounts of rows side by side; None if one is more than there ever is."""
    need = 0
    for row, amount in summed(amounts).items():
        if amount > row.total:
            return None
        need |= amount << row.shift
    return need
