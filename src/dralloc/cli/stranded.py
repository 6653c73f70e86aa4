"""``dralloc stranded``: free capacity that is of no use, and why."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.cli.answers import read, show_answer
from dralloc.cli.console import Session, features_from, guarded
from dralloc.cli.options import AsJson, FeatureSwitches, KubernetesVersion, Paths, Quiet, Strict

__all__ = ["stranded_command"]


def stranded_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A claim or template of the mix; may be given several times. By default the pending claims.",
        ),
    ] = None,
    as_json: AsJson = False,
    kubernetes: KubernetesVersion = None,
    feature: FeatureSwitches = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Say which free capacity a mix of claims cannot use, by pool and by kind of node, and what strands it."""
    with guarded():
        session = Session(quiet=quiet)
        cluster = read(session, paths, strict=strict)
        with session.busy("looking at what is free"):
            found = dralloc.stranded(
                cluster,
                claim or (),
                features=features_from(feature, kubernetes),
                strict=strict,
            )
        show_answer(session, found, as_json=as_json)
