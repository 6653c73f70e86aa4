"""``dralloc explain``: why a claim is pending, and what would change that."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.choices import Mode
from dralloc.cli.answers import read, show_answer
from dralloc.cli.console import Session, features_from, guarded
from dralloc.cli.options import (
    AsJson,
    Caps,
    Fair,
    FeatureSwitches,
    GangLabel,
    KubernetesVersion,
    Paths,
    Quiet,
    Seed,
    Strict,
    TimeLimit,
    Workers,
)

__all__ = ["explain_command"]


def explain_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    claim: Annotated[str | None, typer.Option(metavar="NS/NAME", help="The claim to explain.")] = None,
    pod: Annotated[str | None, typer.Option(metavar="NS/NAME", help="The pod to explain.")] = None,
    mode: Annotated[Mode, typer.Option(help="Whose answer to explain.")] = Mode.FIRST_FIT,
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Show the reasons of this node; may be given several times."),
    ] = None,
    no_changes: Annotated[
        bool, typer.Option("--no-changes", help="Only reasons: look for no conflict and no changes.")
    ] = False,
    as_json: AsJson = False,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    workers: Workers = 1,
    kubernetes: KubernetesVersion = None,
    feature: FeatureSwitches = None,
    gang: GangLabel = "",
    cap: Caps = None,
    fair: Fair = "",
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Say why a claim is pending, with what it conflicts, and which changes would admit it."""
    with guarded():
        session = Session(quiet=quiet)
        cluster = read(session, paths, strict=strict)
        with session.busy("explaining"):
            found = dralloc.explain(
                cluster,
                claim,
                pod,
                mode=mode,
                nodes=node or (),
                features=features_from(feature, kubernetes),
                strict=strict,
                gang=gang,
                caps=cap or (),
                fair=fair,
                suggest=not no_changes,
                time_limit=time_limit,
                seed=seed,
                workers=workers,
            )
        show_answer(session, found, as_json=as_json)
