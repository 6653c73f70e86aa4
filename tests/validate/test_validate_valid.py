"""What is in order is not complained about."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import ROOT
from dralloc.load import read
from dralloc.validate import Level, validate_reading

MODELS = sorted({path.parent for path in (ROOT / "models").rglob("expected.yaml")})

SHORT_SHARE_IDS = {"5075-no-longer-shareable", "5075-share-in-status"}
"""Models with the share ID 0d274f of KEP-5075's text, which is no UUID."""

NO_API_VERSION = {"device-taint-pod-noschedule__4-pod-not-scheduled.yaml"}
"""Captured objects that say no version."""


def errors(*paths: Path) -> list[str]:
    return [str(one) for one in validate_reading(read(*paths)) if one.level is Level.ERROR]


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_models(model: Path) -> None:
    found = errors(model)
    assert bool(found) is (model.name in SHORT_SHARE_IDS), found
    assert all("shareID" in one for one in found)


@pytest.mark.parametrize("folder", ["claims", "resourceslices"])
def test_captured_objects(shared: Path, folder: str) -> None:
    files = sorted((shared / "data" / folder).rglob("*.yaml"))
    assert files
    for file in files:
        found = errors(file)
        assert bool(found) is (file.name in NO_API_VERSION), found
