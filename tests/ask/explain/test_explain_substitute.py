"""A suggestion to ask for what another claim asks for admits the demand when it is taken at its word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

import pytest

from crowded import GANG, Crowd
from dralloc.ask.allocate import allocate
from dralloc.ask.explain.changes import Change
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.snapshot import placed_before, snapshot_of
from dralloc.ask.explain.substitutes import substitutes
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.api import (
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dralloc.objects.choices import Mode
from dralloc.problem import Problem, indices
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from examples import examples
from wire_edits import Editor, changed

SUGGESTIONS = examples(300)
SENTENCE: Final = re.compile(
    r"claim (?P<claim>\S+), request (?P<request>\S+): "
    r"ask as claim (?P<other>[^\s,]+)(, request (?P<others>\S+),)? does \(.*\)"
    r"(, but (?P<number>all|\d+) devices?)?(?P<keeping>, keeping its tolerations)?",
    re.DOTALL,
)


@pytest.mark.parametrize("mode", [Mode.FIRST_FIT, Mode.OPTIMAL])
def test_suggestions_hold_at_their_word(mode: Mode) -> None:
    tried = 0
    for seed in count():
        for suggestion in suggestions(seed, mode):
            solution = (solve if mode is Mode.OPTIMAL else first_fit)(
                suggestion.taken_literally()
            )
            assert solution.placements, (
                f"cluster {seed}, {mode}: {suggestion.text}"
            )
            tried += 1
        if 2 * tried >= SUGGESTIONS:
            break


def suggestions(seed: int, mode: Mode) -> Iterator[Suggested]:
    """Every such suggestion for every demand that is not placed."""
    crowd = Crowd(seed)
    plan = allocate(crowd.cluster(), mode, gang=GANG, features=crowd.features())
    compiled, problem = plan.compiled, plan.compiled.problem
    for demand in sorted(
        set(indices(problem.demands))
        - {placement.demand for placement in plan.solution.placements}
    ):
        before = (
            plan.solution.placements
            if mode is Mode.OPTIMAL
            else placed_before(problem, demand)
        )
        snapshot = snapshot_of(compiled, demand, before)
        oracle = FeasibilityOracle(snapshot, compiled, mode)
        if oracle.admit(Change()) is None:
            for suggestion in substitutes(oracle):
                yield Suggested(
                    suggestion.text, Editor(compiled, snapshot, before)
                )


@dataclass
class Suggested:
    """What is suggested, and the objects that the demand meets."""

    text: str
    editor: Editor

    def taken_literally(self) -> Problem:
        """The demand alone, with the request of the other claim in place of its own."""
        said = SENTENCE.fullmatch(self.text)
        assert said, self.text
        compiled = self.editor.compiled
        other = next(
            claim
            for claim in compiled.cluster.claims
            if str(claim.key) == said["other"]
        )
        copied = asked(other, said["others"])
        cluster = self.editor.cluster(Change(), ())
        claims = [
            with_request(
                claim,
                said["request"],
                copied,
                said["number"],
                keeping=bool(said["keeping"]),
            )
            if str(claim.key) == said["claim"]
            else claim
            for claim in cluster.claims
        ]
        return compile_cluster(
            replace(cluster, claims=tuple(claims)),
            features=compiled.problem.features,
        ).problem


def asked(
    other: ResourceClaim, name: str | None
) -> ExactDeviceRequest | DeviceSubRequest:
    """What the claim asks for under that name, or its only request."""
    entries = {
        f"{request.name}/{sub.name}"
        if isinstance(sub, DeviceSubRequest)
        else request.name: sub
        for request in other.spec.devices.requests
        for sub in (
            (request.exactly,) if request.exactly else request.first_available
        )
    }
    if name is None:
        (only,) = entries.values()
        return only
    return entries[name]


def with_request(
    claim: ResourceClaim,
    name: str,
    copied: ExactDeviceRequest | DeviceSubRequest,
    device_count: str | None,
    *,
    keeping: bool,
) -> ResourceClaim:
    """The claim with the copy in place of its request of that name."""
    first, _, sub = name.partition("/")
    fields = {
        key: getattr(copied, key)
        for key in ("device_class_name", "selectors", "capacity", "tolerations")
    }
    fields |= {"count": copied.count, "allocation_mode": copied.allocation_mode}
    if device_count is not None:
        fields |= (
            {"allocation_mode": "All"}
            if device_count == "all"
            else {"allocation_mode": "ExactCount", "count": int(device_count)}
        )
    if keeping:
        del fields["tolerations"]

    def replaced(request: DeviceRequest) -> DeviceRequest:
        if request.name != first:
            return request
        if request.exactly is not None:
            return changed(request, exactly=changed(request.exactly, **fields))
        subs = (
            changed(subrequest, **fields)
            if subrequest.name == sub
            else subrequest
            for subrequest in request.first_available
        )
        return changed(request, first_available=tuple(subs))

    requests = tuple(map(replaced, claim.spec.devices.requests))
    return changed(
        claim,
        spec=changed(
            claim.spec, devices=changed(claim.spec.devices, requests=requests)
        ),
    )
