"""``dralloc plan headroom``."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.cli.answers import read, show_answer
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
from dralloc.cli.plan.wished import Claims, Pods, Templates, wishes_from
from dralloc.errors import DrallocError

__all__ = ["headroom_command"]

Points = Annotated[
    int, typer.Option(min=0, metavar="N", help="Most points to show of what fits together; 0 shows all.")
]


def headroom_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    claim: Claims = None,
    template: Templates = None,
    pod: Pods = None,
    points: Points = 25,
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
    """Say how many more of a claim fit beside what is allocated; of two or three claims, also together."""
    with guarded():
        session = Session(quiet=quiet)
        wishes = wishes_from(claim, template, pod)
        if not wishes:
            raise DrallocError("say what is wanted: --claim, --template or --pod NAMESPACE/NAME")
        features = features_from(feature, kubernetes)
        cluster = read(session, paths, strict=strict)
        with session.busy("looking for headroom"):
            found = dralloc.headroom(
                cluster,
                *wishes,
                nodes=node or (),
                points=points or None,
                features=features,
                strict=strict,
                options=dralloc.Options(time_limit=time_limit, seed=seed, workers=workers),
            )
        show_answer(session, found, as_json=as_json)
