"""An API server of canned answers on 127.0.0.1, as a real one gives them: pages, tokens, refusals, a bearer token."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import SSLContext
from threading import Thread
from urllib.parse import parse_qs, urlsplit

from wire import Json

TOKEN = "not-a-secret"
"""Of this server only."""

GROUPS = {
    "apps": {"v1": ["deployments"]},
    "scheduling.k8s.io": {"v1": ["priorityclasses"]},
    "resource.k8s.io": {
        "v1": [
            "deviceclasses",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceslices",
            "resourceslices/status",
        ],
        "v1beta1": [
            "deviceclasses",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceslices",
        ],
    },
}


@dataclass
class Recorded:
    """What the server answers, and what it was asked.

    Parameters
    ----------
    lists
        Items by path, e.g. ``/api/v1/nodes``; other lists are empty. Namespaced lists are made from them.
    refusals
        HTTP status by path.
    expiring
        How many continued requests are answered with 410, by path.
    version
        What the server says that it is.
    odd
        What answers in place of all that, by path, unless it returns false.
    """

    lists: dict[str, list[Json]] = field(default_factory=dict)
    groups: dict[str, dict[str, list[str]]] = field(
        default_factory=lambda: deepcopy(GROUPS)
    )
    refusals: dict[str, int] = field(default_factory=dict)
    expiring: dict[str, int] = field(default_factory=dict)
    odd: dict[str, Callable[[BaseHTTPRequestHandler], bool]] = field(
        default_factory=dict
    )
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    version: str = ""

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Json]:
        """Status and body for one request."""
        if path in self.refusals:
            return self._refused(self.refusals[path], path)
        if path == "/version":
            return 200, {"gitVersion": self.version}
        if path.rstrip("/") == "/apis":
            return 200, {
                "kind": "APIGroupList",
                "groups": [_group(*group) for group in self.groups.items()],
            }
        parts = path.strip("/").split("/")
        if parts[0] == "apis" and len(parts) == 3:
            names = self.groups[parts[1]][parts[2]]
            return 200, {
                "kind": "APIResourceList",
                "resources": [{"name": name} for name in names],
            }
        return self._list(path, query)

    def _list(self, path: str, query: dict[str, str]) -> tuple[int, Json]:
        token, limit = query.get("continue", ""), int(query.get("limit", 0))
        if token and self.expiring.get(path, 0) > 0:
            self.expiring[path] -= 1
            return self._refused(410, path)
        items = self._items(path)
        start = int(token.removeprefix("from-")) if token else 0
        end = start + limit if limit else len(items)
        metadata = {
            "resourceVersion": "7",
            **({"continue": f"from-{end}"} if end < len(items) else {}),
        }
        return 200, {
            "kind": "SomeList",
            "apiVersion": "some/v1",
            "metadata": metadata,
            "items": items[start:end],
        }

    def _items(self, path: str) -> Sequence[Json]:
        before, inside, rest = path.partition("/namespaces/")
        if not inside:
            return self.lists.get(path, ())
        namespace, _, plural = rest.partition("/")
        every = self.lists.get(f"{before}/{plural}", ())
        return [
            item for item in every if item["metadata"]["namespace"] == namespace
        ]

    @staticmethod
    def _refused(code: int, path: str) -> tuple[int, Json]:
        return code, {
            "kind": "Status",
            "status": "Failure",
            "code": code,
            "message": f"no {path} for you",
        }


def _group(name: str, versions: dict[str, list[str]]) -> Json:
    return {
        "name": name,
        "versions": [
            {"groupVersion": f"{name}/{version}", "version": version}
            for version in versions
        ],
    }


@contextmanager
def serving(
    recorded: Recorded, tmp_path: Path, tls: SSLContext | None = None
) -> Iterator[Path]:
    """Serve the answers; gives a kubeconfig for them, which does not verify certificates."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {
                key: values[0] for key, values in parse_qs(url.query).items()
            }
            recorded.asked.append(
                (url.path, query)
            )  # before the answer: who has it may look at once
            if url.path in recorded.odd and recorded.odd[url.path](self):
                self.close_connection = True
                return
            if self.headers["Authorization"] == f"Bearer {TOKEN}":
                status, body = recorded.answer(url.path, query)
            else:
                status, body = (
                    401,
                    {"kind": "Status", "code": 401, "message": "Unauthorized"},
                )
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        thread.start()
        try:
            yield write_kubeconfig(
                tmp_path,
                f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}",
            )
        finally:
            server.shutdown()
            thread.join()


def write_kubeconfig(tmp_path: Path, url: str, token: str = TOKEN) -> Path:
    """A kubeconfig with the context ``test``, which is the current one, and ``stranger`` with another token."""
    path = tmp_path / "kubeconfig"
    users = {"test": token, "stranger": "unknown"}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [
            {
                "name": "here",
                "cluster": {"server": url, "insecure-skip-tls-verify": True},
            }
        ],
        "users": [
            {"name": name, "user": {"token": user_token}}
            for name, user_token in users.items()
        ],
        "contexts": [
            {"name": name, "context": {"cluster": "here", "user": name}}
            for name in users
        ],
    }
    path.write_text(json.dumps(content))
    return path
