"""An API server as a kubeconfig names it. The official Python client reads the kubeconfig.

Its typed models are bypassed: they drop fields that are newer than the client. Answers are plain JSON.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dralloc.live.snapshot.kinds import ListedKind
from dralloc.live.snapshot.server import Json, Page, ReadLimits, Wire
from dralloc.objects.errors import SnapshotError

__all__ = ["ApiServer", "connect"]


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
        from kubernetes import config  # noqa: PLC0415 - takes a while, and is an extra
        from urllib3.exceptions import InsecureRequestWarning  # noqa: PLC0415 - comes with it

        from dralloc.live.snapshot.transport import Transport  # noqa: PLC0415 - needs both
    except ImportError:
        raise SnapshotError(
            "reading a cluster needs the Kubernetes client: pip install 'dralloc[cluster]'"
        ) from None
    try:
        api = (
            _in_pod()
            if kubeconfig is None and context is None and _is_in_pod()
            else None
        )
        api = api or config.new_client_from_config(
            config_file=None if kubeconfig is None else str(kubeconfig),
            context=context,
            persist_config=False,
        )
    except Exception as error:  # parsers, plugins for credentials and the file system have their own errors
        place = f"kubeconfig {kubeconfig}" if kubeconfig is not None else "kubeconfig"
        raise SnapshotError(f"{place}: {' '.join(str(error).split())}") from None
    api.user_agent = "dralloc"
    limits = limits or ReadLimits()
    with api, warnings.catch_warnings():
        # It would come with every request; `ApiServer.warnings` says it once.
        warnings.simplefilter("ignore", InsecureRequestWarning)
        yield ApiServer(
            Transport(api, limits), limits, verified=api.configuration.verify_ssl
        )


def _is_in_pod() -> bool:
    """Whether this runs in a pod, and nobody says which kubeconfig counts."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and not os.environ.get(
        "KUBECONFIG"
    )


def _in_pod() -> Any:
    """The API server of the cluster in which this runs, with the token of the pod's service account."""
    from kubernetes import client, config  # noqa: PLC0415 - takes a while, and is an extra

    settings = client.Configuration()
    config.load_incluster_config(client_configuration=settings)
    return client.ApiClient(settings)


class ApiServer:
    """The API server at the other end of a `Wire`.

    ``warnings`` is what is to be known about the connection. Every method raises what `Wire.send` raises.
    """

    def __init__(self, wire: Wire, limits: ReadLimits, *, verified: bool) -> None:
        self.limits = limits
        self.wire = wire
        self.warnings: Sequence[str] = ()
        if wire.host.startswith("https:") and not verified:
            self.warnings = (
                f"{wire.host}: its certificate is not verified (insecure-skip-tls-verify)",
            )

    def groups(self) -> Mapping[str, Sequence[str]]:
        """The served versions of every API group but core."""
        return {
            str(group.get("name")): [
                str(one.get("version")) for one in _objects(group, "versions", "/apis/")
            ]
            for group in self._list("/apis/", "groups")
        }

    def resources(self, group: str, version: str) -> frozenset[str]:
        """Plural names of what a version of a group serves."""
        path = f"/apis/{quote(group)}/{quote(version)}"
        return frozenset(str(one.get("name")) for one in self._list(path, "resources"))

    def page(
        self, wanted: ListedKind, version: str, namespace: str, limit: int, token: str
    ) -> Page:
        """A page of a list: of one namespace, or of everything with an empty one.

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
        path = wanted.path(version, namespace)
        found = self.wire.send("GET", path, query)
        metadata = found.get("metadata")
        further = metadata.get("continue") if isinstance(metadata, dict) else None
        return Page(_objects(found, "items", path), str(further or ""))

    def _list(self, path: str, field: str) -> Sequence[Json]:
        return _objects(self.wire.send("GET", path), field, path)


def _objects(answer: Json, field: str, path: str) -> Sequence[Json]:
    """A list of objects in an answer; nothing stands for an empty one."""
    found = answer.get(field)
    if found is None:
        return ()
    if not isinstance(found, list):
        raise SnapshotError(f"the API server's answer to {path}: {field}: is no list")
    for number, one in enumerate(found):
        if not isinstance(one, dict):
            raise SnapshotError(
                f"the API server's answer to {path}: {field}[{number}]: is no object"
            )
    return found
