"""Every public name has an example that does what it shows."""

from __future__ import annotations

import doctest
from collections.abc import Iterator

import pytest

import dralloc

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(name: str) -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(recurse=False, exclude_empty=True)
    yield from finder.find(getattr(dralloc, name), name, module=False, globs={})


@pytest.mark.parametrize("name", dralloc.__all__)
def test_a_public_name_has_an_example_that_is_true(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = [example for example in examples(name) if example.examples]
    assert shown, f"dralloc.{name} has no example in its docstring"
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for example in shown:
        runner.run(example)
    assert runner.failures == 0, capsys.readouterr().out
