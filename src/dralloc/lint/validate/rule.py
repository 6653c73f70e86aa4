"""How a rule is written: the parts of objects it is about, what must hold there, an id, a level and words about it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from dralloc.objects.api import ApiObject
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Level
from dralloc.objects.features import NEWEST_MINOR, Features

__all__ = [
    "Check",
    "Issue",
    "Part",
    "Parts",
    "Row",
    "Rule",
    "ValidationContext",
    "errors",
    "nothing",
    "remarks",
    "said",
    "warnings",
]

T = TypeVar("T")


class Issue(NamedTuple):
    """One place where a rule does not hold."""

    path: str
    message: str


class Part(NamedTuple, Generic[T]):
    """A part of an object, with the path where it lies."""

    owner: ApiObject
    path: str
    value: T


@dataclass(frozen=True)
class ValidationContext:
    """What is validated. Views of the whole that several rules need are worked out once, under their function."""

    cluster: Cluster
    features: Features
    minor: int = NEWEST_MINOR

    @cached_property
    def _views(self) -> dict[Hashable, Any]:
        return {}

    def view(self, make: Callable[[ValidationContext], T]) -> T:
        """What the function makes of this context."""
        if make not in self._views:
            self._views[make] = make(self)
        found: T = self._views[make]
        return found

    def is_given(self, one: ApiObject) -> bool:
        """Whether the object was read, and not made by this program for another one."""
        return (one.kind, one.key) in self.cluster.sources


Parts: TypeAlias = Callable[[ValidationContext], Iterable[Part[Any]]]
"""Finds the parts that a rule is about."""

Check: TypeAlias = Callable[[Any, str], Iterable[Issue]]
"""Yields what is wrong with a part at a path."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about one kind of part.

    Parameters
    ----------
    id
        Its name, which never changes.
    level
        How bad a violation is.
    parts
        Finds the parts that it is about.
    check
        Yields what is wrong with a part at a path.
    help
        The rule in one sentence.
    origin
        Where the rule comes from.
    earlier
        What API servers before Kubernetes 1.37 check in its place; None if that is the same.
    """

    id: str
    level: Level
    parts: Parts
    check: Check
    help: str
    origin: str
    earlier: Check | None = None

    def check_of(self, minor: int) -> Check:
        """What API servers of a minor version check."""
        return self.check if minor >= 37 or self.earlier is None else self.earlier


Row: TypeAlias = tuple[str, Check, str] | tuple[str, Check, str, Check]
"""Id, check and help of a rule; a fourth column is what API servers before Kubernetes 1.37 check in its place."""


def _rows(
    level: Level, parts: Parts, rows: Iterable[Row], origin: str
) -> Iterator[Rule]:
    for id_, check, help_, *earlier in rows:
        yield Rule(id_, level, parts, check, help_, origin, *earlier)


def errors(
    parts: Parts, *rows: Row, origin: str = "resource.k8s.io validation"
) -> Iterator[Rule]:
    """Rules of the API server about some parts; by default of ``pkg/apis/resource/validation``, Kubernetes 1.37."""
    return _rows(Level.ERROR, parts, rows, origin)


def warnings(parts: Parts, *rows: Row, origin: str) -> Iterator[Rule]:
    """Rules about what is accepted and will hurt."""
    return _rows(Level.WARNING, parts, rows, origin)


def remarks(parts: Parts, *rows: Row, origin: str) -> Iterator[Rule]:
    """Rules about what is worth knowing."""
    return _rows(Level.INFO, parts, rows, origin)


def nothing(_part: Any, _at: str) -> Iterator[Issue]:
    """The check of a version that has none."""
    return iter(())


def said(text: str, at: str) -> Iterator[Issue]:
    """The check of parts that are words about what is wrong there."""
    yield Issue(at, text)
