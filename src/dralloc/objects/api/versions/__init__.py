"""Older wire forms of ``resource.k8s.io``, each turned into v1 by a function on plain data.

Such a function gets the kind and the object as it was written and returns an object that shares what did not change.
What it does not know it leaves alone, for validation to report. `written_path` is the way back.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dralloc.objects.api.versions.kep5075_alpha import KEP5075_NAMES, from_kep5075_alpha
from dralloc.objects.api.versions.kep5517_alpha import KEP5517_NAMES, from_kep5517_alpha
from dralloc.objects.api.versions.v1beta1 import from_v1beta1
from dralloc.objects.api.versions.walk import Json

__all__ = [
    "CONVERSIONS",
    "KEP5075_NAMES",
    "Json",
    "Path",
    "from_kep5075_alpha",
    "from_kep5517_alpha",
    "written_path",
]


Path = tuple[str | int, ...]

_RENAMED: Final = (*KEP5075_NAMES, *KEP5517_NAMES)
_ALPHA_NAMES: Final = [(new, old) for names in _RENAMED for old, new in names.items()]
_ADDED: Final = ("exactly", "mapping")
"""Steps that older forms do not have."""


def _as_it_is(_kind: str, raw: Json) -> Json:
    """Nothing to change: v1 took over v1beta2 as it was (Kubernetes 1.34)."""
    return raw


CONVERSIONS: Final[Mapping[str, Callable[[str, Json], Json]]] = {
    "v1": _as_it_is,
    "v1beta2": _as_it_is,
    "v1beta1": from_v1beta1,
    "v1alpha3": from_v1beta1,
}
"""For each supported version of the API group, how an object of a kind becomes v1."""


def written_path(raw: Json, path: Path) -> Path:
    """Where in the object as it was written lies what v1 has under `path`."""
    found: list[str | int] = []
    part: Any = raw
    for step in path:
        if isinstance(part, str | int | float):
            break
        if isinstance(part, dict) and step not in part:
            if step in _ADDED:
                continue
            if isinstance(part.get("basic"), dict):
                found.append("basic")
                part = part["basic"]
        name = _name(part, step)
        found.append(name)
        part = _part(part, name)
    return tuple(found)


def _name(part: Any, step: str | int) -> str | int:
    if not isinstance(part, dict) or step in part:
        return step
    return next((old for new, old in _ALPHA_NAMES if new == step and old in part), step)


def _part(raw: Any, step: str | int) -> Any:
    try:
        return raw[step]
    except (KeyError, IndexError, TypeError):
        return None
