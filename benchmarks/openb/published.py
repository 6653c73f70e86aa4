"""What the published policies reached on the same trace, read from a summary that lies beside it."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dralloc.objects.errors import DrallocError

__all__ = ["SUMMARY", "published"]

SUMMARY: Final = "fgd_policy_summary.csv"
"""Columns: workload, policy, seeds, then ``alloc_pct_at_X``, the percentage of GPUs allocated at X% demand."""


def published(pods: Path, demand: float) -> Mapping[str, float]:
    """The percentage of GPUs by policy, for a list of pods at a demand; empty if there is no figure.

    Raises
    ------
    DrallocError
        The summary is there but is not of this form.
    """
    path, column = (
        pods.with_name(SUMMARY),
        f"alloc_pct_at_{round(100 * demand)}",
    )
    if not path.exists():
        return {}
    try:
        with path.open(newline="") as file:
            rows = [
                row
                for row in csv.DictReader(file)
                if row["workload"] == pods.stem
            ]
        return {
            row["policy"]: float(row[column]) for row in rows if column in row
        }
    except (KeyError, ValueError) as error:
        raise DrallocError(f"{path}: {error}") from None
