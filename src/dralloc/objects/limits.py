"""Limits for reading: how much may come out of little text, and no garbage collection meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from threading import Lock
from typing import Final

from dralloc.objects.errors import DrallocError, QuantityError
from dralloc.objects.quantity import NANOS, parse_quantity

__all__ = ["LIMITS", "Limits", "without_garbage_collection"]

# ----------------------------------------------------------------------------
# How much may come out of little text, so that no file of a few bytes takes all
# memory or runs without end.


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the growth of input; they can be raised.

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
        """Return the limits with some set anew by texts like ``unpacked=4Gi``.

        Raises
        ------
        DrallocError
            A text has another form or names no limit.
        """
        names = [field.name for field in fields(cls)]
        amounts: dict[str, int] = {}
        for text in texts:
            name, _, amount = text.partition("=")
            try:
                amounts[name] = parse_quantity(amount).nanos // NANOS
            except QuantityError:
                name = ""
            if name not in names or amounts[name] < 0:
                raise DrallocError(
                    f"--limit {text}: expected NAME=AMOUNT with one of {', '.join(names)}"
                )
        return cls(**amounts)


LIMITS: Final = Limits()
"""What holds when nothing else is said."""


# ----------------------------------------------------------------------------
# Garbage collection is off while very many objects are made at once.

_LOCK = Lock()
_INSIDE: list[bool] = []
"""Of each block that is entered, in whichever thread: whether collection was on before it."""


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Nothing made inside is garbage: looking for it again and again takes as long as the work itself.

    Blocks may overlap, also in several threads: who leaves last puts things back as they were before the first.
    """
    with _LOCK:
        _INSIDE.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _LOCK:
            before = _INSIDE[0]
            _INSIDE.pop()
            if before and not _INSIDE:
                gc.enable()
