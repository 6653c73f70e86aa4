"""From bytes to text."""

from __future__ import annotations

import gzip
import zlib
from typing import Final

__all__ = ["TextError", "decoded", "unpacked"]

_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"


class TextError(Exception):
    """A text that cannot be read at all."""


def unpacked(data: bytes) -> bytes:
    """Without compression and byte order mark."""
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise TextError(f"is not valid gzip data: {error}") from None
    return data.removeprefix(_BOM)


def decoded(data: bytes) -> str:
    """The text that the bytes are in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise TextError(f"is not text in UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}") from None
