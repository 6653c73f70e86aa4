"""``dralloc plan partition-layout``."""

from __future__ import annotations

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Paths, SearchOptions
from dralloc.cli.plan.wished import Wished

__all__ = ["layout_command"]


def layout_command(paths: Paths, wished: Wished, options: SearchOptions, session: Answers) -> None:
    """Say which fixed partitions per GPU serve some claims best, or all that is pending, and what that loses."""
    wishes, choices = wished.wishes(), options.choices()
    cluster = session.read(paths, choices)
    with session.busy("looking for layouts"):
        found = dralloc.partition_layout(cluster, *wishes, choices=choices)
    session.answer(found)
