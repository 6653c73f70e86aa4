"""Short representations of what can hold a whole cluster, so that a prompt stays usable."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import fields
from enum import Enum
from typing import Any, ClassVar, Final

__all__ = ["Brief", "shortened"]

_TEXT: Final = 60


class Brief:
    """A dataclass (with ``repr=False``) whose representation says how much its fields hold, not what.

    ``Solution(placements=<50000>, status='OPTIMAL', tiers=<3>)``; empty fields are left out.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __repr__(self) -> str:
        held = (
            (field.name, _brief(getattr(self, field.name))) for field in fields(self)
        )
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in held if value)})"


def _brief(value: object) -> str:
    if value is None or isinstance(value, str | int | float):
        plain = value.value if isinstance(value, Enum) else value
        return "" if plain in (None, "") else shortened(repr(plain), _TEXT)
    if isinstance(value, Sized):
        return f"<{len(value)}>" if len(value) else ""
    return f"{type(value).__name__}(...)"


def shortened(text: str, most: int) -> str:
    """The text, cut to a number of characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
