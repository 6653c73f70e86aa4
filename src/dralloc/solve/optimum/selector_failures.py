"""Selectors that fail on devices, which are left out: one line is for all devices of a driver, and all claims alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dralloc.objects.errors import AllocationError, ExpressionFailure
from dralloc.problem.indices import grouped

__all__ = ["summed_up"]

_OF_CLASS: Final = "class "


def summed_up(failures: Iterable[AllocationError]) -> tuple[str, ...]:
    """Return the messages of failures, each once, in the order in which they were met."""
    by_line = grouped((_kind(failure), failure) for failure in failures)
    lines = (_line(alike) for alike in by_line.values())
    return tuple(dict.fromkeys(lines))


def _kind(failure: AllocationError) -> tuple[str, ...]:
    """Equal for failures that are told in one line: of one class, or of one expression of claims."""
    if not isinstance(failure, ExpressionFailure):
        return (str(failure),)
    owner = failure.owner if failure.owner.startswith(_OF_CLASS) else ""
    return (
        owner,
        failure.what,
        failure.expression,
        failure.driver,
        failure.reason,
    )


def _line(alike: Sequence[AllocationError]) -> str:
    first = alike[0]
    if not isinstance(first, ExpressionFailure):
        # Further lines show where in an expression it is.
        return str(first).partition("\n")[0]
    told = [
        failure for failure in alike if isinstance(failure, ExpressionFailure)
    ]
    owners = dict.fromkeys(failure.owner for failure in told)
    devices = dict.fromkeys(failure.device for failure in told)
    owner = first.owner
    if len(owners) > 1:
        owner += f" and {len(owners) - 1} more"
    where = f"device {first.device}"
    if len(devices) > 1:
        where = f"{len(devices)} devices of driver {first.driver}"
    return f"{first.what} of {owner} fails on {where}: {first.reason}"
