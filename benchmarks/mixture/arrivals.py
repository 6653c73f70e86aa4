"""The pods of a mixed cluster that wait, alone or in gangs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from benchmarks.mixture.recipe import Recipe
from benchmarks.mixture.servers import (
    PRIORITIES,
    RACK,
    TAINT,
    ZONE,
    ZONES,
    with_requests,
)
from benchmarks.mixture.shapes import SHAPES, ClaimShape
from benchmarks.objects import Json, pod, pod_group, template

__all__ = ["Arrivals"]

DEMAND: Final = 1.3
"""What waits, as a part of what is free."""

GANGS: Final = 1 / 16
"""How often somebody with a large claim comes as a gang: as these have five members, a quarter of such pods does."""

MEMBERS: Final = range(2, 9)
ONE_RACK: Final = 0.5
"""Sizes of gangs, and how many of them need one rack."""

ALTERNATIVES: Final = 0.15
TOLERANT: Final = 0.25
ZONED: Final = 0.1
SPREAD: Final = 0.03
"""How many are content with something else, tolerate taints, want to be in one zone, or are spread over all."""

SPREAD_PODS: Final = 6
"""So many pods of a kind are spread over zones together."""

CPUS: Final = range(1, 17)
MEBIBYTES: Final = (1001, 49999)
"""CPU and memory that pods request."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A pod, or the equal members of a gang.

    Parameters
    ----------
    template
        Of its claim.
    members
        How many pods it is.
    spec
        What its pods have beside their claim.
    one_rack
        Whether all need to be in one rack.
    """

    template: str
    members: int
    spec: Json
    one_rack: bool


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Who waits.

    Parameters
    ----------
    recipe
        What the cluster is made of.
    free
        Free units by kind of hardware.
    """

    recipe: Recipe
    free: Mapping[str, int]

    def objects(self) -> Iterator[Json]:
        """Templates, and pods with their groups, in a random order of arrival."""
        alternatives = self.recipe.has("alternatives")
        for hardware in self.free:
            for shape in SHAPES[hardware]:
                yield template(shape.name, shape.spec)
                if alternatives and shape.alternatives:
                    yield template(f"{shape.name}-or", shape.alternatives)
        arrivals = [
            arrival
            for hardware, units in self.free.items()
            for arrival in self._arrivals(hardware, units)
        ]
        self.recipe.source("order").shuffle(arrivals)
        pod_count = gangs = spread = 0
        for arrival in arrivals:
            group = ""
            if arrival.members > 1 and self.recipe.has("gangs"):
                group = f"gang-{gangs:05d}"
                gangs += 1
                yield pod_group(
                    group, arrival.members, RACK if arrival.one_rack else ""
                )
            for _ in range(arrival.members):
                waiting = pod(
                    f"pod-{pod_count:06d}",
                    templates=[arrival.template],
                    group=group,
                )
                waiting["spec"] |= arrival.spec
                pod_count += 1
                if "topologySpreadConstraints" in arrival.spec:
                    _spread(waiting, f"app-{spread // SPREAD_PODS:04d}")
                    spread += 1
                yield waiting

    def _arrivals(self, hardware: str, units: int) -> Iterator[_Arrival]:
        """Whoever asks for one kind of hardware, until enough is asked for."""
        shapes = SHAPES[hardware]
        weights = [shape.weight for shape in shapes]
        random = self.recipe.source(f"arrivals-{hardware}")
        asked = 0
        while asked < DEMAND * units:
            [shape] = random.choices(shapes, weights)
            arrival = self._arrival(shape, random)
            asked += arrival.members * shape.units
            yield arrival

    def _arrival(self, shape: ClaimShape, random: Random) -> _Arrival:
        """One of a shape. Everything is drawn for everybody, so that leaving something out changes nothing else."""
        recipe = self.recipe
        size, one_rack = random.choice(MEMBERS), random.random() < ONE_RACK
        together = random.random() < GANGS and shape.large
        content = (
            random.random() < ALTERNATIVES
            and recipe.has("alternatives")
            and shape.alternatives is not None
        )
        name = f"{shape.name}-or" if content else shape.name
        cpus, mebibytes = random.choice(CPUS), random.randint(*MEBIBYTES)
        [priority] = random.choices(list(PRIORITIES), list(PRIORITIES.values()))
        tolerant, chosen, zone = (
            random.random() < TOLERANT,
            random.random(),
            random.choice(ZONES),
        )
        carrier: Json = {"spec": {}}
        if recipe.has("cpu"):
            with_requests(carrier, str(cpus), f"{mebibytes}Mi")
        spec: Json = carrier["spec"]
        if recipe.has("priorities"):
            spec["priority"] = priority
        if recipe.has("taints") and tolerant:
            spec["tolerations"] = [
                {
                    "key": TAINT["key"],
                    "operator": "Equal",
                    "value": TAINT["value"],
                }
            ]
        if recipe.has("zones"):
            spec |= _zones(chosen, zone, alone=not together)
        return _Arrival(
            name,
            size if together else 1,
            spec,
            one_rack and recipe.has("racks"),
        )


def _zones(chosen: float, zone: str, *, alone: bool) -> Json:
    """What a pod says about zones: it selects one, avoids one, is spread over all, or says nothing."""
    if chosen < ZONED / 2:
        return {"nodeSelector": {ZONE: zone}}
    if chosen < ZONED:
        term = {
            "matchExpressions": [
                {"key": ZONE, "operator": "NotIn", "values": [zone]}
            ]
        }
        required = {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [term]
            }
        }
        return {"affinity": {"nodeAffinity": required}}
    if chosen < ZONED + SPREAD and alone:
        return {"topologySpreadConstraints": []}
    return {}


def _spread(waiting: Json, app: str) -> None:
    """Spread the pods of an app over zones."""
    labels = {"app": app}
    waiting["metadata"]["labels"] = labels
    selector = {"matchLabels": labels}
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }
    waiting["spec"]["topologySpreadConstraints"] = [constraint]
