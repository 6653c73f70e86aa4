"""Files, directories, standard input and plain data: put together, with everything that is wrong with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import IO, Any, Final

from dralloc.objects.api import ObjectReader
from dralloc.objects.brief import Brief
from dralloc.objects.cluster import Cluster, Located
from dralloc.objects.errors import Finding, InputError
from dralloc.objects.limits import Limits
from dralloc.objects.load.documents import documents_of, starts_like_json
from dralloc.objects.load.json_text import json_value
from dralloc.objects.load.lists import SPLIT_FROM, ItemAt, is_list, item_of, split_list
from dralloc.objects.load.text import TextError, content, unpacked
from dralloc.objects.load.yaml_pieces import YamlPieces

__all__ = ["STDIN", "Loading", "Paths", "Reading"]

OnePath = str | PathLike[str]
Paths = OnePath | Mapping[str, Any] | Iterable[OnePath | Mapping[str, Any]]
"""A path or an object that is plain data already, or several in one."""

STDIN: Final = "-"
"""The path that stands for standard input."""

GIVEN: Final = "<objects>"
"""Where objects are from that were plain data."""

_SUFFIXES: Final = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
_OTHER: Final = "no Kubernetes object"


@dataclass(frozen=True, slots=True, repr=False)
class Reading(Brief):
    """What was read, whether or not all of it can be used.

    Parameters
    ----------
    cluster
        The objects that can be used. Of objects with the same name, the first.
    refused
        Why others cannot.
    repeated
        Objects with the name of one before and other content.
    unknown
        Fields that are not known and were left out.
    """

    cluster: Cluster
    refused: tuple[Finding, ...]
    repeated: tuple[Finding, ...]
    unknown: tuple[Finding, ...]


@dataclass
class Loading:
    """One call of the room: what was read so far, and what is wrong with it."""

    reader: ObjectReader
    limits: Limits
    item_at: ItemAt = json_value
    objects: list[Located] = field(default_factory=list)
    empty: list[Finding] = field(default_factory=list)
    documents: int = 0

    def cluster(self) -> Cluster:
        """Everything put together, if nothing is wrong with any of it."""
        errors = list(self.reader.errors) or (
            [] if self.documents else list(self.empty)
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
            raise InputError(errors)
        return cluster

    def reading(self) -> Reading:
        """What can be used put together, and what is wrong with the rest."""
        unreadable = [
            finding
            for finding in self.reader.errors
            if not (finding.subject or finding.path)
        ]
        if unreadable or not self.documents:
            raise InputError(unreadable or self.empty)
        cluster, repeated, excesses = Cluster.usable(
            self.objects, self._notices(), self.reader.skipped, self.limits
        )
        refused = (*self.reader.errors, *excesses)
        return Reading(cluster, refused, tuple(repeated), tuple(self.reader.warnings))

    def _notices(self) -> tuple[Finding, ...]:
        return (*self.empty, *self.reader.unmade_notice())

    def add_all(self, paths: Iterable[Paths], stdin: IO[bytes] | None) -> None:
        """Add files, directories, and what `STDIN` stands for, each once; and objects."""
        seen: set[str] = set()
        for one in _flat(paths):
            if isinstance(one, Mapping):
                self.add_document(dict(one), GIVEN)
                continue
            path = str(one)
            if path in seen:
                continue
            seen.add(path)
            if path == STDIN:
                self.add_text((stdin or sys.stdin.buffer).read(), "<stdin>")
            else:
                self._add_path(Path(path))

    def _add_path(self, path: Path) -> None:
        if not path.is_dir():
            self._add_file(path)
            return
        files = sorted(
            file
            for file in path.rglob("*")
            if file.name.endswith(_SUFFIXES) and file.is_file()
        )
        if not files:
            self._note(self.empty, str(path), "holds no *.yaml, *.yml or *.json file")
        for file in files:
            self._add_file(file, found=True)

    def _add_file(self, path: Path, *, found: bool = False) -> None:
        """Add a file; one that was found in a directory may hold something else than objects."""
        try:
            data = content(path, self.limits.unpacked)
        except OSError as error:
            self._note(
                self.reader.errors, str(path), f"cannot be read: {error.strerror}"
            )
        except TextError as error:
            self._note(self.reader.errors, str(path), str(error))
        else:
            self.add_text(data, str(path), found=found)

    def add_text(self, data: bytes, source: str, *, found: bool = False) -> None:
        """Add YAML or JSON; text that was found in a directory may hold something else than objects."""
        documents: list[Any] = []
        failure: str | None = None
        try:
            data = unpacked(data, self.limits.unpacked)
            if self._add_list(data, source):
                return
            documents, failure = self._documents(data, source)
        except TextError as error:
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

    def _documents(self, data: bytes, source: str) -> tuple[list[Any], str | None]:
        if len(data) >= SPLIT_FROM and not starts_like_json(data):
            found = self._yaml.documents(data)
            if found is not None:
                return found, None
        return documents_of(data, source, self.limits.aliases)

    @cached_property
    def _yaml(self) -> YamlPieces:
        return YamlPieces(self.item_at)

    def _add_list(self, data: bytes, source: str) -> bool:
        """Add a long list in JSON item by item, if its text looks as expected."""
        split = (
            split_list(data, self.item_at)
            if len(data) >= SPLIT_FROM and starts_like_json(data)
            else None
        )
        if split is None:
            return False
        shell, items = split
        for item in items:
            self.add_document(item_of(item, shell), source)
        return True

    def add_document(self, document: Any, source: str) -> None:
        """Add an object or a list of objects that is plain data."""
        self.documents += 1
        if not isinstance(document, dict):
            self._note(
                self.reader.errors, source, f"is {_name_of(document)}, not an object"
            )
            return
        if is_list(document.get("kind")) and isinstance(
            document.get("items", ""), list | None
        ):
            for item in document["items"] or ():
                self.add_document(item_of(item, document), source)
            return
        found = self.reader.read(document, source)
        if found is not None:
            self.objects.append(Located(found, source))

    @staticmethod
    def _note(findings: list[Finding], source: str, rule: str) -> None:
        findings.append(Finding(source, "", "", rule))


def _flat(paths: Iterable[Paths]) -> Iterator[OnePath | Mapping[str, Any]]:
    for one in paths:
        if isinstance(one, str | PathLike | Mapping):
            yield one
        else:
            yield from one


def _is_object(document: Any) -> bool:
    """Whether a document claims to be a Kubernetes object."""
    return isinstance(document, dict) and bool(document.keys() & {"apiVersion", "kind"})


def _name_of(document: object) -> str:
    return (
        "a list"
        if isinstance(document, list)
        else f"just {json.dumps(document, default=str)[:40]}"
    )
