"""Expressions of CEL in objects: where they stand, and the checks that selectors and derived attributes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from dralloc.compile.match.slips import compile_slip
from dralloc.lint.validate.checks import length, told
from dralloc.lint.validate.rule import (
    Check,
    Issue,
    Parts,
    Places,
    RulePart,
    ValidationContext,
)
from dralloc.objects.features import Features
from kubecel import CelCompileError, FeatureGates

__all__ = [
    "MAX_COST",
    "Expression",
    "compiles_by",
    "expressions_at",
    "too_long",
]

MAX_EXPRESSION: Final = 10 * 1024
MAX_COST: Final = 1_000_000


class Expression(NamedTuple):
    """The text of an expression and what it may use."""

    text: str
    features: Features

    @property
    def gates(self) -> FeatureGates:
        """The functions of CEL that an expression may use when its object is created."""
        return FeatureGates(
            self.features.ConsumableCapacity, self.features.ListTypeAttributes
        )


def expressions_at(places: Places) -> Parts:
    """Yield the expressions at some places, with what they may use."""

    def found(context: ValidationContext) -> Iterator[RulePart[Expression]]:
        for owner, path, text in places(context):
            yield RulePart(owner, path, Expression(text, context.features))

    return found


too_long: Final = told(
    "", lambda expression: length(expression.text, MAX_EXPRESSION), "{1}"
)
"""An expression is longer than the API allows."""


def compiles_by(compile_: Callable[[str, FeatureGates], object]) -> Check:
    """An expression of allowed length compiles, by a function that raises CelCompileError."""

    def check(expression: Expression, at: str) -> Iterator[Issue]:
        # What is too long is not compiled, so that nobody pays for it.
        if any(too_long(expression, at)):
            return
        try:
            compile_(expression.text, expression.gates)
        except CelCompileError as failure:
            head, *snippet = str(failure).split("\n")
            lines = (head + compile_slip(head), *snippet)
            yield Issue(at, "\n".join(lines))

    return check
