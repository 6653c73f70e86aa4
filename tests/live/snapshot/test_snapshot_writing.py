"""Changing a cluster over HTTP: what is sent, what is repeated, and what a lost answer means."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event, Thread
from time import sleep

import pytest
import trustme
from kubernetes.client import Configuration
from kubernetes.config.incluster_config import InClusterConfigLoader

from dralloc.live.snapshot import (
    LISTED_KINDS,
    LiveObjects,
    ReadLimits,
    Refused,
    Unanswered,
    connect,
    served,
    transport,
)
from dralloc.objects.errors import SnapshotError
from dralloc.objects.names import ClaimKey
from live.snapshot.recorded import TOKEN, Recorded, write_kubeconfig
from live.snapshot.recorded import serving as recorded_serving
from live.snapshot.test_snapshot_misbehaving import answering
from simulated import Simulated
from simulated_http import serving
from wire import Json, claim, request

CLAIM = next(kind for kind in LISTED_KINDS if kind.kind == "ResourceClaim")
QUICK = ReadLimits(seconds=30, pause=0)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@contextmanager
def objects(server: Simulated, tmp_path: Path) -> Iterator[LiveObjects]:
    with (
        serving(server, tmp_path) as kubeconfig,
        connect(kubeconfig, limits=QUICK) as api,
    ):
        yield LiveObjects(api.wire, served(api))


def test_objects_are_made_changed_watched_and_deleted(tmp_path: Path) -> None:
    with objects(Simulated(), tmp_path) as live:
        start = live.listed(CLAIM)["metadata"]["resourceVersion"]
        made = live.create(CLAIM, claim("a", request()))
        changed = live.patch(
            CLAIM,
            ClaimKey("default", "a"),
            {"metadata": {"labels": {"x": "y"}}},
        )
        with pytest.raises(Refused, match="409"):
            live.delete(CLAIM, made)
        live.delete(CLAIM, changed)
        events = [event["type"] for event in live.watch(CLAIM, start)]
    assert events == ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


def test_a_forgotten_place_of_a_watch_is_a_refusal(tmp_path: Path) -> None:
    server = Simulated(compacted=9)
    with objects(server, tmp_path) as live, pytest.raises(Refused, match="410"):
        next(live.watch(CLAIM, "1"))


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    server = Simulated()
    with objects(server, tmp_path) as live:
        dry = LiveObjects(live.wire, live.versions, dry=True)
        dry.create(CLAIM, claim("a", request()))
        made = live.create(CLAIM, claim("a", request()))
        dry.patch(
            CLAIM,
            ClaimKey("default", "a"),
            {"metadata": {"labels": {"x": "y"}}},
        )
        assert live.get(CLAIM, ClaimKey("default", "a")) == made


@contextmanager
def hanging_up(
    tmp_path: Path, heard: list[bytes], scheme: str = "http"
) -> Iterator[Path]:
    """A server that hears requests and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def listen() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    heard.append(connection.recv(65_536))
                    connection.close()

        Thread(target=listen, daemon=True).start()
        yield write_kubeconfig(
            tmp_path, f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"
        )


def test_a_change_without_answer_is_not_repeated_and_a_question_is(
    tmp_path: Path,
) -> None:
    heard: list[bytes] = []
    with (
        hanging_up(tmp_path, heard) as kubeconfig,
        connect(kubeconfig, limits=QUICK) as api,
    ):
        with pytest.raises(
            Unanswered, match="whether it was done is not known"
        ):
            api.wire.send("PATCH", "/x", {}, {"a": 1})
        assert len(heard) == 1
        assert heard[0].startswith(b"PATCH /x HTTP/1.1")
        assert b"application/merge-patch+json" in heard[0]
        with pytest.raises(SnapshotError):
            api.wire.send("GET", "/x")
        assert len(heard) == 1 + 1 + QUICK.retries


def test_a_handshake_that_ends_early_is_no_answer_either(
    tmp_path: Path,
) -> None:
    """Load balancers close connections so, while the server behind them is away."""
    heard: list[bytes] = []
    with (
        hanging_up(tmp_path, heard, "https") as kubeconfig,
        connect(kubeconfig, limits=QUICK) as api,
    ):
        with pytest.raises(
            Unanswered, match="whether it was done is not known"
        ):
            api.wire.send("PATCH", "/x", {}, {"a": 1})
        assert len(heard) == 1
        with pytest.raises(SnapshotError):
            api.wire.send("GET", "/x")
        assert len(heard) == 1 + 1 + QUICK.retries


def test_a_change_without_answer_is_unanswered_on_the_last_attempt_too(
    tmp_path: Path,
) -> None:
    limits = ReadLimits(seconds=30, retries=0)
    with (
        hanging_up(tmp_path, []) as kubeconfig,
        connect(kubeconfig, limits=limits) as api,
        pytest.raises(Unanswered, match="whether it was done is not known"),
    ):
        api.wire.send("PATCH", "/x", {}, {"a": 1})


def test_in_a_pod_the_cluster_is_that_of_the_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with (
        pytest.raises(SnapshotError, match="Service token file does not exist"),
        connect(),
    ):
        pass


