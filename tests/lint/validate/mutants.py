"""Objects that are in order, damaged at one place or two: a seed gives an object, the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any, Final

from lint.validate.objects import (
    ALLOCATED,
    ALTERNATIVES,
    CLAIM,
    CLASS,
    CONFIGURED,
    CONSTRAINED,
    COUNTERS,
    DISCRETE,
    PARTITIONS,
    PER_DEVICE,
    REPORTED,
    SELECTED,
    SHARED,
    SLICE,
    TEMPLATE,
    edited,
)
from wire import Json

__all__ = ["mutant"]

_DEVICE: Final = "spec.devices[0]"
_TAINT: Final[Json] = {
    "key": "example.com/broken",
    "effect": "NoSchedule",
    "timeAdded": "2026-01-31T12:00:00Z",
}
_TOLERATION: Final[Json] = {
    "key": "example.com/broken",
    "operator": "Exists",
    "effect": "NoSchedule",
}
_EXACTLY: Final = "spec.devices.requests[0].exactly"

BASES: Final = (
    *(SLICE, SHARED, DISCRETE, COUNTERS, PARTITIONS, PER_DEVICE, SELECTED, CLASS, CONFIGURED),
    *(CLAIM, ALTERNATIVES, CONSTRAINED, TEMPLATE, ALLOCATED, REPORTED),
    edited(SLICE, {f"{_DEVICE}.taints": [_TAINT, {**_TAINT, "effect": "NoExecute"}]}),
    edited(SELECTED, {"spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values": ["a", "b"]}),
    edited(SLICE, {f"{_DEVICE}.attributes": {"a": {"int": 1}, "b.c/d": {"version": "1.2.3"}, "e": {"bool": True}}}),
    edited(SLICE, {f"{_DEVICE}.bindsToNode": True, f"{_DEVICE}.bindingConditions": ["ready"],
                   f"{_DEVICE}.bindingFailureConditions": ["failed"]}),
    edited(CLAIM, {f"{_EXACTLY}.tolerations": [_TOLERATION], f"{_EXACTLY}.count": 2}),
    edited(CLAIM, {f"{_EXACTLY}.capacity": {"requests": {"memory": "1Gi"}}}),
    edited(CLAIM, {"metadata.labels": {"app": "x"}, "metadata.annotations": {"a.b/c": "d"},
                   "metadata.generateName": "c-"}),
)  # fmt: skip
"""What is damaged."""

_VALUES: Final[tuple[Any, ...]] = (
    None, None, None, True, False, 0, 1, -1, 33, 2**31, 2**63 - 1, 2**63, 0.5, 1.0, "", " ", "a", "A", "a.b", "a/b",
    "a.b/c", "a..b", "-a", "a-", "a" * 63, "a" * 64, "a" * 254, "\u00e9", "1", "1Gi", " 1Gi", "1Gi ", "\u00a01", "1 Gi",
    "-1", "1e3", "1e101", "1e400", "1E-400", "0.5n", "1.5Gi", "Gi", "1i", "+1", "1e", "1_000", "0x10",
    "2026-01-31T12:00:00Z", "2026-02-30T12:00:00Z", "2026-01-31T12:00:00.5+24:60", "2026-01-31 12:00:00Z",
    "2026-01-31t12:00:00z", "2026-01-31T1:00:00Z", "2026-01-31", "yesterday", "2026-01-31T12:00:60Z", "1.2.3", "v1.2.3",
    "In", "NotIn", "Exists", "Gt", "Equal", "NoSchedule", "None", "All", "ExactCount", "true", "1 + 1", "device.none",
    [], {}, [None], [None, "a"], ["a", "a"], ["a", 1], [[]], [{}], {"a": None}, {"": "a"}, {"a": "1"}, {"a": {}},
    {"value": "1"}, {"value": None}, {"name": None}, {"key": "a", "operator": "In", "values": [None]},
)  # fmt: skip
"""What is put anywhere."""

_UNTOUCHED: Final = frozenset({"apiVersion", "kind"})
_OF_METADATA: Final = frozenset({"labels", "annotations", "generateName"})
"""What of the metadata is damaged: the rest says where the object is kept."""

_Place = tuple[Any, Any]
"""A list or an object, and an index or key of it."""


def mutant(seed: int) -> Json:
    """An object with one or two parts changed."""
    random = Random(seed)
    document = deepcopy(random.choice(BASES))
    for _ in range(random.choice((1, 1, 1, 2))):
        locations = list(_places(document))
        if locations:
            random.choice(_CHANGES)(random, document, random.choice(locations))
    return document


def _places(document: Json) -> Iterator[_Place]:
    """Every part that may be changed."""
    stack = [
        document[name] for name in document.keys() - _UNTOUCHED - {"metadata"}
    ]
    yield from (
        (document["metadata"], name)
        for name in sorted(_OF_METADATA & document["metadata"].keys())
    )
    stack += (
        document["metadata"][name]
        for name in sorted(_OF_METADATA & document["metadata"].keys())
    )
    while stack:
        holder = stack.pop()
        if isinstance(holder, dict | list):
            keys = (
                list(holder)
                if isinstance(holder, dict)
                else list(range(len(holder)))
            )
            yield from ((holder, key) for key in keys)
            stack += (holder[key] for key in keys)


def _replace(random: Random, _: Json, location: _Place) -> None:
    holder, key = location
    holder[key] = deepcopy(random.choice(_VALUES))


def _remove(_random: Random, _: Json, location: _Place) -> None:
    holder, key = location
    del holder[key]


def _repeat(random: Random, _: Json, location: _Place) -> None:
    holder, key = location
    if isinstance(holder, list):
        holder.insert(key, deepcopy(holder[key]))
    elif isinstance(holder[key], list):
        holder[key] = deepcopy(holder[key] * random.choice((2, 17, 33)))
    elif isinstance(holder[key], str):
        holder[key] *= 2


def _add_null(random: Random, _: Json, location: _Place) -> None:
    """A null more in a list, or in an object under a name of its own or of another."""
    holder, key = location
    target = holder[key] if isinstance(holder[key], dict | list) else holder
    if isinstance(target, list):
        target.insert(random.randrange(len(target) + 1), None)
    else:
        target[random.choice(("more", *map(str, target)))] = None


def _swap(random: Random, document: Json, location: _Place) -> None:
    """The value of another place."""
    other, name = random.choice(list(_places(document)))
    holder, key = location
    holder[key] = deepcopy(other[name])


def _rename(random: Random, document: Json, location: _Place) -> None:
    holder, key = location
    if isinstance(holder, dict):
        names = {str(name) for _, name in _places(document)}
        holder[random.choice([*sorted(names), "", "more", "a" * 65])] = (
            holder.pop(key)
        )


_CHANGES: Final = (
    _replace,
    _replace,
    _replace,
    _remove,
    _repeat,
    _add_null,
    _add_null,
    _swap,
    _rename,
)
