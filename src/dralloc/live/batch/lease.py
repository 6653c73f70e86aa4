"""Which of several replicas works: who holds a Lease, as the leader election of Kubernetes has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import Final

from dralloc.live.snapshot import Json, ListedKind, LiveObjects, Refused, is_current
from dralloc.objects.errors import SnapshotError
from dralloc.objects.names import ClaimKey

__all__ = ["LEASES", "LeaderLease"]

LEASES: Final = ListedKind("leases", "Lease", "coordination.k8s.io", namespaced=True)
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
    is_usurped
        Whether it was taken from a replica that did not let it go, and may still be there.
    """

    objects: LiveObjects
    key: ClaimKey
    identity: str
    seconds: int = 15
    clock: Callable[[], float] = monotonic
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
                    LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": ""}}
                )
        except (Refused, SnapshotError):
            return

    def _renewed(self) -> bool:
        try:
            lease = self.objects.get(LEASES, self.key)
        except Refused as refusal:
            if refusal.status != _GONE:
                raise
            self.token = 0
            return is_current(lambda: self.objects.create(LEASES, self._lease({}, 0)))
        holder = lease["spec"].get("holderIdentity")
        if holder not in ("", None, self.identity) and not self._is_stale(lease):
            return False
        changes = int(lease["spec"].get("leaseTransitions") or 0) + (
            holder != self.identity
        )
        if not is_current(
            lambda: self.objects.replace(
                LEASES, {**lease, **self._lease(lease, changes)}
            )
        ):
            return False
        if holder != self.identity:
            self.is_usurped = bool(holder)
        self.token = changes
        return True

    def _is_stale(self, lease: Json) -> bool:
        """Whether it did not change for as long as it says that it lasts."""
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = version, self.clock()
        lasts = float(lease["spec"].get("leaseDurationSeconds") or self.seconds)
        return self.clock() - self._seen[1] >= lasts

    def _lease(self, lease: Json, changes: int) -> Json:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mine = lease.get("spec", {}).get("holderIdentity") == self.identity
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.seconds,
            "acquireTime": lease["spec"]["acquireTime"] if mine else now,
            "renewTime": now,
            "leaseTransitions": changes,
        }
        return {
            "metadata": lease.get("metadata")
            or {"name": self.key.name, "namespace": self.key.namespace},
            "spec": spec,
        }
