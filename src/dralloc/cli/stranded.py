"""``dralloc stranded``: free capacity that is of no use, and why."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dralloc.cli.console import Session, features_from, guarded
from dralloc.cli.options import AsJson, FeatureSwitches, KubernetesVersion, Paths, Quiet, Strict
from dralloc.load import load
from dralloc.report import show
from dralloc.stranded import stranded

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
        with session.busy("reading"):
            cluster = load(*paths, strict=strict)
        session.notices(cluster.findings)
        with session.busy("looking at what is free"):
            found = stranded(
                cluster,
                claim or (),
                features=features_from(feature, kubernetes),
                strict=strict,
            )
        if as_json:
            typer.echo(json.dumps(found.to_dict(), indent=2))
        else:
            show(session.out, found.parts())
