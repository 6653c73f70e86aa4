"""Identifiers inside of text: UUIDs, serial numbers, hardware and network addresses. Their form stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, ip_interface
from typing import Final
from uuid import UUID

__all__ = ["Identifiers"]

_PATTERN: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:"
    r"(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
    r"|(?P<serial>[0-9a-fA-F]{16,})"
    r"|(?P<hardware>[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5,})"
    r")(?![0-9A-Za-z])"
)
_ADDRESS: Final = re.compile(r"[0-9a-fA-F:.]+(/\d{1,3})?")
_NETWORK_V4: Final = int(IPv4Address("10.0.0.0"))
_NETWORK_V6: Final = int(IPv6Address("2001:db8::"))
_LOCAL: Final = "02"
"""First byte of a hardware address that nobody has assigned."""


@dataclass
class Identifiers:
    """Numbers identifiers in the order in which they are first seen; the same one always gets the same number."""

    replacements: set[str] = field(default_factory=set)
    """The replacements."""
    _numbers: dict[str, int] = field(default_factory=dict)

    def uid(self, text: str) -> str:
        """Return a replacement for a text that is an identifier as a whole."""
        return str(UUID(int=self._number(text)))

    def replaced(self, text: str, between: Callable[[str], str] = str) -> str:
        """Return the text with a replacement for every identifier in it, and with what `between` makes of the rest."""
        # Eight bytes of a hardware address would also do as an IP address.
        if (
            _ADDRESS.fullmatch(text)
            and not _PATTERN.fullmatch(text)
            and (address := self._address(text))
        ):
            return address
        parts, end = [], 0
        for match in _PATTERN.finditer(text):
            new = self._replacement(match)
            self.replacements.add(new)
            parts += [between(text[end : match.start()]), new]
            end = match.end()
        return "".join((*parts, between(text[end:])))

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers) + 1)

    def _replacement(self, match: re.Match[str]) -> str:
        text = match[0]
        if match["uuid"]:
            return self.uid(text)
        if match["serial"]:
            return f"{self._number(text):0{len(text)}x}"
        digits = f"{self._number(text):0{text.count(':') * 2}x}"
        return ":".join(
            (_LOCAL, *(digits[at : at + 2] for at in range(0, len(digits), 2)))
        )

    def _address(self, text: str) -> str | None:
        """Return a replacement for an IP address, with its prefix length if it has one; None for other texts."""
        try:
            interface = ip_interface(text)
        except ValueError:
            return None
        host_number = self._number(str(interface.ip))
        new: IPv4Address | IPv6Address
        if isinstance(interface, IPv4Interface):
            new = IPv4Address(_NETWORK_V4 + host_number)
        else:
            new = IPv6Address(_NETWORK_V6 + host_number)
        self.replacements.add(str(new))
        return "/".join((str(new), *text.split("/")[1:]))
