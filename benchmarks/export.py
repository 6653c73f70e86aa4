"""Generated objects as files that any other program can read: one list in JSON for each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import orjson

from benchmarks.objects import Json

__all__ = ["export"]

_HEAD: Final = b'{"apiVersion":"v1","kind":"List","items":['


def export(objects: Iterable[Json], directory: Path) -> Counter[str]:
    """Write the objects to a directory, which is made; returns how many there were of each kind.

    They are written as they come, so that a million devices need no memory.
    """
    directory.mkdir(parents=True, exist_ok=True)
    count: Counter[str] = Counter()
    with ExitStack() as stack:
        files: dict[str, IO[bytes]] = {}
        for api_object in objects:
            kind = api_object["kind"]
            if kind not in files:
                files[kind] = stack.enter_context(
                    (directory / f"{kind.lower()}.json").open("wb")
                )
                files[kind].write(_HEAD)
            files[kind].write(
                (b",\n" if count[kind] else b"\n") + orjson.dumps(api_object)
            )
            count[kind] += 1
        for file in files.values():
            file.write(b"\n]}\n")
    return count
