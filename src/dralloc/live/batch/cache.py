"""What dralloc uses of a live cluster, kept up to date by watches instead of lists.

Each kind is listed once and watched from there, as client-go's reflectors do; where the server has forgotten the place
(410) it is listed again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Condition, Event, Thread
from typing import Final

from dralloc.live.apply.executor import CLAIMS
from dralloc.live.snapshot import (
    Json,
    ListedKind,
    LiveObjects,
    Refused,
    kept,
    key_of,
    version_of,
)
from dralloc.objects.errors import SnapshotError
from dralloc.objects.names import ClaimKey

__all__ = ["WatchCache"]

_PAUSE: Final = 1.0
"""Seconds before a kind is asked for again that could not be had."""
_EXPIRED, _OPTIONAL = 410, frozenset((403, 404))
_PATIENCE: Final = 120.0
"""Seconds to wait for the first list of every kind."""


@dataclass
class WatchCache:
    """The objects of every kind that is served. Threads of its own keep it up to date until it is closed.

    Parameters
    ----------
    objects
        Where they are.
    lists
        How many lists were read.
    """

    objects: LiveObjects
    lists: int = 0
    _held: dict[ListedKind, dict[ClaimKey, Json]] = field(default_factory=dict)
    _versions: dict[ListedKind, str] = field(default_factory=dict)
    _changed: Condition = field(default_factory=Condition)
    _closed: Event = field(default_factory=Event)

    def start(self) -> None:
        """Begin to list and watch; returns once every kind is there.

        Raises
        ------
        SnapshotError
            A kind does not come.
        """
        for kind in self.objects.versions:
            Thread(target=self._follow, args=(kind,), daemon=True).start()
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(self._held) == len(self.objects.versions), _PATIENCE
            ):
                missing = ", ".join(
                    kind.resource
                    for kind in self.objects.versions
                    if kind not in self._held
                )
                raise SnapshotError(f"cannot list {missing}")

    def close(self) -> None:
        """Let the threads end, each at its next event."""
        self._closed.set()

    def __iter__(self) -> Iterator[Json]:
        """Every object, ordered by kind, namespace and name, as it is known now."""
        with self._changed:
            found = [
                held[key]
                for kind in self.objects.versions
                for held in [self._held[kind]]
                for key in sorted(held)
            ]
        return iter(found)

    def of(self, kind: ListedKind) -> list[Json]:
        """The objects of a kind."""
        with self._changed:
            return list(self._held.get(kind, {}).values())

    def catch_up(self) -> WatchCache:
        """The cache, once what claims hold is as new as the server is now.

        Watches tell no end of what is new. What is to be written must not be held by anybody, so claims are listed; all
        other kinds are as new as their watches, which a run gives time to hear of everything.

        Raises
        ------
        Refused, SnapshotError
            Claims cannot be listed.
        """
        self._list(CLAIMS)
        return self

    def wait(self, seconds: float) -> None:
        """Wait until something changes, or for some time."""
        with self._changed:
            self._changed.wait(seconds)

    def _follow(self, kind: ListedKind) -> None:
        while not self._closed.is_set():
            try:
                self._list(kind)
                while not self._closed.is_set():
                    self._watch(kind)
            except Refused as refusal:
                if refusal.status in _OPTIONAL and not kind.required:
                    self._replace(kind, {}, "", 0)
                if refusal.status != _EXPIRED:
                    self._closed.wait(_PAUSE)
            except SnapshotError:
                self._closed.wait(_PAUSE)

    def _list(self, kind: ListedKind) -> None:
        known = int(self._versions.get(kind) or 0)
        found = self.objects.listed(kind)
        items = kept(
            kind, self.objects.versions[kind], found.get("items") or (), whole=True
        )
        self._replace(
            kind, {key_of(one): one for one in items}, version_of(found), known
        )

    def _replace(
        self, kind: ListedKind, held: dict[ClaimKey, Json], version: str, known: int
    ) -> None:
        """Hold what a list has, unless another thread was faster with a newer one.

        A list is as new as the server when it is asked for. One that is older than what was known before that is of a
        server whose store was put back to an earlier state.
        """
        with self._changed:
            if known <= int(version or 0) < int(self._versions.get(kind) or 0):
                return
            self.lists += 1
            self._held[kind] = held
            self._versions[kind] = version
            self._changed.notify_all()

    def _watch(self, kind: ListedKind) -> None:
        for event in self.objects.watch(kind, self._versions[kind]):
            one = event["object"]
            if event["type"] == "ERROR":
                raise Refused(int(one.get("code") or 0), str(one.get("message")))
            with self._changed:
                if int(version_of(one)) <= int(self._versions[kind]):
                    continue  # a list had it already
                if event["type"] == "DELETED":
                    self._held[kind].pop(key_of(one), None)
                elif event["type"] != "BOOKMARK":
                    self._held[kind][key_of(one)] = next(
                        kept(kind, self.objects.versions[kind], [one], whole=True)
                    )
                self._versions[kind] = version_of(one)
                self._changed.notify_all()
            if self._closed.is_set():
                return
