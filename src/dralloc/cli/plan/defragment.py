"""``dralloc plan defragment``."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.cli.answers import read, show_answer
from dralloc.cli.console import Session, features_from, guarded
from dralloc.cli.options import (
    AsJson,
    FeatureSwitches,
    GangLabel,
    KubernetesVersion,
    Nodes,
    Paths,
    Quiet,
    Seed,
    Strict,
    TimeLimit,
    Workers,
)

__all__ = ["defragment_command"]


def defragment_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    moves: Annotated[int, typer.Option("--moves", min=0, metavar="K", help="Move at most so many claims.")],
    node: Nodes = None,
    as_json: AsJson = False,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    workers: Workers = 1,
    kubernetes: KubernetesVersion = None,
    feature: FeatureSwitches = None,
    gang: GangLabel = "",
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Find the few moves of allocated claims that admit the most of what is pending, in order."""
    with guarded():
        session = Session(quiet=quiet)
        features = features_from(feature, kubernetes)
        cluster = read(session, paths, strict=strict)
        with session.busy("looking for moves"):
            found = dralloc.defragment(
                cluster,
                moves,
                nodes=node or (),
                features=features,
                strict=strict,
                gang=gang,
                options=dralloc.Options(time_limit=time_limit, seed=seed, workers=workers),
            )
        show_answer(session, found, as_json=as_json)
