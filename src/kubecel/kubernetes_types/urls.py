"""URLs, as Go's ``net/url`` reads them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote_to_bytes

__all__ = ["Url", "is_url", "parse_url"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
_PORT: Final = re.compile(r"(?::[0-9]*)?", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST: Final = re.compile(
    r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"\u0080-\U0010ffff]|%25|%[89A-Fa-f][0-9A-Fa-f])*"
)
_USER: Final = re.compile(r"(?:[A-Za-z0-9\-._:~!$&'()*+,;=@]|%[0-9A-Fa-f]{2})*")
_VALID_PATH: Final = re.compile(
    r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]/]|%[0-9A-Fa-f]{2})*"
)
_SAFE_IN_PATH: Final = "$&+,/:;=@"


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute URL or an absolute path, in parts. The path is kept as it was written."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    fragment: str = ""

    def _host_and_port(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        if not colon or not _PORT.fullmatch(f":{port}"):
            host, port = self.host, ""
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        return self._host_and_port()[0]

    @property
    def port(self) -> str:
        """The port's digits, or nothing."""
        return self._host_and_port()[1]

    @property
    def escaped_path(self) -> str:
        """The path as it was written if that is valid, otherwise escaped."""
        if _VALID_PATH.fullmatch(self.path):
            return self.path
        return quote(unquote_to_bytes(self.path), safe=_SAFE_IN_PATH)

    @property
    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The query's values by name; pairs that are not well formed are left out."""
        values: defaultdict[str, list[str]] = defaultdict(list)
        for pair in self.query.split("&"):
            if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
                continue
            name, _, value = pair.replace("+", " ").partition("=")
            values[_decoded(name)].append(_decoded(value))
        return {name: tuple(texts) for name, texts in values.items()}


def parse_url(text: str) -> Url:
    """Read an absolute URL or path.

    Raises
    ------
    ValueError
        The text is neither.
    """
    # The strict form knows no fragments, so what it accepts is read once more.
    try:
        _split(text, request=True)
        plain, _, fragment = text.partition("#")
        url = _split(plain, request=False)
    except ValueError as error:
        raise ValueError(
            f"URL parse error during conversion from string: parse {text!r}: {error}"
        ) from error
    return Url(url.scheme, url.user, url.host, url.path, url.query, fragment)


def is_url(text: str) -> bool:
    """Whether a text is an absolute URL or path."""
    try:
        _split(text, request=True)
    except ValueError:
        return False
    return True


def _decoded(text: str) -> str:
    return unquote_to_bytes(text).decode("utf-8", "replace")


def _split(text: str, *, request: bool) -> Url:
    """Take a URL apart as ``url.parse`` of Go does, with or without ``viaRequest``."""
    if not text or _CONTROL.search(text):
        raise ValueError("invalid URI for request")
    if text == "*":
        return Url(path="*")
    scheme, remainder = _scheme(text)
    path, _, query = remainder.partition("?")
    if not path.startswith("/"):
        if scheme:
            return Url(scheme, query=query)
        raise ValueError("invalid URI for request")
    user = host = ""
    # Without a scheme ``//host/path`` is a host only in the lenient form, and
    # ``///path`` never has one.
    may_have_host = scheme or not (request or path.startswith("///"))
    if path.startswith("//") and may_have_host:
        authority, slash, path_of_host = path[2:].partition("/")
        user, host = _authority(authority)
        path = slash + path_of_host
    if _BAD_ESCAPE.search(path):
        raise ValueError("invalid URL escape")
    return Url(scheme, user, host, path, query)


def _scheme(text: str) -> tuple[str, str]:
    head, colon, tail = text.partition(":")
    if colon and not head:
        raise ValueError("missing protocol scheme")
    if colon and _SCHEME.fullmatch(head):
        return (head.lower(), tail)
    return ("", text)


def _authority(text: str) -> tuple[str, str]:
    user, _, host = text.rpartition("@")
    if not _USER.fullmatch(user):
        raise ValueError("net/url: invalid userinfo")
    if host.startswith("["):
        closing = host.rfind("]")
        if closing < 0 or not _PORT.fullmatch(host[closing + 1 :]):
            raise ValueError("missing ']' in host, or invalid port")
    elif ":" in host and not _PORT.fullmatch(host[host.rindex(":") :]):
        raise ValueError("invalid port")
    if not _HOST.fullmatch(host):
        raise ValueError("invalid character in host name")
    if "%" in host:
        host = _decoded(host)
    return user, host
