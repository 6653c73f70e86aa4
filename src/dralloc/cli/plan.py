"""``dralloc plan``: what if."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from dralloc.cli.console import Session, features_from, guarded
from dralloc.cli.options import (
    AsJson,
    FeatureSwitches,
    KubernetesVersion,
    Nodes,
    Paths,
    Quiet,
    Seed,
    Strict,
    TimeLimit,
    Workers,
)
from dralloc.cluster import Cluster
from dralloc.errors import DrallocError
from dralloc.load import load
from dralloc.report import Part, show
from dralloc.solvers.cpsat import Options
from dralloc.whatif import Source, Wish, headroom

__all__ = ["plan"]

plan = typer.Typer(help="What if: studies of a cluster that is not quite as it is.", no_args_is_help=True)

Claims = Annotated[
    list[str] | None,
    typer.Option("--claim", metavar="NS/NAME[=N]", help="A claim or a template; may be given several times."),
]
Templates = Annotated[
    list[str] | None,
    typer.Option("--template", metavar="NS/NAME[=N]", help="A template; may be given several times."),
]
Pods = Annotated[
    list[str] | None,
    typer.Option("--pod", metavar="NS/NAME[=N]", help="A pod with its claims; may be given several times."),
]


class _Answer(Protocol):
    def to_dict(self) -> dict[str, Any]: ...

    def parts(self) -> list[Part]: ...


@plan.command("headroom")
def headroom_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    claim: Claims = None,
    template: Templates = None,
    pod: Pods = None,
    node: Nodes = None,
    as_json: AsJson = False,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    workers: Workers = 1,
    kubernetes: KubernetesVersion = None,
    feature: FeatureSwitches = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Say how many more of a claim fit beside what is allocated."""
    with guarded():
        session = Session(quiet=quiet)
        wishes = _wishes(claim, template, pod)
        features = features_from(feature, kubernetes)
        cluster = _load(session, paths, strict=strict)
        with session.busy("looking for headroom"):
            found = headroom(
                cluster,
                *wishes,
                nodes=node or (),
                features=features,
                strict=strict,
                options=Options(time_limit=time_limit, seed=seed, workers=workers),
            )
        _print(session, found, as_json=as_json)


def _wishes(claims: Sequence[str] | None, templates: Sequence[str] | None, pods: Sequence[str] | None) -> list[Wish]:
    given = ((Source.CLAIM, claims), (Source.TEMPLATE, templates), (Source.POD, pods))
    wishes = [Wish.parse(text, source) for source, texts in given for text in texts or ()]
    if not wishes:
        raise DrallocError("say what is wanted: --claim, --template or --pod NAMESPACE/NAME")
    return wishes


def _load(session: Session, paths: list[Path], *, strict: bool) -> Cluster:
    with session.busy("reading"):
        cluster = load(*paths, strict=strict)
    session.notices(cluster.findings)
    return cluster


def _print(session: Session, answer: _Answer, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(answer.to_dict(), indent=2))
    else:
        show(session.out, answer.parts())
