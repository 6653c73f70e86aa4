"""The objects that were given, each once, and where they were read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from dralloc.objects.api import ApiObject, PodOwner
from dralloc.objects.errors import Finding, file_of
from dralloc.objects.names import ClaimKey

__all__ = ["Identity", "Located", "Objects", "first_of", "identity"]

T = TypeVar("T", bound=ApiObject)
Identity = tuple[str, ClaimKey]
"""The kind of an object and its key; kinds outside of Kubernetes with the API group, as in ``kubectl get``."""


class Located(NamedTuple):
    """An object and where it was read."""

    object: ApiObject
    source: str = ""


def identity(subject: ApiObject) -> Identity:
    """Return the key by which an object is told from every other one."""
    group = subject.api_version.partition("/")[0]
    foreign = isinstance(subject, PodOwner) and "." in group
    return f"{subject.kind}.{group}" if foreign else subject.kind, subject.key


class Objects:
    """The objects that were given.

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
        self,
        objects: Iterable[ApiObject | Located],
        *,
        overriding: bool = False,
    ) -> None:
        self._overriding = overriding
        self.findings: list[Finding] = []
        self.errors: list[Finding] = []
        self.sources: dict[Identity, str] = {}
        self._by_identity: dict[Identity, ApiObject] = {}
        self._by_type: dict[type, list[Any]] = defaultdict(list)
        self._equal: list[Finding] = []
        for item in objects:
            self._add(*(item if isinstance(item, Located) else Located(item)))
        self.findings += first_of(self._equal, "object")

    def __iter__(self) -> Iterator[ApiObject]:
        return iter(self._by_identity.values())

    def of(self, kind: type[T]) -> Iterator[T]:
        """Yield those of one kind, in order."""
        return iter(self._by_type.get(kind, ()))

    def _add(self, added: ApiObject, source: str) -> None:
        key = identity(added)
        first = self._by_identity.setdefault(key, added)
        if first is added:
            self.sources[key] = source
            self._by_type[type(added)].append(added)
            return
        where = f" in {self.sources[key]}" if self.sources[key] else ""
        if first == added:
            self._equal.append(
                Finding(
                    source,
                    added.title,
                    "",
                    f"is the same as{where or ' before'}, kept once",
                )
            )
        elif self._overriding and file_of(source) != file_of(self.sources[key]):
            rule = f"overrides the one{where or ' that was given before'}"
            self.findings.append(Finding(source, added.title, "", rule))
            # It takes the place of the one that it overrides, so that the order stays.
            same_type = self._by_type[type(added)]
            same_type[
                next(
                    at
                    for at, earlier in enumerate(same_type)
                    if earlier is first
                )
            ] = added
            self._by_identity[key] = added
            self.sources[key] = source
        else:
            self.errors.append(
                Finding(
                    source,
                    added.title,
                    "",
                    f"was given before{where} with different content",
                )
            )


def first_of(alike: Sequence[Finding], thing: str) -> Iterator[Finding]:
    """Yield one line about things of which the same is to be said, as folders of examples are full of them."""
    if alike:
        first, further = alike[0], len(alike) - 1
        more = f"; so are {further} more {thing}s" if further > 1 else ""
        more = f"; so is 1 more {thing}" if further == 1 else more
        yield replace(first, rule=first.rule + more)
