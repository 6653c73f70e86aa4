"""Real objects, damaged: a seed gives a file's text, the same every time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from fuzz.nasty import EXPRESSIONS, TOKENS, VALUES

__all__ = ["Corpus", "mutated", "read_corpus"]

Document = dict[str, Any]
Corpus = Sequence[tuple[str, Sequence[Document]]]
"""Objects that belong together, with a name for them."""

_MOST_DOCUMENTS: Final = 10
_LONGEST: Final = 8_000
_Place = tuple[Any, Any]
"""A list or mapping, and an index or key of it."""


def mutated(seed: int, corpus: Corpus) -> tuple[str, bytes]:
    """A file's name and what it holds."""
    random = Random(seed)
    name, documents = random.choice(corpus)
    documents = _excerpt(random, documents)
    for _ in range(random.choice((0, 1, 1, 2, 3, 5))):
        with suppress(RecursionError):  # too deep to be copied: deep enough
            random.choice(_STRUCTURE)(random, documents)
    suffix, data = _written(random, documents)
    for _ in range(random.choice((0, 0, 0, 0, 0, 1, 1, 3))):
        data = random.choice(_BYTES)(random, data)
    if random.random() < 0.05:
        suffix, data = f"{suffix}.gz", gzip.compress(data, mtime=0)
        data = (
            random.choice(_BYTES)(random, data)
            if random.random() < 0.5
            else data
        )
    return f"{seed}-{name}{suffix}", data


def _excerpt(random: Random, documents: Sequence[Document]) -> list[Document]:
    """Some of the objects, with few items in lists that have many."""
    chosen = sorted(
        random.sample(
            range(len(documents)), min(len(documents), _MOST_DOCUMENTS)
        )
    )
    excerpt = [deepcopy(documents[index]) for index in chosen]
    while (
        len(excerpt) > 1
        and sum(len(str(document)) for document in excerpt) > _LONGEST
    ):
        excerpt.pop(random.randrange(len(excerpt)))
    return excerpt


def _places(part: Any) -> Iterator[_Place]:
    """Every value below, by what holds it."""
    stack = [part]
    while stack:
        holder = stack.pop()
        for key, value in list(
            holder.items() if isinstance(holder, dict) else enumerate(holder)
        ):
            yield holder, key
            if isinstance(value, dict | list):
                stack.append(value)


def _place(
    random: Random,
    documents: list[Document],
    wanted: type | tuple[type, ...] = object,
) -> _Place:
    """Some value of a type; or the first object as a whole, if there is none."""
    locations = [
        (holder, key)
        for holder, key in _places(documents)
        if isinstance(holder[key], wanted)
    ]
    return random.choice(locations) if locations else (documents, slice(0, 1))


def _replace(random: Random, documents: list[Document]) -> None:
    holder, key = _place(
        random, documents, (str, int, bool, type(None), list, dict)
    )
    if not isinstance(key, slice):
        holder[key] = deepcopy(random.choice(VALUES))


def _replace_alike(random: Random, documents: list[Document]) -> None:
    """A value of the same type, which checks of types let through."""
    holder, key = _place(random, documents, (str, int))
    if not isinstance(key, slice):
        kind = type(holder[key])
        theirs = [
            where[other]
            for where, other in _places(documents)
            if type(where[other]) is kind
        ]
        ours = [value for value in VALUES if type(value) is kind]
        holder[key] = random.choice(random.choice((theirs, ours)))


def _remove(random: Random, documents: list[Document]) -> None:
    holder, key = _place(random, documents)
    del holder[key]


def _rename(random: Random, documents: list[Document]) -> None:
    """A key under another name: one that is used elsewhere, or none at all."""
    holder, key = _place(random, documents)
    if isinstance(holder, dict):
        names = sorted(
            {
                str(other)
                for where, other in _places(documents)
                if isinstance(where, dict)
            }
        )
        holder[
            random.choice([*names, "", "a" * 300, "~consumable", "é", "<<"])
        ] = holder.pop(key)


def _repeat(random: Random, documents: list[Document]) -> None:
    holder, key = _place(random, documents, (list, str))
    if not isinstance(key, slice):
        holder[key] = holder[key] * random.choice(
            (2, 3, 50 if len(holder[key]) < 100 else 4)
        )


