"""Small random clusters in which something is always short, with every feature in the mix."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from dralloc.ask.allocate import allocate
from dralloc.objects.api import to_wire
from dralloc.objects.cluster import Cluster
from dralloc.objects.features import ALL_FEATURES, Features
from wire import (
    DRIVER,
    VERSION,
    Json,
    claim,
    cluster,
    counters,
    device,
    device_class,
    first_available,
    node,
    pod,
    request,
    resource_slice,
    sub,
)

DOMAIN = f"device.attributes['{DRIVER}']"
SELECTORS = (
    f"{DOMAIN}.model == 'a'",
    f"{DOMAIN}.model == 'b'",
    f"has({DOMAIN}.numa) && {DOMAIN}.numa == 0",
    f"{DOMAIN}.model == 'b' && {DOMAIN}.index < 2",
    f"{DOMAIN}.model == 'a' || {DOMAIN}.index == 0",
    f"{DOMAIN}.numa == 1",  # fails where the attribute is missing
)
TAINT = {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"}
GANG = "gang"
"""The label that makes pods a gang."""
POLICIES: tuple[Json, ...] = (
    {},
    {
        "requestPolicy": {
            "default": "2Gi",
            "validRange": {"min": "1Gi", "step": "1Gi", "max": "4Gi"},
        }
    },
    {"requestPolicy": {"default": "1Gi", "validValues": ["1Gi", "2Gi", "4Gi"]}},
)


class Crowd:
    """Draws a cluster: one part of its claims has been allocated before the others come."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.nodes = [
            f"node-{index}" for index in range(self.random.randint(1, 3))
        ]

    def rarely(self, times: int = 6) -> bool:
        """True once in so many times."""
        return self.random.randrange(times) == 0

    def cluster(self) -> Cluster:
        """Draw it."""
        base: list[Json] = [
            *map(self.node, self.nodes),
            *self.slices(),
            *self.classes(),
            *self.rules(),
        ]
        older = [
            self.claim(f"old-{index}")
            for index in range(self.random.randint(0, 3))
        ]
        before = allocate(cluster(base, older), "first-fit")
        held = [to_wire(allocated) for allocated in before.claims]
        self.shrink(base)
        names = [f"new-{index}" for index in range(self.random.randint(1, 3))]
        pods = [
            self.pod(name, names)
            for name in names
            if self.random.random() < 0.6
        ]
        return cluster(base, held, [self.claim(name) for name in names], pods)

    def caps(self) -> list[str]:
        """Now and then one or two caps of the only namespace; drawn apart, so that the cluster stays what it is."""
        random = Random(f"caps {self.seed}")
        amounts = {
            "memory": f"{random.randint(0, 4)}Gi",
            "engines": str(random.randint(0, 2)),
        }
        return [
            f"default={name}:{most}"
            for name, most in amounts.items()
            if random.random() < 0.6
        ]

    def shrink(self, objects: list[Json]) -> None:
        """Now and then the drivers publish less of some counters than allocated claims hold; drawn apart, too."""
        random = Random(f"shrink {self.seed}")
        specs = (
            api_object["spec"]
            for api_object in objects
            if api_object["kind"] == "ResourceSlice"
        )
        sets = (
            counter_set
            for spec in specs
            for counter_set in spec.get("sharedCounters", ())
            if random.random() < 0.15
        )
        for counter_set in sets:
            counter_set["counters"]["memory"]["value"] = (
                f"{random.randint(0, 2)}Gi"
            )

    def features(self) -> Features:
        """Mostly all of them, now and then all but one."""
        gate = self.random.choice(Features.names())
        return (
            replace(ALL_FEATURES, **{gate: False})
            if self.rarely()
            else ALL_FEATURES
        )

    def node(self, name: str) -> Json:
        labels = {
            "zone": self.random.choice("xy"),
            "kubernetes.io/hostname": name,
        }
        wire = node(name)
        wire["metadata"]["labels"] = labels
        return (
            {**wire, "spec": {"unschedulable": True}}
            if self.rarely(8)
            else wire
        )

    def classes(self) -> list[Json]:
        return [
            device_class("gpu"),
            device_class(
                "fine", f"device.driver == '{DRIVER}' && {DOMAIN}.model == 'b'"
            ),
        ]

    def rules(self) -> list[Json]:
        if not self.rarely(8):
            return []
        spec = {
            "deviceSelector": {"pool": self.random.choice(self.nodes)},
            "taint": TAINT,
        }
        return [
            {
                "apiVersion": VERSION,
                "kind": "DeviceTaintRule",
                "metadata": {"name": "rule"},
                "spec": spec,
            }
        ]

    def pod(self, name: str, names: list[str]) -> Json:
        """A pod with the claim of that name, now and then with another one that others may use, too."""
        spec: Json = {}
        if self.rarely(3):
            spec["nodeSelector"] = {"zone": self.random.choice("xy")}
        elif self.rarely(4):
            terms = [
                {
                    "matchExpressions": [
                        {"key": "zone", "operator": "NotIn", "values": ["x"]}
                    ]
                }
            ]
            required = {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": terms
                }
            }
            spec["affinity"] = {"nodeAffinity": required}
        used = (
            {name: None, self.random.choice(names): None}
            if self.rarely(4)
            else {name: None}
        )
        pod_object = pod(
            f"pod-{name}", *used, priority=self.random.randint(0, 2), **spec
        )
        if self.rarely(3):
            pod_object["metadata"]["labels"] = {GANG: "g"}
        return pod_object

    # What there is.

    def slices(self) -> list[Json]:
        slices = []
        for name in self.nodes:
            kind = self.random.choice(
                [
                    "plain",
                    "plain",
                    "partitions",
                    "grouped",
                    "shares",
                    "functions",
                ]
            )
            slices += getattr(self, kind)(name)
        if self.rarely(3):
            slices.append(
                resource_slice(
                    [self.device("net-0")],
                    name="net",
                    pool="net",
                    allNodes=True,
                )
            )
        if self.rarely(6):
            devices = [
                self.device("far-0", nodeName=self.nodes[-1]),
                self.device("far-1", 1, allNodes=True),
            ]
            slices.append(
                resource_slice(
                    devices, name="far", pool="far", perDeviceNodeSelection=True
                )
            )
        if self.rarely(12):
            slices.append(
                resource_slice(
                    [self.device("twin"), self.device("twin")],
                    name="bad",
                    pool="bad",
                )
            )
        if self.rarely(8):
            slices.append(
                resource_slice(
                    [self.device("half-0")],
                    name="half",
                    pool="half",
                    nodeName="node-0",
                    count=2,
                )
            )
        return slices

    def device(self, name: str, index: int = 0, **fields: Any) -> Json:
        attributes: dict[str, Any] = {
            "model": self.random.choice("ab"),
            "index": index,
        }
        if not self.rarely(8):
            attributes["numa"] = self.random.randint(0, 1)
        attributes["roots"] = self.random.sample(
            "ab", self.random.randint(1, 2)
        )
        taints = {"taints": [TAINT]} if self.rarely() else {}
        conditions = (
            {
                "bindingConditions": ["ready"],
                "bindingFailureConditions": ["failed"],
            }
            if self.rarely(9)
            else {}
        )
        return device(name, attributes, **taints, **conditions, **fields)

    def plain(self, name: str) -> list[Json]:
        devices = [
            self.device(f"gpu-{index}", index)
            for index in range(self.random.randint(1, 3))
        ]
        return [resource_slice(devices, name=name, pool=name, nodeName=name)]

    def partitions(self, name: str) -> list[Json]:
        def consuming(index: int) -> Json:
            amounts = {
                "memory": {"value": f"{self.random.randint(1, 4)}Gi"},
                "engines": {"value": "1"},
            }
            return self.device(
                f"part-{index}",
                index,
                consumesCounters=[{"counterSet": "card", "counters": amounts}],
            )

        total = counters(
            "card", memory=f"{self.random.randint(3, 5)}Gi", engines="2"
        )
        return self.drawing(
            name,
            total,
            [consuming(index) for index in range(self.random.randint(2, 3))],
        )

    def grouped(self, name: str) -> list[Json]:
        """Partitions that may not all be in use together (KEP-5963)."""

        def consuming(index: int) -> Json:
            use = {
                "counterSet": "card",
                "counters": {"memory": {"value": "1Gi"}},
            }
            groups = self.random.choice(
                [[], ["mig"], ["vgpu"], ["mig", "vgpu"]]
            )
            return self.device(
                f"mode-{index}",
                index,
                consumesCounters=[{**use, "compatibilityGroups": groups}],
            )

        return self.drawing(
            name,
            counters("card", memory="4Gi"),
            [consuming(index) for index in range(3)],
        )

    def functions(self, name: str) -> list[Json]:
        """Devices that draw as much as is asked for on a counter with a policy (KEP-5941)."""
        total = counters("card", memory=f"{self.random.randint(2, 5)}Gi")
        total["counters"]["memory"] |= self.random.choice(POLICIES)
        always = (
            {"value": "1Gi"}
            if Random(f"functions {self.seed} {name}").random() < 0.4
            else {}
        )
        drawn = {"memory": {**always, "valueFrom": {"capacityKey": "memory"}}}
        uses = [{"counterSet": "card", "counters": drawn}]
        shared = {"allowMultipleAllocations": True} if self.rarely(2) else {}
        devices = [
            self.device(f"vf-{index}", index, consumesCounters=uses, **shared)
            for index in range(2)
        ]
        return self.drawing(name, total, devices)

    def drawing(
        self, name: str, total: Json, devices: list[Json]
    ) -> list[Json]:
        """A pool of devices that draw on one counter set."""
        return [
            resource_slice(
                name=f"{name}-counters",
                pool=name,
                nodeName=name,
                count=2,
                sharedCounters=[total],
            ),
            resource_slice(
                devices, name=name, pool=name, nodeName=name, count=2
            ),
        ]

    def shares(self, name: str) -> list[Json]:
        memory = {
            "value": f"{self.random.randint(2, 6)}Gi",
            **self.random.choice(POLICIES),
        }
        devices = [
            self.device(
                f"share-{index}",
                index,
                allowMultipleAllocations=True,
                capacity={"memory": memory},
            )
            for index in range(self.random.randint(1, 2))
        ]
        return [resource_slice(devices, name=name, pool=name, nodeName=name)]

    # What is wanted.

    def claim(self, name: str) -> Json:
        requests = [
            self.request(f"r{request_index}")
            for request_index in range(self.random.choice([1, 1, 2]))
        ]
        constraints: dict[str, Any] = (
            {"constraints": [self.constraint()]} if self.rarely(3) else {}
        )
        return claim(name, *requests, **constraints)

    def constraint(self) -> Json:
        kind = self.random.choice(
            ["matchAttribute", "matchAttribute", "distinctAttribute"]
        )
        return {
            kind: f"{DRIVER}/{self.random.choice(['numa', 'model', 'roots'])}"
        }

    def request(self, name: str) -> Json:
        if self.rarely(5):
            return first_available(
                name,
                *(
                    sub(letter, *self.selectors(), **self.details())
                    for letter in "ab"
                ),
            )
        admin: dict[str, Any] = {"adminAccess": True} if self.rarely(12) else {}
        return request(name, *self.selectors(), **self.details(), **admin)

    def selectors(self) -> list[str]:
        return self.random.sample(
            SELECTORS[: 5 if self.random.random() < 0.8 else 6],
            self.random.choice([0, 1, 1, 2]),
        )

    def details(self) -> Json:
        details: Json = {
            "device_class": self.random.choice(["gpu", "gpu", "fine"])
        }
        if self.rarely():
            details["allocationMode"] = "All"
        else:
            details["count"] = self.random.choice([1, 1, 1, 2, 2, 3])
        if self.rarely(4):
            details["tolerations"] = [
                {"key": TAINT["key"], "operator": "Exists"}
            ]
        if self.rarely(4):
            details["capacity"] = {
                "requests": {
                    "memory": self.random.choice(
                        ["1Gi", "1500Mi", "2Gi", "3Gi", "5Gi"]
                    )
                }
            }
        return details
