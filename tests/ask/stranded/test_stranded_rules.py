"""What holds of stranded capacity in any cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from brute_force import solutions
from crowded import Crowd
from dralloc.ask.stranded import Row, stranded
from dralloc.ask.stranded.split import Splitter
from dralloc.ask.whatif.mix_entries import MixEntry, compile_mix
from dralloc.objects.cluster import Cluster
from dralloc.problem import Demand, Problem
from dralloc.problem.claim_ledger import ClaimLedger
from examples import examples

CLUSTERS = examples(60)
CHUNKS = 4


def crowds(chunk: int) -> Iterator[tuple[Cluster, list[MixEntry]]]:
    for seed in range(chunk, CLUSTERS, CHUNKS):
        cluster = Crowd(seed).cluster()
        yield (
            cluster,
            [
                MixEntry(claim.key)
                for claim in cluster.claims
                if claim.status.allocation is None
            ],
        )


def rows(
    cluster: Cluster, mix: list[MixEntry]
) -> Mapping[tuple[str, str], Row]:
    return {
        (row.pool, row.measure): row for row in stranded(cluster, mix).pools
    }


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_parts_add_up_and_more_claims_strand_no_more(chunk: int) -> None:
    for cluster, mix in crowds(chunk):
        before: Mapping[tuple[str, str], Row] = {}
        for entry_count in range(1, len(mix) + 1):
            now = rows(cluster, mix[:entry_count])
            for key, row in now.items():
                assert row.free == row.usable + sum(row.causes.values())
                assert row.usable >= 0
                assert all(nanos > 0 for nanos in row.causes.values())
                assert 0 <= row.fragmented <= entry_count * row.free
                if key in before:
                    assert row.stranded <= before[key].stranded
            before = now


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_can_be_granted_is_what_some_answer_grants(chunk: int) -> None:
    for cluster, mix in crowds(chunk):
        assert_granted_as_in_some_answer(cluster, mix)


def assert_granted_as_in_some_answer(
    cluster: Cluster, mix: list[MixEntry]
) -> None:
    staged = compile_mix(cluster, mix)
    ledger = ClaimLedger(staged.compiled.problem, staged.compiled.holdings)
    grantable = Splitter(
        staged.compiled, ledger, staged.of_devices, [None] * len(mix)
    ).grantable()
    for demand_index, demand in enumerate(staged.demands):
        granted = {
            granting.device
            for on_node in grantable[demand_index]
            for granting in on_node.granted
        }
        assert granted == in_some_answer(staged.compiled.problem, demand), (
            demand.key
        )


def test_admin_access_before_another_request_hides_no_device() -> None:
    """First fit does not find the answer in which both get the same shared device, in this order."""
    cluster = Crowd(69).cluster()
    mix = [
        MixEntry(claim.key)
        for claim in cluster.claims
        if claim.status.allocation is None
    ]
    assert_granted_as_in_some_answer(cluster, mix)


def in_some_answer(problem: Problem, demand: Demand) -> set[int]:
    """The devices that the demand is granted for itself in any answer."""
    alone = replace(problem, demands=(demand,))
    return {
        grant.device
        for solution in solutions(alone)
        for placement in solution.placements
        for claim, grants in zip(demand.claims, placement.grants, strict=True)
        for grant in grants
        if not claim.requests[grant.request]
        .alternatives[grant.alternative]
        .admin
    }
