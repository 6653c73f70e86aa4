"""The way back from a path in v1 to the path in what the user wrote."""

from typing import Any, Final

from dralloc.api.versions import kep5075_alpha, kep5517_alpha
from dralloc.api.versions.walk import Json

__all__ = ["Path", "written_path"]

Path = tuple[str | int, ...]

_RENAMED: Final = (*kep5075_alpha.RENAMED, *kep5517_alpha.RENAMED)
_ALPHA_NAMES: Final = [(new, old) for names in _RENAMED for old, new in names.items()]
_ADDED: Final = ("exactly", "mapping")
"""Steps that older forms do not have."""


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
