"""``dralloc plan drain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dralloc
from dralloc.cli.answers import read, show_answer
from dralloc.cli.console import Exit, Session, features_from, guarded
from dralloc.cli.options import AsJson, FeatureSwitches, KubernetesVersion, Quiet, Seed, Strict, TimeLimit, Workers

__all__ = ["drain_command"]


def drain_command(  # noqa: PLR0913 - one parameter per option
    nodes: Annotated[list[str], typer.Argument(metavar="NODE...", help="The nodes to drain.", show_default=False)],
    filename: Annotated[
        list[Path],
        typer.Option(
            "--filename", "-f", metavar="PATH", help="File or directory with YAML or JSON; - reads standard input."
        ),
    ],
    as_json: AsJson = False,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    workers: Workers = 1,
    kubernetes: KubernetesVersion = None,
    feature: FeatureSwitches = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Say where the claims of some nodes can go, or why they cannot. Exit code 1 if not all of them can."""
    with guarded():
        session = Session(quiet=quiet)
        features = features_from(feature, kubernetes)
        cluster = read(session, filename, strict=strict)
        with session.busy("draining"):
            found = dralloc.drain(
                cluster,
                *nodes,
                features=features,
                strict=strict,
                options=dralloc.Options(time_limit=time_limit, seed=seed, workers=workers),
            )
        show_answer(session, found, as_json=as_json)
    if not found.possible:
        raise typer.Exit(Exit.FAILED)
