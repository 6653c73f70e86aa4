"""``dralloc plan``: what if."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dralloc.cli.plan.mixes import fewest_command, headroom_command, layout_command
from dralloc.cli.plan.moves import defragment_command, drain_command, preempt_command

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
