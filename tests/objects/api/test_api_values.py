"""Attribute values: plain Python values inside, objects with one field on the wire."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from dralloc.objects.api import (
    UNSET,
    AttributeValue,
    Version,
    attribute_to_wire,
)
from dralloc.objects.api.slices import AttributeField

ADAPTER: TypeAdapter[AttributeValue] = TypeAdapter(AttributeField)

PAIRS: list[tuple[dict[str, Any], AttributeValue]] = [
    ({"int": 3}, 3),
    ({"bool": True}, True),
    ({"string": "A100"}, "A100"),
    ({"string": ""}, ""),
    ({"version": "1.2.3"}, Version("1.2.3")),
    ({"ints": [1, 2]}, (1, 2)),
    ({"bools": [True, False]}, (True, False)),
    ({"strings": ["a", "b"]}, ("a", "b")),
    ({"versions": ["1.0.0"]}, (Version("1.0.0"),)),
    ({}, UNSET),
]


@pytest.mark.parametrize(("wire", "value"), PAIRS)
def test_both_directions(wire: dict[str, Any], value: AttributeValue) -> None:
    read = ADAPTER.validate_python(wire)
    assert read == value
    assert type(read) is type(value)
    assert attribute_to_wire(read) == wire


@pytest.mark.parametrize(
    "wire",
    [
        {"int": "3"},
        {"int": True},
        {"int": 1.0},
        {"bool": 1},
        {"string": 3},
        {"ints": 3},
        {"strings": [1]},
        "A100",
    ],
)
def test_types_are_not_converted(wire: object) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(wire)


def test_one_value_only() -> None:
    with pytest.raises(
        ValidationError, match="has more than one value: int, string"
    ):
        ADAPTER.validate_python({"int": 3, "string": "3"})


def test_a_version_is_not_a_string() -> None:
    assert Version("1.0.0") == Version("1.0.0")
    assert Version("1.0.0") != "1.0.0"
    assert Version("1.0.0") != "1.0.0"
    assert len({Version("1.0.0"), Version("1.0.0"), "1.0.0"}) == 2
    assert repr((Version("1.0.0"), UNSET)) == "(Version('1.0.0'), UNSET)"


def test_an_empty_list_counts_as_strings() -> None:
    assert attribute_to_wire(()) == {"strings": []}
