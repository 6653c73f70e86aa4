"""Fixtures and settings for all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from examples import TIMES, examples

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile(
    "dralloc", derandomize=TIMES <= 1, deadline=None, max_examples=examples(100)
)
settings.load_profile("dralloc")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes minutes: at the end, one process would wait for the other."""
    items.sort(key=lambda item: item.get_closest_marker("minutes") is None)


@pytest.fixture(autouse=True)
def in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands print as into a pipe of no known width; workers of pytest-xdist would have one."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Material that lies beside the checkout on some machines; tests that need it are skipped elsewhere."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("the shared material is not beside this checkout")
    return path


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Hear Ctrl-C, as programs do that are started at a terminal; in the background they, and theirs, would not.

    Whoever handles it otherwise for a while puts the usual handler back.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    after = signal.signal(signal.SIGINT, before)
    assert after is signal.default_int_handler
