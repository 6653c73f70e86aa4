"""Single objects of a live cluster: read, changed under conditions, made, deleted, watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dralloc.live.snapshot.kinds import ListedKind
from dralloc.live.snapshot.server import Json, Refused, Wire
from dralloc.objects.names import ClaimKey

__all__ = ["LiveObjects", "condition", "is_current", "key_of", "version_of"]

_CONFLICT: Final = 409
_DRY: Final = {"dryRun": "All"}


def version_of(one: Json) -> str:
    """The resourceVersion of an object or a list."""
    return str(one.get("metadata", {}).get("resourceVersion") or "")


def key_of(one: Json) -> ClaimKey:
    """Namespace and name; the namespace is empty for cluster-scoped objects."""
    metadata = one.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return ClaimKey(
        str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    )


def condition(one: Json) -> Json:
    """What a patch says in ``metadata`` so that it is refused (409) unless the object is still this very one."""
    return {"uid": one["metadata"]["uid"], "resourceVersion": version_of(one)}


@dataclass(frozen=True)
class LiveObjects:
    """The objects of a server. Every method raises what `Wire.send` raises.

    Parameters
    ----------
    versions
        The version of each kind that is served.
    dry
        Whether the server is only asked what it would do.
    """

    wire: Wire
    versions: Mapping[ListedKind, str]
    dry: bool = False

    def path(self, kind: ListedKind, key: ClaimKey, *sub: str) -> str:
        """Where an object is, or one of its subresources."""
        return kind.path(self.versions[kind], key.namespace, key.name, *sub)

    def get(self, kind: ListedKind, key: ClaimKey) -> Json:
        """An object."""
        return self.wire.send("GET", self.path(kind, key))

    def listed(self, kind: ListedKind, namespace: str = "") -> Json:
        """All objects of a kind, or of one namespace, with the resourceVersion from which they can be watched."""
        return self.wire.send("GET", kind.path(self.versions[kind], namespace))

    def watch(self, kind: ListedKind, version: str) -> Iterator[Json]:
        """What happens to objects of a kind after a resourceVersion, until the server ends it."""
        query = {"resourceVersion": version, "allowWatchBookmarks": "true"}
        return self.wire.stream(kind.path(self.versions[kind]), query)

    def patch(self, kind: ListedKind, key: ClaimKey, change: Json, *sub: str) -> Json:
        """The object after a JSON merge patch (RFC 7386) of it or of a subresource."""
        return self.wire.send("PATCH", self.path(kind, key, *sub), self._query, change)

    def create(self, kind: ListedKind, one: Json) -> Json:
        """The object as it was made."""
        head = {"apiVersion": kind.api_version(self.versions[kind]), "kind": kind.kind}
        path = kind.path(self.versions[kind], key_of(one).namespace)
        return self.wire.send("POST", path, self._query, {**head, **one})

    def replace(self, kind: ListedKind, one: Json) -> Json:
        """The object after it took the place of the one with its resourceVersion."""
        return self.wire.send("PUT", self.path(kind, key_of(one)), self._query, one)

    def delete(self, kind: ListedKind, one: Json) -> None:
        """Delete this very object, in the state in which it is given."""
        self.wire.send(
            "DELETE",
            self.path(kind, key_of(one)),
            self._query,
            {"preconditions": condition(one)},
        )

    @property
    def _query(self) -> Mapping[str, str]:
        return _DRY if self.dry else {}


def is_current(write: Callable[[], object]) -> bool:
    """Write something; false if what it is about has changed meanwhile, as the server says."""
    try:
        write()
    except Refused as refusal:
        if refusal.status != _CONFLICT:
            raise
        return False
    return True
