"""The simulated API server behind HTTP on 127.0.0.1, for clients that come with a kubeconfig."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

from dralloc.live.snapshot import Refused, Wire
from live.snapshot.recorded import write_kubeconfig
from wire import Json


@contextmanager
def serving(wire: Wire, folder: Path, port: int = 0) -> Iterator[Path]:
    """Serve it, on any port if none is given; gives a kubeconfig."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = dict(parse_qsl(url.query))
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                if query.get("watch"):
                    return self._stream(url.path, query)
                self._send(
                    200,
                    wire.send(
                        self.command,
                        url.path,
                        query,
                        json.loads(text) if text else None,
                    ),
                )
            except Refused as refusal:
                self._send(
                    refusal.status,
                    {
                        "kind": "Status",
                        "message": refusal.reason,
                        "code": refusal.status,
                    },
                )

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - as the library has them

        def _stream(self, path: str, query: dict[str, str]) -> None:
            events = b"".join(
                json.dumps(event).encode() + b"\n"
                for event in wire.stream(path, query)
            )
            self._write(200, events)

        def _send(self, status: int, body: Json) -> None:
            self._write(status, json.dumps(body).encode())

        def _write(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        thread.start()
        try:
            yield write_kubeconfig(
                folder, f"http://127.0.0.1:{server.server_port}"
            )
        finally:
            server.shutdown()
            thread.join()
