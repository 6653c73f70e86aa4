"""An API server as a kubeconfig names it: what is read from it, what goes to and fro, and the connection."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

from dralloc.objects.errors import SnapshotError

__all__ = [
    "CLAIMS",
    "LISTED_KINDS",
    "NODES",
    "PODS",
    "RESOURCE_GROUP",
    "RULES",
    "ApiServer",
    "Json",
    "ListedKind",
    "Page",
    "ReadLimits",
    "Refused",
    "Unanswered",
    "Wire",
    "connect",
]

# ----------------------------------------------------------------------------
# What is read from a cluster. Nothing else is, Secrets and ConfigMaps least of all.

RESOURCE_GROUP: Final = "resource.k8s.io"
_SCHEDULING: Final = "scheduling.k8s.io"
_DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")


@dataclass(frozen=True, slots=True)
class ListedKind:
    """One kind of objects.

    Parameters
    ----------
    plural, kind
        The resource as in URLs and in RBAC rules, and as in objects.
    group
        The API group; empty for core/v1.
    versions
        The versions that dralloc reads, the preferred one first.
    namespaced
        Whether it lives in namespaces.
    required
        Whether a snapshot without it is worth nothing.
    """

    plural: str
    kind: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = False
    required: bool = False

    @property
    def resource(self) -> str:
        """The resource with its group, e.g. ``resourceclaims.resource.k8s.io``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        """Return what objects carry as ``apiVersion``."""
        return f"{self.group}/{version}" if self.group else version

    def path(self, version: str, namespace: str = "", *names: str) -> str:
        """Return the path of its objects: all of them, those of a namespace, or one by its name and a subresource."""
        inside = ("namespaces", namespace) if namespace else ()
        parts = (
            *self.api_version(version).split("/"),
            *inside,
            self.plural,
            *names,
        )
        return "/".join(
            (
                "",
                "apis" if self.group else "api",
                *(quote(part, safe="") for part in parts),
            )
        )


LISTED_KINDS: Final = (
    ListedKind("namespaces", "Namespace"),
    ListedKind("nodes", "Node"),
    ListedKind("priorityclasses", "PriorityClass", _SCHEDULING),
    ListedKind("deviceclasses", "DeviceClass", RESOURCE_GROUP, _DRA_VERSIONS),
    ListedKind(
        "resourceslices",
        "ResourceSlice",
        RESOURCE_GROUP,
        _DRA_VERSIONS,
        required=True,
    ),
    ListedKind(
        "devicetaintrules", "DeviceTaintRule", RESOURCE_GROUP, _DRA_VERSIONS
    ),
    ListedKind("resourcequotas", "ResourceQuota", namespaced=True),
    ListedKind(
        "resourceclaimtemplates",
        "ResourceClaimTemplate",
        RESOURCE_GROUP,
        _DRA_VERSIONS,
        namespaced=True,
    ),
    ListedKind(
        "resourceclaims",
        "ResourceClaim",
        RESOURCE_GROUP,
        _DRA_VERSIONS,
        namespaced=True,
        required=True,
    ),
    ListedKind(
        "workloads", "Workload", _SCHEDULING, ("v1alpha1",), namespaced=True
    ),
    ListedKind(
        "podgroups",
        "PodGroup",
        _SCHEDULING,
        ("v1", "v1beta1", "v1alpha3", "v1alpha2"),
        namespaced=True,
    ),
    ListedKind(
        "compositepodgroups",
        "CompositePodGroup",
        _SCHEDULING,
        ("v1", "v1beta1", "v1alpha3"),
        namespaced=True,
    ),
    ListedKind("pods", "Pod", namespaced=True),
)
"""Every kind, in the order in which a snapshot holds them."""


def _listed(kind: str) -> ListedKind:
    """Return the entry of a kind."""
    return next(entry for entry in LISTED_KINDS if entry.kind == kind)


# The kinds whose objects are changed, too.
CLAIMS: Final = _listed("ResourceClaim")
NODES: Final = _listed("Node")
PODS: Final = _listed("Pod")
RULES: Final = _listed("DeviceTaintRule")


# ----------------------------------------------------------------------------
# What goes to and fro between an API server and who reads it, and what reading may
# take.

