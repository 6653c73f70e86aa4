"""Arguments and options that several commands share: single ones, and sets, each of which adds to the one before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

import dralloc
from dralloc.choices import MAX_SEED, MAX_WORKERS, Backend, Goal, Ignored, Keep, ObjectiveWord, Priorities
from dralloc.errors import DrallocError
from dralloc.features import ALL_FEATURES, Features

if TYPE_CHECKING:
    from dralloc.choices import Choices

__all__ = [
    "STDOUT",
    "AnswerOptions",
    "AsJson",
    "BindingOptions",
    "Gang",
    "GateOptions",
    "GoalOption",
    "Limit",
    "Modes",
    "Nodes",
    "Paths",
    "Pruning",
    "Quiet",
    "ReadOptions",
    "SchedulerOptions",
    "SearchOptions",
    "Seeds",
    "TimeLimit",
    "Workers",
    "with_options",
]

STDOUT: Final = Path("-")
"""As a file to write: standard output."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Gang = Annotated[
    str, typer.Option("--gang", metavar="LABEL", help="Pods with the same value of this label are placed all or none.")
]
GoalOption = Annotated[Goal, typer.Option("--goal", help="What to prefer among equally good optima.")]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=AMOUNT",
        help="Let more come out of little text: pods that are made of owners (pods=200k), bytes of a compressed file "
        "(unpacked=512Mi), characters that aliases of YAML stand for (aliases=10M); may be given several times.",
        show_default=False,
    ),
]
Modes = Annotated[str, typer.Option(metavar="LIST", help="What to compare; scheduler adds what kube-scheduler does.")]
Nodes = Annotated[
    list[str] | None, typer.Option("--node", metavar="NAME", help="Use only this node; may be given several times.")
]
Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH", help="Files or directories with YAML or JSON; - reads standard input.", show_default=False
    ),
]
Pruning = Annotated[
    bool,
    typer.Option(
        "--pruning/--no-pruning",
        help="Whether first fit leaves out what cannot change its answer; without, it takes upstream's steps.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notices, only the answer.")]
Seeds = Annotated[int, typer.Option(min=1, metavar="N", help="Over how many seeds the scheduler is asked.")]
TimeLimit = Annotated[
    float | None, typer.Option(min=0.001, metavar="S", help="Seconds for the optimum; the best answer so far is kept.")
]
Workers = Annotated[
    int, typer.Option(min=1, max=MAX_WORKERS, metavar="N", help="Threads of the search for the optimum.")
]


_SEVERAL: Final = {"node": "nodes", "cap": "caps"}
"""Choices of several values, by the option for one of them."""


@dataclass(frozen=True)
class GateOptions:
    """Feature gates: those of a version of Kubernetes, or all on; and single ones."""

    kubernetes: Annotated[
        str | None,
        typer.Option(
            metavar="1.34...1.37",
            help="Feature gates as by default in this version, and its kube-scheduler; without it, all are on. "
            "--feature overrides.",
            show_default=False,
        ),
    ] = None
    feature: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=true|false", help="Switch a feature gate; may be given several times."),
    ] = None

    @property
    def features(self) -> Features:
        """The gates.

        Raises
        ------
        DrallocError
            A switch has another form or names no feature; the version is not known.
        """
        values = {}
        for switch in self.feature or ():
            name, _, value = switch.partition("=")
            if value.lower() not in ("true", "false"):
                raise DrallocError(f"--feature {switch}: expected NAME=true or NAME=false")
            values[name] = value.lower() == "true"
        gates = Features.of_kubernetes(self.kubernetes) if self.kubernetes else ALL_FEATURES
        return gates.switched(values)

    def choices(self) -> Choices:
        """All that was chosen, as the functions of the package take it.

        An option has the name of a choice, or of one of its values if it may be given several times.

        Raises
        ------
        DrallocError
            A value cannot be used.
        """
        known = {one.name for one in fields(dralloc.Choices)}
        named = ((_SEVERAL.get(one.name, one.name), getattr(self, one.name)) for one in fields(self))
        given = {name: value for name, value in named if name in known and value is not None}
        return dralloc.Choices(features=self.features, **given)


