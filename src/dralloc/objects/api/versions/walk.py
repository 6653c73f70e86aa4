"""Changing parts of plain data without touching the original."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

__all__ = ["CLAIM_SPECS", "Json", "change", "renamed"]

Json = dict[str, Any]
T = TypeVar("T")

CLAIM_SPECS: Final = {"ResourceClaim": "spec", "ResourceClaimTemplate": "spec.spec"}
"""Where a kind of object has the specification of a claim."""


def change(raw: T, path: str, function: Callable[[Any], Any]) -> T:
    """A copy of `raw` with what lies at a place changed; `raw` itself when there is no such part.

    Parameters
    ----------
    path
        Names of fields with dots between them. ``[]`` behind one stands for all objects in a list, ``{}`` for all
        values of a map.
    """
    step, _, rest = path.partition(".")
    key = step.rstrip("[]{}")
    if not isinstance(raw, dict) or key not in raw:
        return raw

    def below(part: Any) -> Any:
        return change(part, rest, function) if rest else function(part)

    part = raw[key]
    if key == step:
        changed = below(part)
    elif step.endswith("[]"):
        changed = (
            [below(one) if isinstance(one, dict) else one for one in part]
            if isinstance(part, list)
            else part
        )
    else:
        changed = (
            {name: below(one) for name, one in part.items()}
            if isinstance(part, dict)
            else part
        )
    return raw if changed is part else {**raw, key: changed}  # type: ignore[return-value]


def renamed(raw: T, names: Mapping[str, str]) -> T:
    """A copy with keys renamed, in the same order. A key whose new name is taken stays, to be reported as unknown."""
    if not isinstance(raw, dict) or not names.keys() & raw.keys():
        return raw
    return {  # type: ignore[return-value]
        names[key] if key in names and names[key] not in raw else key: value
        for key, value in raw.items()
    }
