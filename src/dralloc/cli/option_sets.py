"""Options that are choices, in sets, each of which adds to others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from dralloc.cli.completion import names_of
from dralloc.cli.options import Pruning
from dralloc.objects.choices import (
    MAX_SEED,
    MAX_WORKERS,
    Backend,
    Goal,
    Ignored,
    Keep,
    ObjectiveWord,
    Priorities,
)

__all__ = [
    "ANSWER",
    "EXPLAINED",
    "GATES",
    "GROUPS",
    "READ",
    "SCHEDULER",
    "SEARCH",
    "SIMULATE",
    "STUDY",
    "OptionSet",
]

OptionSet = Mapping[str, Parameter]
"""Options by name. An option has the name of a choice, or of one of its values if it may be given several times."""


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
