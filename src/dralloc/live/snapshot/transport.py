"""Requests that end, whatever the server does: answers slowly, without end, in halves, or asks to wait for days."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from ssl import SSLEOFError
from threading import TIMEOUT_MAX, Lock, Thread
from time import monotonic, sleep
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import orjson
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)

from dralloc.live.snapshot.client import Json, ReadLimits, Refused, Unanswered
from dralloc.objects.errors import SnapshotError
from dralloc.objects.quantity import Format, Quantity

__all__ = ["Transport"]

T = TypeVar("T")

_TIMEOUT: Final = urllib3.Timeout(connect=10, read=60)
"""Seconds to connect, and to wait for more of an answer."""
_ONCE: Final = urllib3.Retry(
    None,
    connect=0,
    read=0,
    status=0,
    other=0,
    redirect=3,
    respect_retry_after_header=False,
)
"""urllib3 itself would wait for as long as a server says."""
_PIECE: Final = 1 << 16
_LONGEST: Final = 4.0
"""Seconds between two attempts to reach a server that is away, at most."""
_WATCH: Final = 60
"""Seconds after which the server ends a watch, so that one behind a dead connection is noticed."""
_UNAUTHORIZED: Final = 401
_FRESH: Final = 60.0
"""Seconds for which credentials that were read are not read again."""
_CONTENT: Final = {"PATCH": "application/merge-patch+json"}
"""What a body is, by method; a plain object unless it says otherwise."""


class _Later(Exception):  # noqa: N818 - not an error yet
    """Another attempt may do better, after some seconds; ``failure`` is what is raised if there is none.

    ``unsent``: the server was not reached, so that nothing was done.
    """

    def __init__(
        self, failure: Exception, seconds: float, *, unsent: bool = False
    ) -> None:
        super().__init__()
        self.failure, self.seconds, self.unsent = failure, seconds, unsent


class Transport:
    """Speaks with one API server.

    Parameters
    ----------
    api
        An ``ApiClient``, which knows the host, its certificates and the credentials.
    limits
        What all requests together, and each of them, may take.
    reread
        Reads the credentials anew, into a ``Configuration``, for when the server does not accept them any more.
    """

    def __init__(
        self,
        api: Any,
        limits: ReadLimits,
        reread: Callable[[], Any] | None = None,
    ) -> None:
        self.host = str(api.configuration.host).rstrip("/")
        self._api = api
        self._limits = limits
        self._room = limits.total
        self._was_reached = False
        self._end = monotonic() + limits.seconds
        self._reread = reread
        self._read_at = monotonic()
        self._reading = Lock()

    def renew(self) -> None:
        """Let the limits of time and size begin anew, for who asks again and again."""
        self._room = self._limits.total
        self._end = monotonic() + self._limits.seconds

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Json:
        """Return the JSON object with which the server answers.

        A request that changes something is repeated only where the server says that it did nothing yet, or could not
        be reached. One that was reached before is waited for while it is away.

        Raises
        ------
        Refused
            The server answers with another status than success.
        Unanswered
            The answer to a request that changes something was lost.
        SnapshotError
            It cannot be reached, its answers are no JSON objects, or a limit is reached.
        """
        attempts, away = 0, 0.0
        while True:
            try:
                answer = self._in_time(
                    lambda: self._exchange(method, path, query or {}, body)
                )
            except _Later as later:
                # The change may have been made: only who looks again can say. So after the last attempt, too.
                if method != "GET" and not (
                    later.unsent or isinstance(later.failure, Refused)
                ):
                    raise Unanswered(
                        f"{later.failure}; whether it was done is not known"
                    ) from None
                # A server that was reached before is waited for, for a while, also when all attempts are used up.
                is_away = (
                    later.unsent
                    and self._was_reached
                    and away < self._limits.outage
                )
                if attempts == self._limits.retries and not is_away:
                    raise later.failure from None
                if later.unsent and not is_away:
                    raise later.failure from None
                pause = later.seconds or min(
                    self._limits.pause * 2**attempts, _LONGEST
                )
                sleep(max(0, min(pause, self._end - monotonic())))
                # As long as it is away, the last attempt is repeated, and the time counts instead.
                attempts += (
                    0 if is_away and attempts == self._limits.retries else 1
                )
                away += pause if is_away else 0
                continue
            self._was_reached = True
            return answer

    def _in_time(self, call: Callable[[], T]) -> T:
        """Return the result of a call that may hang; a thread of its own can be left behind."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(call())
            except (
                BaseException
            ) as error:  # raised where the result is waited for
                future.set_exception(error)

        Thread(target=run, daemon=True).start()
        try:
            return future.result(
                min(max(0, self._end - monotonic()), TIMEOUT_MAX)
            )
        except TimeoutError:
            self._room = 0
            raise SnapshotError(
                f"{self.host}: reading took longer than {self._limits.seconds:g} s"
            ) from None

    def stream(self, path: str, query: Mapping[str, str]) -> Iterator[Json]:
        """Yield the events of a watch, until the server ends it. Errors are those of `send`."""
        timed = {**query, "watch": "1", "timeoutSeconds": str(_WATCH)}
        try:
            answer = self._request("GET", path, timed, None, self._headers())
            try:
                if answer.status != 200:
                    raise Refused(
                        answer.status,
                        str(
                            (_parsed(answer.read()) or {}).get("message")
                            or answer.reason
                        ),
                    )
                yield from filter(None, map(_parsed, _lines(answer)))
            finally:
                answer.close()
        except (HTTPError, OSError) as error:
            raise SnapshotError(
                f"{self.host}: {getattr(error, 'reason', None) or error}"
            ) from None

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Json | None,
        headers: Mapping[str, str],
    ) -> Any:
        sent = (
            {}
            if body is None
            else {"Content-Type": _CONTENT.get(method, "application/json")}
        )
        return self._api.rest_client.pool_manager.request(
            method,
            f"{self.host}{path}{'?' if query else ''}{urlencode(query)}",
            body=None if body is None else orjson.dumps(body),
            headers={**headers, **sent},
            preload_content=False,
            timeout=_TIMEOUT,
            retries=_ONCE,
        )

    def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Json | None,
    ) -> Json:
        headers = self._headers()
        try:
            answer = self._request(method, path, query, body, headers)
            try:
                data = b"".join(self._pieces(answer))
            finally:
                answer.close()
        except (HTTPError, OSError) as error:  # certificates are files
            cause = getattr(error, "reason", None) or error
            failure = SnapshotError(f"{self.host}: {cause}")
            if isinstance(cause, NewConnectionError | ConnectTimeoutError):
                raise _Later(failure, 0, unsent=True) from None
            # Behind a load balancer, a server that is away is a handshake without end.
            if isinstance(cause, ProtocolError | ReadTimeoutError) or any(
                isinstance(why, SSLEOFError) for why in cause.args
            ):
                raise _Later(failure, 0) from None
            raise failure from None
        if answer.status // 100 != 2:
            reason = (
                (_parsed(data) or {}).get("message")
                or answer.reason
                or "no reason given"
            )
            # Who is not known has changed nothing.
            if answer.status == _UNAUTHORIZED and self._are_renewed(headers):
                raise _Later(Refused(answer.status, str(reason)), 0)
            self._refuse(
                answer.status, answer.headers.get("Retry-After"), str(reason)
            )
        value = _parsed(data)
        if value is None:
            # Without a length, this is how an answer looks that ended early.
            raise _Later(
                SnapshotError(
                    f"{self.host}: is no API server: its answer is not a JSON object"
                ),
                0,
            )
        return value

    def _are_renewed(self, headers: Mapping[str, str]) -> bool:
        """Return whether there are other credentials than those that were sent; files and plugins are asked anew."""
        with self._reading:
            is_old = monotonic() - self._read_at >= _FRESH
            if self._reread and is_old and self._headers() == headers:
                self._read_at = monotonic()
                # Where they cannot be read, the server has said what is wrong.
                with suppress(Exception):
                    read = self._reread()
                    held = self._api.configuration
                    # An empty file, or a plugin that fails, gives none; whoever has none is refused for good (403).
                    if read.api_key:
                        held.api_key = read.api_key
                        held.refresh_api_key_hook = read.refresh_api_key_hook
            return self._headers() != headers

    def _headers(self) -> Mapping[str, str]:
        return dict(self._header_fields())

    def _header_fields(self) -> Iterator[tuple[str, str]]:
        yield from self._api.default_headers.items()
        yield "Accept", "application/json"
        for setting in self._credentials().values():
            if setting["in"] == "header" and setting["value"]:
                # Files of tokens end with a line break, which kubectl leaves out.
                yield setting["key"], setting["value"].strip()

    def _credentials(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what says who asks; tokens that are about to expire are renewed for that."""
        try:
            settings: Mapping[str, Mapping[str, Any]] = (
                self._api.configuration.auth_settings()
            )
        except Exception as error:  # providers of credentials, parsers and files have their own errors
            raise SnapshotError(
                f"{self.host}: the credentials cannot be renewed: {' '.join(str(error).split())}"
            ) from None
        return settings

    def _pieces(self, answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        room = self._limits.answer
        for piece in answer.stream(_PIECE):
            room -= len(piece)
            self._room -= len(piece)
            if room < 0 or self._room < 0:
                subject, maximum = (
                    ("an answer is", self._limits.answer)
                    if room < 0
                    else ("all is", self._limits.total)
                )
                raise SnapshotError(
                    f"{self.host}: {subject} larger than {Quantity(maximum * 10**9, Format.BINARY)}"
                )
            yield piece

    def _refuse(
        self, status: int, retry_after: str | None, reason: str
    ) -> None:
        """Raise what a status means; with ``Retry-After`` the server asks for another attempt, as API servers do."""
        if retry_after is None or (status // 100 != 5 and status != 429):
            raise Refused(status, reason)
        seconds = float(retry_after) if retry_after.isdecimal() else 0
        if seconds > self._limits.wait:
            raise Refused(
                status,
                f"{reason}; it wants to be asked again in {seconds:.15g} s",
            )
        raise _Later(Refused(status, reason), seconds)


def _parsed(data: bytes) -> Json | None:
    """Return the JSON object, if it is one."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the lines of an answer as they come."""
    unfinished = b""
    for piece in answer.stream(_PIECE):
        *lines, unfinished = (unfinished + piece).split(b"\n")
        yield from lines
