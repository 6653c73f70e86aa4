"""Changing parts of plain data without touching the original."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

__all__ = ["CLAIM_SPECS", "Json", "change", "change_items", "change_values", "renamed"]

Json = dict[str, Any]
T = TypeVar("T")

CLAIM_SPECS: Final = {"ResourceClaim": "spec", "ResourceClaimTemplate": "spec.spec"}
"""Where a kind of object has the specification of a claim."""


def change(raw: T, path: str, function: Callable[[Any], Any]) -> T:
    """A copy of `raw` with what lies under the dotted `path` changed; `raw` itself when there is no such part."""
    key, _, rest = path.partition(".")
    if not isinstance(raw, dict) or key not in raw:
        return raw
    part = raw[key]
    changed = change(part, rest, function) if rest else function(part)
    return raw if changed is part else {**raw, key: changed}  # type: ignore[return-value]


def change_items(function: Callable[[Json], Any]) -> Callable[[Any], Any]:
    """Applies `function` to each object of a list; anything else stays as it is."""

    def changed(items: Any) -> Any:
        if not isinstance(items, list):
            return items
        return [function(item) if isinstance(item, dict) else item for item in items]

    return changed


def change_values(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Applies `function` to each value of a map; anything else stays as it is."""

    def changed(items: Any) -> Any:
        return {key: function(value) for key, value in items.items()} if isinstance(items, dict) else items

    return changed


def renamed(raw: T, names: Mapping[str, str]) -> T:
    """A copy with keys renamed, in the same order. A key whose new name is taken stays, to be reported as unknown."""
    if not isinstance(raw, dict) or not names.keys() & raw.keys():
        return raw
    return {  # type: ignore[return-value]
        names[key] if key in names and names[key] not in raw else key: value for key, value in raw.items()
    }
