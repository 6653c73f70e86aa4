"""Signatures as Typer reads them: an option for each value that a parameter of a command is made with.

Commands take `Choices` and dataclasses, which are made here of what the options say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Final, get_args, get_type_hints

from dralloc.cli.option_sets import OptionSet
from dralloc.objects.choices import Choices
from dralloc.objects.errors import DrallocError
from dralloc.objects.features import ALL_FEATURES, Features

__all__ = ["with_options"]

_SEVERAL: Final = {"node": "nodes", "cap": "caps"}
"""Choices of several values, by the option for one of them."""


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
