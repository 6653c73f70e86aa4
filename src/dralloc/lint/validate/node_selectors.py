"""Rules about node selectors.

Source: ``pkg/apis/core/validation``, ValidateNodeSelector.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import not_
from typing import Final

from dralloc.lint.validate.checks import JUDGED, choice, form, named, told
from dralloc.lint.validate.names import dns_subdomain, label_name, label_value
from dralloc.lint.validate.places import NODE_SELECTORS
from dralloc.lint.validate.rule import Issue, errors
from dralloc.objects.api import NodeSelectorRequirement

__all__ = ["NODE_SELECTOR_RULES"]

_ORIGIN: Final = "core validation, ValidateNodeSelector"
_LISTS: Final = ("In", "NotIn")
_FLAGS: Final = ("Exists", "DoesNotExist")
_NUMBERS: Final = ("Gt", "Lt")
_NODE_NAME: Final = "metadata.name"
_LABELS: Final = NODE_SELECTORS / "nodeSelectorTerms[].matchExpressions[]"
_FIELDS: Final = NODE_SELECTORS / "nodeSelectorTerms[].matchFields[]"


def _count(one: NodeSelectorRequirement, at: str) -> Iterator[Issue]:
    if one.operator in _LISTS and not one.values:
        yield Issue(f"{at}.values", f"is required with {one.operator}")
    elif one.operator in _FLAGS and one.values:
        yield Issue(f"{at}.values", f"is not allowed with {one.operator}")
    elif one.operator in _NUMBERS and len(one.values) != 1:
        yield Issue(f"{at}.values", f"must have a single value with {one.operator}")


def _field_key(one: NodeSelectorRequirement, at: str) -> Iterator[Issue]:
    if one.key != _NODE_NAME:
        yield Issue(
            f"{at}.key",
            f'"{one.key}" is not {_NODE_NAME}, the only field that nodes can be selected by',
        )


def _field_operator(one: NodeSelectorRequirement, at: str) -> Iterator[Issue]:
    if one.operator not in _LISTS:
        yield Issue(
            f"{at}.operator", f'"{one.operator}" is not one of {", ".join(_LISTS)}'
        )
    elif len(one.values) != 1:
        yield Issue(f"{at}.values", f"must have a single value with {one.operator}")


def _field_values(one: NodeSelectorRequirement, at: str) -> Iterator[Issue]:
    for index, value in enumerate(one.values if one.key == _NODE_NAME else ()):
        yield from named(value, f"{at}.values[{index}]", dns_subdomain)


NODE_SELECTOR_RULES: Final = (
    *errors(
        NODE_SELECTORS,
        (
            "node-selector-terms",
            told("nodeSelectorTerms", not_, "needs at least one term"),
            "A node selector has terms.",
        ),
        origin=_ORIGIN,
    ),
    *errors(
        _LABELS,
        (
            "node-selector-key",
            form("key", label_name),
            "Keys have the form of label keys.",
        ),
        (
            "node-selector-operator",
            choice("operator", (*_LISTS, *_FLAGS, *_NUMBERS)),
            "Operators are known.",
        ),
        ("node-selector-count", _count, "The operator says how many values there are."),
        (
            "node-selector-value",
            told("values[]", label_value, JUDGED),
            "Values have the form of label values.",
        ),
        origin=_ORIGIN,
    ),
    *errors(
        _FIELDS,
        ("node-field-key", _field_key, "The only field is metadata.name."),
        (
            "node-field-operator",
            _field_operator,
            "Fields have In or NotIn with a single value.",
        ),
        ("node-field-value", _field_values, "A node's name is a DNS subdomain."),
        origin=_ORIGIN,
    ),
)
