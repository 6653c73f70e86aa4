"""Admission: what the API server refuses, and what it accepts and users suffer from.

The rules are in tables, one module for each kind of thing: a small function over a part of an object, with an id, a
level and words about it. Errors follow ``pkg/apis/resource/validation`` of Kubernetes 1.37, with its limits and paths.
"""

from __future__ import annotations

from dralloc.lint.validate.rule import Rule
from dralloc.lint.validate.run import (
    RULES,
    Validation,
    Violation,
    as_sarif,
    validate,
    validate_reading,
)
from dralloc.objects.errors import Level

__all__ = [
    "RULES",
    "Level",
    "Rule",
    "Validation",
    "Violation",
    "as_sarif",
    "validate",
    "validate_reading",
]
