"""Runs that work nothing out twice: what follows from nothing but what is seen is remembered. For very many runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from dralloc.live.apply import ApplyRun, Question, Selection
from dralloc.live.apply.fence import without_fence
from dralloc.live.apply.selection import LiveView
from dralloc.live.apply.units import WriteUnit
from dralloc.objects.choices import Mode
from dralloc.objects.cluster import Cluster
from dralloc.show.plan import Plan
from wire import Json


@dataclass(frozen=True, eq=False)
class This:
    """A cluster that equals itself alone."""

    cluster: Cluster

    def __hash__(self) -> int:
        return id(self.cluster)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, This) and other.cluster is self.cluster


@lru_cache(maxsize=8192)
def viewed(text: bytes, selection: Selection) -> LiveView:
    return LiveView.of(orjson.loads(text), selection, lambda _run: False)


@lru_cache(maxsize=8192)
def planned(mode: Mode, this: This) -> Plan:
    return Question(mode).plan(this.cluster)


@lru_cache(maxsize=16384)
def judged(mode: Mode, this: This, units: bytes) -> tuple[str, ...]:
    write_units = [WriteUnit.of(unit) for unit in orjson.loads(units)]
    return tuple(Question(mode).broken_rules(this.cluster, write_units))


@lru_cache(maxsize=16384)
def judged_by_pods(mode: Mode, this: This, units: bytes) -> tuple[str, ...]:
    write_units = [WriteUnit.of(unit) for unit in orjson.loads(units)]
    return tuple(Question(mode).broken_by_pods(this.cluster, write_units))


class RememberedQuestion(Question):
    """A question whose answers are remembered."""

    def plan(self, cluster: Cluster, start: Plan | None = None) -> Plan:
        # Answers to such small clusters are proven, from wherever the search starts.
        del start
        return planned(self.mode, This(cluster))

    def broken_rules(
        self, cluster: Cluster, units: Iterable[WriteUnit]
    ) -> list[str]:
        return list(judged(self.mode, This(cluster), text_of(units)))

    def broken_by_pods(
        self, cluster: Cluster, units: Iterable[WriteUnit]
    ) -> list[str]:
        return list(judged_by_pods(self.mode, This(cluster), text_of(units)))


def text_of(units: Iterable[WriteUnit]) -> bytes:
    return orjson.dumps([timeless(unit.to_dict()) for unit in units])


class RememberedRun(ApplyRun):
    """A run that has seen equal clusters before."""

    def _view(self, selection: Selection) -> LiveView:
        bare = [
            unversioned(unfenced)
            for api_object in self.source()
            if (unfenced := without_fence(api_object, self._is_aside))
            is not None
        ]
        return viewed(orjson.dumps(bare), selection)


def unversioned(api_object: Json) -> Json:
    """An object without what no plan depends on: its version, what was noted on it, and when it was changed."""
    metadata = dict(api_object["metadata"])
    for name in ("resourceVersion", "annotations"):
        metadata.pop(name, None)
    if api_object["kind"] == "ResourceClaim":
        metadata.pop("labels", None)
    api_object = {**api_object, "metadata": metadata}
    if api_object.get("status"):
        status = dict(api_object["status"])
        status.pop("conditions", None)
        if status.get("allocation"):
            status["allocation"] = _without_time(status["allocation"])
        api_object["status"] = status
    if taints := api_object.get("spec", {}).get("taints"):
        api_object["spec"] = {
            **api_object["spec"],
            "taints": [{**taint, "timeAdded": ""} for taint in taints],
        }
    return api_object


def timeless(unit: Json) -> Json:
    """A unit without when its claims are allocated."""
    claims: Sequence[Any] = unit["claims"]
    return {
        **unit,
        "claims": [
            [*rest, _without_time(allocation)] for *rest, allocation in claims
        ],
    }


def _without_time(allocation: Json) -> Json:
    return {
        key: part
        for key, part in allocation.items()
        if key != "allocationTimestamp"
    }
