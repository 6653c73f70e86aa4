"""What tests of this project keep to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from dralloc.objects.choices import Thresholds

TESTS = Path(__file__).parent
OPTIONS = {option.name for option in fields(Thresholds)}


def alternatives(file: Path) -> Iterator[str]:
    """Assertions of one thing or another, of which nobody knows which one holds."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if (
            isinstance(node, ast.Assert)
            and isinstance(node.test, ast.BoolOp)
            and isinstance(node.test.op, ast.Or)
        ):
            yield f"{file.relative_to(TESTS)}:{node.lineno}: {ast.unparse(node)}"


def thresholds(file: Path) -> Iterator[str]:
    """Constants of solvers that are replaced, where `dralloc.objects.choices.Thresholds` has an option."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setattr"),
                args=[_, ast.Constant(value=str(name)), _],
            ):
                if name.isupper() and name.strip("_").lower() in OPTIONS:
                    yield f"{file.relative_to(TESTS)}:{node.lineno}: {name}"


def test_no_test_asserts_one_thing_or_another() -> None:
    assert [
        assertion
        for file in sorted(TESTS.rglob("*.py"))
        for assertion in alternatives(file)
    ] == []


def test_no_test_replaces_a_threshold_of_a_solver() -> None:
    files = sorted((TESTS / "solve").rglob("*.py"))
    assert files
    assert [
        replacement for file in files for replacement in thresholds(file)
    ] == []
