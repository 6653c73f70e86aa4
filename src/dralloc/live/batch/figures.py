"""What Prometheus is told, and whether the process is well: ``/metrics``, ``/healthz`` and ``/readyz``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

__all__ = ["Figures", "serving"]


class Figures:
    """The metrics of a batch queue."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        disable_created_metrics()  # type: ignore[no-untyped-call]
        ProcessCollector(registry=self.registry)
        self.leading = Gauge(
            "dralloc_leader",
            "Whether this replica holds the lease.",
            registry=self.registry,
        )
        self.waiting = Gauge(
            "dralloc_waiting_pods",
            "Pods that wait behind the gate.",
            registry=self.registry,
        )
        self.batches = Counter(
            "dralloc_batches",
            "Batches that were solved.",
            ["result"],
            registry=self.registry,
        )
        self.pods = Counter(
            "dralloc_pods",
            "Pods by what became of them.",
            ["result"],
            registry=self.registry,
        )
        self.claims = Counter(
            "dralloc_claims_written",
            "Claims whose allocation was written.",
            registry=self.registry,
        )
        self.findings = Counter(
            "dralloc_findings",
            "Broken rules that were read back.",
            registry=self.registry,
        )
        self.unplaced = Gauge(
            "dralloc_unplaced_pods",
            "Pods that found no place last.",
            registry=self.registry,
        )
        self.lists = Counter(
            "dralloc_lists", "Lists that were read.", registry=self.registry
        )
        self.foreign = Gauge(
            "dralloc_foreign_fences",
            "Parts of fences of other runs.",
            registry=self.registry,
        )
        self.seconds = Histogram(
            "dralloc_batch_seconds",
            "Seconds of a batch, from the plan to the last check.",
            registry=self.registry,
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
        )

        for result in ("done", "failed", "broken"):
            self.batches.labels(result)
        for result in ("released", "aside"):
            self.pods.labels(result)

    def text(self) -> bytes:
        """Return all of them, as Prometheus reads them."""
        return generate_latest(self.registry)


@contextmanager
def serving(
    figures: Figures,
    is_well: Callable[[], bool],
    is_ready: Callable[[], bool],
    port: int,
    address: str = "",
) -> Iterator[int]:
    """Serve them; gives the port, which is a free one for 0."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/metrics":
                    self._answer(200, figures.text(), CONTENT_TYPE_LATEST)
                case "/healthz":
                    self._judge(is_well(), b"stuck\n")
                case "/readyz":
                    self._judge(is_ready(), b"blocked\n")
                case _:
                    self._answer(404, b"not found\n", "text/plain")

        def _judge(self, is_good: bool, otherwise: bytes) -> None:
            self._answer(
                200 if is_good else 503,
                b"ok\n" if is_good else otherwise,
                "text/plain",
            )

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes are no news."""

    with ThreadingHTTPServer((address, port), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield int(server.server_port)
        finally:
            server.shutdown()
