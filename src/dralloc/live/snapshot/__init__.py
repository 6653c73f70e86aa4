"""A live cluster: the objects that dralloc uses, trimmed to what it reads of them; and single objects, to change them.

`connect` opens the cluster of a kubeconfig, `take_snapshot` reads it, `LiveObjects` has its objects one by one.
`trimmed` and `is_needed` also serve objects that were read from files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import orjson

from dralloc.live.snapshot.client import (
    CLAIMS,
    LISTED_KINDS,
    NODES,
    PODS,
    RESOURCE_GROUP,
    RULES,
    ApiServer,
    Json,
    ListedKind,
    ReadLimits,
    Refused,
    Unanswered,
    Wire,
    connect,
)
from dralloc.objects.api import ResourceObject
from dralloc.objects.api.known_kinds import model_of
from dralloc.objects.api.schema import rebuilt, wire_schema
from dralloc.objects.errors import SnapshotError
from dralloc.objects.names import ClaimKey

__all__ = [
    "CLAIMS",
    "LISTED_KINDS",
    "NODES",
    "PODS",
    "RULES",
    "ApiServer",
    "ClusterSnapshot",
    "Json",
    "ListedKind",
    "LiveObjects",
    "ReadLimits",
    "Refused",
    "Unanswered",
    "Wire",
    "condition",
    "connect",
    "is_current",
    "is_needed",
    "kept",
    "key_of",
    "served",
    "take_snapshot",
    "trimmed",
    "version_of",
]

# ----------------------------------------------------------------------------
# Single objects of a live cluster: read, changed under conditions, made, deleted,
# watched.

_CONFLICT: Final = 409
_DRY: Final = {"dryRun": "All"}


def version_of(resource: Json) -> str:
    """Return the resourceVersion of an object or a list."""
    return str(resource.get("metadata", {}).get("resourceVersion") or "")


def key_of(resource: Json) -> ClaimKey:
    """Namespace and name; the namespace is empty for cluster-scoped objects."""
    metadata = resource.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return ClaimKey(
        str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    )


def condition(resource: Json) -> Json:
    """Return what a patch says in ``metadata`` so that it is refused (409) unless the object is still this very one."""
    return {
        "uid": resource["metadata"]["uid"],
        "resourceVersion": version_of(resource),
    }


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
        """Return where an object is, or one of its subresources."""
        return kind.path(self.versions[kind], key.namespace, key.name, *sub)

    def get(self, kind: ListedKind, key: ClaimKey) -> Json:
        """Return an object."""
        return self.wire.send("GET", self.path(kind, key))

    def listed(
        self, kind: ListedKind, namespace: str = "", label: str = ""
    ) -> Json:
        """Return all objects of a kind, with the resourceVersion to watch them from.

        Parameters
        ----------
        namespace
            Only those of this one.
        label
            Only those with this label, whatever its value.
        """
        query = {"labelSelector": label} if label else {}
        path = kind.path(self.versions[kind], namespace)
        return self.wire.send("GET", path, query)

    def watch(self, kind: ListedKind, version: str) -> Iterator[Json]:
        """Yield what happens to objects of a kind after a resourceVersion, until the server ends it."""
        query = {"resourceVersion": version, "allowWatchBookmarks": "true"}
        return self.wire.stream(kind.path(self.versions[kind]), query)

    def patch(
        self, kind: ListedKind, key: ClaimKey, change: Json, *sub: str
    ) -> Json:
        """Return the object after a JSON merge patch (RFC 7386) of it or of a subresource."""
        return self.wire.send(
            "PATCH", self.path(kind, key, *sub), self._query, change
        )

    def create(self, kind: ListedKind, resource: Json) -> Json:
        """Return the object as it was made."""
        head = {
            "apiVersion": kind.api_version(self.versions[kind]),
            "kind": kind.kind,
        }
        path = kind.path(self.versions[kind], key_of(resource).namespace)
        return self.wire.send("POST", path, self._query, {**head, **resource})

    def replace(self, kind: ListedKind, resource: Json) -> Json:
        """Return the object after it took the place of the one with its resourceVersion."""
        return self.wire.send(
            "PUT", self.path(kind, key_of(resource)), self._query, resource
        )

    def delete(self, kind: ListedKind, resource: Json) -> None:
        """Delete this very object, in the state in which it is given."""
        self.wire.send(
            "DELETE",
            self.path(kind, key_of(resource)),
            self._query,
            {"preconditions": condition(resource)},
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


# ----------------------------------------------------------------------------
# Trims objects to what dralloc reads of them: no environment, no commands, no managed
# fields.
#
# Objects of ``resource.k8s.io`` stay whole but for their metadata; of the others
# only what their models know stays.


def is_needed(resource: Json) -> bool:
    """Return whether an object of a live cluster matters.

    A pod does if it uses devices, belongs to a group, or takes something of a node: until it has come to its end.
    """
    if resource.get("kind") != "Pod":
        return True
    spec, status = (
        _mapping(resource.get("spec")),
        _mapping(resource.get("status")),
    )
    if any(
        spec.get(field)
        for field in ("resourceClaims", "schedulingGroup", "workloadRef")
    ):
        return True
    if spec.get("nodeName") and status.get("phase") not in (
        "Succeeded",
        "Failed",
    ):
        return True
    return bool(status.get("extendedResourceClaimStatus")) or any(
        "/" in name for name in _resources(spec)
    )


def _resources(spec: Json) -> Iterator[str]:
    """Yield the resources that the containers of a pod name; those with a domain are extended resources."""
    for key in ("initContainers", "containers"):
        containers = spec.get(key)
        for container in containers if isinstance(containers, list) else ():
            for amounts in _mapping(
                _mapping(container).get("resources")
            ).values():
                yield from _mapping(amounts)


def _mapping(value: Any) -> Json:
    """Return the value, or nothing where a server gives something else: whoever loads the object says what is wrong."""
    return value if isinstance(value, dict) else {}


def trimmed(resource: Json) -> Json:
    """Return the object without what dralloc does not read; of a kind that it reads. The given one is not changed."""
    model = model_of(resource)
    if model is None:
        return {}
    read: Json = rebuilt(resource, wire_schema(model), lambda _, text: text)
    if issubclass(model, ResourceObject):
        read = {**resource, "metadata": read.get("metadata", {})}
    return {**{key: resource[key] for key in ("apiVersion", "kind")}, **read}


# ----------------------------------------------------------------------------
# Reads the wanted kinds: discovers versions, follows pages, starts over when a list
# expires.

OnProgress = Callable[[str, int], None]
"""Called with a kind's plural name and how many of its objects were read so far."""

