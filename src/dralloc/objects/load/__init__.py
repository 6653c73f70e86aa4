"""From files, directories and standard input to a `Cluster`.

Text is JSON when it starts like JSON, and YAML otherwise; both may be compressed with gzip. Several documents in one
file and lists (``kind: List``, ``kind: ResourceSliceList``) are taken apart.

`load` and `read` are what others call. `Loading` goes through what was given; long lists of devices in JSON are
recognised by their text (`SliceTexts`).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from json import JSONDecodeError
from os import PathLike
from pathlib import Path
from typing import IO, Any, Final

from dralloc.objects.api import ObjectReader, ResourceSlice
from dralloc.objects.api.mended import Mended
from dralloc.objects.api.slice_reader import LISTS, SliceReader
from dralloc.objects.assembly.given_objects import Identity, first_of, identity
from dralloc.objects.cluster import Cluster, Located
from dralloc.objects.errors import Finding, InputError
from dralloc.objects.limits import LIMITS, Limits, without_garbage_collection
from dralloc.objects.load.json_text import (
    SPLIT_FROM,
    ItemAt,
    TextError,
    content,
    is_list,
    item_of,
    json_value,
    split_list,
    unpacked,
)
from dralloc.objects.load.positions import ObjectSource, SourceText, located
from dralloc.objects.load.yaml_pieces import YamlPieces
from dralloc.objects.load.yaml_text import documents_of, starts_like_json
from dralloc.objects.notebook import Brief

__all__ = [
    "STDIN",
    "Reading",
    "load",
    "load_documents",
    "load_objects",
    "load_text",
    "located",
    "read",
    "read_documents",
]

# ----------------------------------------------------------------------------
# ResourceSlices in JSON that publish what others do: their long lists are recognised
# by their text, and not parsed.
#
# Nodes of a kind publish the same devices, but for the identifiers in some
# attributes. So the text of a list is cut at the values of such attributes. Whatever
# else is in it, however much, is the same as in lists that were read before, and so
# is everything that could be wrong with it.

_LIST: Final = re.compile(rb'"(%s)"\s*:\s*(\[)' % "|".join(LISTS).encode())
_TEXT: Final = re.compile(rb'"string"\s*:\s*"([ !#-\[\]-~]{33,})"')
"""The value of an attribute that is long and plain. As it follows a key, it is a value wherever the text is JSON."""

_BLANK: Final = b"\x7f"
"""Stands for such a value. Texts that have this character themselves are not looked at."""

_HERE: Final = b'"\x7fhere"'
_CLOSING_BRACKETS: Final = 4
"""How many brackets at the end of a slice are tried as the one that closes its list."""

Template = Callable[[Sequence[str]], tuple[Any, ...]]


class SliceTexts:
    """Reads items of lists, and the lists in ResourceSlices among them once for all that are alike.

    A text that is there once costs no memory: what makes lists of it is worked out when it comes again.

    Parameters
    ----------
    reader
        Reads what is seen for the first time, and keeps equal parts once.
    """

    def __init__(self, reader: SliceReader) -> None:
        self._reader = reader
        self._seen: set[tuple[str, bytes]] = set()
        self._templates: dict[tuple[str, bytes], Template | None] = {}

    def item_at(self, data: bytes, start: int, end: int) -> Any:
        """Return the value that a part of the data is, as plain data but for lists of slices that are known.

        Raises
        ------
        json.JSONDecodeError
            This is no JSON.
        """
        text = data[start:end]
        opening = _LIST.search(text)
        if opening is not None and _BLANK not in text:
            key, begin = opening[1].decode(), opening.start(2)
            for closing in islice(_brackets_before(text), _CLOSING_BRACKETS):
                item = _head(key, text[:begin] + _HERE + text[closing:])
                if item is not None:
                    item["spec"][key] = self._list(key, text[begin:closing])
                    return (
                        json_value(text) if item["spec"][key] is None else item
                    )
        return json_value(text)

    def _list(self, key: str, text: bytes) -> tuple[Any, ...] | None:
        """Return the list that the text is; None for one that is not known yet, or unusual."""
        parts = _TEXT.split(text)
        digest = blake2b(_BLANK.join(parts[::2]), digest_size=16).digest()
        # Devices and counter sets can be written alike.
        name = key, digest
        if name not in self._templates:
            if name not in self._seen:
                self._seen.add(name)
                return None
            self._templates[name] = self._template(key, parts[::2])
        template = self._templates[name]
        # Texts are decoded together, as there are a million of them.
        return (
            template(
                _BLANK.join(parts[1::2]).decode().split("\x7f")
                if len(parts) > 1
                else ()
            )
            if template
            else None
        )

    def _template(self, key: str, parts: Sequence[bytes]) -> Template | None:
        blanks = [f"\x7f{index}" for index in range(len(parts) - 1)]
        written = [b'"string":"%s"' % blank.encode() for blank in blanks]
        text = b"".join(
            part
            for pair in zip(parts, [*written, b""], strict=True)
            for part in pair
        )
        try:
            return self._reader.template(key, json_value(text), blanks)
        except JSONDecodeError:
            return None


def _brackets_before(text: bytes) -> Iterator[int]:
    """Yield where closing brackets end, from the last on."""
    end = len(text)
    while (end := text.rfind(b"]", 0, end)) >= 0:
        yield end + 1


def _head(key: str, text: bytes) -> dict[str, Any] | None:
    """Return a slice without the list, if it is one, the list is where it belongs, and nothing else is missing."""
    try:
        item = json_value(text)
    except JSONDecodeError:
        return None
    # In a typed list, items do not say what they are.
    if (
        not isinstance(item, dict)
        or item.get("kind", ResourceSlice.kind) != ResourceSlice.kind
    ):
        return None
    spec = item.get("spec")
    complete = (
        isinstance(spec, dict)
        and spec.keys() >= {"driver", "pool"}
        and spec.get(key) == _HERE[1:-1].decode()
    )
    return item if complete else None


OnePath = str | PathLike[str]
Paths = OnePath | Mapping[str, Any] | Iterable[OnePath | Mapping[str, Any]]
"""A path or an object that is plain data already, or several in one."""

STDIN: Final = "-"
"""The path that stands for standard input."""

GIVEN: Final = "<objects>"
"""Where objects are from that were plain data."""

_SUFFIXES: Final = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
_OTHER: Final = "no Kubernetes object"
_TEMPLATE: Final = re.compile(rb"\{\{-?\s*[\w.$\"/(]")
"""How the actions of Go templates begin, of which charts of Helm are made."""
_SYNTAX: Final = re.compile(r"line ([0-9]+), column ([0-9]+): ")
"""Where parsers say that a text cannot be read on."""


@dataclass(frozen=True, slots=True, repr=False)
class Reading(Brief):
    """The objects that were read, whether or not all of them can be used.

    Parameters
    ----------
    cluster
        The objects that can be used. Of objects with the same name, the first.
    refused
        Why others cannot.
    repeated
        Objects with the name of one before and other content.
    left_out
        Files of directories that are templates, in one line.
    unknown
        Fields that are not known and were left out.
    mended
        The cluster with the refused objects in it, without what is wrong with them: for looking at the rest of them,
        and for whom they are named by.
    later
        The same with repeated objects in the place of the first of their names: with the second, the third, ...
    broken
        What is wrong with them, by source and by kind and name.
    """

    cluster: Cluster
    refused: tuple[Finding, ...]
    repeated: tuple[Finding, ...]
    left_out: tuple[Finding, ...]
    unknown: tuple[Finding, ...]
    mended: Cluster
    later: tuple[Cluster, ...]
    broken: Mapping[tuple[str, str], Mended]


@dataclass
class Loading:
    """A reading of some sources: the objects read so far, and the faults in them."""

    reader: ObjectReader
    limits: Limits
    item_at: ItemAt = json_value
    objects: list[Located] = field(default_factory=list)
    empty: list[Finding] = field(default_factory=list)
    templates: list[Finding] = field(default_factory=list)
    documents: int = 0

    def cluster(self) -> Cluster:
        """Return everything put together, if nothing is wrong with any of it."""
        errors = list(self.reader.errors) or (
            [] if self.documents else [*self.empty, *self._left_out()]
        )
        findings = (*self.reader.warnings, *self._notices())
        cluster, repeated, excesses = Cluster.usable(
            self.objects,
            findings,
            self.reader.skipped,
            self.limits,
            overriding=True,
        )
        if errors := [*errors, *repeated, *excesses]:
            raise InputError(located(errors))
        return cluster

    def reading(self) -> Reading:
        """Return the usable objects put together, and the faults of the rest."""
        # A finding without object and field is about a text that cannot be read, or is no object at all.
        unreadable = [
            finding
            for finding in self.reader.errors
            if not (finding.subject or finding.path)
        ]
        if unreadable or not self.documents:
            nothing = [*self.empty, *self._left_out()]
            raise InputError(located(unreadable or nothing))
        cluster, repeated, excesses = Cluster.usable(
            self.objects, self._notices(), self.reader.skipped, self.limits
        )
        mended = self.reader.mended or []
        whole = [
            *self.objects,
            *(Located(part.object, part.source) for part in mended),
        ]
        return Reading(
            cluster,
            refused=(*self.reader.errors, *excesses),
            repeated=tuple(repeated),
            left_out=self._left_out(),
            unknown=tuple(self.reader.warnings),
            mended=Cluster.usable(whole, (), {}, self.limits)[0]
            if mended
            else cluster,
            later=tuple(
                Cluster.usable(objects, (), {}, self.limits)[0]
                for objects in (_later_versions(whole) if repeated else ())
            ),
            broken={(part.source, part.object.title): part for part in mended},
        )

    def _notices(self) -> tuple[Finding, ...]:
        return (
            *self.empty,
            *self._left_out(),
            *self.reader.unmade_notice(),
        )

    def _left_out(self) -> tuple[Finding, ...]:
        return tuple(first_of(self.templates, "file"))

    def add_all(self, paths: Iterable[Paths], stdin: IO[bytes] | None) -> None:
        """Add files, directories, and what `STDIN` stands for, each once; and objects."""
        seen: set[str] = set()
        for path_or_object in _flat(paths):
            if isinstance(path_or_object, Mapping):
                self.add_document(dict(path_or_object), GIVEN)
                continue
            path = str(path_or_object)
            if path in seen:
                continue
            seen.add(path)
            if path == STDIN:
                # Whoever starts a program may close its standard input: Python has none then.
                if stdin is None and sys.stdin is None:
                    self._note(self.reader.errors, "<stdin>", "is closed")
                    continue
                self.add_text((stdin or sys.stdin.buffer).read(), "<stdin>")
            else:
                self._add_path(Path(path))

    def _add_path(self, path: Path) -> None:
        try:
            files = _files_in(path) if path.is_dir() else None
        except OSError as error:  # its name is too long, or it is not for us
            self._note(
                self.reader.errors,
                str(path),
                f"cannot be read: {error.strerror}",
            )
            return
        if files is None:
            self._add_file(path)
            return
        if not files:
            self._note(
                self.empty, str(path), "holds no *.yaml, *.yml or *.json file"
            )
        for file in files:
            self._add_file(file, from_directory=True)

    def _add_file(self, path: Path, *, from_directory: bool = False) -> None:
        """Add a file; one that was found in a directory may hold something else than objects."""
        text = SourceText(str(path), self.limits.unpacked)
        try:
            data = content(path, self.limits.unpacked)
        except OSError as error:
            self._note(
                self.reader.errors,
                str(path),
                f"cannot be read: {error.strerror}",
            )
        except TextError as error:
            self._note(self.reader.errors, str(path), str(error))
        except ValueError as error:  # its name has a null character
            self._note(
                self.reader.errors, str(path), f"cannot be read: {error}"
            )
        else:
            self._add(data, text, from_directory=from_directory)

    def add_text(self, data: bytes, source: str) -> None:
        """Add YAML or JSON that is in no file."""
        self._add(data, SourceText.given(source, self.limits.unpacked, data))

    def _add(
        self, data: bytes, text: SourceText, *, from_directory: bool = False
    ) -> None:
        """Add YAML or JSON; text that was found in a directory may hold something else than objects."""
        source = text.name
        documents: list[Any] = []
        failure: str | None = None
        try:
            data = unpacked(data, self.limits.unpacked)
            if self._add_list(data, ObjectSource.at(text, 1)):
                return
            documents, failure = self._documents(data, source)
        except TextError as error:
            failure = str(error)
        is_series = len(documents) + (failure is not None) > 1
        for document_number, document in enumerate(documents, start=1):
            document_source = ObjectSource.at(
                text, document_number, is_only=not is_series
            )
            try:
                if (
                    from_directory
                    and document is not None
                    and not _is_object(document)
                ):
                    self.reader.skipped[_OTHER] += 1
                elif document is not None:
                    self.add_document(document, document_source)
            except RecursionError:
                self._note(
                    self.reader.errors, document_source, "is nested too deeply"
                )
        is_template = failure is not None and _TEMPLATE.search(data)
        if is_template and from_directory:
            self.templates.append(
                Finding(
                    source,
                    "",
                    "",
                    "is left out: a template, not YAML (helm template renders charts)",
                )
            )
        elif failure is not None:
            if is_template:
                failure += "; it looks like a template: render it first, as helm template does"
            document_number = len(documents) + 1
            document_source = ObjectSource.at(
                text, document_number, is_only=not is_series
            )
            # A plain text: what cannot be read has no fields to be found.
            self._note(self.reader.errors, str(document_source), failure)
        elif all(document is None for document in documents):
            self._note(self.empty, source, "holds no objects")

    def _documents(
        self, data: bytes, source: str
    ) -> tuple[list[Any], str | None]:
        if len(data) >= SPLIT_FROM and not starts_like_json(data):
            documents = self._yaml.documents(data)
            if documents is not None:
                return documents, None
        return documents_of(data, source, self.limits.aliases)

    @cached_property
    def _yaml(self) -> YamlPieces:
        return YamlPieces(self.item_at)

    def _add_list(self, data: bytes, source: ObjectSource) -> bool:
        """Add a long list in JSON item by item, if its text looks as expected."""
        split = (
            split_list(data, self.item_at)
            if len(data) >= SPLIT_FROM and starts_like_json(data)
            else None
        )
        if split is None:
            return False
        shell, items = split
        for index, item in enumerate(items):
            self.add_document(item_of(item, shell), source.item(index))
        return True

    def add_document(self, document: Any, source: str) -> None:
        """Add an object or a list of objects that is plain data."""
        self.documents += 1
        if not isinstance(document, dict):
            self._note(
                self.reader.errors,
                source,
                f"is {_name_of(document)}, not an object",
            )
            return
        # Null in place of items is an empty list, as in Go. Without the field, this is an object like any other.
        if is_list(document.get("kind")) and isinstance(
            document.get("items", ""), list | None
        ):
            for item_index, item in enumerate(document["items"] or ()):
                item_source = (
                    source.item(item_index)
                    if isinstance(source, ObjectSource)
                    else source
                )
                self.add_document(item_of(item, document), item_source)
            return
        read_object = self.reader.read(document, source)
        if read_object is not None:
            self.objects.append(Located(read_object, source))

    @staticmethod
    def _note(findings: list[Finding], source: str, rule: str) -> None:
        syntax = _SYNTAX.search(rule)
        if syntax is None:
            findings.append(Finding(source, "", "", rule))
            return
        words = rule[: syntax.start()] + rule[syntax.end() :]
        line, column = map(int, syntax.groups())
        findings.append(Finding(source, "", "", words, line, column))


def _files_in(directory: Path) -> list[Path]:
    """Return the files in and below a directory that may hold objects, in the order of their names."""
    return sorted(
        file
        for file in directory.rglob("*")
        if file.name.endswith(_SUFFIXES) and file.is_file()
    )


def _flat(paths: Iterable[Paths]) -> Iterator[OnePath | Mapping[str, Any]]:
    for path in paths:
        if isinstance(path, str | PathLike | Mapping):
            yield path
        else:
            yield from path


def _later_versions(objects: Iterable[Located]) -> Iterator[list[Located]]:
    """Yield all objects with the second of each name, then with the third, ...; with the first where there is none."""
    versions: dict[Identity, list[Located]] = {}
    for located_object in objects:
        known = versions.setdefault(identity(located_object.object), [])
        if all(located_object.object != version.object for version in known):
            known.append(located_object)
    for version_index in range(1, max(map(len, versions.values()))):
        yield [
            known[version_index if version_index < len(known) else 0]
            for known in versions.values()
        ]


def _is_object(document: Any) -> bool:
    """Return whether a document claims to be a Kubernetes object."""
    return isinstance(document, dict) and bool(
        document.keys() & {"apiVersion", "kind"}
    )


def _name_of(document: object) -> str:
    return (
        "a list"
        if isinstance(document, list)
        else f"just {json.dumps(document, default=str)[:40]}"
    )


# ----------------------------------------------------------------------------
# The calls: everything is read without garbage collection, which would go through the
# objects again and again.


@without_garbage_collection()
def load(
    *paths: Paths,
    strict: bool = False,
    stdin: IO[bytes] | None = None,
    limits: Limits = LIMITS,
) -> Cluster:
    """Read everything that is given and put it together.

    Parameters
    ----------
    paths
        Files, directories (all ``*.yaml``, ``*.yml`` and ``*.json`` in and below them, also with ``.gz``, in the order
        of their names; what is no Kubernetes object there is skipped and counted, and templates of charts are left
        out), or ``-`` for standard input; or objects that are plain data already, as dictionaries. A list of them is
        as good as one after the other. An object takes the place of one with its name that an earlier path has, and a
        finding says so; in one file, two of them are an error.
    strict
        Whether a field that is not known in an object of ``resource.k8s.io`` is an error.
    stdin
        What ``-`` reads; by default the standard input of the process.
    limits
        How much may come out of little text.

    Raises
    ------
    InputError
        Something cannot be read or is not valid. It holds a finding for every defect in all of the input.

    Examples
    --------
    >>> import dralloc
    >>> from importlib.resources import files
    >>> cluster = dralloc.load(str(files("dralloc.objects") / "example.yaml"))
    >>> [node.name for node in cluster.nodes]
    ['node-0', 'node-1']
    >>> dralloc.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}).nodes[0].name
    'a'
    """
    loading = _loading(limits, strict=strict)
    loading.add_all(paths, stdin)
    return loading.cluster()


@without_garbage_collection()
def load_objects(
    *paths: Paths, stdin: IO[bytes] | None = None, limits: Limits = LIMITS
) -> list[dict[str, Any]]:
    """Read what `load` reads, as plain data in the order in which it is given; kinds and fields are not looked at.

    Raises
    ------
    InputError
        Something cannot be read, or is no object of Kubernetes.
    """
    keeper = _Keeper()
    loading = Loading(keeper, limits)
    loading.add_all(paths, stdin)
    errors = keeper.errors or ([] if loading.documents else loading.empty)
    if errors:
        raise InputError(located(errors))
    return keeper.kept


class _Keeper(ObjectReader):
    """Keeps objects as they were written."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[dict[str, Any]] = []

    def read(self, raw: dict[str, Any], source: str) -> None:
        if isinstance(raw.get("kind"), str) and isinstance(
            raw.get("apiVersion"), str
        ):
            self.kept.append(raw)
        else:
            self.errors.append(
                Finding(
                    source,
                    "",
                    "",
                    "is no Kubernetes object: it needs apiVersion and kind",
                )
            )


