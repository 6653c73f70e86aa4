"""Whatever a server does, a snapshot ends: with its objects, or with one line."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import count, repeat
from pathlib import Path
from threading import Event

import pytest
import trustme
from typer.testing import CliRunner

from dralloc.cli import app
from dralloc.live.snapshot import (
    ClusterSnapshot,
    ReadLimits,
    connect,
    take_snapshot,
)
from dralloc.objects.errors import SnapshotError
from live.snapshot.recorded import Recorded, serving
from wire import Json, claim, request, resource_slice

DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/resourceclaims"
PODS = "/api/v1/pods"
QUICK = ReadLimits(seconds=30, pause=0)

Odd = Callable[[BaseHTTPRequestHandler], bool]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return Recorded(
        {
            f"{DRA}/resourceslices": [resource_slice()],
            CLAIMS: [claim("a", request())],
        }
    )


@pytest.fixture
def over() -> Iterator[Event]:
    """Is set when the test is over, for servers that would go on."""
    event = Event()
    yield event
    event.set()


def read(
    recorded: Recorded, tmp_path: Path, limits: ReadLimits = QUICK
) -> ClusterSnapshot:
    with (
        serving(recorded, tmp_path) as kubeconfig,
        connect(kubeconfig, limits=limits) as server,
    ):
        return take_snapshot(server)


def failure(
    recorded: Recorded, tmp_path: Path, limits: ReadLimits = QUICK
) -> str:
    with pytest.raises(SnapshotError) as error:
        read(recorded, tmp_path, limits)
    text = str(error.value)
    assert "\n" not in text
    return text


def times(recorded: Recorded, path: str) -> int:
    return sum(1 for asked, _ in recorded.asked if asked == path)


def answering(
    body: Json | Iterator[Json], status: int = 200, **headers: str
) -> Odd:
    """Answers so, or with one body after the other."""
    bodies = repeat(body) if isinstance(body, dict) else body

    def answer(handler: BaseHTTPRequestHandler) -> bool:
        data = json.dumps(next(bodies)).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        # It is closed; who is not told may use it again for the next attempt.
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(data)
        return True

    return answer


def at_first(odd: Odd, request_count: int) -> Odd:
    """Answers so to some requests only."""
    remaining = iter(range(request_count))
    return lambda handler: next(remaining, None) is not None and odd(handler)


def listing(token: str) -> Json:
    return {"metadata": {"continue": token}, "items": []}


def test_the_same_page_again_and_again(
    recorded: Recorded, tmp_path: Path
) -> None:
    recorded.odd[CLAIMS] = answering(listing("again"))
    assert failure(recorded, tmp_path) == (
        "cannot list resourceclaims.resource.k8s.io: the API server goes on where it has been before"
    )
    assert times(recorded, CLAIMS) == 2


def test_pages_without_end(recorded: Recorded, tmp_path: Path) -> None:
    recorded.odd[CLAIMS] = answering(
        listing(f"from-{page}") for page in count()
    )
    limits = ReadLimits(pages=7)
    assert (
        failure(recorded, tmp_path, limits)
        == "cannot list resourceclaims.resource.k8s.io: more than 7 pages"
    )
    assert times(recorded, CLAIMS) == 7


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("seconds", "shown"), [("100000", "100000"), ("9" * 5000, "inf")]
)
def test_a_server_that_asks_to_wait_for_days(
    recorded: Recorded, tmp_path: Path, status: int, seconds: str, shown: str
) -> None:
    recorded.odd[CLAIMS] = answering(
        {"message": "slow down"}, status, Retry_After=seconds
    )
    text = failure(recorded, tmp_path)
    assert text.endswith(
        f"in all namespaces: HTTP {status}: slow down; it wants to be asked again in {shown} s"
    )
    assert times(recorded, CLAIMS) == 1


@pytest.mark.parametrize(
    "seconds", ["0", "soon", "Fri, 31 Dec 1999 23:59:59 GMT"]
)
def test_a_server_that_asks_for_another_attempt(
    recorded: Recorded, tmp_path: Path, seconds: str
) -> None:
    busy = answering({"message": "busy"}, 503, Retry_After=seconds)
    recorded.odd[CLAIMS] = at_first(busy, 3)
    assert read(recorded, tmp_path).counts["resourceclaims"] == (1, 1)
    recorded.odd[CLAIMS] = busy
    assert failure(recorded, tmp_path).endswith("HTTP 503: busy")
    assert times(recorded, CLAIMS) == 4 + 4


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {},
            "the API server does not serve resourceslices.resource.k8s.io and",
        ),
        (
            {"groups": None},
            "the API server does not serve resourceslices.resource.k8s.io and",
        ),
        (
            {"groups": [{"name": "resource.k8s.io"}]},
            "the API server does not serve resourceslices.resource.k8s.io and",
        ),
        (
            {"groups": {}},
            "the API server's answer to /apis/: groups: is no list",
        ),
        (
            {"groups": [None]},
            "the API server's answer to /apis/: groups[0]: is no object",
        ),
        (
            {"groups": [{"versions": ["v1"]}]},
            "the API server's answer to /apis/: versions[0]: is no object",
        ),
    ],
)
def test_a_discovery_that_is_none(
    recorded: Recorded, tmp_path: Path, body: Json, message: str
) -> None:
    recorded.odd["/apis/"] = answering(body)
    assert failure(recorded, tmp_path).startswith(message)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (
            [None],
            f"the API server's answer to {CLAIMS}: items[0]: is no object",
        ),
        (
            [{}, 5],
            f"the API server's answer to {CLAIMS}: items[1]: is no object",
        ),
        ("none", f"the API server's answer to {CLAIMS}: items: is no list"),
    ],
)
def test_items_that_are_none(
    recorded: Recorded, tmp_path: Path, items: object, message: str
) -> None:
    recorded.odd[CLAIMS] = answering({"items": items})
    assert failure(recorded, tmp_path) == message


def test_objects_of_other_shapes_are_left_to_who_loads_them(
    recorded: Recorded, tmp_path: Path
) -> None:
    odd = [
        {"metadata": 5},
        {"spec": []},
        {"spec": {"containers": [None], "resourceClaims": 1}},
    ]
    recorded.odd[PODS] = answering({"items": odd, "metadata": []})
    recorded.odd[CLAIMS] = answering(
        {
            "items": [
                {"metadata": [1]},
                {"metadata": {"name": 1}},
                {"metadata": {"name": "x"}},
            ]
        }
    )
    snapshot = read(recorded, tmp_path)
    assert (snapshot.counts["pods"], snapshot.counts["resourceclaims"]) == (
        (1, 3),
        (3, 3),
    )


def test_an_object_that_is_nested_too_deeply(
    recorded: Recorded, tmp_path: Path
) -> None:
    spec: Json = {}
    for _ in range(400):
        spec = {"a": spec}
    recorded.odd[CLAIMS] = answering({"items": [{"spec": spec}]})
    assert (
        "cannot list resourceclaims.resource.k8s.io: an object cannot be written"
        in failure(recorded, tmp_path)
    )


def half(handler: BaseHTTPRequestHandler) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"items": [')
    return True


def half_a_header(handler: BaseHTTPRequestHandler) -> bool:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    return True


def nothing(_: BaseHTTPRequestHandler) -> bool:
    return True


@pytest.mark.parametrize("odd", [half, half_a_header, nothing])
def test_answers_that_end_early_are_asked_for_again(
    recorded: Recorded, tmp_path: Path, odd: Odd
) -> None:
    recorded.odd[CLAIMS] = at_first(odd, 2)
    assert read(recorded, tmp_path).counts["resourceclaims"] == (1, 1)
    recorded.odd[CLAIMS] = odd
    assert failure(recorded, tmp_path).startswith("http://127.0.0.1:")
    assert times(recorded, CLAIMS) == 3 + 4


def test_an_answer_that_is_no_json(recorded: Recorded, tmp_path: Path) -> None:
    recorded.odd[CLAIMS] = lambda handler: (
        half(handler) and bool(handler.wfile.write(b" " * 989))
    )
    assert failure(recorded, tmp_path).endswith(
        "is no API server: its answer is not a JSON object"
    )


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (ReadLimits(answer=1 << 20), "an answer is larger than 1Mi"),
        (ReadLimits(total=1 << 20), "all is larger than 1Mi"),
    ],
)
def test_an_answer_without_end(
    recorded: Recorded,
    tmp_path: Path,
    over: Event,
    status: int,
    limits: ReadLimits,
    message: str,
) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> bool:
        handler.send_response(status)
        handler.end_headers()
        with suppress(OSError):
            while not over.is_set():
                handler.wfile.write(b" " * 65536)
        return True

    recorded.odd[CLAIMS] = endless
    assert failure(recorded, tmp_path, limits).endswith(message)


@pytest.mark.parametrize(
    "head", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"]
)
def test_an_answer_that_comes_bit_by_bit(
    recorded: Recorded, tmp_path: Path, over: Event, head: bytes
) -> None:
    def dripping(handler: BaseHTTPRequestHandler) -> bool:
        with suppress(OSError):
            handler.wfile.write(head)
            while not over.wait(0.02):
                handler.wfile.write(b" ")
        return True

    recorded.odd[CLAIMS] = dripping
    assert failure(recorded, tmp_path, ReadLimits(seconds=1)).endswith(
        "reading took longer than 1 s"
    )


def test_waiting_counts_as_reading(recorded: Recorded, tmp_path: Path) -> None:
    recorded.odd[CLAIMS] = answering({"message": "busy"}, 503, Retry_After="20")
    assert failure(recorded, tmp_path, ReadLimits(seconds=1)).endswith(
        "reading took longer than 1 s"
    )


@pytest.fixture
def tls() -> ssl.SSLContext:
    """A certificate that nobody has signed whom others trust."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.mark.filterwarnings("default")
def test_a_certificate_that_is_not_verified_is_said_once(
    recorded: Recorded,
    tmp_path: Path,
    tls: ssl.SSLContext,
    recwarn: pytest.WarningsRecorder,
) -> None:
    with serving(recorded, tmp_path, tls) as kubeconfig:
        result = CliRunner().invoke(
            app,
            [
                "snapshot",
                "--to",
                str(tmp_path / "x.yaml"),
                "--kubeconfig",
                str(kubeconfig),
            ],
        )
    assert result.exit_code == 0, result.stderr
    said = [line for line in result.stderr.splitlines() if "verif" in line]
    assert len(said) == 1
    assert said[0].startswith("warning: https://127.0.0.1:")
    assert not list(recwarn)
