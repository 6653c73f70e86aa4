"""Which taints a toleration covers; numbers are compared where they are written as Kubernetes writes them."""

from __future__ import annotations

import pytest

from dralloc.objects.api import Taint, Toleration
from dralloc.objects.api.selecting import tolerates


@pytest.mark.parametrize(
    ("operator", "value", "taint", "covered"),
    [
        ("Gt", "4", "5", True),
        ("Gt", "5", "5", False),
        ("Gt", "-6", "-5", True),
        ("Lt", "6", "5", True),
        ("Gt", "04", "5", False),
        ("Gt", "4", "05", False),
        ("Lt", "1", "-0", False),
        ("Gt", "+4", "5", False),
        ("Gt", "4", "1_000", False),
        ("Lt", "9223372036854775807", "5", True),
        ("Lt", "9223372036854775808", "5", False),
        ("Gt", "", "5", False),
    ],
)
def test_numbers_are_decimal_and_have_64_bits(
    operator: str, value: str, taint: str, *, covered: bool
) -> None:
    toleration = Toleration(key="level", operator=operator, value=value)
    assert (
        tolerates(
            toleration, Taint(key="level", effect="NoSchedule", value=taint)
        )
        is covered
    )