@without_garbage_collection()
def read(
    *paths: Paths, stdin: IO[bytes] | None = None, limits: Limits = LIMITS
) -> Reading:
    """Read as `load`, but objects that cannot be used are no obstacle to the others.

    Raises
    ------
    InputError
        A file cannot be read, or there is nothing in any of them.
    """
    loading = _loading(limits, mending=True)
    loading.add_all(paths, stdin)
    return loading.reading()


@without_garbage_collection()
def read_documents(
    documents: Iterable[Any], *, source: str = "", limits: Limits = LIMITS
) -> Reading:
    """Read as `load_documents`, but objects that cannot be used are no obstacle to the others."""
    loading = _loading(limits, mending=True)
    for document in documents:
        loading.add_document(document, source)
    return loading.reading()


@without_garbage_collection()
def load_text(
    text: str | bytes,
    *,
    source: str = "<text>",
    strict: bool = False,
    limits: Limits = LIMITS,
) -> Cluster:
    """Read YAML or JSON text; `source` names it in findings. Otherwise like `load`."""
    loading = _loading(limits, strict=strict)
    loading.add_text(text.encode() if isinstance(text, str) else text, source)
    return loading.cluster()


@without_garbage_collection()
def load_documents(
    documents: Iterable[Any],
    *,
    source: str = "",
    strict: bool = False,
    limits: Limits = LIMITS,
) -> Cluster:
    """Read objects that are plain data already, in any supported version. Otherwise like `load`."""
    loading = _loading(limits, strict=strict)
    for document in documents:
        loading.add_document(document, source)
    return loading.cluster()


def _loading(
    limits: Limits, *, strict: bool = False, mending: bool = False
) -> Loading:
    reader = ObjectReader(strict=strict, mended=[] if mending else None)
    return Loading(reader, limits, SliceTexts(reader.slices).item_at)
