"""How a rule is written: the parts of objects it is about, what must hold there, an id, a level and words about it.

First the rules themselves, then the places where the parts lie.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from pydantic.alias_generators import to_snake

from dralloc.objects.api import ApiObject, DeviceSubRequest, ExactDeviceRequest
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Level
from dralloc.objects.features import NEWEST_MINOR, Features

__all__ = [
    "ALLOCATIONS",
    "CLAIMS",
    "CLASSES",
    "CONFIGURATIONS",
    "CONSUMPTIONS",
    "COUNTER_SETS",
    "DETAILS",
    "DEVICES",
    "EXACT",
    "METADATA",
    "NODE_SELECTORS",
    "OF_CLUSTER",
    "OPAQUE",
    "REQUESTS",
    "RESOURCES",
    "RESULTS",
    "SELECTORS",
    "SLICES",
    "SPECS",
    "TAINT_RULES",
    "TEMPLATES",
    "Check",
    "Details",
    "Issue",
    "Parts",
    "Place",
    "Places",
    "Row",
    "Rule",
    "RulePart",
    "ValidationContext",
    "errors",
    "nothing",
    "place_of",
    "remarks",
    "said",
    "walk",
    "warnings",
]

T = TypeVar("T")


class Issue(NamedTuple):
    """A place where a rule does not hold."""

    path: str
    message: str


class RulePart(NamedTuple, Generic[T]):
    """A part of an object, with the path where it lies."""

    owner: ApiObject
    path: str
    value: T


@dataclass(frozen=True)
class ValidationContext:
    """The cluster under validation. Views of it that several rules need are worked out once, under their function."""

    cluster: Cluster
    features: Features
    minor: int = NEWEST_MINOR

    @cached_property
    def _views(self) -> dict[Hashable, Any]:
        return {}

    def view(self, make: Callable[[ValidationContext], T]) -> T:
        """Return the result of a function of this context; the function is called once."""
        if make not in self._views:
            self._views[make] = make(self)
        view: T = self._views[make]
        return view

    def is_given(self, owner: ApiObject) -> bool:
        """Return whether the object was read, and not made by this program for another one."""
        return (owner.kind, owner.key) in self.cluster.sources


Parts: TypeAlias = Callable[[ValidationContext], Iterable[RulePart[Any]]]
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
        """Return the check that API servers of a minor version make."""
        return (
            self.check if minor >= 37 or self.earlier is None else self.earlier
        )


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
    """Find nothing wrong: the check of a version that has none."""
    return iter(())


def said(text: str, at: str) -> Iterator[Issue]:
    """Find the part itself wrong: it is the words about what is wrong there."""
    yield Issue(at, text)


# ----------------------------------------------------------------------------
# Where the parts lie that rules are about. Objects that this program made for others
# are left out.

Details: TypeAlias = ExactDeviceRequest | DeviceSubRequest
"""What ``exactly`` and an entry of ``firstAvailable`` have in common."""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths into objects of some kinds: ``[]`` stands for all items of a list or map, ``a|b`` for both fields.

    What is absent is passed over.
    """

    paths: tuple[tuple[str, str], ...]

    def __call__(self, context: ValidationContext) -> Iterator[RulePart[Any]]:
        """Yield the parts at these places, object by object."""
        for kind, path in self.paths:
            for owner in context.view(_objects)[kind]:
                for at, value in walk(owner, place_of(path)):
                    yield RulePart(owner, at, value)

    def of(self, kind: str) -> Iterator[Place]:
        """Yield the paths into objects of one kind."""
        return (
            place_of(path)
            for path_kind, path in self.paths
            if path_kind == kind
        )

    def lead_to(self, path: str) -> bool:
        """Return whether a path as messages have it is one of these, or goes on from one."""
        plain = re.sub(r"\[[^]]*\]", "[]", path)
        return any(
            re.match(rf"{re.escape(start)}(?![^.[])", plain)
            for _, start in self.paths
        )

    def __truediv__(self, below: str) -> Places:
        return Places(
            tuple(
                (kind, f"{path}.{below}".removeprefix("."))
                for kind, path in self.paths
            )
        )

    def __or__(self, further: Places) -> Places:
        return Places(self.paths + further.paths)


