"""Arguments and options that several commands share: single ones, and sets of choices, each of which adds to others.

First the names that the shell completes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    get_args,
    get_type_hints,
)

import typer

import dralloc
from dralloc.objects.choices import (
    MAX_SEED,
    MAX_WORKERS,
    Backend,
    Choices,
    Goal,
    Ignored,
    Keep,
    ObjectiveWord,
    Priorities,
)
from dralloc.objects.errors import DrallocError
from dralloc.objects.features import ALL_FEATURES, Features

if TYPE_CHECKING:
    from dralloc.objects.cluster import Cluster

__all__ = [
    "ANSWER",
    "BINDING",
    "EXPLAINED",
    "GATES",
    "GROUPS",
    "READ",
    "SCHEDULER",
    "SEARCH",
    "SIMULATE",
    "STDOUT",
    "STUDY",
    "AnyPaths",
    "AsJson",
    "Context",
    "Form",
    "Kubeconfig",
    "Limit",
    "Live",
    "Modes",
    "NoHeaders",
    "Output",
    "Paths",
    "PlanFile",
    "Pruning",
    "Quiet",
    "Seeds",
    "names_of",
    "with_options",
]

# ----------------------------------------------------------------------------
# Names that the shell completes: of what is in the files that the command line names
# already.

_ARGUMENTS: Final = ("paths", "filename")
"""Parameters of commands that are files."""

_MOST: Final = 100
"""So many names are offered at most: a shell asks before it shows more."""


def names_of(*kinds: str) -> Callable[[typer.Context, str], list[str]]:
    """Return what completes an option whose values are names.

    Parameters
    ----------
    kinds
        What may be named: ``claims``, ``templates``, ``pods``, ``nodes`` or ``attributes`` of devices.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        # Where the last word is an option without its value, what stands
        # before it is not yet given to its parameters.
        cluster = _cluster_of(ctx.params, ctx.args)
        if cluster is None:
            return []
        names = (name for kind in kinds for name in _NAMES[kind](cluster))
        fitting = (name for name in names if name.startswith(incomplete))
        return sorted(dict.fromkeys(fitting))[:_MOST]

    return complete


def _cluster_of(
    parameters: Mapping[str, Any], words: Iterable[str]
) -> Cluster | None:
    """Return what the files hold; None where there are none, or they cannot be read: a shell shows no errors."""
    paths = list(map(Path, words))
    for name in _ARGUMENTS:
        paths += parameters.get(name) or ()
    files = [path for path in paths if path.exists()]
    try:
        return dralloc.load(*files) if files else None
    except (DrallocError, OSError):
        return None


def _attributes(cluster: Cluster) -> Iterator[str]:
    for published in cluster.slices:
        for device in published.spec.devices:
            yield from device.attributes


_NAMES: Final[dict[str, Callable[[Cluster], Iterable[str]]]] = {
    "claims": lambda cluster: (str(claim.key) for claim in cluster.claims),
    "templates": lambda cluster: (
        str(template.key) for template in cluster.templates
    ),
    "pods": lambda cluster: (str(pod.key) for pod in cluster.pods),
    "nodes": lambda cluster: (node.name for node in cluster.nodes),
    "attributes": _attributes,
}


class Form(StrEnum):
    """Forms of an answer."""

    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"


# ----------------------------------------------------------------------------
# Single arguments and options; then the sets.

