"""What a study is about: the same cluster under different demand, or a new cluster for every seed."""

from __future__ import annotations

import hashlib
import inspect
import marshal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from dralloc.lab.study.demand import scaled
from dralloc.objects.api import ApiObject, to_wire
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.limits import LIMITS, Limits
from dralloc.objects.load import STDIN, load, load_objects

__all__ = [
    "ClusterScenario",
    "Scenario",
    "Source",
    "identity_of",
    "scenario_of",
]

Source = (
    str
    | Path
    | Sequence[str | Path]
    | Cluster
    | Callable[[int, float], Cluster]
)
"""Paths as for `dralloc.load`, a cluster, or something that makes one for a seed and a demand."""


@dataclass(frozen=True)
class FileScenario:
    """Files, read by every process that needs them, once."""

    paths: tuple[str, ...]
    limits: Limits

    @cached_property
    def identity(self) -> str:
        """The content of the files."""
        return _digest_of(load_objects(*self.paths, limits=self.limits))

    def at(self, seed: int, demand: float, choices: Choices) -> Cluster:
        """Return the cluster of the files, scaled."""
        # Processes go on from study to study, and files may be written anew between two.
        cluster = _read(self.paths, self.limits, self.identity)
        return scaled(cluster, demand, seed, choices, self.limits.pods)


@dataclass(frozen=True)
class ClusterScenario:
    """A cluster."""

    cluster: Cluster
    limits: Limits

    @property
    def identity(self) -> str:
        """Everything in it that an answer can depend on."""
        held = self.cluster
        lists = (
            held.slices,
            held.nodes,
            held.claims,
            held.pods,
            held.taint_rules,
            held.quotas,
        )
        tables = (
            held.classes,
            held.namespaces,
            held.pod_groups,
            held.composite_pod_groups,
            held.workloads,
        )
        later = held.templates, held.suspended
        objects = chain[ApiObject](
            *lists, *(table.values() for table in tables), *later
        )
        return _digest_of(
            chain(map(to_wire, objects), map(list, sorted(held.abandoned)))
        )

    def at(self, seed: int, demand: float, choices: Choices) -> Cluster:
        """Return the cluster, scaled."""
        return scaled(self.cluster, demand, seed, choices, self.limits.pods)


@dataclass(frozen=True)
class MadeScenario:
    """A generator, which scales what it makes by itself."""

    make: Callable[[int, float], Cluster]

    @property
    def identity(self) -> str:
        """The generator's name, source and bound arguments. What it calls is not looked at."""
        return identity_of(self.make)

    def at(self, seed: int, demand: float, _: Choices) -> Cluster:
        """Return what is made for the seed and the demand."""
        return self.make(seed, demand)


Scenario = FileScenario | ClusterScenario | MadeScenario
"""Gives the cluster for a seed and a demand. Scenarios with equal content have the same identity."""


def scenario_of(source: Source, limits: Limits = LIMITS) -> Scenario:
    """Return the scenario behind whatever was given."""
    if isinstance(source, Cluster):
        return ClusterScenario(source, limits)
    if callable(source):
        return MadeScenario(source)
    paths = tuple(
        str(path)
        for path in ((source,) if isinstance(source, str | Path) else source)
    )
    # What is read from standard input is gone afterwards.
    return (
        ClusterScenario(load(*paths, limits=limits), limits)
        if STDIN in paths
        else FileScenario(paths, limits)
    )


@lru_cache(maxsize=1)
def _read(paths: tuple[str, ...], limits: Limits, _: str) -> Cluster:
    """Read files; those with another content are read again."""
    return load(*paths, limits=limits)


def identity_of(made_by_user: Any) -> str:
    """Return a hash of the name, source and bound arguments of a function or an object that can be called."""
    return hashlib.sha256(
        repr(tuple(_described(made_by_user))).encode()
    ).hexdigest()


def _described(make: Any) -> Iterator[str]:
    import joblib  # noqa: PLC0415 - an optional dependency

    if isinstance(make, partial):
        yield joblib.hash((make.args, make.keywords))
        yield from _described(make.func)
        return
    # What a callable object does stands in its class.
    function = make if inspect.isroutine(make) else type(make).__call__
    yield f"{function.__module__}.{function.__qualname__}"
    try:
        yield inspect.getsource(function)
    except (OSError, TypeError):
        # Without a source, as for what was typed into a console, compiled code counts; a built-in function has neither.
        code = getattr(function, "__code__", None)
        yield joblib.hash(None if code is None else marshal.dumps(code))
    # It also depends on the values of its closure, and on the object that it belongs to.
    yield joblib.hash(
        [
            cell.cell_contents
            for cell in getattr(function, "__closure__", None) or ()
        ]
    )
    yield joblib.hash(
        vars(make) if function is not make else getattr(make, "__self__", None)
    )


def _digest_of(objects: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for described in objects:
        digest.update(
            orjson.dumps(described, option=orjson.OPT_SORT_KEYS) + b"\n"
        )
    return digest.hexdigest()
