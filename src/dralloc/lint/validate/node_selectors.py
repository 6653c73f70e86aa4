"""Rules about node selectors.

Source: ``pkg/apis/core/validation``, ValidateNodeSelector.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import not_
from typing import Final

from dralloc.lint.validate.checks import (
    JUDGED,
    choice,
    dns_subdomain,
    form,
    label_name,
    label_value,
    named,
    told,
)
from dralloc.lint.validate.rule import NODE_SELECTORS, Issue, errors
from dralloc.objects.api import NodeSelectorRequirement

__all__ = ["NODE_SELECTOR_RULES"]

_SELECTOR_ORIGIN: Final = "core validation, ValidateNodeSelector"
_LISTS: Final = ("In", "NotIn")
_FLAGS: Final = ("Exists", "DoesNotExist")
_NUMBERS: Final = ("Gt", "Lt")
_NODE_NAME: Final = "metadata.name"
_LABELS: Final = NODE_SELECTORS / "nodeSelectorTerms[].matchExpressions[]"
_FIELDS: Final = NODE_SELECTORS / "nodeSelectorTerms[].matchFields[]"


def _count(requirement: NodeSelectorRequirement, at: str) -> Iterator[Issue]:
    if requirement.operator in _LISTS and not requirement.values:
        yield Issue(f"{at}.values", f"is required with {requirement.operator}")
    elif requirement.operator in _FLAGS and requirement.values:
        yield Issue(
            f"{at}.values", f"is not allowed with {requirement.operator}"
        )
    elif requirement.operator in _NUMBERS and len(requirement.values) != 1:
        yield Issue(
            f"{at}.values",
            f"must have a single value with {requirement.operator}",
        )


def _field_key(
    requirement: NodeSelectorRequirement, at: str
) -> Iterator[Issue]:
    if requirement.key != _NODE_NAME:
        yield Issue(
            f"{at}.key",
            f'"{requirement.key}" is not {_NODE_NAME}, the only field that nodes can be selected by',
        )


def _field_operator(
    requirement: NodeSelectorRequirement, at: str
) -> Iterator[Issue]:
    if requirement.operator not in _LISTS:
        yield Issue(
            f"{at}.operator",
            f'"{requirement.operator}" is not one of {", ".join(_LISTS)}',
        )
    elif len(requirement.values) != 1:
        yield Issue(
            f"{at}.values",
            f"must have a single value with {requirement.operator}",
        )


def _field_values(
    requirement: NodeSelectorRequirement, at: str
) -> Iterator[Issue]:
    for index, value in enumerate(
        requirement.values if requirement.key == _NODE_NAME else ()
    ):
        yield from named(value, f"{at}.values[{index}]", dns_subdomain)


NODE_SELECTOR_RULES: Final = (
    *errors(
        NODE_SELECTORS,
        (
            "node-selector-terms",
            told("nodeSelectorTerms", not_, "needs at least one term"),
            "A node selector has terms.",
        ),
        origin=_SELECTOR_ORIGIN,
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
        (
            "node-selector-count",
            _count,
            "The operator says how many values there are.",
        ),
        (
            "node-selector-value",
            told("values[]", label_value, JUDGED),
            "Values have the form of label values.",
        ),
        origin=_SELECTOR_ORIGIN,
    ),
    *errors(
        _FIELDS,
        ("node-field-key", _field_key, "The only field is metadata.name."),
        (
            "node-field-operator",
            _field_operator,
            "Fields have In or NotIn with a single value.",
        ),
        (
            "node-field-value",
            _field_values,
            "A node's name is a DNS subdomain.",
        ),
        origin=_SELECTOR_ORIGIN,
    ),
)