STDOUT: Final = Path("-")
"""As a file to write: standard output."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, as -o json.")]
Output = Annotated[
    Form,
    typer.Option(
        "--output",
        "-o",
        help="A table; a wide one, with more; names alone; JSON; or YAML, of a plan the ResourceClaims with their new "
        "status.",
    ),
]
NoHeaders = Annotated[
    bool,
    typer.Option(
        "--no-headers", help="Print rows only, without titles and column heads."
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Context of the kubeconfig; with --live."
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Instead of the usual kubeconfig; with --live."
    ),
]
Live = Annotated[
    bool,
    typer.Option(
        "--live",
        help="Read the cluster of your kubeconfig, too; paths then override what it has.",
    ),
]
PlanFile = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Start from a plan, as if it were carried out: what dralloc allocate printed with -o json"
        " (or -o yaml).",
        show_default=False,
    ),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=AMOUNT",
        help="Raise a limit on what small inputs expand to: pods made for owners (pods=200k), bytes of"
        " an unpacked file (unpacked=512Mi), characters that YAML aliases stand for "
        "(aliases=10M); may be given several times.",
        show_default=False,
    ),
]
Modes = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="What to compare, with commas: first-fit, scheduler, optimal, or policies such as best-fit.",
    ),
]
AnyPaths = Annotated[
    list[Path],
    typer.Argument(
        default_factory=list,
        metavar="PATH",
        help="Files or directories with YAML or JSON; - reads standard input. Later ones override earlier ones.",
        show_default=False,
    ),
]
Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH",
        help="Files or directories with YAML or JSON; - reads standard input.",
        show_default=False,
    ),
]
Pruning = Annotated[
    bool,
    typer.Option(
        "--pruning/--no-pruning",
        help="Whether first fit skips what cannot change its answer; with --no-pruning, it takes all "
        "of upstream's steps.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="No progress and no notices, only the answer."
    ),
]
Seeds = Annotated[
    int,
    typer.Option(
        min=1, metavar="N", help="How many seeds to ask the scheduler with."
    ),
]

OptionSet = Mapping[str, Parameter]
"""Options by name. An option has the name of a choice, or of one of its values if it may be given several times."""

_SEVERAL: Final = {"node": "nodes", "cap": "caps"}
"""Choices of several values, by the option for one of them."""


def _option(
    kind: Any, default: object, text: str, *names: str, **details: Any
) -> Parameter:
    annotation = Annotated[kind, typer.Option(*names, help=text, **details)]
    return Parameter(
        "option", Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _flag(name: str, text: str) -> Parameter:
    return _option(bool, False, text, name)


def _several(metavar: str, text: str, **details: Any) -> Parameter:
    return _option(list[str] | None, None, text, metavar=metavar, **details)


def _count(text: str) -> Parameter:
    return _option(int, 1, text, min=1, max=MAX_WORKERS, metavar="N")


GATES: Final[OptionSet] = {
    "kubernetes": _option(
        str | None,
        None,
        "Use the default feature gates and the kube-scheduler of this version; otherwise, all "
        "gates are on. --feature overrides.",
        metavar="1.34...1.37",
        show_default=False,
    ),
    "feature": _several(
        "NAME=true|false", "Switch a feature gate; may be given several times."
    ),
}
"""Feature gates: those of a version of Kubernetes, or all on; and single ones."""

READ: Final[OptionSet] = {
    **GATES,
    "include": _several(
        "gated,suspended",
        "Also plan for pods with scheduling gates, or for those of suspended owners.",
    ),
    "ignore": _several(
        "cpu,memory,...",
        f"Ignore what else limits where pods can run: {', '.join(Ignored)}. The answer says so.",
        show_default=False,
    ),
    "strict": _flag(
        "--strict",
        "Leave nothing in doubt: fields that are unknown or not modelled are errors, and a pool "
        "that no longer publishes allocated devices gives no more.",
    ),
}
"""How the input is taken."""

SEARCH: Final[OptionSet] = {
    **READ,
    "time_limit": _option(
        float | None,
        None,
        "Seconds for the optimum; the best answer so far is kept.",
        min=0.001,
        metavar="S",
    ),
    "seed": _option(
        int,
        0,
        "Seed of the search for the optimum, and of the scheduler's choice between equals.",
        min=0,
        max=MAX_SEED,
        metavar="N",
    ),
    "workers": _count("Threads of the search for the optimum."),
}
"""How the optimum is searched for."""

BINDING: Final[OptionSet] = {
    **SEARCH,
    "priorities": _option(
        Priorities,
        Priorities.STRICT,
        "strict: lower priorities never outweigh a higher one; ranked: in great number they do.",
    ),
    "objective": _option(
        str,
        ObjectiveWord.PODS.value,
        "What is maximised within each priority: pods, devices, annotated values, or a counter or capacity.",
        metavar="pods|devices|value|NAME",
    ),
    "gang": _option(
        str,
        "",
        "Place pods with the same value of this label all together or not at all.",
        metavar="LABEL",
    ),
    "across": _several(
        "pod|gang:matchAttribute|distinctAttribute=ATTRIBUTE[:REQUEST,...]",
        "A constraint over the claims of each pod, or of all pods of each gang; may be given several times.",
    ),
    "cap": _several(
        "NAMESPACE=COUNTER:AMOUNT",
        "Limit what the optimum gives a namespace of a counter or capacity; may be given several "
        "times.",
    ),
    "fair": _option(
        str,
        "",
        "Share this counter or capacity fairly between namespaces (max-min fairness).",
        metavar="COUNTER",
    ),
}
"""What binds beside the rules of the API."""

ANSWER: Final[OptionSet] = {
    **BINDING,
    "keep": _option(
        Keep,
        Keep.NOBODY,
        "The optimum also places whatever this mode places, possibly elsewhere.",
    ),
    "node": _several(
        "NAME",
        "Use only this node; may be given several times.",
        autocompletion=names_of("nodes"),
    ),
    "goal": _option(
        Goal, Goal.NONE, "What to prefer among equally good optima."
    ),
    "jobs": _count(
        "Processes that search for the optimum, in parts of the problem that share nothing; the "
        "answer does not depend on their number."
    ),
    "steps": _option(
        int | None,
        None,
        "Stop the search after this many steps, where the problem is too large for one model; "
        "without a time limit, the answer is then the same on every machine and with any number "
        "of jobs.",
        min=0,
        metavar="N",
        show_default=False,
    ),
    "backend": _option(
        Backend,
        Backend.LOKY,
        "Where these processes run: on this machine, or on a Dask or Ray cluster.",
    ),
    "strict_cel": _flag(
        "--strict-cel",
        "A selector that fails on some device is an error in the optimal mode, too.",
    ),
    "pruning": Parameter(
        "pruning", Parameter.KEYWORD_ONLY, default=True, annotation=Pruning
    ),
}
"""All that matters for both answers."""

SCHEDULER: Final[OptionSet] = {
    **ANSWER,
    "scheduler_config": _option(
        Path | None,
        None,
        "KubeSchedulerConfiguration of mode scheduler: profiles, weights, strategies.",
        metavar="FILE",
    ),
}
"""All that matters for all answers."""

EXPLAINED: Final[OptionSet] = {
    **BINDING,
    "scheduler_config": SCHEDULER["scheduler_config"],
}
"""All that matters for the reasons of any answer."""

GROUPS: Final[Mapping[str, Collection[str]]] = {
    "Output": ("output", "as_json", "no_headers", "quiet"),
    "Input": (*READ.keys() - GATES.keys(), "limit"),
    "A live cluster": ("live", "context", "kubeconfig"),
    "Kubernetes": (*GATES, "scheduler_config"),
    "Rules beside those of the API": BINDING.keys() - SEARCH.keys(),
    "The search": (
        *SEARCH.keys() - READ.keys(),
        *ANSWER.keys() - BINDING.keys() - {"node", "keep", "goal"},
    ),
}
"""In which groups help shows the options that many commands share; a command's own come first."""

