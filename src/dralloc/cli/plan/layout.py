"""``dralloc plan partition-layout``."""

from __future__ import annotations

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Paths, SearchOptions
from dralloc.cli.plan.mix_options import MixOptions

__all__ = ["layout_command"]


def layout_command(paths: Paths, mix: MixOptions, options: SearchOptions, session: Answers) -> None:
    """Say which fixed partitions per GPU serve some claims best, or all that is pending, and what that loses."""
    entries, choices = mix.entries(), options.choices()
    cluster = session.read(paths, choices)
    with session.busy("looking for layouts"):
        found = dralloc.partition_layout(cluster, *entries, choices=choices)
    session.answer(found)
