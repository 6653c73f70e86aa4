"""Request policies: the rules of KEP-5075 as upstream applies them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dralloc.compile.inventory import amount_taken, amount_within
from dralloc.objects.api import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
)
from dralloc.objects.features import ALL_FEATURES
from dralloc.objects.quantity import NANOS, Quantity, parse_quantity


def q(text: str) -> Quantity:
    return parse_quantity(text)


def in_range(
    minimum: str,
    maximum: str | None = None,
    step: str | None = None,
    default: str | None = None,
) -> CapacityRequestPolicy:
    valid = CapacityRequestPolicyRange(
        q(minimum), q(maximum) if maximum else None, q(step) if step else None
    )
    return CapacityRequestPolicy(
        default=q(default) if default else None, valid_range=valid
    )


def one_of(*values: str, default: str | None = None) -> CapacityRequestPolicy:
    return CapacityRequestPolicy(
        default=q(default) if default else None,
        valid_values=tuple(map(q, values)),
    )


CASES = [
    ("no policy, no request: everything", None, None, "80Gi"),
    ("no policy: what is asked", "3Gi", None, "3Gi"),
    ("no request: the default", None, in_range("1Gi", default="4Gi"), "4Gi"),
    ("no request and no default: everything", None, in_range("1Gi"), "80Gi"),
    ("below the minimum: the minimum", "1Mi", in_range("1Gi"), "1Gi"),
    ("no step: what is asked", "1500Mi", in_range("1Gi"), "1500Mi"),
    (
        "rounded up to the next step from the minimum",
        "6Gi",
        in_range("1Gi", step="4Gi"),
        "9Gi",
    ),
    ("exactly on a step", "5Gi", in_range("1Gi", step="4Gi"), "5Gi"),
    ("at the maximum", "8Gi", in_range("1Gi", maximum="8Gi"), "8Gi"),
    ("above the maximum", "9Gi", in_range("1Gi", maximum="8Gi"), None),
    (
        "rounded above the maximum",
        "6Gi",
        in_range("1Gi", maximum="8Gi", step="4Gi"),
        None,
    ),
    (
        "a step of zero makes nothing valid",
        "3Gi",
        in_range("1Gi", step="0"),
        None,
    ),
    (
        "a step of zero makes no minimum valid",
        "1Mi",
        in_range("1Gi", step="0"),
        None,
    ),
    (
        "a step below zero makes nothing valid",
        "3Gi",
        in_range("1Gi", step="-1Gi"),
        None,
    ),
    ("a step that counts as zero", "3Gi", in_range("1Gi", step="-1m"), None),
    (
        "the default is valid with any step",
        None,
        in_range("1Gi", step="0", default="2Gi"),
        "2Gi",
    ),
    ("the next valid value", "3Gi", one_of("2Gi", "4Gi", "8Gi"), "4Gi"),
    ("a valid value", "4Gi", one_of("2Gi", "4Gi", "8Gi"), "4Gi"),
    ("above all valid values", "9Gi", one_of("2Gi", "4Gi", "8Gi"), None),
    (
        "the default is always allowed",
        None,
        one_of("2Gi", default="3Gi"),
        "3Gi",
    ),
    ("no request, whole value not valid", None, one_of("2Gi"), None),
    (
        "only a default: requests as asked",
        "7Gi",
        CapacityRequestPolicy(default=parse_quantity("1Gi")),
        "7Gi",
    ),
]


@pytest.mark.parametrize(
    ("requested", "policy", "taken"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_amount_taken(
    requested: str | None,
    policy: CapacityRequestPolicy | None,
    taken: str | None,
) -> None:
    amount = amount_taken(
        None if requested is None else q(requested), q("80Gi"), policy
    )
    assert (None if amount is None else str(amount)) == taken


@given(
    st.integers(0, 10**6),
    st.integers(0, 1000),
    st.integers(1, 1000),
)
def test_rounding_gives_the_smallest_step_that_covers_the_request(
    requested: int, lowest: int, step: int
) -> None:
    policy = in_range(str(lowest), step=str(step))
    amount = amount_taken(q(str(requested)), q("10M"), policy)
    assert amount is not None
    value = amount.nanos // NANOS
    assert value >= requested
    assert value == next(
        candidate for candidate in count(lowest, step) if candidate >= requested
    )


@st.composite
def policies(draw: st.DrawFn) -> CapacityRequestPolicy:
    amounts = st.integers(1, 12).map(str)
    if draw(st.booleans()):
        values = draw(st.lists(st.integers(1, 12), max_size=4, unique=True))
        return one_of(*map(str, sorted(values)))
    return in_range(
        draw(st.sampled_from(["0", "1", "500m", "2500m", "3"])),
        draw(st.none() | amounts),
        draw(st.sampled_from([None, "0", "250m", "1", "1500m", "4"])),
    )


@given(st.none() | policies(), st.integers(0, 12000), st.booleans())
def test_the_largest_amount_within_a_limit_is_the_last_that_is_not_more(
    policy: CapacityRequestPolicy | None, limit: int, fractions: bool
) -> None:
    features = replace(ALL_FEATURES, FractionalCapacityRange=fractions)
    within = amount_within(q(f"{limit}m"), policy, features)
    # Every amount that a policy grants is the limit, or a multiple of a quarter.
    taken = []
    for asked in {*range(0, limit, 250), limit}:
        amount = amount_taken(q(f"{asked}m"), q("100"), policy, features)
        if amount is not None and amount <= q(f"{limit}m"):
            taken.append(amount)
    assert within == max(taken, default=None)


FRACTIONS = [
    ("up to the next step", "600m", in_range("500m", step="250m"), "750m"),
    ("a step is kept", "1", in_range("500m", step="250m"), "1"),
    ("a whole minimum", "1100m", in_range("1", step="500m"), "1500m"),
    ("above the maximum", "4", in_range("500m", "3", "250m"), None),
    ("finer than a thousandth", "600100u", in_range("500m", step="250m"), None),
    ("steps of whole units", "1500m", in_range("1", step="2"), "3"),
]


@pytest.mark.parametrize(
    ("requested", "policy", "taken"),
    [case[1:] for case in FRACTIONS],
    ids=[case[0] for case in FRACTIONS],
)
def test_ranges_in_fractions_are_counted_in_thousandths(
    requested: str, policy: CapacityRequestPolicy, taken: str | None
) -> None:
    amount = amount_taken(q(requested), q("80"), policy)
    assert (None if amount is None else str(amount)) == taken


def test_without_the_gate_steps_are_whole_units() -> None:
    features = ALL_FEATURES.switched({"DRAFractionalCapacityRange": False})
    policy = in_range("500m", step="250m")
    # As up to 1.36: 500m and 250m count as 1, and 600m is rounded up to 1.
    amount = amount_taken(q("600m"), q("80"), policy, features)
    assert str(amount) == "1"
