"""Rows: what is limited, and who draws on it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

__all__ = ["Draws", "ResourceRow"]


class ResourceRow(NamedTuple):
    """Something that is limited, in nanos or in pieces.

    Parameters
    ----------
    node
        Where it is; -1 if several nodes draw on it.
    role
        Rows of equal role on several nodes are of the same kind.
    limit
        What answers draw on it at most.
    """

    node: int
    role: Hashable
    limit: int


Draws = tuple[tuple[int, int], ...]
"""Rows, or whatever else has a number, each with how much is taken of it."""
