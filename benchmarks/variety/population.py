"""The pods of a varied cluster: who runs on its nodes, and who waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from benchmarks.objects import (
    DRIVER,
    Json,
    claim,
    claim_spec,
    device_class,
    exactly,
    held_claim,
    pod,
    pod_group,
    template,
)
from benchmarks.variety.habits import Habits
from benchmarks.variety.hardware import HARDWARE, class_of
from benchmarks.variety.pools import (
    BLOCK,
    FABRIC,
    HOSTS,
    LICENCE,
    block_claim,
    fabric_claim,
    licence_claim,
)

__all__ = [
    "HOST",
    "PLUGIN",
    "RACK",
    "TAINT",
    "ZONE",
    "ZONES",
    "Arrivals",
    "classes",
    "running",
]

ZONE: Final = "topology.kubernetes.io/zone"
ZONES: Final = ("a", "b", "c", "d")
RACK: Final = "example.com/rack"
HOST: Final = "kubernetes.io/hostname"

PLUGIN: Final = "example.com/fpga"
"""What a device plugin offers: no device of DRA."""
_GPU: Final = "example.com/gpu"
"""The extended resource that whole GPUs are."""

TAINT: Final[Json] = {"key": "team", "value": "a", "effect": "NoSchedule"}

_TEMPLATES: Final = range(6, 15)
"""How many templates there are for a kind of hardware."""

_MEMBERS: Final = range(2, 7)
_USERS: Final = range(2, 5)
"""Sizes of gangs, and how many pods share a claim."""


def classes() -> Iterator[Json]:
    """The classes of all types of devices, and one of any device."""
    types = {kind.type for kind in HARDWARE.values()}
    for name in sorted(types | {"nic", FABRIC, LICENCE, BLOCK}):
        of_type = f"device.attributes['{DRIVER}'].type == '{name}'"
        element = device_class(
            class_of(name), f"device.driver == '{DRIVER}' && {of_type}"
        )
        if name == "gpu":
            element["spec"]["extendedResourceName"] = _GPU
        yield element
    yield device_class(class_of("any"), f"device.driver == '{DRIVER}'")


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
        Free units by kind of hardware; of blocks, nodes that are in one.
    nodes
        The names of all nodes.
    random
        The source of all that is drawn.
    """

    habits: Habits
    free: Mapping[str, float]
    nodes: Sequence[str]
    random: Random
    _names: dict[str, int] = field(default_factory=dict)

    def objects(self) -> Iterator[Json]:
        """Templates and shared claims, and pods with their groups, in a random order of arrival."""
        yield template("fabric", fabric_claim())
        yield template("licence", licence_claim(self.random))
        watching = exactly("watched", class_of("any"), adminAccess=True)
        yield template("watch", claim_spec(watching))
        waiting: list[Json] = []
        for kind in self.habits.hardware:
            shapes = [
                HARDWARE[kind].claim(self.habits.choose, self.random)
                for _ in range(self.random.choice(_TEMPLATES))
            ]
            for shape_index, (spec, _) in enumerate(shapes):
                yield template(f"{kind}-{shape_index}", spec)
            asked = 0
            while asked < self.habits.demand * self.free[kind]:
                shape_index = self.random.randrange(len(shapes))
                spec, units = shapes[shape_index]
                arrivals = list(
                    self._arrivals(kind, shape_index, spec, len(shapes))
                )
                waiting += arrivals
                pods = sum(map(_waits, arrivals))
                asked += max(1, pods) * units
        hosts = 0
        while hosts < self.habits.demand * self.free[BLOCK]:
            size = self.random.choice((1, 2, HOSTS))
            waiting += self._users_of_block(size)
            hosts += size
        pods = sum(map(_waits, waiting))
        for _ in range(round(self.habits.without_claims * pods)):
            wishes, labels = self._wishes()
            waiting.append(_with(pod(self._name("plain")), wishes, labels))
        self.random.shuffle(waiting)
        yield from waiting

    def _arrivals(
        self, kind: str, shape_index: int, spec: Json, shape_count: int
    ) -> Iterator[Json]:
        """A pod, a gang, or pods that share a claim; the claim is that of a template by its index."""
        habits, random = self.habits, self.random
        wishes, labels = self._wishes()
        group, members = "", 1
        if random.random() < habits.in_gangs:
            group, members = self._name("gang"), random.choice(_MEMBERS)
            needed = members - (random.random() < 0.3)
            yield pod_group(group, needed, random.choice(("", RACK, ZONE)))
            if random.random() < habits.started:
                members -= 1
                member = pod(self._name("started"), group=group)
                on_node = {"nodeName": random.choice(self.nodes)}
                yield _with(member, wishes | on_node, labels)
        elif random.random() < habits.share:
            shared = self._name("shared")
            yield claim(shared, spec)
            for _ in range(random.choice(_USERS)):
                user = pod(self._name("pod"), claims=[shared])
                yield _with(user, wishes, labels)
            return
        templates = [f"{kind}-{shape_index}"]
        if kind == "gpu" and random.random() < habits.by_name:
            templates = []
            wishes = _needing(wishes, {_GPU: random.choice("112")})
        if random.random() < habits.ask_twice:
            templates.append(f"{kind}-{random.randrange(shape_count)}")
        if random.random() < habits.use_fabric:
            templates.append("fabric")
        if random.random() < habits.use_licences:
            templates.append("licence")
        if random.random() < habits.watch:
            templates.append("watch")
        for _ in range(members):
            member = pod(self._name("pod"), templates=templates, group=group)
            yield _with(member, wishes, labels)

    def _users_of_block(self, hosts: int) -> Iterator[Json]:
        """Pods that share a claim for a device of so many hosts, each on one of them."""
        shared = self._name("block")
        yield claim(shared, block_claim(hosts))
        wishes, _ = self._wishes()
        labels = {"app": shared}
        term = {
            "topologyKey": HOST,
            "labelSelector": {"matchLabels": labels},
        }
        apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        wishes["affinity"] = {"podAntiAffinity": apart}
        yield pod_group(shared, hosts)
        for _ in range(hosts):
            user = pod(self._name("pod"), claims=[shared], group=shared)
            yield _with(user, wishes, labels)

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
                "topologyKey": random.choice((HOST, HOST, ZONE, RACK)),
                "labelSelector": {"matchLabels": labels},
            }
            rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {affinity: rules}
        elif random.random() < habits.spread:
            labels = {"app": f"spread-{random.randint(0, 8)}"}
            constraint = {
                "maxSkew": random.choice((1, 2)),
                "topologyKey": random.choice((HOST, ZONE)),
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
        if random.random() < habits.use_plugins:
            spec = _needing(spec, {PLUGIN: "1"})
        if random.random() < 0.1:
            spec["nodeSelector"] = {ZONE: random.choice(ZONES)}
        return spec, labels

    def _name(self, kind: str) -> str:
        """A new name for something of a kind."""
        count = self._names.get(kind, 0)
        self._names[kind] = count + 1
        return f"{kind}-{count:05d}"


def _waits(element: Json) -> bool:
    return element["kind"] == "Pod" and "nodeName" not in element["spec"]


def _needing(spec: Json, amounts: Json) -> Json:
    """Let the first container of a pod need these amounts of extended resources, too; the API wants limits of them."""
    main, *others = spec.get("containers", [{"name": "main"}])
    requests = main.get("resources", {}).get("requests", {})
    needs = {"requests": requests | amounts, "limits": amounts}
    return spec | {"containers": [main | {"resources": needs}, *others]}


def _with(waiting: Json, wishes: Json, labels: Json) -> Json:
    waiting["spec"] |= wishes
    if labels:
        waiting["metadata"]["labels"] = labels
    return waiting
