"""What is remembered of nodes changes no answer: every attempt is as if nothing were known."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import wire
from dralloc.compiler import compile_cluster
from dralloc.scheduling import Attempt, Profile, Scheduler
from scheduling_wire import node, pod
from wire import Json

ZONE = "topology.kubernetes.io/zone"
APPS = ("web", "db")
SIZES = ("large", "small")


def crowd(seed: int) -> list[Json]:
    """Few kinds of pods on few kinds of nodes, with everything by which pods and nodes have to do with each other."""
    random = Random(seed)
    return [*nodes(random), wire.device_class(), *shared_claims(random), *pods(random)]


def nodes(random: Random) -> list[Json]:
    found: list[Json] = []
    for number in range(random.randint(3, 8)):
        name = f"n{number}"
        taints = [{"key": "soft", "effect": "PreferNoSchedule"}] if random.random() < 0.3 else []
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": random.choice(["3", "20"])}
        found.append(node(name, allocatable, labels={ZONE: random.choice("ab")}, taints=taints))
        gpus = [wire.device(f"gpu-{index}", {"size": random.choice(SIZES)}) for index in range(random.randint(0, 3))]
        if gpus:
            found.append(wire.resource_slice(gpus, name=name, pool=name, nodeName=name))
    remote = [wire.device(f"nic-{index}", {"size": "small"}) for index in range(2)]
    return [*found, wire.resource_slice(remote, name="net", pool="net", allNodes=True)]


def shared_claims(random: Random) -> list[Json]:
    return [wire.claim(f"shared-{number}", wanted(random)) for number in range(2)]


def wanted(random: Random) -> Json:
    subs = [wire.sub(size, f"device.attributes['gpu.example.com'].size == '{size}'") for size in SIZES]
    return random.choice([wire.request(), wire.first_available("gpu", *subs)])


def pods(random: Random) -> list[Json]:
    kinds = [kind(random) for _ in range(4)]
    found: list[Json] = []
    for number in range(random.randint(10, 30)):
        claims = []
        if random.random() < 0.5:
            claims = [f"own-{number}"] if random.random() < 0.7 else [f"shared-{random.randint(0, 1)}"]
        entries = [{"name": f"c{index}", "resourceClaimName": name} for index, name in enumerate(claims)]
        found += [wire.claim(name, wanted(random)) for name in claims if name.startswith("own")]
        found.append(pod(f"p{number:02}", **random.choice(kinds), resourceClaims=entries))
    return found


def kind(random: Random) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": random.choice(APPS)}}, "topologyKey": ZONE}
    affinity: Json = {}
    if random.random() < 0.4:
        way = random.choice(["podAffinity", "podAntiAffinity"])
        required = random.random() < 0.4
        affinity[way] = (
            {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            if required
            else {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm": term}]}
        )
    spread = {
        "maxSkew": 1,
        "topologyKey": random.choice([ZONE, "kubernetes.io/hostname"]),
        "whenUnsatisfiable": random.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": term["labelSelector"],
    }
    return {
        "labels": {"app": random.choice(APPS)},
        "requests": {"cpu": random.choice(["100m", "1"])},
        "affinity": affinity,
        "priority": random.choice([0, 5]),
        "topologySpreadConstraints": [spread] if random.random() < 0.4 else [],
        "container": {"ports": [{"hostPort": 80}] if random.random() < 0.2 else []},
    }


def answer(found: Attempt) -> Json:
    return {
        "feasible": [one.name for one in found.feasible],
        "evaluated": found.evaluated,
        "scores": {plugin: scores.tolist() for plugin, scores in found.scores.items()},
        "rejected": {one.name: rejection for one, rejection in found.rejected.items()},
        "message": found.message,
    }


@pytest.mark.parametrize("seed", range(40))
def test_an_attempt_is_as_if_nothing_were_known(seed: int) -> None:
    compiled = compile_cluster(wire.cluster(*crowd(seed)))
    quick, plain = (Scheduler(compiled, [Profile()], remembers=remembers) for remembers in (True, False))
    for key in plain.pods:
        found, expected = quick.attempt(key), plain.attempt(key)
        assert answer(found) == answer(expected)
        if expected.feasible:
            assert found.chosen.name == expected.chosen.name
            for one, attempt in ((quick, found), (plain, expected)):
                one.bind(key, attempt.chosen)
    assert quick.solution.placements == plain.solution.placements
