"""``python -m benchmarks openb``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.export import export
from benchmarks.openb.published import published
from benchmarks.openb.run import POLICIES, Outcome, Scene, published_outcomes
from benchmarks.openb.shown import tables
from benchmarks.openb.trace import read_nodes, read_pods
from dralloc.cli.console import Session
from dralloc.solve.optimum import Options

__all__ = ["openb_command"]


def openb_command(  # noqa: PLR0913 - one parameter per option
    nodes: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The nodes of the trace, as CSV."),
    ],
    pods: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The pods of the trace, as CSV."),
    ],
    demand: Annotated[
        list[float] | None,
        typer.Option(
            min=0,
            help="How much is asked for, as a part of all GPUs; may be given several times.",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Only this one; may be given several times. Usually: {', '.join(POLICIES)}."
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seed of the order of arrivals, and of the search."
        ),
    ] = 0,
    time_limit: Annotated[
        float, typer.Option(min=0.001, help="Seconds for each optimum.")
    ] = 240,
    workers: Annotated[
        int, typer.Option(min=1, help="Threads of the search for the optimum.")
    ] = 2,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="DIR",
            help="Write the objects at the highest demand here.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object per demand and policy."
        ),
    ] = False,
) -> None:
    """Place the Alibaba GPU trace of 2023 by policies and optimally, beside published figures."""
    session = Session(quiet=as_json)
    demands = sorted(set(demand or [1.0]))
    with session.busy("reading"):
        scene = Scene(read_nodes(nodes), read_pods(pods), max(demands), seed)
    if directory is not None:
        export(scene.objects, directory)
    options = Options(time_limit=time_limit, seed=seed, workers=workers)
    outcomes: list[Outcome] = []
    with session.busy("placing"):
        for share in demands:
            for outcome in (
                *published_outcomes(share, published(pods, share)),
                *scene.measure(
                    share, policy or POLICIES, options, session.progress
                ),
            ):
                outcomes.append(outcome)
                if as_json:
                    typer.echo(json.dumps(outcome.to_dict()))
    if not as_json:
        session.show(tables(outcomes))
