"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dralloc.choices import Backend, Goal

__all__ = [
    "AsJson",
    "BackendOption",
    "Caps",
    "Fair",
    "FeatureSwitches",
    "GangLabel",
    "GoalOption",
    "Jobs",
    "KubernetesVersion",
    "Nodes",
    "Paths",
    "Pruning",
    "Quiet",
    "Seed",
    "Strict",
    "StrictCel",
    "TimeLimit",
    "Workers",
]

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...", help="Files or directories with YAML or JSON; - reads standard input.", show_default=False
    ),
]
Nodes = Annotated[
    list[str] | None, typer.Option("--node", metavar="NAME", help="Use only this node; may be given several times.")
]
TimeLimit = Annotated[
    float | None, typer.Option(min=0.001, metavar="S", help="Seconds for the optimum; the best answer so far is kept.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the search for the optimum.")]
Workers = Annotated[int, typer.Option(min=1, metavar="N", help="Threads of the search for the optimum.")]
Jobs = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Processes that look for the optimum, each in parts of the problem that share nothing; the answer does "
        "not depend on it.",
    ),
]
BackendOption = Annotated[
    Backend, typer.Option("--backend", help="Where these processes are: here, or on a Dask or Ray cluster.")
]
GoalOption = Annotated[Goal, typer.Option("--goal", help="What to prefer among equally good optima.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Unknown fields are errors, and a pool whose allocated devices it no longer publishes gives no more.",
    ),
]
GangLabel = Annotated[
    str, typer.Option("--gang", metavar="LABEL", help="Pods with the same value of this label are placed all or none.")
]
Caps = Annotated[
    list[str] | None,
    typer.Option(
        "--cap",
        metavar="NAMESPACE=COUNTER:AMOUNT",
        help="The optimum gives a namespace no more of a counter or capacity; may be given several times.",
    ),
]
Fair = Annotated[
    str,
    typer.Option(
        "--fair", metavar="COUNTER", help="Namespaces share this counter or capacity fairly: the poorest get the most."
    ),
]
Pruning = Annotated[
    bool,
    typer.Option(
        "--pruning/--no-pruning",
        help="Whether first fit leaves out what cannot change its answer; without, it takes upstream's steps.",
    ),
]
StrictCel = Annotated[
    bool,
    typer.Option("--strict-cel", help="A selector that fails on some device is an error in the optimal mode, too."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notices, only the answer.")]
FeatureSwitches = Annotated[
    list[str] | None,
    typer.Option("--feature", metavar="NAME=true|false", help="Switch a feature gate; may be given several times."),
]
KubernetesVersion = Annotated[
    str | None,
    typer.Option(
        "--kubernetes",
        metavar="1.34...1.37",
        help="Feature gates as by default in this version; without it, all are on. --feature overrides.",
        show_default=False,
    ),
]
