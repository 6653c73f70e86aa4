"""The answer to a redacted cluster is the redacted answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

import dralloc
from conftest import ROOT
from dralloc.load import load_documents, load_objects
from dralloc.redact import Redaction, plan_redaction
from dralloc.redact.places import Place
from dralloc.snapshot import is_read
from redact.clusters import clusters
from wire import Json

MODELS = sorted({path.parent for path in (ROOT / "models").rglob("expected.yaml")})


def redacted(objects: list[Json]) -> tuple[list[Json], Redaction]:
    redaction = plan_redaction(objects)
    return [redaction.apply(one) for one in objects], redaction


def assert_same_answer(objects: list[Json]) -> None:
    replaced, redaction = redacted(objects)
    before = dralloc.allocate(load_documents(objects), "first-fit")
    after = dralloc.allocate(load_documents(replaced), "first-fit")
    # Devices and nodes are numbered in search order: the same numbers are the same answer up to names.
    assert after.solution.placements == before.solution.placements
    assert after.solution.errors.keys() == before.solution.errors.keys()
    assert results(after, None) == results(before, redaction)


def results(plan: dralloc.Plan, redaction: Redaction | None) -> list[tuple[str, ...]]:
    """What each placed claim got, in order; with names replaced if there is a redaction."""
    found: list[tuple[str, ...]] = []
    for allocation in plan.allocations.values():
        for result in allocation.devices.results:
            pool, device = result.pool, result.device
            if redaction:
                pool, device = redaction.names.of(Place.POOL, pool), redaction.names.of(Place.DEVICE, device)
            found.append((result.request, result.driver, pool, device))
    return found


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model.relative_to(ROOT / "models")))
def test_models(model: Path) -> None:
    objects = [one for one in load_objects(model) if is_read(one)]
    assert_same_answer(objects)
    replaced, _ = redacted(objects)
    assert redacted(replaced)[0] == replaced


@settings(max_examples=300)
@given(clusters())
def test_random_clusters(objects: list[Json]) -> None:
    assert_same_answer(objects)


@settings(max_examples=100)
@given(clusters())
def test_no_name_is_left_where_names_are(objects: list[Json]) -> None:
    replaced, redaction = redacted(objects)
    for one in replaced:
        metadata = one["metadata"]
        if one["kind"] != "DeviceClass":
            word, _, number = metadata["name"].rpartition("-")
            assert word
            assert number.isdecimal()
        assert metadata.get("namespace") in (None, "default", redaction.names.everywhere.get("z"))


def test_recorded_slices_of_real_clusters(shared: Path) -> None:
    objects = load_objects(shared / "data" / "resourceslices")
    assert_same_answer(objects)
    text = str(redacted(objects)[0])
    for told in ("ip-192-168", "10.140.65", "ec2.internal", "0e:96:fe", "60:5e:65"):
        assert told in str(objects)
        assert told not in text
