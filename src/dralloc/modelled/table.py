"""All rows, and which of them says what a field is."""

from __future__ import annotations

from typing import Final

from dralloc.modelled.clusters import CLUSTERS
from dralloc.modelled.resources import RESOURCES
from dralloc.modelled.row import FieldRow
from dralloc.modelled.workloads import WORKLOADS

__all__ = ["TABLE", "row_of"]

TABLE: Final[tuple[FieldRow, ...]] = (*RESOURCES, *WORKLOADS, *CLUSTERS)
"""All rows."""

_BY_FIELD: Final = {(row.kind, row.path): row for row in TABLE}


def row_of(kind: str, path: str) -> FieldRow | None:
    """The row of a field: its own, or that of the nearest field above it of which all fields below are the same.

    A row of what is modelled stands for its field alone, so that a new field below it is nobody's.

    Parameters
    ----------
    path
        As on the wire, without steps into lists and maps.
    """
    own = _BY_FIELD.get((kind, path))
    steps = path.split(".")
    above = (_BY_FIELD.get((kind, ".".join(steps[:number]))) for number in range(len(steps) - 1, 0, -1))
    return own or next((row for row in above if row is not None and row.covers_below), None)
