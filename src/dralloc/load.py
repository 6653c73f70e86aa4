"""From files, directories and standard input to a `Cluster`.

Text is JSON when it starts like JSON, and YAML otherwise; both may be compressed with gzip. Several documents in one
file and lists (``kind: List``, ``kind: ResourceSliceList``) are taken apart.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar, Final

import orjson
import yaml

from dralloc.api import ObjectReader
from dralloc.cluster import Cluster, Located
from dralloc.errors import Finding, InputError
from dralloc.garbage import without_garbage_collection

try:
    from yaml import CSafeLoader as _YamlLoader
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as _YamlLoader  # type: ignore[assignment]

__all__ = ["STDIN", "Reading", "load", "load_documents", "load_objects", "load_text", "read", "read_documents"]

STDIN: Final = "-"
"""The path that stands for standard input."""

_SUFFIXES: Final = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_BEGINNING: Final = 4096
_TEXT: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"
_ITEMS: Final = re.compile(rb'"items"\s*:\s*\[(\s*)(\{\s*"[^"\\]*")')
_SPACE: Final = re.compile(r"\s*")
_CLOSING_BRACKETS: Final = 8
"""How many brackets at the end of a list are tried as the one that closes its items."""
_OTHER: Final = "no Kubernetes object"
_SPLIT_FROM: Final = 1 << 20
"""Lists in JSON from this many bytes on are parsed item by item, as plain data takes ten times the room of its text."""


@without_garbage_collection()
def load(*paths: str | Path, strict: bool = False, stdin: IO[bytes] | None = None) -> Cluster:
    """Read everything that is given and put it together.

    Parameters
    ----------
    paths
        Files, directories (all ``*.yaml``, ``*.yml`` and ``*.json`` in and below them, also with ``.gz``, in the order
        of their names; what is no Kubernetes object there is skipped and counted), or ``-`` for standard input.
    strict
        Whether a field that is not known in an object of ``resource.k8s.io`` is an error.
    stdin
        What ``-`` reads; by default the standard input of the process.

    Raises
    ------
    InputError
        Something cannot be read or is not valid. It holds a finding for every defect in all of the input.
    """
    loading = _Loading(ObjectReader(strict=strict))
    loading.add_all(paths, stdin)
    return loading.cluster()


@without_garbage_collection()
def load_objects(*paths: str | Path, stdin: IO[bytes] | None = None) -> list[dict[str, Any]]:
    """Read what `load` reads, as plain data in the order in which it is given; kinds and fields are not looked at.

    Raises
    ------
    InputError
        Something cannot be read, or is no object of Kubernetes.
    """
    keeper = _Keeper()
    loading = _Loading(keeper)
    loading.add_all(paths, stdin)
    errors = keeper.errors or ([] if loading.documents else loading.empty)
    if errors:
        raise InputError(errors)
    return keeper.kept


class _Keeper(ObjectReader):
    """Keeps objects as they were written."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[dict[str, Any]] = []

    def read(self, raw: dict[str, Any], source: str) -> None:
        if isinstance(raw.get("kind"), str) and isinstance(raw.get("apiVersion"), str):
            self.kept.append(raw)
        else:
            self.errors.append(Finding(source, "", "", "is no Kubernetes object: it needs apiVersion and kind"))


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, whether or not all of it can be used.

    Parameters
    ----------
    cluster
        The objects that can be used. Of objects with the same name, the first.
    refused
        Why the others cannot.
    unknown
        Fields that are not known and were left out.
    """

    cluster: Cluster
    refused: tuple[Finding, ...]
    unknown: tuple[Finding, ...]


@without_garbage_collection()
def read(*paths: str | Path, stdin: IO[bytes] | None = None) -> Reading:
    """As `load`, but objects that cannot be used are no obstacle to the others.

    Raises
    ------
    InputError
        A file cannot be read, or there is nothing in any of them.
    """
    loading = _Loading(ObjectReader())
    loading.add_all(paths, stdin)
    return loading.reading()


@without_garbage_collection()
def read_documents(documents: Iterable[Any], *, source: str = "") -> Reading:
    """As `load_documents`, but objects that cannot be used are no obstacle to the others."""
    loading = _Loading(ObjectReader())
    for document in documents:
        loading.add_document(document, source)
    return loading.reading()


@without_garbage_collection()
def load_text(text: str | bytes, *, source: str = "<text>", strict: bool = False) -> Cluster:
    """Read YAML or JSON text; `source` names it in findings. Otherwise like `load`."""
    loading = _Loading(ObjectReader(strict=strict))
    loading.add_text(text.encode() if isinstance(text, str) else text, source)
    return loading.cluster()


@without_garbage_collection()
def load_documents(documents: Iterable[Any], *, source: str = "", strict: bool = False) -> Cluster:
    """Read objects that are plain data already, in any supported version. Otherwise like `load`."""
    loading = _Loading(ObjectReader(strict=strict))
    for document in documents:
        loading.add_document(document, source)
    return loading.cluster()


@dataclass
class _Loading:
    """One call of `load`: what was read so far, and what is wrong with it."""

    reader: ObjectReader
    objects: list[Located] = field(default_factory=list)
    empty: list[Finding] = field(default_factory=list)
    documents: int = 0

    def cluster(self) -> Cluster:
        errors = list(self.reader.errors) or ([] if self.documents else list(self.empty))
        try:
            cluster = Cluster.of(self.objects, (*self.empty, *self.reader.warnings), self.reader.skipped)
        except InputError as conflicts:
            errors += conflicts.findings
        if errors:
            raise InputError(errors)
        return cluster

    def reading(self) -> Reading:
        unreadable = [finding for finding in self.reader.errors if not (finding.subject or finding.path)]
        if unreadable or not self.documents:
            raise InputError(unreadable or self.empty)
        refused = list(self.reader.errors)
        try:
            cluster = Cluster.of(self.objects, self.empty, self.reader.skipped)
        except InputError as conflicts:
            refused += conflicts.findings
            first = {(one.object.kind, one.object.key): one for one in reversed(self.objects)}
            cluster = Cluster.of(reversed(first.values()), self.empty, self.reader.skipped)
        return Reading(cluster, tuple(refused), tuple(self.reader.warnings))

    def add_all(self, paths: Iterable[str | Path], stdin: IO[bytes] | None) -> None:
        for path in dict.fromkeys(map(str, paths)):
            if path == STDIN:
                self.add_text((stdin or sys.stdin.buffer).read(), "<stdin>")
            else:
                self.add_path(Path(path))

    def add_path(self, path: Path) -> None:
        if not path.is_dir():
            self._add_file(path)
            return
        files = sorted(file for file in path.rglob("*") if file.name.endswith(_SUFFIXES) and file.is_file())
        if not files:
            self._note(self.empty, str(path), "holds no *.yaml, *.yml or *.json file")
        for file in files:
            self._add_file(file, found=True)

    def _add_file(self, path: Path, *, found: bool = False) -> None:
        """Add a file; one that was found in a directory may hold something else than objects."""
        try:
            data = path.read_bytes()
        except OSError as error:
            self._note(self.reader.errors, str(path), f"cannot be read: {error.strerror}")
        else:
            self.add_text(data, str(path), found=found)

    def add_text(self, data: bytes, source: str, *, found: bool = False) -> None:
        documents: list[Any] = []
        failure: str | None = None
        try:
            data = _unpacked(data)
            if data[:_BEGINNING].lstrip()[:1] not in (b"{", b"["):
                documents, failure = _yaml_documents(_decoded(data))
            elif not self._add_list(data, source):
                documents, failure = _json_documents(data, source)
            else:
                return
        except _TextError as error:
            failure = str(error)
        several = len(documents) + (failure is not None) > 1
        for number, document in enumerate(documents, start=1):
            place = f"{source}: document {number}" if several else source
            try:
                if found and document is not None and not _is_object(document):
                    self.reader.skipped[_OTHER] += 1
                elif document is not None:
                    self.add_document(document, place)
            except RecursionError:
                self._note(self.reader.errors, place, "is nested too deeply")
        if failure is not None:
            place = f"{source}: document {len(documents) + 1}" if several else source
            self._note(self.reader.errors, place, failure)
        elif all(document is None for document in documents):
            self._note(self.empty, source, "holds no objects")

    def _add_list(self, data: bytes, source: str) -> bool:
        """Add a long list in JSON item by item, if its text looks as expected."""
        split = _split_list(data) if len(data) >= _SPLIT_FROM else None
        if split is None:
            return False
        shell, items = split
        for item in items:
            self.add_document(_item(item, shell), source)
        return True

    def add_document(self, document: Any, source: str) -> None:
        self.documents += 1
        if not isinstance(document, dict):
            self._note(self.reader.errors, source, f"is {_name_of(document)}, not an object")
            return
        if _is_list(document.get("kind")) and isinstance(document.get("items", ""), list | None):
            for item in document["items"] or ():
                self.add_document(_item(item, document), source)
            return
        found = self.reader.read(document, source)
        if found is not None:
            self.objects.append(Located(found, source))

    @staticmethod
    def _note(findings: list[Finding], source: str, rule: str) -> None:
        findings.append(Finding(source, "", "", rule))


def _is_object(document: Any) -> bool:
    """Whether a document claims to be a Kubernetes object."""
    return isinstance(document, dict) and bool(document.keys() & {"apiVersion", "kind"})


class _TextError(Exception):
    """A text that cannot be read at all."""


def _item(item: Any, parent: dict[str, Any]) -> Any:
    """An item of a list, with the kind and version that items of typed lists leave out."""
    if not isinstance(item, dict) or "kind" in item or parent["kind"] == "List":
        return item
    return {"apiVersion": parent.get("apiVersion"), "kind": parent["kind"].removesuffix("List"), **item}


def _unpacked(data: bytes) -> bytes:
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise _TextError(f"is not valid gzip data: {error}") from None
    return data.removeprefix(_BOM)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _TextError(f"is not text in UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}") from None


def _json_documents(data: bytes, source: str) -> tuple[list[Any], str | None]:
    """The values in a JSON text, one or several in a row, and why there are not more."""
    try:
        return [orjson.loads(data)], None
    except orjson.JSONDecodeError:
        text = _decoded(data)
    documents: list[Any] = []
    position = _first_at(text, 0)
    while position < len(text):
        try:
            document, end = json.JSONDecoder().raw_decode(text, position)
        except json.JSONDecodeError as error:
            flow = _yaml_documents(text) if source.endswith((".yaml", ".yml")) else ([], None)
            if flow[0]:
                return flow
            return documents, f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        documents.append(document)
        position = _first_at(text, end)
    return documents, None


def _first_at(text: str, position: int) -> int:
    """Where the next value starts."""
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _split_list(data: bytes) -> tuple[dict[str, Any], Iterator[Any]] | None:
    """A list's own fields and its items, one by one, for a list whose items all start alike; None for other texts.

    Items are cut where the text ``}, {"apiVersion"`` (or whatever their first key is) stands. As every piece and what
    is left of the list without them must parse, a cut in the wrong place cannot go unnoticed.
    """
    opening = _ITEMS.search(data)
    if opening is None:
        return None
    indent, first_key = opening.groups()
    separators = (b"}," + indent + first_key, b"}, " + first_key)
    separator = next((one for one in separators if one in data), None)
    closing = len(data)
    for _ in range(_CLOSING_BRACKETS if separator else 0):
        closing = data.rfind(b"]", opening.end(), closing)
        try:
            shell = orjson.loads(data[: opening.start(1)] + b"true" + data[max(closing, 0) :])
        except orjson.JSONDecodeError:
            continue
        if separator and isinstance(shell, dict) and shell.get("items") == [True] and _is_list(shell.get("kind")):
            return shell, _pieces(data, opening.start(2), closing, separator)
    return None


def _pieces(data: bytes, start: int, closing: int, separator: bytes) -> Iterator[Any]:
    view = memoryview(data)
    count = 0
    while start < closing:
        cut = data.find(separator, start, closing)
        end = closing if cut < 0 else cut + 1
        try:
            item = orjson.loads(view[start:end])
        except orjson.JSONDecodeError:
            documents, failure = _json_documents(data, "")
            if failure is not None:
                raise _TextError(failure) from None
            yield from documents[0]["items"][count:]
            return
        yield item
        count, start = count + 1, end + 1


def _is_list(kind: object) -> bool:
    return isinstance(kind, str) and kind.endswith("List")


class _Loader(_YamlLoader):
    """YAML as Kubernetes reads it: no dates, no ``yes`` for true, no numbers to base 60; keys are text and unique."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}  # type: ignore[misc]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        node.value = [(self._text_key(key), value) for key, value in node.value]
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != _MERGE:
                raise yaml.constructor.ConstructorError(
                    problem=f'the key "{key.value}" is there twice', problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def _text_key(self, key: yaml.Node) -> yaml.Node:
        if key.tag in (_TEXT, _MERGE):
            return key
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(problem="a key must be text", problem_mark=key.start_mark)
        return yaml.ScalarNode(_TEXT, json.dumps(self.construct_object(key)), key.start_mark)


for _tag, _pattern, _first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def _yaml_documents(text: str) -> tuple[list[Any], str | None]:
    """The documents of a YAML text up to the first that cannot be read, and why it cannot."""
    documents: list[Any] = []
    try:
        documents.extend(yaml.load_all(text, _Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        return documents, f"is not YAML: {place}{error.problem or error.context}"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return documents, f"is not YAML: {' '.join(str(error).split())}"
    return documents, None


def _name_of(document: object) -> str:
    return "a list" if isinstance(document, list) else f"just {json.dumps(document, default=str)[:40]}"
