"""Finished rows on disk, one JSON object per line, each with the key of what it is the result of."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType, UnionType
from typing import IO, Final, Self

from dralloc.lab.study.trial import Row
from dralloc.objects.errors import DrallocError

__all__ = ["Journal"]

_FIELDS: Final[dict[str, type | UnionType]] = {
    "key": str,
    "seed": int,
    "demand": int | float,
    "mode": str,
    "placed": int,
    "total": int,
    "weight": int,
    "status": str,
    "bound": int | None,
    "gap": int | float | None,
    "seconds": dict,
    "utilisation": dict,
}
"""What a whole line holds."""


class Journal:
    """Keeps rows, in a file if there is one. A damaged line, such as one cut off when a study was killed, is left out.

    ``rows`` has the finished rows by key.

    Raises
    ------
    DrallocError
        The file cannot be read or written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self.rows: dict[str, Row] = {}
        try:
            if path is not None and path.exists():
                self.rows = _lines(path)
        except OSError as error:
            raise DrallocError(
                f"{path}: cannot be read: {error.strerror or error}"
            ) from None

    def __enter__(self) -> Self:
        try:
            self._file = (
                self._path.open("ab") if self._path is not None else None
            )
            if self._file is not None and self._file.tell():
                # What was cut off must not swallow the next line.
                self._file.write(b"\n")
        except OSError as error:
            raise DrallocError(
                f"{self._path}: cannot be written: {error.strerror or error}"
            ) from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, key: str, row: Row) -> None:
        """Keep a row; it is on the disk when this returns."""
        self.rows[key] = row
        if self._file is not None:
            # Not orjson, which has integers of 64 bits only: weights of many priorities are larger.
            line = json.dumps({"key": key, **row})
            self._file.write(f"{line}\n".encode())
            self._file.flush()
            os.fsync(self._file.fileno())


def _lines(path: Path) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for line in path.read_bytes().splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and all(
            isinstance(row.get(name), kind) for name, kind in _FIELDS.items()
        ):
            rows[row.pop("key")] = row
    return rows
