"""URLs, as Go's ``net/url`` reads them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from ipaddress import IPv6Address
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
_ZONE: Final = re.compile(
    r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"\u0080-\U0010ffff]|%[0-9A-Fa-f]{2})+"
)
_ESCAPE: Final = re.compile("%([0-9A-Fa-f]{2})")
_ESCAPED_IN_ZONE: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\" %]")
_STRICT_SCHEMES: Final = frozenset({"http", "https"})
"""Those in which only a port may have a colon in front, if the host is not in brackets."""
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
        user, host = _authority(scheme, authority)
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


def _authority(scheme: str, text: str) -> tuple[str, str]:
    user, _, host = text.rpartition("@")
    if not _USER.fullmatch(user):
        raise ValueError("net/url: invalid userinfo")
    if "[" in host:
        return user, _literal(host)
    first, last = host.find(":"), host.rfind(":")
    colon = first if scheme in _STRICT_SCHEMES else last
    if colon >= 0 and not _PORT.fullmatch(host[colon:]):
        raise ValueError("invalid port")
    if not _HOST.fullmatch(host):
        raise ValueError("invalid character in host name")
    if "%" in host:
        host = _decoded(host)
    return user, host


def _literal(host: str) -> str:
    """Read an IPv6 address in brackets, perhaps with a zone behind ``%25``, and a port."""
    inner, bracket, port = host.rpartition("]")
    if not bracket or not _PORT.fullmatch(port):
        raise ValueError("missing ']' in host, or invalid port")
    address, has_zone, zone = inner[1:].partition("%25")
    # Python would take what is behind any other mark for a zone.
    if host.rindex("[") or "%" in address:
        raise ValueError("invalid IP-literal")
    IPv6Address(address)
    if not has_zone:
        return host
    return f"[{address}%{_zone(zone)}]{port}"


def _zone(text: str) -> str:
    """Read a zone: escapes may stand for what could be written without, and for spaces and percent signs."""
    if not _ZONE.fullmatch(text):
        raise ValueError("invalid zone in host")

    def character(escape: re.Match[str]) -> str:
        char = chr(int(escape[1], 16))
        if not _ESCAPED_IN_ZONE.fullmatch(char):
            raise ValueError(f"invalid URL escape {escape[0]!r}")
        return char

    return _ESCAPE.sub(character, text)
