"""``dralloc plan``: what if."""

from __future__ import annotations

import typer

from dralloc.cli.plan.defragment import defragment_command
from dralloc.cli.plan.drain import drain_command
from dralloc.cli.plan.fewest import fewest_command
from dralloc.cli.plan.headroom import headroom_command
from dralloc.cli.plan.layout import layout_command

__all__ = ["plan"]

plan = typer.Typer(help="What if: studies of a cluster that is not quite as it is.", no_args_is_help=True)
plan.command("headroom")(headroom_command)
plan.command("fewest-nodes")(fewest_command)
plan.command("drain")(drain_command)
plan.command("defragment")(defragment_command)
plan.command("partition-layout")(layout_command)
