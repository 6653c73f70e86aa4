"""An API server in memory that keeps the API's rules, as a `Wire`; a real one is held to the same script of requests.

Optimistic concurrency, preconditions, finalizers, subresources, immutable fields, validation, lists, watches and dry
runs. Faults are the business of who stands between a client and it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from threading import RLock
from time import sleep
from urllib.parse import unquote

import orjson

from dralloc.live.snapshot import Refused
from simulated_rules import KINDS, Kind, check_change, check_object, invalid
from wire import Json

_QUIET = 0.02
"""Seconds that a watch lasts in which nothing happens."""
Place = tuple[str, str, str]
"""Plural, namespace, name."""


def sent(document: Json) -> Json:
    """What comes out at the other end of a wire: the same, shared with nobody."""
    copy: Json = orjson.loads(orjson.dumps(document))
    return copy


def merged(old: Json, change: Json) -> Json:
    """An object after a JSON merge patch (RFC 7386)."""
    new = dict(old)
    for key, value in change.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, dict):
            new[key] = merged(
                old[key] if isinstance(old.get(key), dict) else {}, value
            )
        else:
            new[key] = value
    return new


@lru_cache(maxsize=4096)
def taken_apart(path: str) -> tuple[str, str, str, str]:
    """Plural, namespace, name and subresource of a path."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name, sub = (*rest[1:], "", "")[:2]
    return rest[0], namespace, name, sub


@cache
def discovered(path: str, without: frozenset[str]) -> Json:
    """What a server says that it serves."""
    served = [
        kind
        for kind in KINDS.values()
        if kind.group and kind.plural not in without
    ]
    parts = path.strip("/").split("/")
    if len(parts) == 3:
        return {
            "resources": [
                {"name": kind.plural}
                for kind in served
                if [kind.group, kind.version] == parts[1:]
            ]
        }
    groups = {
        kind.group: {
            sibling.version for sibling in served if sibling.group == kind.group
        }
        for kind in served
    }
    return {
        "groups": [
            {
                "name": name,
                "versions": [
                    {"version": version} for version in sorted(versions)
                ],
            }
            for name, versions in groups.items()
        ]
    }


@dataclass
class Request:
    """What was asked, taken apart."""

    method: str
    kind: Kind
    namespace: str
    name: str
    sub: str
    query: Mapping[str, str]
    body: Json

    @property
    def place(self) -> Place:
        return self.kind.plural, self.namespace, self.name


