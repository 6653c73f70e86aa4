"""The commands that ask about a cluster as it is.

``dralloc allocate``, ``compare``, ``explain``, ``stranded`` and ``capacity``; and ``dralloc export-model``, which
writes what is asked for other solvers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dralloc
from dralloc.cli.completion import names_of
from dralloc.cli.console import Answers, Asking
from dralloc.cli.option_sets import ANSWER, EXPLAINED, READ, SCHEDULER
from dralloc.cli.options import AnyPaths, Modes, Seeds, require_file
from dralloc.objects.choices import AnswerName, Choices, ModeName

__all__ = [
    "allocate_command",
    "capacity_command",
    "compare_command",
    "explain_command",
    "export_model_command",
    "stranded_command",
]


def allocate_command(
    paths: AnyPaths,
    mode: Annotated[
        AnswerName,
        typer.Option(
            help="optimal: as much as possible; scheduler: as kube-scheduler does; first-fit: as "
            "upstream's allocator does, node by node; or a policy."
        ),
    ] = "optimal",
    *,
    choices: Annotated[Choices, SCHEDULER],
    session: Answers,
) -> None:
    """Place the pending claims of a cluster."""
    from dralloc.objects.api import to_wire

    with session.asking(paths, choices, f"{mode}: {{}} claims") as cluster:
        plan = dralloc.allocate(
            cluster, mode, choices=choices, progress=session.progress
        )
    session.warn((*plan.findings, *plan.warnings))
    session.answer(plan, objects=lambda: map(to_wire, plan.claims))


def compare_command(
    paths: AnyPaths,
    modes: Modes = "first-fit,optimal",
    seeds: Seeds = 5,
    *,
    choices: Annotated[Choices, SCHEDULER],
    session: Answers,
) -> None:
    """Compare answers side by side: first fit, kube-scheduler, policies, the optimum."""
    with session.asking(paths, choices, "comparing on {} claims") as cluster:
        result = dralloc.compare(
            cluster,
            modes=modes,
            seeds=seeds,
            choices=choices,
            progress=session.progress,
        )
    session.warn((*result.findings, *result.best.warnings))
    session.answer(result)


def export_model_command(
    paths: AnyPaths,
    to: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="*.mps for MPS; else CP-SAT's format, as text if the name ends in .txt.",
        ),
    ],
    *,
    choices: Annotated[Choices, ANSWER],
    session: Asking,
) -> None:
    """Write the exact model of what is pending, with its objective, for other solvers."""
    require_file("--to", to)
    with session.asking(paths, choices, "model of {} claims") as cluster:
        dralloc.export_model(cluster, to, choices=choices)


def explain_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    claim: Annotated[
        str | None,
        typer.Option(
            metavar="NS/NAME",
            help="The claim to explain; without any, all that is pending.",
            autocompletion=names_of("claims"),
        ),
    ] = None,
    pod: Annotated[
        str | None,
        typer.Option(
            metavar="NS/NAME",
            help="The pod to explain.",
            autocompletion=names_of("pods"),
        ),
    ] = None,
    mode: Annotated[
        ModeName, typer.Option(help="Whose answer to explain.")
    ] = "first-fit",
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Show the reasons of this node; may be given several times.",
            autocompletion=names_of("nodes"),
        ),
    ] = None,
    no_changes: Annotated[
        bool,
        typer.Option(
            "--no-changes",
            help="Give reasons only: do not search for a conflict and for changes.",
        ),
    ] = False,
    *,
    choices: Annotated[Choices, EXPLAINED],
    session: Answers,
) -> None:
    """Say why a claim or pod is pending, what it conflicts with, and what would admit it."""
    with session.asking(paths, choices, "explaining") as cluster:
        explanation = dralloc.explain(
            cluster,
            claim,
            pod,
            mode=mode,
            nodes=node or (),
            suggest=not no_changes,
            choices=choices,
        )
    session.answer(explanation)


def stranded_command(
    paths: AnyPaths,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A claim or template of the mix; may be given several times. By default the pending claims.",
            autocompletion=names_of("claims", "templates"),
        ),
    ] = None,
    *,
    choices: Annotated[Choices, READ],
    session: Answers,
) -> None:
    """Say which free capacity a mix of claims cannot use, by pool and by kind of node, and what strands it."""
    with session.asking(paths, choices, "looking at what is free") as cluster:
        stranding = dralloc.stranded(cluster, claim or (), choices=choices)
    session.answer(stranding)


def capacity_command(
    paths: AnyPaths,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTRIBUTE",
            help="An attribute that tells products apart, e.g. productName; may be given several times. By"
            " default, the attributes that drivers usually have for it.",
            autocompletion=names_of("attributes"),
        ),
    ] = None,
    *,
    choices: Annotated[Choices, READ],
    session: Answers,
) -> None:
    """Count devices in use, free and held back, by product and node, with amounts of counters."""
    with session.asking(paths, choices, "counting devices") as cluster:
        report = dralloc.capacity(cluster, by=by or (), choices=choices)
    session.answer(report)
