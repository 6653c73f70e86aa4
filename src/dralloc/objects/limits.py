"""How much may come out of little text, so that no file of a few bytes takes all memory or runs without end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

from dralloc.objects.errors import DrallocError, QuantityError
from dralloc.objects.quantity import NANOS, parse_quantity

__all__ = ["LIMITS", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of what input may grow to; whoever needs more raises them.

    Parameters
    ----------
    pods
        Pods that are made for a Deployment, Job and the like, over all objects.
    unpacked
        Bytes that a compressed file may become.
    aliases
        Characters that the aliases of a YAML text may stand for (``*base``, also after ``<<:``).

    Examples
    --------
    >>> import dralloc
    >>> dralloc.Limits.of(["pods=1M"]).pods
    1000000
    """

    pods: int = 200_000
    unpacked: int = 512 << 20
    aliases: int = 10_000_000

    @classmethod
    def of(cls, texts: Iterable[str]) -> Limits:
        """The limits with some set anew by texts like ``unpacked=4Gi``.

        Raises
        ------
        DrallocError
            A text has another form or names no limit.
        """
        names = [field.name for field in fields(cls)]
        found: dict[str, int] = {}
        for text in texts:
            name, _, amount = text.partition("=")
            try:
                found[name] = parse_quantity(amount).nanos // NANOS
            except QuantityError:
                name = ""
            if name not in names or found[name] < 0:
                raise DrallocError(
                    f"--limit {text}: expected NAME=AMOUNT with one of {', '.join(names)}"
                )
        return cls(**found)


LIMITS: Final = Limits()
"""What holds when nothing else is said."""
