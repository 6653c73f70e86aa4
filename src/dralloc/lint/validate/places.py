"""Where the parts lie that rules are about. Objects that this program made for others are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic.alias_generators import to_snake

from dralloc.lint.validate.rule import Part, ValidationContext
from dralloc.objects.api import DeviceSubRequest, ExactDeviceRequest

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
    "Details",
    "Place",
    "Places",
    "place_of",
    "walk",
]

Details: TypeAlias = ExactDeviceRequest | DeviceSubRequest
"""What ``exactly`` and an entry of ``firstAvailable`` have in common."""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths into objects of some kinds: ``[]`` stands for all items of a list or map, ``a|b`` for both fields.

    What is absent is passed over.
    """

    paths: tuple[tuple[str, str], ...]

    def __call__(self, context: ValidationContext) -> Iterator[Part[Any]]:
        """The parts at these places, object by object."""
        for kind, path in self.paths:
            for owner in context.view(_objects)[kind]:
                for at, value in walk(owner, place_of(path)):
                    yield Part(owner, at, value)

    def of(self, kind: str) -> Iterator[Place]:
        """The paths into objects of one kind."""
        return (place_of(path) for one, path in self.paths if one == kind)

    def lead_to(self, path: str) -> bool:
        """Whether a path as messages have it is one of these, or goes on from one."""
        plain = re.sub(r"\[[^]]*\]", "[]", path)
        return any(
            re.match(rf"{re.escape(each)}(?![^.[])", plain) for _, each in self.paths
        )

    def __truediv__(self, below: str) -> Places:
        return Places(
            tuple(
                (kind, f"{path}.{below}".removeprefix(".")) for kind, path in self.paths
            )
        )

    def __or__(self, other: Places) -> Places:
        return Places(self.paths + other.paths)


class Step(NamedTuple):
    """A field to go to, by its names on the wire and here, and whether all items in it are meant."""

    wire: str
    python: str
    every: bool


Place: TypeAlias = tuple[tuple[Step, ...], ...]
"""The steps of a path, each with the fields to go to."""


@lru_cache
def place_of(path: str) -> Place:
    """The steps of a path as `Places` has them; none for an empty one."""
    return tuple(tuple(map(_step, text.split("|"))) for text in path.split(".") if text)


def _step(text: str) -> Step:
    wire = text.removesuffix("[]")
    return Step(wire, to_snake(wire), every=wire != text)


def walk(
    value: Any, place: Place, at: str = "", *, absent: bool = False
) -> Iterator[tuple[str, Any]]:
    """The paths and values at a place below a value that is at a path; also what is absent, if that is asked for."""
    if not place:
        yield at, value
        return
    rest = place[1:]
    for wire, python, every in place[0]:
        below = (
            value.get(wire, "") if isinstance(value, dict) else getattr(value, python)
        )
        path = f"{at}.{wire}" if at else wire
        if below is None:
            if absent:
                yield path, None
        elif every:
            for key, item in (
                below.items() if isinstance(below, Mapping) else enumerate(below)
            ):
                yield from walk(item, rest, f"{path}[{key}]", absent=absent)
        elif rest:
            yield from walk(below, rest, path, absent=absent)
        else:
            yield path, below


def _objects(context: ValidationContext) -> dict[str, list[Any]]:
    cluster = context.cluster
    return {
        "slices": list(cluster.slices),
        "classes": list(cluster.classes.values()),
        "claims": [claim for claim in cluster.claims if context.is_given(claim)],
        "templates": list(cluster.templates),
        "taint_rules": list(cluster.taint_rules),
    }


def _all(*kinds: str) -> Places:
    return Places(tuple((kind, "") for kind in kinds))


CLASSES: Final = _all("classes")
CLAIMS: Final = _all("claims")
TEMPLATES: Final = _all("templates")
TAINT_RULES: Final = _all("taint_rules")
OF_CLUSTER: Final = _all("slices") | CLASSES
"""Slices and classes, which belong to no namespace."""
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
    CLASSES / "spec.config[]" | SPECS / "config[]" | ALLOCATIONS / "devices.config[]"
)
OPAQUE: Final = CONFIGURATIONS / "opaque"
NODE_SELECTORS: Final = (SLICES | DEVICES | ALLOCATIONS) / "nodeSelector"