PAGE: Final = 500
"""Objects per page, as kubectl."""
RESTARTS: Final = 3
"""How often an expired list is read from its beginning before it is asked for in one piece, which cannot expire."""
_UNAUTHORIZED, _DENIED, _NOT_FOUND, _EXPIRED = 401, 403, 404, 410


@dataclass
class ClusterSnapshot:
    """The objects that were read; iterating gives them, each time anew.

    Parameters
    ----------
    counts
        For every kind by plural name, how many objects are kept of how many read.
    warnings
        What is missing.
    version
        The version of the API server; empty if it was not asked.
    """

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    version: str = ""
    _texts: list[bytes] = field(default_factory=list)
    """The objects as JSON, which takes a tenth of the room of plain data."""

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[Json]:
        return map(orjson.loads, self._texts)

    def add(self, plural: str, read: int, texts: Sequence[bytes]) -> None:
        """Add the objects of a kind."""
        self.counts[plural] = len(texts), read
        self._texts += texts


def take_snapshot(
    server: ApiServer,
    *,
    namespaces: Sequence[str] = (),
    progress: OnProgress | None = None,
    untrimmed: bool = False,
) -> ClusterSnapshot:
    """Read what dralloc uses, kind by kind, each ordered by namespace and name.

    Parameters
    ----------
    namespaces
        Read claims, templates, pods, pod groups and quotas of these namespaces only; of all if there are none.
    progress
        Called after every page.
    untrimmed
        Whether everything is kept, what dralloc does not read of it, too, and pods without devices.

    Raises
    ------
    SnapshotError
        The server cannot be read, does not serve ``resource.k8s.io``, denies slices or claims, or answers with
        what is no list of objects or has no end.
    """
    reader = _Reader(
        server,
        progress or (lambda _plural, _count: None),
        ClusterSnapshot(warnings=list(server.warnings)),
        untrimmed,
    )
    if namespaces:
        reader.snapshot.warnings.append(
            "claims of other namespaces were not read: devices that they hold look free"
        )
    for kind, version in served(server).items():
        reader.read(
            kind, version, sorted(set(namespaces)) if kind.namespaced else ()
        )
    return reader.snapshot


def served(
    server: ApiServer, kinds: Sequence[ListedKind] = LISTED_KINDS
) -> dict[ListedKind, str]:
    """Return which of the kinds are served, each in the newest version that dralloc reads.

    Raises
    ------
    SnapshotError
        The server cannot be asked, or does not serve what is required.
    """
    try:
        groups = server.groups()
        versions = _newest(server, groups, kinds)
    except Refused as refusal:
        raise SnapshotError(
            f"cannot discover what the API server serves: {_because(refusal)}"
        ) from None
    missing = [
        kind.resource
        for kind in kinds
        if kind.required and kind not in versions
    ]
    if missing:
        offered = ", ".join(groups.get(RESOURCE_GROUP, ())) or "none"
        raise SnapshotError(
            f"the API server does not serve {' and '.join(missing)} in a version that is known here "
            f"(it serves of {RESOURCE_GROUP}: {offered})"
        )
    return versions


