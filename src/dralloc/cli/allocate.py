"""``dralloc allocate`` and ``dralloc compare``: one answer, or both."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

import dralloc
from dralloc.choices import Mode
from dralloc.cli.console import Answers, Reader
from dralloc.cli.options import Modes, Paths, SchedulerOptions, Seeds

__all__ = ["allocate_command", "compare_command"]


class Output(StrEnum):
    """Forms of a plan."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def allocate_command(
    paths: Paths,
    mode: Annotated[
        Mode,
        typer.Option(
            help="As upstream's allocator does on nodes in order, as kube-scheduler does, or as well as possible."
        ),
    ] = Mode.OPTIMAL,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="A table, JSON, or ResourceClaims with their new status as YAML.")
    ] = Output.TABLE,
    *,
    options: SchedulerOptions,
    session: Reader,
) -> None:
    """Place the pending claims of a cluster."""
    from dralloc.api import to_wire
    from dralloc.dump import dump_yaml

    choices = options.choices()
    cluster = session.read(paths, choices)
    with session.busy(f"{mode.value}: {len(cluster.claims)} claims"):
        plan = dralloc.allocate(cluster, mode, choices=choices, progress=session.progress)
    session.warn(plan.findings)
    if output is Output.YAML:
        typer.echo(dump_yaml(to_wire(claim) for claim in plan.claims), nl=False)
    elif output is Output.JSON:
        session.print_json(plan.to_dict())
    else:
        session.show(plan.parts())


def compare_command(
    paths: Paths,
    modes: Modes = "first-fit,optimal",
    seeds: Seeds = 5,
    *,
    options: SchedulerOptions,
    session: Answers,
) -> None:
    """Show what first fit places, what the optimum places, and how far apart they are."""
    choices = options.choices()
    cluster = session.read(paths, choices)
    with session.busy(f"comparing on {len(cluster.claims)} claims"):
        result = dralloc.compare(cluster, modes=modes, seeds=seeds, choices=choices, progress=session.progress)
    session.warn(result.findings)
    session.answer(result)
