"""The answer to a redacted cluster is the redacted answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

import dralloc
from conftest import ROOT
from dralloc.lint.conformance.cases import read_lines
from dralloc.objects.api.disclosure import Name
from dralloc.objects.api.known_kinds import model_of
from dralloc.objects.load import load_documents, load_objects
from dralloc.objects.redact import Redaction, plan_redaction
from examples import examples, some_of
from objects.redact.cases import documents
from objects.redact.clusters import clusters
from objects.redact.planted import Planter
from wire import Json

MODELS = sorted(
    {path.parent for path in (ROOT / "models").rglob("expected.yaml")}
)


def redacted(objects: list[Json]) -> tuple[list[Json], Redaction]:
    redaction = plan_redaction(objects)
    return [redaction.apply(document) for document in objects], redaction


def assert_same_answer(objects: list[Json]) -> None:
    replaced, redaction = redacted(objects)
    before = dralloc.allocate(load_documents(objects), "first-fit")
    after = dralloc.allocate(load_documents(replaced), "first-fit")
    # Devices and nodes are numbered in search order: the same numbers are the same answer up to names.
    assert after.solution.placements == before.solution.placements
    assert after.solution.errors.keys() == before.solution.errors.keys()
    assert results(after, None) == results(before, redaction)


def results(
    plan: dralloc.Plan, redaction: Redaction | None
) -> list[tuple[str, ...]]:
    """What each placed claim got, in order; with names replaced if there is a redaction."""
    grants: list[tuple[str, ...]] = []
    for allocation in plan.allocations.values():
        for result in allocation.devices.results:
            pool, device = result.pool, result.device
            if redaction:
                pool, device = (
                    redaction.names.of(Name.POOL, pool),
                    redaction.names.of(Name.DEVICE, device),
                )
            grants.append((result.request, result.driver, pool, device))
    return grants


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: str(model.relative_to(ROOT / "models"))
)
def test_models(model: Path) -> None:
    objects = [
        document for document in load_objects(model) if model_of(document)
    ]
    assert_same_answer(objects)
    assert_same_answer(
        [
            Planter().extended(document, model_of(document))
            for document in objects
        ]
    )
    replaced, _ = redacted(objects)
    assert redacted(replaced)[0] == replaced


WARNED = {"batch-1-4", "batch-1-35"}
"""Cases with a selector on a part of a device's name that is an attribute, too: ``parent.startsWith("n")``."""


@pytest.mark.parametrize("batch", range(4))
def test_recorded_cases(batch: int) -> None:
    cases = list(
        read_lines(ROOT / "tests" / "data" / "recorded_cases.jsonl.gz")
    )
    for case in some_of(cases[batch::4]):
        objects = [
            Planter().extended(document, model_of(document))
            for document in documents(case)
        ]
        warned = list(redacted(objects)[1].warnings())
        assert bool(warned) == (case["id"] in WARNED), warned
        if not warned:
            assert_same_answer(objects)


@settings(max_examples=examples(300))
@given(clusters())
def test_random_clusters(objects: list[Json]) -> None:
    assert_same_answer(objects)


@settings(max_examples=examples(100))
@given(clusters())
def test_no_name_is_left_where_names_are(objects: list[Json]) -> None:
    replaced, redaction = redacted(objects)
    for document in replaced:
        metadata = document["metadata"]
        if document["kind"] != "DeviceClass":
            word, _, digits = metadata["name"].rpartition("-")
            assert word
            assert digits.isdecimal()
        assert metadata.get("namespace") in (
            None,
            "default",
            redaction.names.everywhere.get("z"),
        )


@pytest.mark.parametrize(
    "folder",
    [
        "claims/example-driver",
        "claims/nvidia",
        "claims/sriov",
        "resourceslices",
    ],
)
def test_recorded_objects_of_real_clusters(shared: Path, folder: str) -> None:
    files = [
        path
        for path in sorted((shared / "data" / folder).iterdir())
        if "apiVersion:" in path.read_text()
    ]
    for path in files:
        known = [
            document for document in load_objects(path) if model_of(document)
        ]
        assert_same_answer(
            [
                Planter().extended(document, model_of(document))
                for document in known
            ]
        )


def test_recorded_slices_of_real_clusters(shared: Path) -> None:
    objects = load_objects(shared / "data" / "resourceslices")
    assert_same_answer(objects)
    text = str(redacted(objects)[0])
    for told in (
        "ip-192-168",
        "10.140.65",
        "ec2.internal",
        "0e:96:fe",
        "60:5e:65",
    ):
        assert told in str(objects)
        assert told not in text
