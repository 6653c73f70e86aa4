"""A cluster's life: pods come, are placed in either mode and go, drivers publish other slices, everything is reloaded.

Whatever happens, placing never takes more of a device, a counter or a capacity than the published slices and the claims
leave. They are added up anew here, straight from the objects. Slices may shrink below what is in use; then nothing more
is taken.

``DRALLOC_STATE_RUNS`` says how many lives of up to 50 steps are tried, 40 if it does not; 300 make 10,000 steps.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

from cluster_strategies import CLASSES, DRIVERS, pods, pools, taint_rules
from dralloc.check import check
from dralloc.compile.compiler import compile_cluster
from dralloc.compile.write import allocated_claims
from dralloc.objects.api import to_wire
from dralloc.objects.choices import Mode
from dralloc.objects.load import load_documents, load_text
from dralloc.objects.quantity import parse_quantity
from dralloc.objects.save import dump_yaml
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from examples import examples
from wire import Json, node

PLACES: dict[tuple[str, str], Json] = {
    (DRIVERS[0], "node-0"): {"nodeName": "node-0"},
    (DRIVERS[0], "node-1"): {"nodeName": "node-1"},
    (DRIVERS[1], "network"): {"allNodes": True},
}
"""Where each pool is."""
WAITING = 3
"""So many pods can be pending at a time."""

Name = tuple[str, ...]


@dataclass
class Account:
    """What is taken of each thing, and how much of it there is; None of a thing that is not published."""

    taken: dict[Name, int] = field(default_factory=lambda: defaultdict(int))
    limits: dict[Name, int] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: list[Json]) -> Account:
        """Add up what claims hold of what the newest slices publish."""
        account, published, drawing = cls(), {}, set()
        for name, device, sets in _published(documents):
            published[name] = device, sets
            if not device.get("allowMultipleAllocations"):
                account.limits[*name, "device"] = 1
            for key, capacity in device.get("capacity", {}).items():
                account.limits[*name, "capacity", key] = _nanos(
                    capacity["value"]
                )
            for counter_set, counters in sets.items():
                for key, counter in counters.items():
                    account.limits[*name[:2], "counter", counter_set, key] = (
                        _nanos(counter["value"])
                    )
        for result in _results(documents):
            name = result["driver"], result["pool"], result["device"]
            device, _ = published.get(name, ({}, {}))
            account.taken[*name, "device"] += 1
            if "shareID" not in result:
                account.limits[*name, "device"] = 1
            for key, amount in result.get("consumedCapacity", {}).items():
                account.taken[*name, "capacity", key] += _nanos(amount)
            for consumption in device.get("consumesCounters", ()):
                for key, consumed in consumption["counters"].items():
                    counter = (
                        *name[:2],
                        "counter",
                        consumption["counterSet"],
                        key,
                    )
                    recorded = result.get("consumedCapacity", {}).get(
                        consumed.get("valueFrom", {}).get("capacityKey")
                    )
                    account.taken[counter] += (
                        _nanos(recorded) if recorded is not None else 0
                    )
                    if "value" in consumed and name not in drawing:
                        account.taken[counter] += _nanos(consumed["value"])
            drawing.add(name)
        return account

    def violations(self, before: Account) -> Iterator[str]:
        """What was taken beyond the limits since then."""
        for name, limit in self.limits.items():
            if self.taken[name] > max(limit, before.taken[name]):
                yield f"{name}: {self.taken[name]} of {limit}, before {before.taken[name]}"


def _published(
    documents: list[Json],
) -> Iterator[tuple[tuple[str, str, str], Json, Json]]:
    """Every device in the newest generation of its pool, with the counter sets of the pool."""
    slices: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for spec in (
        document["spec"]
        for document in documents
        if document["kind"] == "ResourceSlice"
    ):
        slices[spec["driver"], spec["pool"]["name"]].append(spec)
    for (driver, pool), specs in slices.items():
        newest = max(spec["pool"]["generation"] for spec in specs)
        current = [
            spec for spec in specs if spec["pool"]["generation"] == newest
        ]
        sets = {
            counter_set["name"]: counter_set["counters"]
            for spec in current
            for counter_set in spec.get("sharedCounters", ())
        }
        for spec in current:
            for device in spec.get("devices", ()):
                yield (driver, pool, device["name"]), device, sets


def _results(documents: list[Json]) -> Iterator[Json]:
    for document in documents:
        if document["kind"] == "ResourceClaim" and _is_allocated(document):
            results = (
                document["status"]["allocation"]
                .get("devices", {})
                .get("results", ())
            )
            yield from (
                result for result in results if not result.get("adminAccess")
            )


def _is_allocated(claim: Json) -> bool:
    return "allocation" in claim.get("status", {})


def _nanos(amount: Any) -> int:
    return parse_quantity(str(amount)).nanos


class Life(RuleBasedStateMachine):
    """One cluster from its beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[tuple[str, str], Json] = {}
        self.generations: dict[tuple[str, str], int] = {}
        self.arrived = 0

    @property
    def documents(self) -> list[Json]:
        return list(self.objects.values())

    def enter(self, *documents: Json) -> None:
        for document in documents:
            self.objects[document["kind"], document["metadata"]["name"]] = (
                document
            )

    def of_kind(self, kind: str) -> list[Json]:
        return [
            document for document in self.documents if document["kind"] == kind
        ]

    @property
    def waiting(self) -> list[str]:
        """Pods with a claim that is not allocated, or not made yet."""
        return [
            pod["metadata"]["name"]
            for pod in self.of_kind("Pod")
            if not pod["spec"].get("nodeName")
        ]

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.enter(*CLASSES, node("node-0"), node("node-1"))
        for pool in PLACES:
            self.publish(pool, data)

    def publish(self, pool: tuple[str, str], data: st.DataObject) -> list[Json]:
        generation = self.generations[pool] = self.generations.get(pool, 0) + 1
        slices = data.draw(pools(*pool, PLACES[pool], generation))
        self.enter(*slices)
        return slices

    def withdraw(self, pool: tuple[str, str], keep: list[Json]) -> None:
        for document in self.of_kind("ResourceSlice"):
            if (
                document["spec"]["driver"],
                document["spec"]["pool"]["name"],
            ) == pool and document not in keep:
                del self.objects[document["kind"], document["metadata"]["name"]]

    @precondition(lambda self: len(self.waiting) < WAITING)
    @rule(data=st.data(), mode=st.sampled_from(Mode))
    def arrive(self, data: st.DataObject, mode: Mode) -> None:
        """A pod comes and is placed, if there is room."""
        shared = [
            claim["metadata"]["name"] for claim in self.of_kind("ResourceClaim")
        ]
        self.enter(*data.draw(pods(f"pod-{self.arrived}", shared)))
        self.arrived += 1
        self.place(mode, strict=False)

    @precondition(lambda self: self.waiting)
    @rule(mode=st.sampled_from(Mode), strict=st.booleans())
    def retry(self, mode: Mode, strict: bool) -> None:
        """Whoever could not be placed tries again."""
        self.place(mode, strict)

    def place(self, mode: Mode, strict: bool) -> None:
        before = Account.of(self.documents)
        compiled = compile_cluster(
            load_documents(self.documents), strict=strict, gang="gang"
        )
        solution = first_fit(compiled.problem)
        if mode is Mode.OPTIMAL:
            solution = solve(compiled.problem, Options(), hint=solution)
        check(compiled.problem, solution)
        self.enter(
            *(to_wire(claim) for claim in allocated_claims(compiled, solution))
        )
        for placement in solution.placements:
            pod = self.objects.get(
                ("Pod", compiled.problem.demands[placement.demand].key.name)
            )
            if pod is not None:
                pod["spec"]["nodeName"] = compiled.problem.nodes[
                    placement.node
                ].name
        assert list(Account.of(self.documents).violations(before)) == []

    @precondition(lambda self: self.of_kind("Pod"))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """A pod goes, and with it the claims that nobody else uses."""
        name = data.draw(
            st.sampled_from(
                [pod["metadata"]["name"] for pod in self.of_kind("Pod")]
            )
        )
        del self.objects["Pod", name]
        used = {
            entry["resourceClaimName"]
            for pod in self.of_kind("Pod")
            for entry in pod["spec"]["resourceClaims"]
        }
        for claim in self.of_kind("ResourceClaim"):
            title = claim["metadata"]["name"]
            if title.startswith(f"{name}-") and title not in used:
                del self.objects["ResourceClaim", title]

    @rule(
        pool=st.sampled_from(sorted(PLACES)),
        how=st.sampled_from(["whole", "partly", "beside"]),
        data=st.data(),
    )
    def republish(
        self,
        pool: tuple[str, str],
        how: Literal["whole", "partly", "beside"],
        data: st.DataObject,
    ) -> None:
        """Other devices under the same names; perhaps one slice is missing, or the old ones are still there."""
        slices = self.publish(pool, data)
        if how != "beside":
            self.withdraw(pool, slices if how == "whole" else slices[:1])

    @rule(effect=taint_rules("device-1"))
    def reload(self, effect: Json) -> None:
        """Through the text of what was read; an administrator changes a taint."""
        self.enter(effect)
        cluster = load_text(dump_yaml(self.documents))
        kept = (
            cluster.classes.values(),
            cluster.nodes,
            cluster.slices,
            cluster.claims,
            cluster.pods,
            cluster.taint_rules,
        )
        self.objects.clear()
        self.enter(
            *(to_wire(api_object) for kind in kept for api_object in kind)
        )


Life.TestCase.settings = settings(
    max_examples=examples(int(os.environ.get("DRALLOC_STATE_RUNS", "40"))),
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow],
)
TestLife = pytest.mark.minutes(Life.TestCase)
