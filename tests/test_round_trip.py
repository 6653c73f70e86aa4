"""What is written loads again as exactly the usage that was answered, and nothing is ever over-committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings

from cluster_strategies import clusters
from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocated_claims
from dralloc.objects.api import ResourceClaim, to_wire
from dralloc.objects.choices import Mode
from dralloc.objects.load import load_documents, load_text
from dralloc.objects.names import CounterID, DeviceID
from dralloc.objects.save import dump_yaml
from dralloc.problem import Problem
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from examples import examples
from wire import Json


@dataclass
class Books:
    """What is in use, by the names of things: devices held, shares, amounts recorded, and what is free of counters."""

    held: set[DeviceID] = field(default_factory=set)
    shares: Counter[DeviceID] = field(default_factory=Counter)
    consumed: Counter[tuple[DeviceID, str]] = field(default_factory=Counter)
    free: Counter[CounterID] = field(default_factory=Counter)

    @classmethod
    def of(cls, problem: Problem) -> Books:
        """The books as the problem has them."""
        names = {device.slot: device.id for device in problem.devices}
        usage = problem.usage
        return cls(
            held={names[slot] for slot in usage.held},
            shares=Counter(
                {names[slot]: count for slot, count in usage.shares.items()}
            ),
            consumed=Counter(
                {
                    (names[slot], key): nanos
                    for slot, all_ in usage.consumed.items()
                    for key, nanos in all_.items()
                }
            ),
            free=Counter(
                {counter.id: counter.free for counter in problem.counters}
            ),
        )

    def enter(self, problem: Problem, solution: Solution) -> Books:
        """Take what the solution grants. Admin access takes nothing for good."""
        for placement in solution.placements:
            for claim, grants in zip(
                problem.demands[placement.demand].claims,
                placement.grants,
                strict=True,
            ):
                for request, choice, index in grants:
                    alternative, device = (
                        claim.requests[request].alternatives[choice],
                        problem.devices[index],
                    )
                    charge = problem.eligibility.charge(
                        alternative.index, index
                    )
                    if charge is None or alternative.admin:
                        continue
                    if device.id not in self.shares:
                        for counter, nanos in device.consumes:
                            self.free[problem.counters[counter].id] -= nanos
                    if device.shareable:
                        self.shares[device.id] += 1
                    else:
                        self.held.add(device.id)
                    for counter, nanos in charge.counters:
                        self.free[problem.counters[counter].id] -= nanos
                    for key, amount in charge.recorded:
                        self.consumed[device.id, key] += amount.nanos
        return self


def answer(compiled: CompiledCluster, mode: Mode) -> Solution:
    hint = first_fit(compiled.problem)
    solution = (
        hint
        if mode is Mode.FIRST_FIT
        else solve(compiled.problem, Options(), hint=hint)
    )
    check(compiled.problem, solution)
    return solution


def loaded_again(
    documents: list[Json], claims: list[ResourceClaim]
) -> CompiledCluster:
    """The cluster with the written claims in the place of those that were pending, through YAML."""
    written = {
        ("ResourceClaim", claim.name): to_wire(claim) for claim in claims
    }
    kept = [
        document
        for document in documents
        if (document["kind"], document["metadata"]["name"]) not in written
    ]
    return compile_cluster(
        load_text(dump_yaml([*kept, *written.values()])), gang="gang"
    )


def over_committed(problem: Problem) -> Iterator[str]:
    for counter in problem.counters:
        if counter.free < 0:
            yield f"{counter.id}: {counter.free}"
    for device in problem.devices:
        consumed = problem.usage.consumed.get(device.slot, {})
        for name, capacity in device.capacity.items():
            if device.shareable and consumed.get(name, 0) > capacity.total:
                yield f"{device.id}: {name}: {consumed[name]} of {capacity.total}"


@pytest.mark.parametrize("mode", Mode)
@given(clusters())
@settings(
    max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow]
)
def test_usage_is_what_was_answered(mode: Mode, documents: list[Json]) -> None:
    compiled = compile_cluster(load_documents(documents), gang="gang")
    solution = answer(compiled, mode)
    claims = list(allocated_claims(compiled, solution))
    again = loaded_again(documents, claims)
    assert Books.of(again.problem) == Books.of(compiled.problem).enter(
        compiled.problem, solution
    )
    assert list(over_committed(again.problem)) == []
    assert [
        finding for finding in again.findings if "evicted" not in finding.rule
    ] == list(compiled.findings)
    placed = {
        compiled.problem.demands[placement.demand].key
        for placement in solution.placements
    }
    remaining = [
        demand.key
        for demand in compiled.problem.demands
        if demand.key not in placed
    ]
    assert [demand.key for demand in again.problem.demands] == remaining
