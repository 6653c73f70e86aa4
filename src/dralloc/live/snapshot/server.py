"""What goes to and fro between an API server and who reads it, and what reading may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dralloc.objects.errors import SnapshotError

__all__ = ["Json", "Page", "ReadLimits", "Refused", "Unanswered", "Wire"]

Json = dict[str, Any]
"""An object as it came over the wire."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What reading may take, whatever the server does.

    Parameters
    ----------
    seconds
        For everything together.
    retries
        How often a request is repeated after an answer that ended early, or that asked for it.
    pause
        Seconds before the first repetition; they double each time, unless the server says how long to wait.
    outage
        Seconds for which a server is waited for that was reached before and cannot be any more.
    wait
        Most seconds that a server may ask for.
    answer, total
        Bytes of one answer, and of all.
    pages
        Pages of one list.
    """

    seconds: float = 1800
    retries: int = 3
    pause: float = 0.5
    outage: float = 60
    wait: float = 30
    answer: int = 1 << 30
    total: int = 8 << 30
    pages: int = 10_000


class Page(NamedTuple):
    """A part of a list, and the token with which it goes on; an empty one at its end."""

    items: Sequence[Json]
    token: str = ""


class Refused(Exception):  # noqa: N818 - an answer like any other; the reader decides what it means
    """The server answered with an HTTP status that is no success."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"HTTP {status}: {reason}")
        self.status = status
        self.reason = reason


class Unanswered(SnapshotError):  # noqa: N818 - the change may have been made
    """The answer to a change was lost: it was made, or it was not."""


class Wire(Protocol):
    """What carries requests to an API server and brings answers; `dralloc.live.snapshot.transport` has the real one."""

    host: str

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Json:
        """The object with which the server answers; raises `Refused`, `Unanswered` or another SnapshotError."""

    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[Json]:
        """The events of a watch, until the server ends it; raises the same."""

    def renew(self) -> None:
        """Let the limits of time and size begin anew."""
