"""What is in order is not complained about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT
from dralloc.lint.conformance import Json, read_lines
from dralloc.lint.validate import Level, Violation, validate_reading
from dralloc.objects.load import read, read_documents

MODELS = sorted(
    {path.parent for path in (ROOT / "models").rglob("expected.yaml")}
)

CASES = ROOT / "tests" / "data" / "recorded_cases.jsonl.gz"

LISTED = {
    # Objects from documents and tests that no API server would take, and the rules that say so.
    "device-taint-pod-noschedule__4-pod-not-scheduled.yaml": {
        "schema"
    },  # no apiVersion
    "kep4815_mig_fragment_0.yaml": {"schema"},  # fragments without kind
    "kep4815_mig_fragment_1.yaml": {"schema"},
    "kep4815_tpu_4x4.yaml": {"slice-node-selection"},  # for no node
    "kep5941_sriov_shared_bandwidth.yaml": {"slice-node-selection"},
    "other_templates.yaml": {
        "slice-devices-or-counters"
    },  # devices beside counters
}


def errors(*paths: Path) -> list[Violation]:
    return [
        violation
        for violation in validate_reading(read(*paths))
        if violation.level is Level.ERROR
    ]


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_models(model: Path) -> None:
    assert errors(model) == []


@pytest.mark.parametrize(
    "folder", ["claims", "resourceslices", "scheduler_perf", "kep_examples"]
)
def test_captured_objects(shared: Path, folder: str) -> None:
    files = sorted((shared / "data" / folder).rglob("*.yaml"))
    assert files
    assert {
        file.name: {violation.rule for violation in errors(file)}
        for file in files
    } == {file.name: LISTED.get(file.name, set()) for file in files}


def test_recorded_problems() -> None:
    """They have invalid pools and selectors on purpose, and nothing else that would be refused."""
    rules = {
        violation.rule
        for case in read_lines(CASES)
        for violation in validate_reading(read_documents(_documents(case)))
        if violation.level is Level.ERROR
    }
    assert rules == {"slice-device-unique", "selector-compile"}


def _documents(case: Json) -> Iterator[Json]:
    kinds = {
        "DeviceClass": "classes",
        "ResourceSlice": "slices",
        "ResourceClaim": "allocatedClaims",
    }
    for kind, field in kinds.items():
        yield from (
            {"apiVersion": "resource.k8s.io/v1", "kind": kind, **body}
            for body in case[field]
        )
    for pod in case.get("pods", [case]):
        for claim in pod["claims"]:
            yield {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                **claim,
            }
