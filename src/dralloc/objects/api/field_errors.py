"""What pydantic says about a field of an object, in the words of this package."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_core import ErrorDetails

__all__ = ["UNKNOWN_FIELD", "field_path", "rule"]

UNKNOWN_FIELD: Final = frozenset(
    {"extra_forbidden", "unexpected_keyword_argument"}
)
"""The types of error that stand for a field which is not known."""

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MAPS: Final = frozenset(
    {
        "annotations",
        "attributes",
        "consumedCapacities",
        "consumedCapacity",
        "counters",
        "labels",
        "minimum",
        "nodeAllocatableResourceMappings",
        "nodeAllocatableResources",
        "requests",
    }
)
"""Fields that hold values by name; ``capacity`` does only in devices."""
_REQUIREMENTS: Final = frozenset({"minimum", "requests"})
_RULES: Final[Mapping[str, str]] = {
    "missing": "is required",
    "extra_forbidden": "unknown field",
    "unexpected_keyword_argument": "unknown field",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "mapping_type": "must be an object",
    "model_type": "must be an object",
    "dataclass_type": "must be an object",
}
_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
}
_NO_VALUE: Final = frozenset({"missing", *UNKNOWN_FIELD})


def field_path(location: Sequence[str | int]) -> str:
    """Return the path of a field as Kubernetes writes it: ``spec.devices[3].capacity[memory].value``."""
    text = ""
    for before, step in zip((None, *location), location, strict=False):
        if (
            isinstance(step, str)
            and not _is_map(before, step)
            and _PLAIN_KEY.fullmatch(step)
        ):
            text += f".{step}"
        elif step != "[key]":
            text += f"[{step}]"
    return text.removeprefix(".")


def _is_map(field: str | int | None, step: str) -> bool:
    return field in _MAPS or (field == "capacity" and step not in _REQUIREMENTS)


def rule(error: ErrorDetails) -> str:
    """Return the violated rule, without the place."""
    kind, value = error["type"], error["input"]
    if kind == "literal_error":
        return f"{_shown(value)} is not one of {error['ctx']['expected'].replace(' or ', ', ')}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"must be {words} {error['ctx'][bound]}, not {_shown(value)}"
    text = _RULES.get(kind)
    if text is None:
        context: Mapping[str, Any] = error.get("ctx", {})
        return str(context.get("error", error["msg"]))
    return text if kind in _NO_VALUE else f"{text}, not {_shown(value)}"


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
