"""One word, one meaning: no two classes share a name, and no private word stands where the field has a term.

The words are forbidden as identifiers only, and only where they can mean what they are forbidden for.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

SRC: Final = Path(__file__).parents[1] / "src"


def _words(text: str) -> list[str]:
    return text.split()


NOT_A_WORD: Final = frozenset(
    _words(
        "bay bays books crowd dive estate filling fillings funnel island islands lesser minded naive resident "
        "residents scene shelf shelves situation stacking tenancy toll tolls twin twins witness"
    )
)
"""What no identifier of dralloc has as one of its words: each of them has a standard term (see the glossary)."""

_EXPLAINING: Final = (
    "ask/explain",
    "ask/context",
    "ask/stranded",
    "ask/whatif",
)
_SOLVING: Final = (
    "problem",
    "compile/match",
    "solve/first_fit",
    "solve/optimum",
    "solve/policies",
)

NOT_A_NAME: Final = {
    **dict.fromkeys(
        _words("alike kind kinds look looks signature signatures way ways"),
        _SOLVING + _EXPLAINING,
    ),
    **dict.fromkeys(
        _words(
            "ask asks cell cells live machine machines master need needs piece pieces store"
        ),
        _SOLVING,
    ),
    **dict.fromkeys(
        _words(
            "agreement draws leaving_out quotas slot slots straight walks wants"
        ),
        _SOLVING,
    ),
    **dict.fromkeys(
        _words("others raised rooms stage stays turn"), _EXPLAINING
    ),
    **dict.fromkeys(
        _words("wish wishes"), (*_EXPLAINING, "cli", "lint/validate")
    ),
}
"""What no module, class and function of a module is called in which rooms: words with an ordinary meaning elsewhere."""

REMAINING: Final[frozenset[str]] = frozenset()
"""What is still to be renamed."""


@dataclass(frozen=True)
class Name:
    """Something that a file names: a module, a class, a function of the module, or whatever is assigned or passed."""

    text: str
    file: str
    sort: str

    @property
    def words(self) -> set[str]:
        """Its words, as ``funnel`` of ``FunnelStep`` and ``funnel_step``."""
        return set(
            re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.text).lower().split("_")
        )

    def is_in(self, *rooms: str) -> bool:
        """Whether it is named in one of these packages of dralloc."""
        return self.file.startswith(tuple(f"dralloc/{room}/" for room in rooms))


@cache
def names() -> tuple[Name, ...]:
    return tuple(
        name for path in sorted(SRC.rglob("*.py")) for name in names_in(path)
    )


def names_in(path: Path) -> Iterator[Name]:
    file = path.relative_to(SRC).as_posix()
    for part in path.relative_to(SRC).with_suffix("").parts[1:]:
        yield Name(part, file, "module")
    tree = ast.parse(path.read_bytes())
    yield from (
        Name(node.name, file, "function")
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    )
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=text):
                yield Name(text, file, "class")
            case ast.FunctionDef(name=text) | ast.arg(arg=text):
                yield Name(text, file, "identifier")
            case (
                ast.Name(id=text, ctx=ast.Store())
                | ast.Attribute(attr=text, ctx=ast.Store())
            ):
                yield Name(text, file, "identifier")


def clashes() -> Iterator[str]:
    """Classes with one name; the objects of the API bear the API's names."""
    files: dict[str, list[str]] = defaultdict(list)
    for name in names():
        if name.sort == "class" and not name.is_in("objects/api"):
            files[name.text].append(name.file)
    yield from (
        f"class:{text}" for text, paths in files.items() if len(paths) > 1
    )


def private_words() -> Iterator[str]:
    for name in names():
        if name.file.startswith("dralloc/"):
            yield from (f"word:{word}" for word in name.words & NOT_A_WORD)
            own = name.text.lstrip("_") if name.sort == "class" else name.text
            if name.sort != "identifier" and name.is_in(
                *NOT_A_NAME.get(own.lower(), ())
            ):
                yield f"{name.sort}:{own}"


def test_every_class_has_a_name_of_its_own_and_no_private_word_is_used() -> (
    None
):
    assert {*clashes(), *private_words()} - REMAINING == set()


def test_what_is_renamed_remains_no_more() -> None:
    assert REMAINING - {*clashes(), *private_words()} == set()
