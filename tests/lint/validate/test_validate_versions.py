"""Versions of the API server differ in fields that they keep and in some rules; a real one is asked if it is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from control_plane import Answer, ControlPlane, path_of, running
from dralloc.lint.validate import Level, validate, validate_reading
from dralloc.objects.errors import DrallocError
from dralloc.objects.features import Features
from dralloc.objects.load import load_documents, read_documents
from examples import examples
from lint.validate.broken_slices import WARNED
from lint.validate.mutants import mutant
from lint.validate.objects import Broken, edited
from lint.validate.test_validate_broken import EVERY, named
from wire import Json, claim, consumes, device, request, resource_slice

EARLIER = "1.36"

RANGE = "spec.devices[0].capacity[memory].requestPolicy.validRange"

DIFFERENT = {
    # What servers before 1.37 say otherwise: the paths of their errors.
    "an attribute with two slashes": [],
    "a default below": [f"{RANGE}.min"],
    "a default above": [f"{RANGE}.max"],
    "a step back": [],
    "an amount finer than a thousandth": [],
    "an amount beside fractions that is too large in thousandths": [],
    "a negative minimum with steps": [],
    "a policy of a counter": [],
    "a result with a bad toleration": [],
    "three groups": [],
    "a derivation that is a map": [],
    "an unknown operation": [],
    "an empty overhead": [],
    # Dropped unread: the server does not know the name of the field.
    "a resource of the node that is a number": [],
    "a partition type without domain": [],
    # Without lists nothing is left of the attribute.
    "a listed version with a v": ["spec.devices[0].attributes[model]"],
}


def errors(api_object: Json, gates: Features) -> list[str]:
    violations = validate_reading(read_documents([api_object]), gates, EARLIER)
    return [
        violation.path
        for violation in violations
        if violation.level is Level.ERROR
    ]


@pytest.mark.parametrize(
    "case", [case for case in EVERY if case.what in DIFFERENT], ids=named
)
def test_what_earlier_servers_say(case: Broken) -> None:
    assert (
        errors(edited(case.base, case.edit), Features.of_kubernetes(EARLIER))
        == DIFFERENT[case.what]
    )


def test_every_difference_is_told() -> None:
    assert DIFFERENT.keys() <= {case.what for case in EVERY}


def test_a_step_of_zero_makes_earlier_servers_panic() -> None:
    (case,) = (case for case in EVERY if case.what == "a step of nothing")
    (only,) = validate(
        load_documents([edited(case.base, case.edit)]), kubernetes=EARLIER
    )
    assert (only.path, only.message) == (
        f"{RANGE}.step",
        "is zero, which makes API servers before Kubernetes 1.37 panic",
    )


def test_earlier_servers_count_steps_in_whole_numbers() -> None:
    (case,) = (case for case in EVERY if case.what == "a default between steps")
    halves = {
        RANGE: {"min": "1", "step": "2500m"},
        RANGE.replace(".validRange", ".default"): "4",
    }
    half_steps = edited(case.base, halves)
    assert errors(half_steps, Features.of_kubernetes(EARLIER)) == []
    assert [
        violation.path for violation in validate(load_documents([half_steps]))
    ] == [f"{RANGE}.step"]


def test_earlier_servers_compare_values_as_whole_numbers() -> None:
    (case,) = (case for case in EVERY if case.what == "a value twice")
    policy = RANGE.replace(".validRange", "")
    halves = {policy: {"default": "1", "validValues": ["500m", "1"]}}
    in_halves = edited(case.base, halves)
    assert errors(in_halves, Features.of_kubernetes(EARLIER)) == [
        f"{policy}.validValues[1]"
    ]
    assert not validate(load_documents([in_halves]))


def test_dropped_fields_are_told_once_for_each_object() -> None:
    consumed = [
        {**consumes("set-0", memory="1")[0], "compatibilityGroups": ["a"]}
    ]
    slice_ = resource_slice(
        [
            device(name, {"a": ["1"], "b": 2}, consumesCounters=consumed)
            for name in ("x", "y")
        ]
    )
    claim_ = claim(
        "c",
        request(derivedAttributes=[{"name": "a/b", "expression": "1"}]),
        constraints=[{"matchAttribute": "a/b"}],
    )
    violations = validate(
        load_documents([slice_, claim_]), Features.of_kubernetes("1.37"), "1.37"
    )
    assert [
        (violation.path, violation.message)
        for violation in violations
        if violation.rule == "dropped-field"
    ] == [
        (
            "spec.devices[0].attributes[a]",
            "the API server drops it and 1 more, as the feature ListTypeAttributes is off",
        ),
        (
            "spec.devices[0].consumesCounters[0].compatibilityGroups",
            "the API server drops it and 1 more, as the feature DeviceCompatibilityGroups is off",
        ),
        (
            "spec.devices.requests[0].exactly.derivedAttributes",
            "the API server drops it, as this version does not have it, or not by default",
        ),
    ]
    assert [
        violation.rule
        for violation in validate(load_documents([slice_, claim_]))
    ] == [
        "pool-set",
        "request-class-unknown",
    ]


def test_an_unknown_version() -> None:
    with pytest.raises(DrallocError, match=r"Kubernetes 1\.2 is not known"):
        validate(load_documents([]), kubernetes="1.2")


WITHOUT_PATH = {
    # Refused before validation, which would name the field.
    "a pool after its time",
    "a generation too late",
    "a count that is text",
    "a quantity that is none",
    "a namespace with a dot",
    "a step of nothing",  # it panics
}

OTHER_PATH = {
    # The server names the list in the attribute, whose type is not known here once it is empty.
    "an empty list"
}


class Server(NamedTuple):
    """A real API server, and the gates that it has."""

    plane: ControlPlane
    gates: Features

    def verdict(self, api_object: Json) -> Answer:
        """What it says of an object; nothing of it is left."""
        if "status" not in api_object:
            return self.plane.request(
                "POST",
                f"{path_of(api_object, named=False)}?dryRun=All",
                api_object,
            )
        answer = self.plane.create(api_object)
        self.plane.delete(api_object)
        return answer


@pytest.fixture(
    scope="module",
    params=[{}, {"ListTypeAttributes": True}],
    ids=["default gates", "lists"],
)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    gates = {f"DRA{name}": on for name, on in request.param.items()}
    with running(tmp_path_factory.mktemp("server"), gates) as plane:
        version = plane.request("GET", "/version").body
        if f"{version['major']}.{version['minor']}" != EARLIER:
            pytest.skip(
                f"it is an API server of {version['gitVersion']}, not of {EARLIER}"
            )
        yield Server(
            plane, Features.of_kubernetes(EARLIER).switched(request.param)
        )


@pytest.mark.parametrize("start", range(0, examples(300), 100))
def test_a_real_server_accepts_the_same_mutants(
    server: Server, start: int
) -> None:
    """Types, null, quantities and times at every place: whoever is refused there is refused here, and nobody else."""
    differences = []
    for seed in range(start, start + 100):
        api_object = mutant(seed)
        ours, answer = (
            errors(api_object, server.gates),
            server.verdict(api_object),
        )
        if answer.accepted is bool(ours):
            differences.append((seed, ours, answer.body))
    assert differences == []


@pytest.mark.parametrize("case", [*EVERY, *WARNED], ids=named)
def test_a_real_server_says_the_same(server: Server, case: Broken) -> None:
    for edit in (case.edit, case.fine or {}):
        api_object = edited(case.base, edit)
        ours, answer = (
            errors(api_object, server.gates),
            server.verdict(api_object),
        )
        assert answer.accepted is not bool(ours), answer.body
        theirs = {
            cause["field"]
            for cause in answer.body.get("details", {}).get("causes", ())
        }
        if case.what in WITHOUT_PATH:
            assert theirs == set()
        elif case.what not in OTHER_PATH:
            # What follows from an error is an error of its own there.
            assert set(ours) <= theirs
