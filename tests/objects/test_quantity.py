"""Quantities: the grammar and the canonical text of Kubernetes."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dralloc.objects.errors import QuantityError
from dralloc.objects.quantity import (
    NANOS,
    Format,
    Quantity,
    common_unit,
    parse_quantity,
)

SUFFIXES = (
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "e3",
    "E-3",
    "e+6",
)


@st.composite
def quantity_texts(draw: st.DrawFn) -> str:
    sign = draw(st.sampled_from(("", "+", "-")))
    whole = draw(st.integers(0, 10**6) | st.integers(10**18, 10**24))
    fraction = draw(st.sampled_from(("", ".", ".5", ".25", ".125", ".001")))
    return f"{sign}{whole}{fraction}{draw(st.sampled_from(SUFFIXES))}"


quantities = st.builds(
    Quantity,
    st.integers(-(10**30), 10**30) | st.integers(10**28, 10**30),
    st.sampled_from(Format),
)

VALUES = [
    # text, nanos, canonical text
    ("0", 0, "0"),
    ("0Ki", 0, "0"),
    ("-0", 0, "0"),
    ("1", NANOS, "1"),
    ("+1", NANOS, "1"),
    ("-1", -NANOS, "-1"),
    ("007", 7 * NANOS, "7"),
    ("1000", 1000 * NANOS, "1k"),
    ("1001", 1001 * NANOS, "1001"),
    ("1000m", NANOS, "1"),
    ("100m", NANOS // 10, "100m"),
    ("0.1", NANOS // 10, "100m"),
    (".1", NANOS // 10, "100m"),
    ("1.", NANOS, "1"),
    ("1n", 1, "1n"),
    ("1u", 1000, "1u"),
    ("0.1n", 1, "1n"),
    ("-0.1n", -1, "-1n"),
    ("1.0000000001", NANOS + 1, "1000000001n"),
    ("1k", 10**3 * NANOS, "1k"),
    ("1M", 10**6 * NANOS, "1M"),
    ("1G", 10**9 * NANOS, "1G"),
    ("1T", 10**12 * NANOS, "1T"),
    ("1P", 10**15 * NANOS, "1P"),
    ("1E", 10**18 * NANOS, "1E"),
    ("1Ki", 1024 * NANOS, "1Ki"),
    ("1024", 1024 * NANOS, "1024"),
    ("1024Ki", 2**20 * NANOS, "1Mi"),
    ("1Gi", 2**30 * NANOS, "1Gi"),
    ("1Ti", 2**40 * NANOS, "1Ti"),
    ("1Pi", 2**50 * NANOS, "1Pi"),
    ("1Ei", 2**60 * NANOS, "1Ei"),
    ("4864Mi", 4864 * 2**20 * NANOS, "4864Mi"),
    ("1.5Gi", 1536 * 2**20 * NANOS, "1536Mi"),
    ("0.5Ki", 512 * NANOS, "512"),
    ("1.1Mi", 1153433600 * 10**6, "1153433600m"),
    ("1e3", 1000 * NANOS, "1e3"),
    ("1E3", 1000 * NANOS, "1e3"),
    ("1.e3", 1000 * NANOS, "1e3"),
    ("1e-3", 10**6, "1e-3"),
    ("12e4", 120_000 * NANOS, "120e3"),
    ("1e0", NANOS, "1"),
    ("9223372036854775807", (2**63 - 1) * NANOS, "9223372036854775807"),
    ("100E", 100 * 10**18 * NANOS, "100E"),
    # Only what has a binary suffix is capped (ParseQuantity in Kubernetes' quantity.go).
    ("9223372036854775808", 2**63 * NANOS, "9223372036854775808"),
    ("-9223372036854775808", -(2**63) * NANOS, "-9223372036854775808"),
    (
        "10000000000000000000001k",
        (10**25 + 1000) * NANOS,
        "10000000000000000000001k",
    ),
    (
        "10000000000000000000001e3",
        (10**25 + 1000) * NANOS,
        "10000000000000000000001e3",
    ),
    ("8Ei", (2**63 - 1) * NANOS, "9223372036854775807"),
    ("-8Ei", -(2**63 - 1) * NANOS, "-9223372036854775807"),
    *(
        (without_digits, 0, "0")
        for without_digits in ("Gi", "m", "E", ".", "+", "-", "-.", ".e3")
    ),
]

NOT_QUANTITIES = [
    "", " ", "1 ", " 1", "1 Gi", "abc", "e", "+-1", "--1", "1.2.3", "1,5", "1_000", "0x10", "1K",
    "1KI", "1ki", "10Gx", "1mi", "1e", "1e-", "1e+-3", "1e3.5", "1e3Ki", "1i", "1.5.M", "NaN", "inf", "\u0661", "1\n",
]  # fmt: skip

INT64 = {
    "1": True, "1k": True, "1.e3": True, "1e3": True, "1Gi": True, "0": True,
    "1.0": False, "1000m": False, "0.5Ki": False, "1Ei": False, "9223372036854775808": False,
    "1.23456789012345678e17": True, "0.123456789012345678e18": False,
    ".123456789012345678e18": False, "00.12345678901234567e17": True,
}  # fmt: skip


@pytest.mark.parametrize(("text", "nanos", "canonical"), VALUES)
def test_value_and_canonical_text(
    text: str, nanos: int, canonical: str
) -> None:
    quantity = parse_quantity(text)
    assert quantity.nanos == nanos
    assert str(quantity) == canonical


@pytest.mark.parametrize("text", NOT_QUANTITIES)
def test_what_is_not_a_quantity(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_quantity(text)


def test_messages_name_the_text_and_the_suffix() -> None:
    with pytest.raises(
        QuantityError, match=r"^'10Gx' is not a quantity: unknown suffix 'Gx'$"
    ):
        parse_quantity("10Gx")


@pytest.mark.parametrize(("text", "whole"), INT64.items())
def test_is_int64_depends_on_how_it_was_written(text: str, whole: bool) -> None:
    assert parse_quantity(text).is_int64 is whole


def test_formats() -> None:
    assert [
        parse_quantity(text).format for text in ("1", "1k", "1Ki", "1e3")
    ] == [
        Format.DECIMAL,
        Format.DECIMAL,
        Format.BINARY,
        Format.EXPONENT,
    ]


def test_equality_order_and_hash_look_at_the_value() -> None:
    assert parse_quantity("1Ki") == parse_quantity("1024")
    assert hash(parse_quantity("1Ki")) == hash(parse_quantity("1024"))
    assert (
        parse_quantity("1k") < parse_quantity("1Ki") <= parse_quantity("1024")
    )
    assert parse_quantity("1") != 1
    assert repr(parse_quantity("1024Mi")) == "Quantity('1Gi')"
    assert float(parse_quantity("1500m")) == 1.5


def test_sums_keep_the_format_of_the_first() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1073741824")) == "2Gi"
    assert str(parse_quantity("80Gi") - parse_quantity("10Gi")) == "70Gi"


def test_common_unit() -> None:
    assert (
        common_unit([parse_quantity("1"), parse_quantity("1500m")])
        == NANOS // 2
    )
    assert common_unit([parse_quantity("0")]) == 1
    assert common_unit([]) == 1


@given(quantities)
def test_canonical_text_reads_back_as_the_same_value(
    quantity: Quantity,
) -> None:
    again = parse_quantity(str(quantity))
    limit = (2**63 - 1) * NANOS
    # Amounts with a binary suffix are capped when they are read.
    may_be_capped = str(quantity).endswith("i") and abs(quantity.nanos) > limit
    if not may_be_capped:
        assert again.nanos == quantity.nanos
    assert str(again) == str(parse_quantity(str(again)))


@given(quantity_texts())
def test_text_survives_one_round_trip(text: str) -> None:
    quantity = parse_quantity(text)
    again = parse_quantity(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(quantity_texts(), quantity_texts())
def test_sum_and_difference_undo_each_other(left: str, right: str) -> None:
    first, second = parse_quantity(left), parse_quantity(right)
    assert first + second - second == first


def test_huge_exponents_and_texts_are_refused_at_once() -> None:
    assert parse_quantity("1e-999999999") == parse_quantity("1n")
    for text in ("1e4256", "1e999999999", "9" * 5000):
        with pytest.raises(QuantityError, match="is not a quantity"):
            parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1e400", "10e399"),
        ("-1e400", "-10e399"),
        ("0.1e400", "1e399"),
        ("1e101", "100e99"),
        ("1e19", "10e18"),
    ],
)
def test_large_exponents_are_written_as_a_server_does(
    text: str, canonical: str
) -> None:
    assert str(parse_quantity(text)) == canonical
    assert parse_quantity(canonical) == parse_quantity(text)


def test_what_is_beyond_all_floats_is_infinite() -> None:
    assert [float(parse_quantity(text)) for text in ("1e400", "-1e400")] == [
        inf,
        -inf,
    ]


@pytest.mark.parametrize("text", ["1000e3999", "1e4002", "1e4255"])
def test_the_largest_quantities_are_written_as_ones_that_can_be_read(
    text: str,
) -> None:
    assert parse_quantity(str(parse_quantity(text))) == parse_quantity(text)


@given(st.integers(0, 10**12), st.integers(-20, 4000))
def test_a_quantity_is_written_as_one_that_equals_it(
    digits: int, exponent: int
) -> None:
    quantity = parse_quantity(f"{digits}e{exponent}")
    assert parse_quantity(str(quantity)) == quantity
