"""The words of errors that are compared."""

from __future__ import annotations

import pytest

from dralloc.lint.conformance.differences import comparable


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("node node-0: claim default/a: no", "claim a: no"),
        (
            "claim a: Syntax error: unexpected end",
            "claim a: Syntax error: mismatched input '<EOF>'",
        ),
    ],
)
def test_the_same(left: str, right: str) -> None:
    assert comparable(left) == comparable(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("claim a: no", "claim b: no"),
        ("claim a, request r: no", "claim a, request s: no"),
        (
            "claim default/a: 1:7: Syntax error",
            "claim default/a: 1:8: Syntax error",
        ),
    ],
)
def test_not_the_same(left: str, right: str) -> None:
    assert comparable(left) != comparable(right)
