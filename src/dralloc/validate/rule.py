"""How a rule is written: a small function over parts of objects, with an id, a level and words about it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from dralloc.api import ApiObject
from dralloc.cluster import Cluster
from dralloc.errors import Level
from dralloc.features import Features

__all__ = [
    "Issue",
    "Part",
    "Rule",
    "Scene",
    "at_most",
    "error",
    "info",
    "named",
    "unique",
    "warning",
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
class Scene:
    """What is validated. Views of the whole that several rules need are worked out once, under their function."""

    cluster: Cluster
    features: Features

    @cached_property
    def _views(self) -> dict[Hashable, Any]:
        return {}

    def view(self, make: Callable[[Scene], T]) -> T:
        """What the function makes of this scene."""
        if make not in self._views:
            self._views[make] = make(self)
        found: T = self._views[make]
        return found

    def is_given(self, one: ApiObject) -> bool:
        """Whether the object was read, and not made by this program for another one."""
        return (one.kind, one.key) in self.cluster.sources


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
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
    """

    id: str
    level: Level
    parts: Callable[[Scene], Iterable[Part[T]]]
    check: Callable[[T, str], Iterable[Issue]]
    help: str
    origin: str


def error(
    id: str,
    parts: Callable[[Scene], Iterable[Part[T]]],
    check: Callable[[T, str], Iterable[Issue]],
    help: str,
    origin: str = "resource.k8s.io validation",
) -> Rule[T]:
    """A rule of the API server; by default one of ``pkg/apis/resource/validation``, Kubernetes 1.37."""
    return Rule(id, Level.ERROR, parts, check, help, origin)


def warning(
    id: str,
    parts: Callable[[Scene], Iterable[Part[T]]],
    check: Callable[[T, str], Iterable[Issue]],
    help: str,
    origin: str,
) -> Rule[T]:
    """A rule about what is accepted and will hurt."""
    return Rule(id, Level.WARNING, parts, check, help, origin)


def info(
    id: str,
    parts: Callable[[Scene], Iterable[Part[T]]],
    check: Callable[[T, str], Iterable[Issue]],
    help: str,
    origin: str,
) -> Rule[T]:
    """A rule about what is worth knowing."""
    return Rule(id, Level.INFO, parts, check, help, origin)


def named(text: str, path: str, judge: Callable[[str], str]) -> Iterator[Issue]:
    """An issue if the text does not have the form that one of the functions of `dralloc.validate.names` asks for."""
    if not text:
        yield Issue(path, "is required")
    elif reason := judge(text):
        shown = text if len(text) <= 80 else f"{text[:38]}...{text[-38:]}"
        yield Issue(path, f'"{shown}" {reason}')


def at_most(limit: int, items: Sized, path: str, what: str) -> Iterator[Issue]:
    """An issue if there are more items than allowed."""
    if len(items) > limit:
        yield Issue(path, f"has {len(items)} {what}, at most {limit} are allowed")


def unique(keys: Iterable[Hashable], path: str, *, field: str = "") -> Iterator[Issue]:
    """An issue for every item of the list at `path` whose key came before."""
    seen: dict[Hashable, int] = {}
    for index, key in enumerate(keys):
        first = seen.setdefault(key, index)
        if first != index:
            shown = "/".join(str(part) for part in key if part) if isinstance(key, tuple) else key
            yield Issue(f"{path}[{index}]{field}", f'"{shown}" is there before, at {path}[{first}]')
