"""An API server by way of the official Python client, the only user of it.

The client's typed models are bypassed: they drop fields that are newer than the client. Answers are plain JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import orjson

from dralloc.errors import SnapshotError
from dralloc.snapshot.kinds import Wanted
from dralloc.snapshot.server import Json, Page, Refused

__all__ = ["ApiServer", "connect"]

_TIMEOUT: Final = (10, 300)
"""Seconds to connect, and to wait for more of an answer."""
_CORE_LISTS: Final = {
    "namespaces": ("list_namespace", ""),
    "nodes": ("list_node", ""),
    "pods": ("list_pod_for_all_namespaces", "list_namespaced_pod"),
    "resourcequotas": ("list_resource_quota_for_all_namespaces", "list_namespaced_resource_quota"),
}
"""The client's methods for a list of core/v1: of everything, and of one namespace."""


@contextmanager
def connect(kubeconfig: str | Path | None = None, context: str | None = None) -> Iterator[ApiServer]:
    """Open the cluster of a kubeconfig, as kubectl does.

    Parameters
    ----------
    kubeconfig
        The file; by default what ``KUBECONFIG`` names, or ``~/.kube/config``.
    context
        The context in it; by default the current one.

    Raises
    ------
    SnapshotError
        The client is not installed, or the kubeconfig cannot be used.
    """
    client, config = _import_client()
    try:
        api = config.new_client_from_config(
            config_file=None if kubeconfig is None else str(kubeconfig), context=context, persist_config=False
        )
    except Exception as error:  # parsers, plugins for credentials and the file system have their own errors
        place = f"kubeconfig {kubeconfig}" if kubeconfig is not None else "kubeconfig"
        raise SnapshotError(f"{place}: {' '.join(str(error).split())}") from None
    api.user_agent = "dralloc"
    with api:
        yield ApiServer(api, client)


def _import_client() -> tuple[ModuleType, ModuleType]:
    try:
        from kubernetes import client, config  # noqa: PLC0415 - takes a while, and is an extra
    except ImportError:
        raise SnapshotError("reading a cluster needs the Kubernetes client: pip install 'dralloc[cluster]'") from None
    return client, config


class ApiServer:
    """A `Server` behind an ``ApiClient``."""

    def __init__(self, api: Any, client: ModuleType) -> None:
        self._apis = client.ApisApi(api)
        self._core = client.CoreV1Api(api)
        self._others = client.CustomObjectsApi(api)
        self._host = str(api.configuration.host)

    def groups(self) -> Mapping[str, Sequence[str]]:
        """The served versions of every API group but core."""
        found = self._get(self._apis.get_api_versions)
        return {group["name"]: [one["version"] for one in group["versions"]] for group in found["groups"]}

    def resources(self, group: str, version: str) -> frozenset[str]:
        """Plural names of what a version of a group serves."""
        found = self._get(self._others.get_api_resources, group=group, version=version)
        return frozenset(one["name"] for one in found["resources"])

    def page(self, wanted: Wanted, version: str, namespace: str, limit: int, token: str) -> Page:
        """A page of a list."""
        options: Json = ({"limit": limit} if limit else {}) | ({"_continue": token} if token else {})
        where = {"namespace": namespace} if namespace else {}
        if wanted.group:
            of = self._others
            method = of.list_namespaced_custom_object if namespace else of.list_cluster_custom_object
            what = {"group": wanted.group, "version": version, "plural": wanted.plural}
            found = self._get(method, **what, **where, **options)
        else:
            method = getattr(self._core, _CORE_LISTS[wanted.plural][bool(namespace)])
            found = self._get(method, **where, **options)
        return Page(found.get("items") or (), (found.get("metadata") or {}).get("continue") or "")

    def _get(self, method: Any, **arguments: Any) -> Json:
        """Call a method of the client without its models."""
        from kubernetes.client.exceptions import ApiException  # noqa: PLC0415 - see `_import_client`
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - comes with the client

        try:
            answer = method(_preload_content=False, _request_timeout=_TIMEOUT, **arguments)
            return _parsed(answer.data)
        except ApiException as error:
            if error.status:
                raise Refused(error.status, _reason(error)) from None
            raise SnapshotError(f"{self._host}: {error.reason}") from None
        except HTTPError as error:
            raise SnapshotError(f"{self._host}: {getattr(error, 'reason', None) or error}") from None


def _parsed(data: bytes) -> Json:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise SnapshotError("what answers is not an API server: its answer is not a JSON object")
    return found


def _reason(error: Any) -> str:
    """What the server says: the message of its Status object, or else the HTTP reason."""
    try:
        status = orjson.loads(error.body or b"")
    except orjson.JSONDecodeError:
        status = None
    return str((isinstance(status, dict) and status.get("message")) or error.reason or "no reason given")