def _move(random: Random, documents: list[Document]) -> None:
    """A part put where another one is; of a copy, so that nothing holds itself."""
    (source, key), (target, other) = (
        _place(random, documents),
        _place(random, documents),
    )
    if not isinstance(key, slice) and not isinstance(other, slice):
        target[other] = deepcopy(source[key])


def _wrap(random: Random, documents: list[Document]) -> None:
    holder, key = _place(random, documents)
    levels = random.choice((1, 1, 1, 2, 100, 250, 600))
    if not isinstance(key, slice):
        for _ in range(levels):
            holder[key] = (
                random.choice(([holder[key]], {"a": holder[key]}))
                if levels < 3
                else [holder[key]]
            )


def _copy(random: Random, documents: list[Document]) -> None:
    """An object again: as it is, or many times under other names."""
    chosen = random.choice(documents) if documents else {}
    for copy_index in range(random.choice((1, 2, 40))):
        other = deepcopy(chosen)
        if isinstance(other, dict) and isinstance(other.get("metadata"), dict):
            other["metadata"]["name"] = (
                f"{other['metadata'].get('name')}-{copy_index}"
                if copy_index
                else "again"
            )
        documents.append(other)


def _ask(random: Random, documents: list[Document]) -> None:
    """Another expression in a selector."""
    locations = [
        (holder, key)
        for holder, key in _places(documents)
        if key == "expression"
    ]
    if locations:
        holder, key = random.choice(locations)
        holder[key] = random.choice(EXPRESSIONS)


def _shuffle(random: Random, documents: list[Document]) -> None:
    holder, key = _place(random, documents, list)
    random.shuffle(documents if isinstance(key, slice) else holder[key])


def _written(random: Random, documents: list[Document]) -> tuple[str, bytes]:
    """The text, in one of the forms that are read."""
    form = random.choice(
        ("yaml", "yaml", "flow", "json", "indented", "lines", "list")
    )
    try:
        if form in ("yaml", "flow"):
            dumper = yaml.CSafeDumper if random.random() < 0.5 else _NoAliases
            text = yaml.dump_all(
                documents,
                Dumper=dumper,
                allow_unicode=True,
                default_flow_style=form == "flow",
            )
            return ".yaml", text.encode()
    except RecursionError:
        form = "lines"
    if form == "lines":
        return ".json", "\n".join(
            _json(document) for document in documents
        ).encode()
    whole = {"apiVersion": "v1", "kind": "List", "items": documents}
    return ".json", _json(
        whole, indent=4 if form == "indented" else None
    ).encode()


def _json(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False)
    except RecursionError:
        return "[" * 2000


class _NoAliases(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _flip(random: Random, data: bytes) -> bytes:
    changed = bytearray(data or b" ")
    for _ in range(random.choice((1, 1, 4, 40))):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _insert(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(TOKENS) + data[at:]


def _cut(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data) + 1)
    return (
        data[:start]
        + data[start + random.choice((1, 1, 10, 1000, len(data))) :]
    )


def _double(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data) + 1)
    part = data[start : start + random.choice((1, 20, 300, 5000))]
    return data[:start] + part * random.choice((2, 3, 20)) + data[start:]


_STRUCTURE: Final[tuple[Callable[[Random, list[Document]], None], ...]] = (
    *(
        _replace,
        _replace_alike,
        _replace_alike,
        _replace_alike,
        _remove,
        _rename,
    ),
    *(_repeat, _move, _wrap, _copy, _ask, _shuffle),
)
_BYTES: Final[tuple[Callable[[Random, bytes], bytes], ...]] = (
    _flip,
    _insert,
    _insert,
    _cut,
    _double,
)


def read_corpus(root: Path, *more: Path) -> Corpus:
    """The objects of each model, and of each file in other directories."""
    models = [
        sorted(directory.rglob("*.yaml"))
        for directory in sorted((root / "models").glob("**/"))
        if any(directory.glob("*.yaml"))
    ]
    files = [
        [file] for folder in more for file in sorted(folder.rglob("*.yaml"))
    ]
    corpus = [
        (group[0].parent.name, list(_documents(group)))
        for group in (*models, *files)
    ]
    return [(name, documents) for name, documents in corpus if documents]


def _documents(files: Sequence[Path]) -> Iterator[Document]:
    for file in files:
        if file.name != "expected.yaml":
            yield from (
                document
                for document in yaml.load_all(
                    file.read_text(), yaml.CSafeLoader
                )
                if isinstance(document, dict)
            )
