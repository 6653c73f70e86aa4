"""All rules: those about what is refused or left out before others look at it, and then the tables of all modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.lint.validate.claims import CLAIM_RULES
from dralloc.lint.validate.classes import CLASS_RULES
from dralloc.lint.validate.counters import ALLOCATABLE_RULES, COUNTER_RULES
from dralloc.lint.validate.device_taints import DEVICE_TAINT_RULES
from dralloc.lint.validate.devices import DEVICE_RULES
from dralloc.lint.validate.metadata import METADATA_RULES
from dralloc.lint.validate.node_selectors import NODE_SELECTOR_RULES
from dralloc.lint.validate.pools import POOL_RULES
from dralloc.lint.validate.rule import (
    Rule,
    RulePart,
    ValidationContext,
    errors,
    nothing,
    warnings,
)
from dralloc.lint.validate.slices import SLICE_RULES
from dralloc.lint.validate.status import POD_RULES, STATUS_RULES
from dralloc.lint.validate.unsatisfiable import OFFER_RULES, UNSATISFIABLE_RULES
from dralloc.objects.errors import Finding

__all__ = [
    "DROPPED",
    "REPEATED",
    "RULES",
    "RULES_ABOUT_OTHERS",
    "SCHEMA",
    "UNKNOWN_FIELD",
]


def _nothing(_context: ValidationContext) -> Iterator[RulePart[Finding]]:
    return iter(())


# What the loader refuses, what it leaves out, what it takes the first of, and what the API server drops without a word.
[SCHEMA] = errors(
    _nothing,
    ("schema", nothing, "The object has the fields and types of its kind."),
    origin="the API's types",
)
[UNKNOWN_FIELD] = warnings(
    _nothing,
    (
        "unknown-field",
        nothing,
        "Every field is one that the API knows; others are dropped, or refused if the client asks for that.",
    ),
    origin="the API's types; fieldValidation",
)
[REPEATED] = warnings(
    _nothing,
    (
        "repeated-object",
        nothing,
        "An object is given once: on the server a later one of its name would replace it. Each of them is checked.",
    ),
    origin="kubectl apply",
)
[DROPPED] = warnings(
    _nothing,
    (
        "dropped-field",
        nothing,
        "Every field is one that the asked version has and keeps, by its feature gates.",
    ),
    origin="pkg/registry/resource, dropDisabledFields",
)

RULES: Final[tuple[Rule, ...]] = (
    SCHEMA,
    UNKNOWN_FIELD,
    REPEATED,
    DROPPED,
    *METADATA_RULES,
    *SLICE_RULES,
    *DEVICE_RULES,
    *COUNTER_RULES,
    *DEVICE_TAINT_RULES,
    *NODE_SELECTOR_RULES,
    *ALLOCATABLE_RULES,
    *CLASS_RULES,
    *CLAIM_RULES,
    *STATUS_RULES,
    *POOL_RULES,
    *OFFER_RULES,
    *UNSATISFIABLE_RULES,
    *POD_RULES,
)
"""Every rule there is."""

_OF_CLASSES: Final = {rule.id for rule in (*OFFER_RULES, *UNSATISFIABLE_RULES)}
RULES_ABOUT_OTHERS: Final = {
    "DeviceClass": _OF_CLASSES - {"request-class-missing"},
    "ResourceSlice": _OF_CLASSES.union(rule.id for rule in POOL_RULES)
    - {"request-class-missing", "request-class-unknown"},
}
"""Rules that look at all objects of a kind: they say nothing where one of these was refused."""
