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
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.reasons import Change
from dralloc.ask.explain.snapshot import placed_before, snapshot_of
from dralloc.ask.explain.suggestions import substitutes
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
        for one in suggestions(seed, mode):
            found = (solve if mode is Mode.OPTIMAL else first_fit)(
                one.taken_literally()
            )
            assert found.placements, f"cluster {seed}, {mode}: {one.text}"
            tried += 1
        if 2 * tried >= SUGGESTIONS:
            break


def suggestions(seed: int, mode: Mode) -> Iterator[Suggested]:
    """Every such suggestion for every demand that is not placed."""
    crowd = Crowd(seed)
    plan = allocate(crowd.cluster(), mode, gang=GANG, features=crowd.features())
    compiled, problem = plan.compiled, plan.compiled.problem
    for number in sorted(
        set(indices(problem.demands))
        - {one.demand for one in plan.solution.placements}
    ):
        before = (
            plan.solution.placements
            if mode is Mode.OPTIMAL
            else placed_before(problem, number)
        )
        snapshot = snapshot_of(compiled, number, before)
        oracle = FeasibilityOracle(snapshot, compiled, mode)
        if oracle.admit(Change()) is None:
            for one in substitutes(oracle):
                yield Suggested(one.text, Editor(compiled, snapshot, before))


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
            one
            for one in compiled.cluster.claims
            if str(one.key) == said["other"]
        )
        copied = asked(other, said["others"])
        found = self.editor.cluster(Change(), ())
        claims = [
            with_request(
                one,
                said["request"],
                copied,
                said["number"],
                keeping=bool(said["keeping"]),
            )
            if str(one.key) == said["claim"]
            else one
            for one in found.claims
        ]
        return compile_cluster(
            replace(found, claims=tuple(claims)),
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
    number: str | None,
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
    if number is not None:
        fields |= (
            {"allocation_mode": "All"}
            if number == "all"
            else {"allocation_mode": "ExactCount", "count": int(number)}
        )
    if keeping:
        del fields["tolerations"]

    def replaced(one: DeviceRequest) -> DeviceRequest:
        if one.name != first:
            return one
        if one.exactly is not None:
            return changed(one, exactly=changed(one.exactly, **fields))
        subs = (
            changed(each, **fields) if each.name == sub else each
            for each in one.first_available
        )
        return changed(one, first_available=tuple(subs))

    requests = tuple(map(replaced, claim.spec.devices.requests))
    return changed(
        claim,
        spec=changed(
            claim.spec, devices=changed(claim.spec.devices, requests=requests)
        ),
    )
