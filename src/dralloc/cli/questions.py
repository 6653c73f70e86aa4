"""``dralloc allocate``, ``compare``, ``explain`` and ``stranded``: questions about a cluster as it is."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import BINDING, READ, SCHEDULER, AnyPaths, Modes, Seeds
from dralloc.objects.choices import AnswerName, Choices, ModeName

__all__ = ["allocate_command", "compare_command", "explain_command", "stranded_command"]


def allocate_command(
    paths: AnyPaths,
    mode: Annotated[
        AnswerName,
        typer.Option(
            help="As well as possible, as kube-scheduler does, as upstream's allocator does on nodes in order, or by a "
            "policy."
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
    """Show what first fit places, what the optimum places, and how far apart they are."""
    with session.asking(paths, choices, "comparing on {} claims") as cluster:
        result = dralloc.compare(
            cluster,
            modes=modes,
            seeds=seeds,
            choices=choices,
            progress=session.progress,
        )
    session.warn((*result.findings, *result.optimal.warnings))
    session.answer(result)


def explain_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    claim: Annotated[
        str | None,
        typer.Option(
            metavar="NS/NAME",
            help="The claim to explain; without any, all that is pending.",
        ),
    ] = None,
    pod: Annotated[
        str | None, typer.Option(metavar="NS/NAME", help="The pod to explain.")
    ] = None,
    mode: Annotated[
        ModeName, typer.Option(help="Whose answer to explain.")
    ] = "first-fit",
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Show the reasons of this node; may be given several times.",
        ),
    ] = None,
    no_changes: Annotated[
        bool,
        typer.Option(
            "--no-changes", help="Only reasons: look for no conflict and no changes."
        ),
    ] = False,
    *,
    choices: Annotated[Choices, BINDING],
    session: Answers,
) -> None:
    """Say why a claim is pending, with what it conflicts, and which changes would admit it; or why everything is."""
    with session.asking(paths, choices, "explaining") as cluster:
        found = dralloc.explain(
            cluster,
            claim,
            pod,
            mode=mode,
            nodes=node or (),
            suggest=not no_changes,
            choices=choices,
        )
    session.answer(found)


def stranded_command(
    paths: AnyPaths,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A claim or template of the mix; may be given several times. By default the pending claims.",
        ),
    ] = None,
    *,
    choices: Annotated[Choices, READ],
    session: Answers,
) -> None:
    """Say which free capacity a mix of claims cannot use, by pool and by kind of node, and what strands it."""
    with session.asking(paths, choices, "looking at what is free") as cluster:
        found = dralloc.stranded(cluster, claim or (), choices=choices)
    session.answer(found)
