"""The examples in the package's README and docstrings, and what importing it costs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import kubecel

MODULES = [
    kubecel.__name__,
    *(
        module.name
        for module in pkgutil.walk_packages(kubecel.__path__, "kubecel.")
    ),
]
README = Path(kubecel.__path__[0]) / "README.md"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_readme() -> None:
    results = doctest.testfile(str(README), module_relative=False)
    assert results.attempted > 5
    assert results.failed == 0


def test_the_readme_names_what_is_public() -> None:
    text = README.read_text("utf-8")
    assert [name for name in kubecel.__all__ if f"`{name}" not in text] == []


def test_importing_it_loads_neither_parser_nor_dralloc() -> None:
    script = "import sys, kubecel; print({'lark', 'celpy', 're2', 'pydantic', 'dralloc'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"