class Step(NamedTuple):
    """A field to go to, by its names on the wire and here, and whether all items in it are meant."""

    wire: str
    python: str
    repeated: bool


Place: TypeAlias = tuple[tuple[Step, ...], ...]
"""The steps of a path, each with the fields to go to."""


@lru_cache
def place_of(path: str) -> Place:
    """Return the steps of a path as `Places` has them; none for an empty one."""
    return tuple(
        tuple(map(_step, text.split("|"))) for text in path.split(".") if text
    )


def _step(text: str) -> Step:
    wire = text.removesuffix("[]")
    return Step(wire, to_snake(wire), repeated=wire != text)


def walk(
    value: Any, steps: Place, at: str = "", *, absent: bool = False
) -> Iterator[tuple[str, Any]]:
    """Yield the paths and values at a place below a value at a path; absent ones, too, if that is asked for."""
    if not steps:
        yield at, value
        return
    steps_below = steps[1:]
    for wire, python, repeated in steps[0]:
        # Conditions and network data of drivers are kept as plain data, in which an absent field is empty.
        below = (
            value.get(wire, "")
            if isinstance(value, dict)
            else getattr(value, python)
        )
        path = f"{at}.{wire}" if at else wire
        if below is None:
            if absent:
                yield path, None
        elif repeated:
            for key, item in (
                below.items()
                if isinstance(below, Mapping)
                else enumerate(below)
            ):
                yield from walk(
                    item, steps_below, f"{path}[{key}]", absent=absent
                )
        elif steps_below:
            yield from walk(below, steps_below, path, absent=absent)
        else:
            yield path, below


def _objects(context: ValidationContext) -> dict[str, list[Any]]:
    cluster = context.cluster
    return {
        "slices": list(cluster.slices),
        "classes": list(cluster.classes.values()),
        "claims": [
            claim for claim in cluster.claims if context.is_given(claim)
        ],
        "templates": list(cluster.templates),
        "taint_rules": list(cluster.taint_rules),
    }


def _all(*kinds: str) -> Places:
    return Places(tuple((kind, "") for kind in kinds))


CLASSES: Final = _all("classes")
CLAIMS: Final = _all("claims")
TEMPLATES: Final = _all("templates")
TAINT_RULES: Final = _all("taint_rules")
OF_CLUSTER: Final = _all("slices") | CLASSES | TAINT_RULES
"""Slices, classes and rules for taints, which belong to no namespace."""
RESOURCES: Final = OF_CLUSTER | CLAIMS | TEMPLATES
"""Every object of ``resource.k8s.io``."""
METADATA: Final = RESOURCES / "metadata" | TEMPLATES / "spec.metadata"

SLICES: Final = _all("slices") / "spec"
DEVICES: Final = SLICES / "devices[]"
COUNTER_SETS: Final = SLICES / "sharedCounters[]"
CONSUMPTIONS: Final = DEVICES / "consumesCounters[]"

SPECS: Final = CLAIMS / "spec.devices" | TEMPLATES / "spec.spec.devices"
"""What claims and templates ask for."""
REQUESTS: Final = SPECS / "requests[]"
EXACT: Final = REQUESTS / "exactly"
DETAILS: Final = REQUESTS / "exactly|firstAvailable[]"
SELECTORS: Final = CLASSES / "spec.selectors[]" | DETAILS / "selectors[]"

ALLOCATIONS: Final = CLAIMS / "status.allocation"
RESULTS: Final = ALLOCATIONS / "devices.results[]"
CONFIGURATIONS: Final = (
    CLASSES / "spec.config[]"
    | SPECS / "config[]"
    | ALLOCATIONS / "devices.config[]"
)
OPAQUE: Final = CONFIGURATIONS / "opaque"
NODE_SELECTORS: Final = (SLICES | DEVICES | ALLOCATIONS) / "nodeSelector"
