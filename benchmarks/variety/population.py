"""The pods of a varied cluster: who runs on its nodes, and who waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from benchmarks.objects import (
    Json,
    claim,
    claim_spec,
    exactly,
    held_claim,
    pod,
    pod_group,
    template,
)
from benchmarks.variety.habits import Habits
from benchmarks.variety.hardware import FABRIC, HARDWARE, class_of

__all__ = ["RACK", "TAINT", "ZONE", "ZONES", "Arrivals", "running"]

ZONE: Final = "topology.kubernetes.io/zone"
ZONES: Final = ("a", "b", "c", "d")
RACK: Final = "example.com/rack"
_HOST: Final = "kubernetes.io/hostname"

TAINT: Final[Json] = {"key": "team", "value": "a", "effect": "NoSchedule"}

_TEMPLATES: Final = range(6, 15)
"""How many templates there are for a kind of hardware."""

_MEMBERS: Final = range(2, 7)
_USERS: Final = range(2, 5)
"""Sizes of gangs, and how many pods share a claim."""


def running(
    name: str, node: str, held: Json, habits: Habits, random: Random
) -> Iterator[Json]:
    """A pod that runs on a node, and the claim that it holds; ``held`` is the result of its allocation."""
    request = exactly(held["request"], class_of("any"))
    yield held_claim(name, claim_spec(request), node, [held])
    holder = pod(name, claims=[name])
    holder["spec"] |= {
        "nodeName": node,
        "priority": random.choice(habits.priorities),
    }
    if random.random() < 0.2:
        holder["metadata"]["labels"] = {"app": _app(random)}
    if habits.counts_cpu:
        holder["spec"]["containers"] = [_container(random, 6000, 20_000)]
    yield holder


def _app(random: Random) -> str:
    return f"app-{random.randint(0, 5)}"


def _container(random: Random, millicores: int, mebibytes: int) -> Json:
    """A container that needs so much CPU and memory at most."""
    requests = {
        "cpu": f"{random.randint(500, millicores)}m",
        "memory": f"{random.randint(500, mebibytes)}Mi",
    }
    return {"name": "main", "resources": {"requests": requests}}


@dataclass
class Arrivals:
    """Who waits.

    Parameters
    ----------
    habits
        What they do.
    free
        Free units by kind of hardware.
    random
        The source of all that is drawn.
    """

    habits: Habits
    free: Mapping[str, float]
    random: Random
    _names: dict[str, int] = field(default_factory=dict)

    def objects(self) -> Iterator[Json]:
        """Templates and shared claims, and pods with their groups, in a random order of arrival."""
        yield template("fabric", claim_spec(exactly("lane", class_of(FABRIC))))
        watching = exactly("watched", class_of("any"), adminAccess=True)
        yield template("watch", claim_spec(watching))
        waiting: list[Json] = []
        for kind in self.habits.hardware:
            shapes = [
                HARDWARE[kind].claim(self.habits.choose, self.random)
                for _ in range(self.random.choice(_TEMPLATES))
            ]
            for number, (spec, _) in enumerate(shapes):
                yield template(f"{kind}-{number}", spec)
            asked = 0
            while asked < self.habits.demand * self.free[kind]:
                number = self.random.randrange(len(shapes))
                spec, units = shapes[number]
                arrivals = list(self._arrivals(kind, number, spec, len(shapes)))
                waiting += arrivals
                pods = sum(arrival["kind"] == "Pod" for arrival in arrivals)
                asked += max(1, pods) * units
        self.random.shuffle(waiting)
        yield from waiting

    def _arrivals(
        self, kind: str, number: int, spec: Json, shape_count: int
    ) -> Iterator[Json]:
        """A pod, a gang, or pods that share a claim; the claim is that of a template by its number."""
        habits, random = self.habits, self.random
        wishes, labels = self._wishes()
        group, members = "", 1
        if random.random() < habits.in_gangs:
            group, members = self._name("gang"), random.choice(_MEMBERS)
            needed = members - (random.random() < 0.3)
            yield pod_group(group, needed, random.choice(("", RACK, ZONE)))
        elif random.random() < habits.share:
            shared = self._name("shared")
            yield claim(shared, spec)
            for _ in range(random.choice(_USERS)):
                user = pod(self._name("pod"), claims=[shared])
                yield _with(user, wishes, labels)
            return
        templates = [f"{kind}-{number}"]
        if random.random() < habits.ask_twice:
            templates.append(f"{kind}-{random.randrange(shape_count)}")
        if random.random() < habits.use_fabric:
            templates.append("fabric")
        if random.random() < habits.watch:
            templates.append("watch")
        for _ in range(members):
            member = pod(self._name("pod"), templates=templates, group=group)
            yield _with(member, wishes, labels)

    def _wishes(self) -> tuple[Json, Json]:
        """What a pod wants beside devices, and the labels that it has for that."""
        habits, random = self.habits, self.random
        spec: Json = {"priority": random.choice(habits.priorities)}
        labels: Json = {}
        if habits.counts_cpu:
            spec["containers"] = [_container(random, 12_000, 40_000)]
        if random.random() < habits.keep_apart:
            labels = {"app": _app(random)}
            affinity = random.choice(
                ("podAffinity", "podAntiAffinity", "podAntiAffinity")
            )
            term = {
                "topologyKey": random.choice((_HOST, _HOST, ZONE, RACK)),
                "labelSelector": {"matchLabels": labels},
            }
            rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {affinity: rules}
        elif random.random() < habits.spread:
            labels = {"app": f"spread-{random.randint(0, 8)}"}
            constraint = {
                "maxSkew": random.choice((1, 2)),
                "topologyKey": random.choice((_HOST, ZONE)),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": labels},
            }
            spec["topologySpreadConstraints"] = [constraint]
        if random.random() < 0.2:
            spec["tolerations"] = [{"key": TAINT["key"], "operator": "Exists"}]
        if random.random() < habits.use_ports:
            containers = spec.setdefault("containers", [{"name": "main"}])
            port = {"containerPort": 80, "hostPort": random.choice((80, 443))}
            containers[0]["ports"] = [port]
        if random.random() < 0.1:
            spec["nodeSelector"] = {ZONE: random.choice(ZONES)}
        return spec, labels

    def _name(self, kind: str) -> str:
        """A new name for something of a kind."""
        number = self._names.get(kind, 0)
        self._names[kind] = number + 1
        return f"{kind}-{number:05d}"


def _with(waiting: Json, wishes: Json, labels: Json) -> Json:
    waiting["spec"] |= wishes
    if labels:
        waiting["metadata"]["labels"] = labels
    return waiting