@dataclass(frozen=True)
class ReadOptions(GateOptions):
    """How the input is taken."""

    include: Annotated[
        list[str] | None,
        typer.Option(
            metavar="gated,suspended",
            help="Plan for pods with scheduling gates, or of suspended owners, as if they were to be scheduled.",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="cpu,memory,...",
            help=f"Leave out what binds pods to nodes beside devices: {', '.join(Ignored)}. The answer says so.",
            show_default=False,
        ),
    ] = None
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Nothing in doubt: fields that are unknown or not modelled are errors, and a pool whose allocated "
            "devices it no longer publishes gives no more.",
        ),
    ] = False


@dataclass(frozen=True)
class SearchOptions(ReadOptions):
    """How the optimum is searched for."""

    time_limit: TimeLimit = None
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=MAX_SEED, metavar="N", help="Seed of the search for the optimum, and of the scheduler's choice."
        ),
    ] = 0
    workers: Workers = 1


@dataclass(frozen=True)
class BindingOptions(SearchOptions):
    """What binds beside the rules of the API."""

    priorities: Annotated[
        Priorities,
        typer.Option(help="Whether lower priorities can never, or in great number, outweigh a higher one."),
    ] = Priorities.STRICT
    objective: Annotated[
        str,
        typer.Option(
            metavar="pods|devices|value|NAME",
            help="What is maximised within each priority: pods, devices, annotated values, or a counter or capacity.",
        ),
    ] = ObjectiveWord.PODS.value
    gang: Gang = ""
    across: Annotated[
        list[str] | None,
        typer.Option(
            metavar="pod|gang:matchAttribute|distinctAttribute=ATTRIBUTE[:REQUEST,...]",
            help="A constraint over the claims of each pod, or of all pods of each gang; may be given several times.",
        ),
    ] = None
    cap: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMESPACE=COUNTER:AMOUNT",
            help="The optimum gives a namespace no more of a counter or capacity; may be given several times.",
        ),
    ] = None
    fair: Annotated[
        str,
        typer.Option(
            metavar="COUNTER", help="Namespaces share this counter or capacity fairly: the poorest get the most."
        ),
    ] = ""


@dataclass(frozen=True)
class AnswerOptions(BindingOptions):
    """All that matters for both answers."""

    keep: Annotated[Keep, typer.Option(help="Who is placed by it is placed in the optimum, too, maybe elsewhere.")] = (
        Keep.NOBODY
    )
    node: Nodes = None
    goal: GoalOption = Goal.NONE
    jobs: Annotated[
        int,
        typer.Option(
            min=1,
            max=MAX_WORKERS,
            metavar="N",
            help="Processes that look for the optimum, each in parts of the problem that share nothing; the answer "
            "does not depend on it.",
        ),
    ] = 1
    backend: Annotated[Backend, typer.Option(help="Where these processes are: here, or on a Dask or Ray cluster.")] = (
        Backend.LOKY
    )
    strict_cel: Annotated[
        bool,
        typer.Option("--strict-cel", help="A selector that fails on some device is an error in the optimal mode, too."),
    ] = False
    pruning: Pruning = True


@dataclass(frozen=True)
class SchedulerOptions(AnswerOptions):
    """All that matters for all answers."""

    scheduler_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="KubeSchedulerConfiguration of mode scheduler: profiles, weights, strategies."
        ),
    ] = None


def _parameters(kind: type) -> dict[str, Parameter]:
    # A set in another module than the one that it adds to: each annotation means what it does where it stands.
    hints = get_type_hints(kind, include_extras=True)
    return {name: one.replace(annotation=hints[name]) for name, one in signature(kind).parameters.items()}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes an option for each field of those of its parameters that are dataclasses."""
    own = signature(command, eval_str=True).parameters
    kinds: dict[str, Any] = {name: one.annotation for name, one in own.items() if is_dataclass(one.annotation)}
    sets = {name: _parameters(kind) for name, kind in kinds.items()}
    every = [part for name, one in own.items() for part in (sets[name].values() if name in sets else [one])]

    @wraps(command)
    def run(**given: Any) -> None:
        built = {name: kind(**{one: given.pop(one) for one in sets[name]}) for name, kind in kinds.items()}
        command(**given, **built)

    setattr(run, "__signature__", Signature([one.replace(kind=Parameter.KEYWORD_ONLY) for one in every]))  # noqa: B010
    run.__annotations__ = {one.name: one.annotation for one in every}
    return run
