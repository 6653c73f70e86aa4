"""``dralloc plan fewest-nodes``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated

import typer

import dralloc
from dralloc.cli.answers import read, show_answer
from dralloc.cli.console import Session, features_from, guarded
from dralloc.cli.options import (
    AsJson,
    FeatureSwitches,
    KubernetesVersion,
    Paths,
    Quiet,
    Seed,
    Strict,
    TimeLimit,
    Workers,
)
from dralloc.cli.plan.wished import Claims, Pods, Templates, wishes_from
from dralloc.errors import DrallocError

__all__ = ["fewest_command"]

Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="NAME=NODE or NAME=LABEL=VALUE",
        help="A kind of node: a node to copy, or nodes with a label; several times. By default, all nodes.",
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option("--price", metavar="KIND=AMOUNT", help="What a node of a kind costs; by default 1."),
]


def fewest_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    claim: Claims = None,
    template: Templates = None,
    pod: Pods = None,
    kind: Kinds = None,
    price: Prices = None,
    as_json: AsJson = False,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    workers: Workers = 1,
    kubernetes: KubernetesVersion = None,
    feature: FeatureSwitches = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Say how few empty nodes hold some claims, or all that is pending; with prices, which kinds are the cheapest."""
    with guarded():
        session = Session(quiet=quiet)
        wishes = wishes_from(claim, template, pod)
        features = features_from(feature, kubernetes)
        kinds, prices = _kinds(kind or ()), _prices(price or ())
        cluster = read(session, paths, strict=strict)
        with session.busy("looking for the fewest nodes"):
            found = dralloc.fewest_nodes(
                cluster,
                *wishes,
                kinds=kinds,
                prices=prices,
                features=features,
                strict=strict,
                options=dralloc.Options(time_limit=time_limit, seed=seed, workers=workers),
            )
        show_answer(session, found, as_json=as_json)


def _kinds(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, _, what = text.partition("=")
        if not name or not what:
            raise DrallocError(f"--kind {text}: expected NAME=NODE or NAME=LABEL=VALUE")
        found[name] = what
    return found


def _prices(texts: Sequence[str]) -> dict[str, Fraction]:
    from dralloc.whatif.nodekinds import parse_price

    return dict(map(parse_price, texts))
