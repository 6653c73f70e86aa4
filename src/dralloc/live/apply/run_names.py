"""Names of runs, which say until when a run may write: who is gone keeps nobody away for good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import uuid4

__all__ = ["end_of", "has_ended", "may_write", "new_run"]

_END_FORMAT: Final = "%Y%m%dt%H%M%Sz"
_LEEWAY: Final = timedelta(minutes=5)
"""How far the clocks of two machines may be apart."""


def new_run(prefix: str, seconds: float) -> str:
    """Return the name of a run that begins now, and lets others go on after so many seconds at the latest."""
    end = datetime.now(UTC) + timedelta(seconds=seconds)
    return f"{prefix}{uuid4().hex[:12]}-{end.strftime(_END_FORMAT)}"


def end_of(run: str) -> datetime | None:
    """Return until when a run may write; None if its name does not say."""
    try:
        end = datetime.strptime(run.rpartition("-")[2], _END_FORMAT)
    except ValueError:
        return None
    return end.replace(tzinfo=UTC)


def may_write(run: str) -> bool:
    """Return whether a run may still write, by the clock of who runs it."""
    end = end_of(run)
    return end is None or datetime.now(UTC) < end


def has_ended(run: str) -> bool:
    """Return whether a run writes nothing any more, by the clock of anybody: its fence is in the way of nobody."""
    end = end_of(run)
    return end is not None and datetime.now(UTC) > end + _LEEWAY
