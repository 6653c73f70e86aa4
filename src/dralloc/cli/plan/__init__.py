"""``dralloc plan``: what if."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dralloc.cli.plan.defragment import defragment_command
from dralloc.cli.plan.drain import drain_command
from dralloc.cli.plan.fewest import fewest_command
from dralloc.cli.plan.headroom import headroom_command
from dralloc.cli.plan.layout import layout_command
from dralloc.cli.plan.preempt import preempt_command

__all__ = ["PLANS"]

PLANS: Final[dict[str, Callable[..., None]]] = {
    "headroom": headroom_command,
    "fewest-nodes": fewest_command,
    "drain": drain_command,
    "defragment": defragment_command,
    "partition-layout": layout_command,
    "preempt": preempt_command,
}
"""The commands by name."""
