"""IP addresses and networks, as Go's ``net/netip`` reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

__all__ = ["Cidr", "Ip", "parse_cidr", "parse_ip"]

_PREFIX: Final = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ip:
    """An address."""

    address: IPv4Address | IPv6Address

    def __str__(self) -> str:
        return str(self.address)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.address.packed)


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address with the length of its network prefix; the bits behind the prefix are kept."""

    address: IPv4Address | IPv6Address
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    @property
    def size(self) -> int:
        """The number of bytes that the prefix touches."""
        return -(-self.bits // 8)

    def masked(self) -> Cidr:
        """The network itself: all bits behind the prefix are zero."""
        spare = self.address.max_prefixlen - self.bits
        return Cidr(
            type(self.address)(int(self.address) >> spare << spare), self.bits
        )

    def contains(self, address: IPv4Address | IPv6Address) -> bool:
        """Whether an address is in the network."""
        if address.version != self.address.version:
            return False
        spare = self.address.max_prefixlen - self.bits
        return int(address) >> spare == int(self.address) >> spare


def parse_ip(text: str) -> Ip:
    """Read an address; zones and IPv4-mapped IPv6 addresses are refused.

    Raises
    ------
    ValueError
        The text is not such an address.
    """
    if "%" in text:
        raise ValueError(f"IP address {text!r} with zone value is not allowed")
    try:
        # Python takes digits of other scripts, too.
        address = ip_address(text) if text.isascii() else None
    except ValueError:
        address = None
    if address is None or "/" in text:
        raise ValueError(
            f"IP Address {text!r} parse error during conversion from string"
        )
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return Ip(address)


def parse_cidr(text: str) -> Cidr:
    """Read a network.

    Raises
    ------
    ValueError
        The text is not a network.
    """
    address_text, slash, bits_text = text.rpartition("/")
    try:
        address = parse_ip(address_text).address
    except ValueError as error:
        raise ValueError(
            f"network address parse error during conversion from string: {error}"
        ) from error
    if (
        not slash
        or not _PREFIX.fullmatch(bits_text)
        or int(bits_text) > address.max_prefixlen
    ):
        raise ValueError(
            f"network address parse error during conversion from string: {text!r}"
        )
    return Cidr(address, int(bits_text))
