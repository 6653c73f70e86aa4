"""What a replica of the queue keeps of a cluster: its objects, up to date by watches, and the Lease of who works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Condition, Event, Thread
from time import monotonic
from typing import Final

from dralloc.live.snapshot import (
    CLAIMS,
    Json,
    ListedKind,
    LiveObjects,
    Refused,
    is_current,
    kept,
    key_of,
    version_of,
)
from dralloc.objects.errors import SnapshotError
from dralloc.objects.names import ClaimKey

__all__ = ["LEASES", "LeaderLease", "WatchCache"]

# ----------------------------------------------------------------------------
# What dralloc uses of a live cluster, kept up to date by watches instead of lists.
#
# Each kind is listed once and watched from there, as client-go's reflectors do; where
# the server has forgotten the place (410) it is listed again.

_PAUSE: Final = 1.0
"""Seconds before a kind is asked for again that could not be had."""
_DENIED, _NOT_SERVED, _EXPIRED = 403, 404, 410
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
        """Yield every object, ordered by kind, namespace and name, as it is known now."""
        with self._changed:
            resources = [
                held[key]
                for kind in self.objects.versions
                for held in [self._held[kind]]
                for key in sorted(held)
            ]
        return iter(resources)

    def of(self, kind: ListedKind) -> list[Json]:
        """Return the objects of a kind."""
        with self._changed:
            return list(self._held.get(kind, {}).values())

    def catch_up(self) -> WatchCache:
        """Return the cache, once what claims hold is as new as the server is now.

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
                if not kind.required:
                    self._leave_out(kind, refusal.status)
                if refusal.status != _EXPIRED:
                    self._closed.wait(_PAUSE)
            except SnapshotError:
                self._closed.wait(_PAUSE)

    def _leave_out(self, kind: ListedKind, status: int) -> None:
        """Hold nothing of a kind that is not served any more, or that nobody may read from the beginning.

        One that was read before may be denied for a moment: without what is known, taints and quotas would be none.
        """
        with self._changed:
            if status == _NOT_SERVED or (
                status == _DENIED and kind not in self._held
            ):
                self._held[kind] = {}
                self._versions[kind] = ""
                self._changed.notify_all()

    def _list(self, kind: ListedKind) -> None:
        version_before = int(self._versions.get(kind) or 0)
        listed = self.objects.listed(kind)
        items = kept(
            kind,
            self.objects.versions[kind],
            listed.get("items") or (),
            untrimmed=True,
        )
        self._replace(
            kind,
            {key_of(item): item for item in items},
            version_of(listed),
            version_before,
        )

    def _replace(
        self,
        kind: ListedKind,
        held: dict[ClaimKey, Json],
        version: str,
        version_before: int,
    ) -> None:
        """Hold what a list has, unless another thread was faster with a newer one.

        A list is as new as the server when it is asked for. One that is older than what was known before that is of a
        server whose store was put back to an earlier state.
        """
        with self._changed:
            if (
                version_before
                <= int(version or 0)
                < int(self._versions.get(kind) or 0)
            ):
                return
            self.lists += 1
            self._held[kind] = held
            self._versions[kind] = version
            self._changed.notify_all()

    def _watch(self, kind: ListedKind) -> None:
        for event in self.objects.watch(kind, self._versions[kind]):
            resource = event["object"]
            if event["type"] == "ERROR":
                raise Refused(
                    int(resource.get("code") or 0), str(resource.get("message"))
                )
            with self._changed:
                if int(version_of(resource)) <= int(self._versions[kind]):
                    continue  # a list had it already
                if event["type"] == "DELETED":
                    self._held[kind].pop(key_of(resource), None)
                elif event["type"] != "BOOKMARK":
                    self._held[kind][key_of(resource)] = next(
                        kept(
                            kind,
                            self.objects.versions[kind],
                            [resource],
                            untrimmed=True,
                        )
                    )
                self._versions[kind] = version_of(resource)
                self._changed.notify_all()
            if self._closed.is_set():
                return


