"""Every module says what it offers, and offers what it says."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import dralloc

MODULES = ["dralloc", *(info.name for info in pkgutil.walk_packages(dralloc.__path__, "dralloc."))]


@pytest.mark.parametrize("name", MODULES)
def test_all_is_complete_and_true(name: str) -> None:
    module = importlib.import_module(name)
    if name.endswith("__main__"):
        return
    offered = module.__all__
    assert sorted(set(offered)) == sorted(offered)
    for item in offered:
        assert hasattr(module, item), f"{name}.{item}"


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is(name: str) -> None:
    assert importlib.import_module(name).__doc__
