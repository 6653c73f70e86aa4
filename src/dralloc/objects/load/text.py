"""From bytes to text."""

from __future__ import annotations

import gzip
import os
import zlib
from codecs import getincrementaldecoder
from io import BytesIO
from pathlib import Path
from stat import S_ISCHR
from typing import Final

__all__ = [
    "DEPTH",
    "TOO_DEEP",
    "TextError",
    "content",
    "decoded",
    "require_utf8",
    "unpacked",
]

DEPTH: Final = 254
"""How many levels a document may have; objects of Kubernetes have some 30. It is how deep orjson writes."""

TOO_DEEP: Final = f"is nested too deeply, more than {DEPTH} levels"

_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_CHUNK: Final = 1 << 20


class TextError(Exception):
    """A text that cannot be read at all."""


def content(path: Path, limit: int) -> bytes:
    """All bytes of a file or a pipe; of a device, which may never end, no more than the limit.

    Raises
    ------
    OSError
        It cannot be read.
    TextError
        It is a device that goes on behind the limit.
    """
    with path.open("rb") as file:
        if not S_ISCHR(os.fstat(file.fileno()).st_mode):
            return file.read()
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TextError(f"is a device that gives more than {limit} bytes")
    return data


def unpacked(data: bytes, limit: int) -> bytes:
    """Without compression and byte order mark.

    Parameters
    ----------
    limit
        The most bytes that compressed data may become.
    """
    return (
        _decompressed(data, limit) if data.startswith(_GZIP) else data
    ).removeprefix(_BOM)


def _decompressed(data: bytes, limit: int) -> bytes:
    whole = BytesIO()
    try:
        with gzip.open(BytesIO(data)) as packed:
            while chunk := packed.read(_CHUNK):
                if whole.tell() + len(chunk) > limit:
                    raise TextError(
                        f"unpacks to more than {limit} bytes; --limit unpacked=AMOUNT allows more"
                    )
                whole.write(chunk)
    except (OSError, EOFError, zlib.error) as error:
        raise TextError(f"is not valid gzip data: {error}") from None
    return whole.getvalue()


def decoded(data: bytes) -> str:
    """The text that the bytes are in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(data, error.start) from None


def require_utf8(data: bytes) -> None:
    """Refuse what `decoded` would refuse, without a second copy of the text."""
    decoder = getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _CHUNK):
        kept = len(decoder.getstate()[0])
        end = start + _CHUNK
        try:
            decoder.decode(memoryview(data)[start:end], final=end >= len(data))
        except UnicodeDecodeError as error:
            raise _not_utf8(data, start - kept + error.start) from None


def _not_utf8(data: bytes, position: int) -> TextError:
    return TextError(
        f"is not text in UTF-8: byte 0x{data[position]:02x} at offset {position}"
    )