# ----------------------------------------------------------------------------
# Which of several replicas works: who holds a Lease, as the leader election of
# Kubernetes has it.

LEASES: Final = ListedKind(
    "leases", "Lease", "coordination.k8s.io", namespaced=True
)
_GONE: Final = 404
_RENEWED: Final = 2 / 3
"""Part of the duration after which its holder stops without renewal: what it began is written when another one begins.
client-go has 10 of 15 seconds (``RenewDeadline``)."""


@dataclass
class LeaderLease:
    """A Lease that one replica holds at a time.

    A rival counts as gone when its Lease has not changed for its duration, by the clock of who looks: clocks of several
    machines need not agree.

    Parameters
    ----------
    key
        The Lease.
    identity
        Who this replica is.
    seconds
        How long it holds without being renewed.
    token
        How often the Lease went to another replica, up to the one that was here last: who has a smaller number
        has lost it.
    earlier
        The smallest number that nothing on the cluster has, for a Lease that is new: an old one may have been deleted.
    is_usurped
        Whether it was taken from a replica that did not let it go, and may still be there.
    """

    objects: LiveObjects
    key: ClaimKey
    identity: str
    seconds: int = 15
    clock: Callable[[], float] = monotonic
    earlier: Callable[[], int] = lambda: 0
    token: int = field(default=0, init=False)
    is_usurped: bool = field(default=False, init=False)
    _seen: tuple[str, float] = ("", 0.0)
    _until: float = field(default=0.0, init=False)

    @property
    def held(self) -> bool:
        """Whether this replica still holds it for sure."""
        return self.clock() < self._until

    def renew(self) -> bool:
        """Get or keep it; whether that worked."""
        begun = self.clock()
        try:
            won = self._renewed()
        except (Refused, SnapshotError):
            return self.held
        if won:
            self._until = begun + self.seconds * _RENEWED
        return won

    def release(self) -> None:
        """Let another replica have it at once."""
        if not self.held:
            return
        self._until = 0.0
        try:
            lease = self.objects.get(LEASES, self.key)
            if lease["spec"].get("holderIdentity") == self.identity:
                self.objects.replace(
                    LEASES,
                    {**lease, "spec": {**lease["spec"], "holderIdentity": ""}},
                )
        except (Refused, SnapshotError):
            return

    def _renewed(self) -> bool:
        try:
            lease = self.objects.get(LEASES, self.key)
        except Refused as refusal:
            if refusal.status != _GONE:
                raise
            first = self.earlier()
            if not is_current(
                lambda: self.objects.create(LEASES, self._lease({}, first))
            ):
                return False
            self.token = first
            return True
        holder = lease["spec"].get("holderIdentity")
        if holder not in ("", None, self.identity) and not self._is_stale(
            lease
        ):
            return False
        changes = int(lease["spec"].get("leaseTransitions") or 0) + (
            holder != self.identity
        )
        # Noted first: where the answer gets lost, the Lease is this replica's when it looks again.
        if holder != self.identity:
            self.is_usurped = bool(holder)
        # The metadata have the version that was seen: of two replicas that find it free, the server refuses the second.
        if not is_current(
            lambda: self.objects.replace(
                LEASES, {**lease, **self._lease(lease, changes)}
            )
        ):
            return False
        self.token = changes
        return True

    def _is_stale(self, lease: Json) -> bool:
        """Return whether it did not change for as long as it says that it lasts."""
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = version, self.clock()
        lasts = float(lease["spec"].get("leaseDurationSeconds") or self.seconds)
        return self.clock() - self._seen[1] >= lasts

    def _lease(self, lease: Json, changes: int) -> Json:
        timestamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        is_holder = lease.get("spec", {}).get("holderIdentity") == self.identity
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.seconds,
            "acquireTime": lease["spec"]["acquireTime"]
            if is_holder
            else timestamp,
            "renewTime": timestamp,
            "leaseTransitions": changes,
        }
        return {
            "metadata": lease.get("metadata")
            or {"name": self.key.name, "namespace": self.key.namespace},
            "spec": spec,
        }
