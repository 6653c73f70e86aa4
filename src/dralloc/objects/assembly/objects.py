"""The objects that were given, each once, and where they were read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from dralloc.objects.api import ApiObject, PodOwner
from dralloc.objects.errors import Finding
from dralloc.objects.names import ClaimKey

__all__ = ["Identity", "Located", "Objects", "identity"]

T = TypeVar("T", bound=ApiObject)
Identity = tuple[str, ClaimKey]
"""The kind of an object and its key; kinds outside of Kubernetes with the API group, as in ``kubectl get``."""


class Located(NamedTuple):
    """An object and where it was read."""

    object: ApiObject
    source: str = ""


def identity(one: ApiObject) -> Identity:
    """What tells an object from every other one."""
    group = one.api_version.partition("/")[0]
    foreign = isinstance(one, PodOwner) and "." in group
    return f"{one.kind}.{group}" if foreign else one.kind, one.key


class Objects:
    """What was given.

    Parameters
    ----------
    findings, errors
        Objects that were given more than once, with the same and with other content. The first is kept.
    sources
        Where each object was read.
    overriding
        Whether an object takes the place of one with its name that was read from another file before.
    """

    def __init__(
        self, objects: Iterable[ApiObject | Located], *, overriding: bool = False
    ) -> None:
        self._overriding = overriding
        self.findings: list[Finding] = []
        self.errors: list[Finding] = []
        self.sources: dict[Identity, str] = {}
        self._by_identity: dict[Identity, ApiObject] = {}
        self._by_type: dict[type, list[Any]] = defaultdict(list)
        for item in objects:
            self._add(*(item if isinstance(item, Located) else Located(item)))

    def __iter__(self) -> Iterator[ApiObject]:
        return iter(self._by_identity.values())

    def of(self, kind: type[T]) -> Iterator[T]:
        """Those of one kind, in order."""
        return iter(self._by_type.get(kind, ()))

    def _add(self, one: ApiObject, source: str) -> None:
        key = identity(one)
        first = self._by_identity.setdefault(key, one)
        if first is one:
            self.sources[key] = source
            self._by_type[type(one)].append(one)
            return
        where = f" in {self.sources[key]}" if self.sources[key] else ""
        if first == one:
            self.findings.append(
                Finding(
                    source,
                    one.title,
                    "",
                    f"is the same as{where or ' before'}, kept once",
                )
            )
        elif self._overriding and _file(source) != _file(self.sources[key]):
            rule = f"overrides the one{where or ' that was given before'}"
            self.findings.append(Finding(source, one.title, "", rule))
            alike = self._by_type[type(one)]
            alike[next(at for at, each in enumerate(alike) if each is first)] = one
            self._by_identity[key] = one
            self.sources[key] = source
        else:
            self.errors.append(
                Finding(
                    source,
                    one.title,
                    "",
                    f"was given before{where} with different content",
                )
            )


def _file(source: str) -> str:
    """The file of a source, which also names the document if there are several."""
    return re.sub(r": document \d+$", "", source)
