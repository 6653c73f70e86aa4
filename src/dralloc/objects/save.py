"""Writes objects or text to a file: all of it or nothing. Objects become JSON, or YAML as `load` reads it."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR
from os import strerror
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE
from typing import IO, Any, Final

import orjson
import yaml

from dralloc.objects.errors import DrallocError

__all__ = [
    "dump_yaml",
    "require_writable",
    "save",
    "write_objects",
    "write_text",
]

# ----------------------------------------------------------------------------
# Objects as YAML text, the way `load` reads them back.

try:
    from yaml import CSafeDumper as _SafeDumper
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeDumper as _SafeDumper  # type: ignore[assignment]


class _Dumper(_SafeDumper):
    """Puts quotes around texts that Kubernetes, or `load`, would take for something else without them.

    PyYAML does so where it would itself. Source: ``resolve.go`` of ``go.yaml.in/yaml/v2``.
    """


_TAG: Final = "tag:yaml.org,2002:"
for _kind, _pattern, _first in (
    ("bool", "[yYnN]", "yYnN"),
    ("int", "[-+]?0(?:[oO][0-7_]+|[xX][0-9a-fA-F_]+|[bB][01_]+)", "-+0"),
    (
        "float",
        r"[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9_]+)?",
        "-+.0123456789",
    ),
):
    _Dumper.add_implicit_resolver(
        f"{_TAG}{_kind}", re.compile(rf"(?:{_pattern})\Z"), list(_first)
    )


def dump_yaml(documents: Iterable[Any]) -> str:
    """Return one YAML document per object, fields in the order of the object."""
    return yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        explicit_start=True,
        default_flow_style=False,
        width=120,
    )


_JSON: Final = (".json", ".json.gz")
_HEAD: Final = b'{"apiVersion":"v1","kind":"List","items":['


def save(objects: Iterable[Any], path: Path) -> int:
    """Write objects to a file: as a list in JSON if it is called ``*.json``, otherwise as YAML; with ``.gz`` packed.

    The file appears under its name only once it is complete.

    Returns
    -------
    int
        How many objects were written.

    Raises
    ------
    DrallocError
        The file cannot be written.
    """
    with _whole_file(path) as file:
        if path.suffix != ".gz":
            return write_objects(objects, file, json=path.name.endswith(_JSON))
        # No name and no time: the same objects are the same bytes.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            return write_objects(
                objects, packed, json=path.name.endswith(_JSON)
            )


def write_objects(
    objects: Iterable[Any],
    file: IO[bytes] | gzip.GzipFile,
    *,
    json: bool = False,
) -> int:
    """Write objects as YAML documents or as one list in JSON; returns how many."""
    count = 0
    for count, raw in enumerate(objects, 1):
        if json:
            file.write(
                (b",\n" if count > 1 else _HEAD + b"\n") + orjson.dumps(raw)
            )
        else:
            file.write(dump_yaml([raw]).encode())
    if json:
        file.write(b"\n]}\n" if count else _HEAD + b"]}\n")
    return count


def write_text(text: str, path: Path) -> None:
    """Write a text to a file, which appears under its name only once it is complete.

    Raises
    ------
    DrallocError
        The file cannot be written.
    """
    with _whole_file(path) as file:
        file.write(text.encode())


def require_writable(path: Path) -> None:
    """Refuse at once a path that could not be written after long work. Nothing is left there.

    Raises
    ------
    DrallocError
        A file of this name cannot be written.
    """
    try:
        target = path.resolve()
        if target.is_dir():
            raise IsADirectoryError(EISDIR, strerror(EISDIR))
        if target.exists() and not target.is_file():  # a pipe or a device
            return
        partial = _partial(target)
        partial.touch(exist_ok=False)
        partial.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` at the end, unless something goes wrong; then it says what."""
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():  # a pipe or a device
            with target.open("wb") as file:
                yield file
            return
        partial = _partial(target)
        try:
            with partial.open("xb") as file:
                # As private as it was, on file systems that know of that.
                with suppress(OSError):
                    partial.chmod(S_IMODE(target.stat().st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _partial(target: Path) -> Path:
    """Return where a file is until it is complete."""
    # Not named after the process: in containers the next one has the same number as one that was killed.
    return target.with_name(f".dralloc-{token_hex(8)}.partial")


def _unwritable(path: Path, error: OSError) -> DrallocError:
    return DrallocError(f"{path}: cannot be written: {error.strerror or error}")