Json = dict[str, Any]
"""An object as it came over the wire."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The limits of reading, whatever the server does.

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
    """The protocol of requests to an API server; `dralloc.live.snapshot.transport` has the real one."""

    host: str

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Json:
        """Return the object with which the server answers; raises `Refused`, `Unanswered` or another SnapshotError."""

    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[Json]:
        """Yield the events of a watch, until the server ends it; raises the same."""

    def renew(self) -> None:
        """Let the limits of time and size begin anew."""


# ----------------------------------------------------------------------------
# An API server as a kubeconfig names it. The official Python client reads the
# kubeconfig.
#
# Its typed models are bypassed: they drop fields that are newer than the client.
# Answers are plain JSON.


@contextmanager
def connect(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    limits: ReadLimits | None = None,
) -> Iterator[ApiServer]:
    """Open the cluster of a kubeconfig, as kubectl does.

    Parameters
    ----------
    kubeconfig
        The file; by default what ``KUBECONFIG`` names, or ``~/.kube/config``; in a pod the cluster that it is in.
    context
        The context in it; by default the current one.
    limits
        What reading may take; the time starts now.

    Raises
    ------
    SnapshotError
        The client is not installed, or the kubeconfig cannot be used.
    """
    try:
        from kubernetes import client, config  # noqa: PLC0415 - takes a while, and is an extra
        from urllib3.exceptions import InsecureRequestWarning  # noqa: PLC0415 - comes with it

        from dralloc.live.snapshot.transport import Transport  # noqa: PLC0415 - needs both
    except ImportError:
        raise SnapshotError(
            "reading a cluster needs the Kubernetes client: pip install 'dralloc[cluster]'"
        ) from None

    def read() -> Any:
        settings = client.Configuration()
        config.load_kube_config(
            config_file=None if kubeconfig is None else str(kubeconfig),
            context=context,
            client_configuration=settings,
            persist_config=False,
        )
        return settings

    is_in_pod = kubeconfig is None and context is None and _is_in_pod()
    try:
        api = _in_pod() if is_in_pod else client.ApiClient(read())
    except Exception as error:  # parsers, plugins for credentials and the file system have their own errors
        source = (
            f"kubeconfig {kubeconfig}"
            if kubeconfig is not None
            else "kubeconfig"
        )
        raise SnapshotError(
            f"{source}: {' '.join(str(error).split())}"
        ) from None
    api.user_agent = "dralloc"
    limits = limits or ReadLimits()
    with api, warnings.catch_warnings():
        # It would come with every request; `ApiServer.warnings` says it once.
        warnings.simplefilter("ignore", InsecureRequestWarning)
        yield ApiServer(
            # In a pod, the client itself reads the token every minute.
            Transport(api, limits, None if is_in_pod else read),
            limits,
            verified=api.configuration.verify_ssl,
        )


def _is_in_pod() -> bool:
    """Return whether this runs in a pod, and nobody says which kubeconfig counts."""
    return bool(
        os.environ.get("KUBERNETES_SERVICE_HOST")
    ) and not os.environ.get("KUBECONFIG")


def _in_pod() -> Any:
    """Return the API server of the cluster in which this runs, with the token of the pod's service account."""
    from kubernetes import client, config  # noqa: PLC0415 - takes a while, and is an extra

    settings = client.Configuration()
    config.load_incluster_config(client_configuration=settings)
    return client.ApiClient(settings)


class ApiServer:
    """The API server at the other end of a `Wire`.

    ``warnings`` is what is to be known about the connection. Every method raises what `Wire.send` raises.
    """

    def __init__(
        self, wire: Wire, limits: ReadLimits, *, verified: bool
    ) -> None:
        self.limits = limits
        self.wire = wire
        self.warnings: Sequence[str] = ()
        if wire.host.startswith("https:") and not verified:
            self.warnings = (
                f"{wire.host}: its certificate is not verified (insecure-skip-tls-verify)",
            )

    def version(self) -> str:
        """Return the version of Kubernetes that it says it is, such as ``v1.36.2``; empty if it does not say."""
        try:
            answer = self.wire.send("GET", "/version")
        except Refused:
            return ""
        return str(answer.get("gitVersion") or "")

    def groups(self) -> Mapping[str, Sequence[str]]:
        """Return the served versions of every API group but core."""
        served: dict[str, Sequence[str]] = {}
        for group in self._list("/apis/", "groups"):
            versions = _objects(group, "versions", "/apis/")
            served[str(group.get("name"))] = [
                str(version.get("version")) for version in versions
            ]
        return served

    def resources(self, group: str, version: str) -> frozenset[str]:
        """Plural names of what a version of a group serves."""
        path = f"/apis/{quote(group)}/{quote(version)}"
        return frozenset(
            str(resource.get("name"))
            for resource in self._list(path, "resources")
        )

    def page(
        self,
        kind: ListedKind,
        version: str,
        namespace: str,
        limit: int,
        token: str,
    ) -> Page:
        """Return a page of a list: of one namespace, or of everything with an empty one.

        Parameters
        ----------
        limit
            The largest number of items; 0 for no limit.
        token
            Goes on where another page ended.
        """
        query = ({"limit": str(limit)} if limit else {}) | (
            {"continue": token} if token else {}
        )
        path = kind.path(version, namespace)
        answer = self.wire.send("GET", path, query)
        metadata = answer.get("metadata")
        further = (
            metadata.get("continue") if isinstance(metadata, dict) else None
        )
        return Page(_objects(answer, "items", path), str(further or ""))

    def _list(self, path: str, field: str) -> Sequence[Json]:
        return _objects(self.wire.send("GET", path), field, path)


def _objects(answer: Json, field: str, path: str) -> Sequence[Json]:
    """Return a list of objects in an answer; nothing stands for an empty one."""
    items = answer.get(field)
    if items is None:
        return ()
    if not isinstance(items, list):
        raise SnapshotError(
            f"the API server's answer to {path}: {field}: is no list"
        )
    for item_index, item in enumerate(items):
        if not isinstance(item, dict):
            raise SnapshotError(
                f"the API server's answer to {path}: {field}[{item_index}]: is no object"
            )
    return items