def test_a_token_that_cannot_be_renewed_is_an_error_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever watches asks again; other errors would end that."""
    token, certificate = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text(TOKEN)
    certificate.write_text(trustme.CA().cert_pem.bytes().decode())
    settings = Configuration()
    loader = InClusterConfigLoader(
        token_filename=str(token),
        cert_filename=str(certificate),
        environ={
            "KUBERNETES_SERVICE_HOST": "x",
            "KUBERNETES_SERVICE_PORT": "1",
        },
    )
    loader.load_and_set(settings)
    monkeypatch.setattr(loader, "token_expires_at", datetime.min)
    with objects(Simulated(), tmp_path) as live:
        held = live.wire._api.configuration  # type: ignore[attr-defined]
        monkeypatch.setattr(
            held,
            "refresh_api_key_hook",
            lambda _settings: settings.refresh_api_key_hook(settings),
        )
        for text in (TOKEN, "", TOKEN):
            token.write_text(text)
            if text:
                live.listed(CLAIM)
                loader.token_expires_at = datetime.min
                continue
            with pytest.raises(
                SnapshotError, match=r"renewed: Token file exists but empty\.$"
            ):
                live.create(CLAIM, claim("a", request()))
            with pytest.raises(SnapshotError, match="cannot be renewed"):
                list(live.watch(CLAIM, "1"))


def test_a_file_with_a_token_may_end_with_a_line_break(tmp_path: Path) -> None:
    with serving(Simulated(), tmp_path) as kubeconfig:
        with_token_file(kubeconfig, tmp_path / "token")
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        with connect(kubeconfig, limits=QUICK) as api:
            assert served(api)


@pytest.mark.parametrize("is_fresh", [False, True])
def test_a_token_that_is_not_accepted_any_more_is_read_anew(
    is_fresh: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "_FRESH", 60.0 if is_fresh else 0.0)
    heard: list[str] = []

    def accept_new(handler: BaseHTTPRequestHandler) -> bool:
        heard.append(handler.headers["Authorization"])
        is_new = heard[-1] == "Bearer new"
        body: Json = {"items": []} if is_new else {"message": "Unauthorized"}
        return answering(body, 200 if is_new else 401)(handler)

    recorded = Recorded()
    recorded.odd["/x"] = accept_new
    token = tmp_path / "token"
    with recorded_serving(recorded, tmp_path) as kubeconfig:
        with_token_file(kubeconfig, token)
        token.write_text("old")
        with connect(kubeconfig, limits=QUICK) as api:
            # Where there is no other one, nothing is asked again.
            for text in ("old", ""):
                token.write_text(text)
                with pytest.raises(Refused, match="401"):
                    api.wire.send("GET", "/x")
            token.write_text("new")
            if is_fresh:
                with pytest.raises(Refused, match="401"):
                    api.wire.send("GET", "/x")
            else:
                assert api.wire.send("GET", "/x") == {"items": []}
    assert heard == ["Bearer old"] * 3 + ["Bearer new"] * (not is_fresh)


def with_token_file(kubeconfig: Path, token: Path) -> None:
    """Let the first user of a kubeconfig have a token that is in a file."""
    content = json.loads(kubeconfig.read_text())
    content["users"][0]["user"] = {"tokenFile": str(token)}
    kubeconfig.write_text(json.dumps(content))


@contextmanager
def away_and_back(tmp_path: Path, outage: float) -> Iterator[LiveObjects]:
    """A server that was reached, cannot be reached now, and is back after half a second."""
    server, limits = (
        Simulated(),
        ReadLimits(seconds=30, pause=0.05, outage=outage),
    )
    with ExitStack() as stack:
        with serving(server, tmp_path) as kubeconfig:
            api = stack.enter_context(connect(kubeconfig, limits=limits))
            live_objects = LiveObjects(api.wire, served(api))
            live_objects.listed(CLAIM)
        # What is still connected would be served.
        api.wire._api.rest_client.pool_manager.clear()  # type: ignore[attr-defined]
        port = int(api.wire.host.rpartition(":")[2])
        gone = Event()
        again = Thread(target=serve_later, args=(server, tmp_path, port, gone))
        again.start()
        try:
            yield live_objects
        finally:
            gone.set()
            again.join()


def serve_later(
    server: Simulated, folder: Path, port: int, gone: Event
) -> None:
    sleep(0.5)
    with serving(server, folder, port):
        gone.wait(20)


def test_a_server_that_was_reached_is_waited_for(tmp_path: Path) -> None:
    with away_and_back(tmp_path, outage=20) as live_objects:
        made = live_objects.create(CLAIM, claim("a", request()))
        assert (
            live_objects.get(CLAIM, ClaimKey("default", "a"))["metadata"]["uid"]
            == made["metadata"]["uid"]
        )


def test_a_server_is_waited_for_within_a_limit(tmp_path: Path) -> None:
    with (
        away_and_back(tmp_path, outage=0.1) as live_objects,
        pytest.raises(SnapshotError, match="refused"),
    ):
        live_objects.create(CLAIM, claim("a", request()))