def _newest(
    server: ApiServer,
    groups: Mapping[str, Sequence[str]],
    kinds: Sequence[ListedKind],
) -> dict[ListedKind, str]:
    resources = cache(server.resources)

    def serves(kind: ListedKind, version: str) -> bool:
        group = kind.group
        return not group or (
            version in groups.get(group, ())
            and kind.plural in resources(group, version)
        )

    newest: dict[ListedKind, str] = {}
    for kind in kinds:
        # The versions of a kind stand in the order in which they are preferred.
        for version in kind.versions:
            if serves(kind, version):
                newest[kind] = version
                break
    return newest


@dataclass
class _Reader:
    server: ApiServer
    progress: OnProgress
    snapshot: ClusterSnapshot
    untrimmed: bool

    def read(
        self, kind: ListedKind, version: str, namespaces: Sequence[str]
    ) -> None:
        """Read all objects of a kind; what is denied is a warning, unless nothing works without it."""
        read, objects = 0, list[bytes]()
        for namespace in namespaces or ("",):
            try:
                object_count, texts = self._list(kind, version, namespace, read)
            except Refused as refusal:
                self._refused(kind, namespace, refusal)
                continue
            read += object_count
            objects += texts
        self.snapshot.add(
            kind.plural,
            read,
            sorted(objects, key=lambda text: key_of(orjson.loads(text))),
        )

    def _refused(
        self, kind: ListedKind, namespace: str, refusal: Refused
    ) -> None:
        failure = f"cannot list {kind.resource}"
        if namespace:
            failure = f"{failure} in namespace {namespace}"
        elif kind.namespaced:
            failure = f"{failure} in all namespaces"
        # What a cluster does not serve it has none of; what is denied may matter.
        if refusal.status == _NOT_FOUND and not kind.required:
            return
        if refusal.status == _DENIED and not kind.required:
            self.snapshot.warnings.append(
                f"{failure}, which are left out: {_because(refusal)}"
            )
            return
        raise SnapshotError(f"{failure}: {_because(refusal)}")

    def _list(
        self, kind: ListedKind, version: str, namespace: str, before: int
    ) -> tuple[int, list[bytes]]:
        """Return how many objects there are, and those that are needed; starts over when the list expires."""
        for attempt in range(RESTARTS + 1):
            limit = PAGE if attempt < RESTARTS else 0
            try:
                return self._pages(kind, version, namespace, limit, before)
            except Refused as refusal:
                if refusal.status != _EXPIRED or not limit:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _pages(
        self,
        kind: ListedKind,
        version: str,
        namespace: str,
        limit: int,
        before: int,
    ) -> tuple[int, list[bytes]]:
        token, object_count, pages = "", 0, list[bytes]()
        seen = {token}
        for _ in range(self.server.limits.pages):
            page = self.server.page(kind, version, namespace, limit, token)
            object_count += len(page.items)
            # One text for each page: many small ones would keep the memory of the whole page from being used again.
            pages.append(
                b"".join(
                    _lines(
                        kind,
                        kept(
                            kind, version, page.items, untrimmed=self.untrimmed
                        ),
                    )
                )
            )
            self.progress(kind.plural, before + object_count)
            token = page.token
            if not token:
                return object_count, b"".join(pages).splitlines()
            if token in seen:
                raise SnapshotError(
                    f"cannot list {kind.resource}: the API server goes on where it has been before"
                )
            seen.add(token)
        raise SnapshotError(
            f"cannot list {kind.resource}: more than {self.server.limits.pages:,} pages"
        )


def kept(
    kind: ListedKind,
    version: str,
    items: Iterable[Json],
    *,
    untrimmed: bool = False,
) -> Iterator[Json]:
    """Yield what is needed of the items of a list, or the whole of it; items do not say of which kind they are."""
    head = {"apiVersion": kind.api_version(version), "kind": kind.kind}
    objects = ({**item, **head} for item in items)
    return (
        objects
        if untrimmed
        else (trimmed(resource) for resource in objects if is_needed(resource))
    )


def _lines(kind: ListedKind, objects: Iterable[Json]) -> Iterator[bytes]:
    """Yield the objects of a page, one line for each."""
    try:
        yield from (orjson.dumps(resource) + b"\n" for resource in objects)
    except orjson.JSONEncodeError as error:
        raise SnapshotError(
            f"cannot list {kind.resource}: an object cannot be written: {error}"
        ) from None


def _because(refusal: Refused) -> str:
    if refusal.status == _DENIED:
        return f'denied, the verb "list" is needed ({refusal.reason})'
    if refusal.status == _UNAUTHORIZED:
        return f"the credentials of the kubeconfig are not accepted ({refusal.reason})"
    return str(refusal)