@dataclass
class Simulated:
    """The server. What it holds is never changed, only replaced.

    Parameters
    ----------
    without
        Plural names of kinds that it does not serve.
    denied
        Plural names of kinds that nobody may change.
    version
        Its release; no scheduler that would honour no DeviceTaintRules may run beside the one by default.
    """

    without: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    host: str = "http://simulated"
    version: str = "v1.38.0"
    objects: dict[Place, Json] = field(default_factory=dict)
    revision: int = 1
    compacted: int = 0
    events: list[tuple[int, str, Json]] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    births: Counter[Place] = field(default_factory=Counter)
    lock: RLock = field(default_factory=RLock)

    # -- what a Wire has

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Json:
        if path == "/version":
            return {"gitVersion": self.version}
        if path.rstrip("/") == "/apis" or (
            len(path.strip("/").split("/")) == 3 and path.startswith("/apis")
        ):
            return sent(discovered(path, self.without))
        request = self._parsed(method, path, query or {}, sent(body or {}))
        if method != "GET" and request.kind.plural in self.denied:
            raise Refused(403, "nobody may")
        with self.lock:
            return sent(self._served(request))

    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[Json]:
        request = self._parsed("GET", path, query, {})
        start = int(query["resourceVersion"])
        if start < self.compacted:
            raise Refused(410, "too old resource version")
        with self.lock:
            news = [event for event in self.events if event[0] > start]
            now = str(self.revision)
        if not news:
            sleep(_QUIET)
        for revision, kind, document in news:
            if (
                revision > start
                and self._kind_of(document) == request.kind.kind
            ):
                yield {"type": kind, "object": sent(document)}
        yield {
            "type": "BOOKMARK",
            "object": {"metadata": {"resourceVersion": now}},
        }

    def renew(self) -> None:
        """Nothing is limited."""

    # -- what tests do beside clients

    def add(self, *objects: Json) -> None:
        """Put objects there as they are, with their status."""
        for document in objects:
            kind = next(
                kind for kind in KINDS.values() if kind.kind == document["kind"]
            )
            namespace = (
                document["metadata"].get("namespace", "default")
                if kind.namespaced
                else ""
            )
            object_key = kind.plural, namespace, document["metadata"]["name"]
            self._store(
                object_key,
                {
                    **sent(document),
                    "metadata": self._born(object_key, document["metadata"]),
                },
                "ADDED",
            )

    def of(self, plural: str) -> list[Json]:
        """The objects of a kind, by name."""
        return [
            document
            for object_key, document in sorted(self.objects.items())
            if object_key[0] == plural
        ]

    def one(self, plural: str, name: str, namespace: str = "default") -> Json:
        """An object."""
        return self.objects[plural, namespace, name]

    def copy(self) -> Simulated:
        """Another one in the same state."""
        return replace(
            self,
            objects=dict(self.objects),
            events=list(self.events),
            lists=list(self.lists),
            births=Counter(self.births),
            lock=RLock(),
        )

    def compact(self) -> None:
        """Forget what was before now."""
        self.compacted = self.revision

    # -- requests

    def _parsed(
        self, method: str, path: str, query: Mapping[str, str], body: Json
    ) -> Request:
        plural, namespace, name, sub = taken_apart(path)
        kind = KINDS.get(plural)
        if kind is None or kind.plural in self.without:
            raise Refused(
                404, "the server could not find the requested resource"
            )
        return Request(method, kind, namespace, name, sub, query, body)

    def _served(self, request: Request) -> Json:
        if request.method == "POST" and not request.sub:
            return self._create(request)
        if not request.name:
            return self._list(request)
        old = self.objects.get(request.place)
        if old is None:
            raise Refused(
                404, f'{request.kind.plural} "{request.name}" not found'
            )
        if request.method == "GET":
            return old
        if request.method == "DELETE":
            return self._delete(request, old)
        if request.sub == "binding":
            return self._keep(
                request,
                old,
                merged(
                    old, {"spec": {"nodeName": request.body["target"]["name"]}}
                ),
            )
        new = (
            merged(old, request.body)
            if request.method == "PATCH"
            else request.body
        )
        return self._update(request, old, new)

    def _list(self, request: Request) -> Json:
        self.lists.append(request.kind.plural)
        label, equals, value = request.query.get("labelSelector", "").partition(
            "="
        )
        items = [
            document
            for object_key, document in sorted(self.objects.items())
            if object_key[0] == request.kind.plural
            and request.namespace in ("", object_key[1])
            and (
                not label
                or _is_labelled(document, label, value if equals else None)
            )
        ]
        bare = [
            {
                key: part
                for key, part in document.items()
                if key not in ("kind", "apiVersion")
            }
            for document in items
        ]
        limit, start = (
            int(request.query.get("limit", 0)),
            int(request.query.get("continue", 0)),
        )
        end = start + limit if limit else len(bare)
        more = {"continue": str(end)} if end < len(bare) else {}
        return {
            "items": bare[start:end],
            "metadata": {"resourceVersion": str(self.revision), **more},
        }

    def _create(self, request: Request) -> Json:
        new = request.body
        metadata = new.setdefault("metadata", {})
        if not metadata.get("name"):
            metadata["name"] = f"{metadata['generateName']}{self.revision}"
        object_key = request.kind.plural, request.namespace, metadata["name"]
        if object_key in self.objects:
            raise Refused(
                409,
                f'{request.kind.plural} "{metadata["name"]}" already exists',
            )
        new = {**new, "metadata": self._born(object_key, metadata)}
        if request.kind.status:
            new.pop("status", None)
        check_object(new)
        return (
            new
            if request.query.get("dryRun")
            else self._store(object_key, new, "ADDED")
        )

    def _update(self, request: Request, old: Json, new: Json) -> Json:
        given, known = new.get("metadata", {}), old["metadata"]
        if given.get("uid", known["uid"]) != known["uid"]:
            raise invalid(old, "metadata.uid: field is immutable")
        if (
            given.get("resourceVersion", known["resourceVersion"])
            != known["resourceVersion"]
        ):
            raise Refused(
                409,
                f'{request.kind.plural} "{request.name}": the object has been modified',
            )
        if request.sub == "status":
            new = {**old, "status": new.get("status", {})}
        elif request.kind.status and "status" in old:
            new = {**new, "status": old["status"]}
        elif request.kind.status:
            new = {key: part for key, part in new.items() if key != "status"}
        kept = {
            key: known[key]
            for key in ("uid", "creationTimestamp", "deletionTimestamp")
            if key in known
        }
        new = {**new, "metadata": {**new["metadata"], **kept}}
        check_change(old, new)
        return self._keep(request, old, new)

    def _delete(self, request: Request, old: Json) -> Json:
        for key, value in request.body.get("preconditions", {}).items():
            if old["metadata"][key] != value:
                raise Refused(
                    409,
                    f'{request.kind.plural} "{request.name}": the {key} does not match',
                )
        gone = merged(
            old, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
        )
        return self._keep(request, old, gone)

    def _keep(self, request: Request, old: Json, new: Json) -> Json:
        """Store an object in its new form, unless nothing changes, or let it go."""
        if new == old or request.query.get("dryRun"):
            return new
        metadata = new["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._drop(request.place)
            return new
        return self._store(request.place, new, "MODIFIED")

    def _store(self, object_key: Place, document: Json, event: str) -> Json:
        self.revision += 1
        stored = {
            **document,
            "metadata": {
                **document["metadata"],
                "resourceVersion": str(self.revision),
            },
        }
        self.objects[object_key] = stored
        self.events.append((self.revision, event, stored))
        return stored

    def _drop(self, object_key: Place) -> None:
        self.revision += 1
        document = self.objects.pop(object_key)
        last = {
            **document,
            "metadata": {
                **document["metadata"],
                "resourceVersion": str(self.revision),
            },
        }
        self.events.append((self.revision, "DELETED", last))
        if object_key[0] == "pods":
            self._collect(document["metadata"]["uid"])

    def _collect(self, owner: str) -> None:
        """What the garbage collector and the controller of claims do once a pod is gone."""
        for object_key, document in list(self.objects.items()):
            owners = [
                reference["uid"]
                for reference in document["metadata"].get("ownerReferences", ())
            ]
            if owner in owners:
                self._drop(object_key)

    def _born(self, object_key: Place, metadata: Json) -> Json:
        self.births[object_key] += 1
        inside = {"namespace": object_key[1]} if object_key[1] else {}
        born = {
            "uid": "-".join(("uid", *object_key, str(self.births[object_key]))),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 1,
        }
        return {
            **born,
            **{
                key: value
                for key, value in metadata.items()
                if key != "resourceVersion"
            },
            **inside,
        }

    @staticmethod
    def _kind_of(document: Json) -> str:
        return str(document["kind"])


def _is_labelled(document: Json, label: str, value: str | None) -> bool:
    """Whether an object has a label, with a value if one is given."""
    labels = document["metadata"].get("labels", {})
    return label in labels and value in (None, labels[label])
