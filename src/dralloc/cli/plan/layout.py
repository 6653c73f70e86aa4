"""``dralloc plan partition-layout``."""

from __future__ import annotations

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Paths, Search
from dralloc.cli.plan.wished import Wished

__all__ = ["layout_command"]


def layout_command(paths: Paths, wished: Wished, search: Search, session: Answers) -> None:
    """Say which fixed partitions per GPU serve some claims best, or all that is pending, and what that loses."""
    wishes, rules, options = wished.wishes(), search.keywords(), search.options
    cluster = session.read(paths, search)
    with session.busy("looking for layouts"):
        found = dralloc.partition_layout(cluster, *wishes, options=options, **rules)
    session.answer(found)
