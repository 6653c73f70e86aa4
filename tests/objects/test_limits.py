"""Limits as texts."""

from __future__ import annotations

import pytest

from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import Limits


def test_limits_are_set_by_name() -> None:
    assert Limits.of([]) == Limits()
    assert Limits.of(["pods=1M", "unpacked=4Gi"]) == Limits(
        pods=1_000_000, unpacked=4 << 30
    )


@pytest.mark.parametrize(
    "text", ["pods", "pods=", "pods=many", "pods=-1", "nodes=3", "=3"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(
        DrallocError,
        match=f"^--limit {text}: expected NAME=AMOUNT with one of pods, unpacked, aliases$",
    ):
        Limits.of([text])