_OF_BATCHES: Final = ("gang", "across", "cap", "fair", "keep")

SIMULATE: Final[OptionSet] = {
    name: option
    for name, option in SCHEDULER.items()
    if name not in _OF_BATCHES
}
"""All that matters for answers to what comes and goes."""

STUDY: Final[OptionSet] = {
    **GATES,
    "backend": _option(
        Backend,
        Backend.LOKY,
        "Where to work: on this machine, or on a Dask or Ray cluster.",
    ),
    "jobs": _count("How many points to work on at a time."),
    **{
        name: SCHEDULER[name]
        for name in (
            "time_limit",
            "workers",
            "goal",
            "gang",
            "scheduler_config",
        )
    },
}
"""What matters for all points of a study."""


def _choices(
    *, kubernetes: str | None, feature: list[str] | None, **choices: Any
) -> Choices:
    """Return all that was chosen.

    Raises
    ------
    DrallocError
        A switch has another form or names no feature; the version is not known; a value cannot be used.
    """
    switches = {}
    for switch in feature or ():
        name, _, value = switch.partition("=")
        if value.lower() not in ("true", "false"):
            raise DrallocError(
                f"--feature {switch}: expected NAME=true or NAME=false"
            )
        switches[name] = value.lower() == "true"
    gates = Features.of_kubernetes(kubernetes) if kubernetes else ALL_FEATURES
    named = {
        _SEVERAL.get(name, name): value
        for name, value in choices.items()
        if value is not None
    }
    return Choices(
        features=gates.switched(switches), kubernetes=kubernetes, **named
    )


def _set_behind(annotation: Any) -> tuple[Callable[..., Any], OptionSet] | None:
    """Return what a parameter is made with, and of which options; None if it is an option itself."""
    if is_dataclass(annotation):
        kind: Any = annotation
        hints = get_type_hints(kind, include_extras=True)
        return kind, {
            name: parameter.replace(annotation=hints[name])
            for name, parameter in signature(kind).parameters.items()
        }
    kind, *about = get_args(annotation) or (None,)
    return (_choices, about[0]) if kind is Choices else None


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes an option for each in the set of its `Choices`, and for each field of its dataclasses."""
    sets = {}
    options: list[Parameter] = []
    for name, parameter in signature(command, eval_str=True).parameters.items():
        option_set = _set_behind(parameter.annotation)
        if option_set is None:
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        sets[name] = option_set
        options += (
            option.replace(name=option_name, kind=Parameter.KEYWORD_ONLY)
            for option_name, option in option_set[1].items()
        )

    @wraps(command)
    def run(**values: Any) -> None:
        built = {}
        for name, (make, option_set) in sets.items():
            of_set = {option: values.pop(option) for option in option_set}
            built[name] = make(**of_set)
        command(**values, **built)

    # Typer reads a command's options from its signature and its annotations.
    setattr(run, "__signature__", Signature(options))  # noqa: B010
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run
