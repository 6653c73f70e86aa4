"""Rules about CEL selectors and configurations, in classes and in claims."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dralloc.features import Features
from dralloc.validate.checks import form, limit, on, required, size_of
from dralloc.validate.names import driver_name
from dralloc.validate.places import CLASSES, CONFIGURATIONS, DETAILS, OPAQUE, SELECTORS, Places
from dralloc.validate.rule import Check, Issue, Part, Parts, ValidationContext, errors
from kubecel import CelCompileError, FeatureGates, compile_selector, estimated_cost

__all__ = ["MAX_COST", "RULES", "Expression", "expressions", "raw_object", "too_long"]

MAX_EXPRESSION: Final = 10 * 1024
MAX_COST: Final = 1_000_000
MAX_PARAMETERS: Final = 10 * 1024
_COMPILE: Final = "resource.k8s.io validation, validateCELExpression; KEP-4381"


class Expression(NamedTuple):
    """The text of an expression and what it may use."""

    text: str
    features: Features

    @property
    def gates(self) -> FeatureGates:
        """What it may use when it is created."""
        return FeatureGates(self.features.ConsumableCapacity, self.features.ListTypeAttributes)


def expressions(places: Places) -> Parts:
    """The expressions at some places, with what they may use."""

    def found(context: ValidationContext) -> Iterator[Part[Expression]]:
        for owner, path, text in places(context):
            yield Part(owner, path, Expression(text, context.features))

    return found


def too_long(one: Expression, at: str) -> Iterator[Issue]:
    """An issue with an expression that is longer than the API allows."""
    size = size_of(one.text)
    if size > MAX_EXPRESSION:
        yield Issue(at, f"is {size} bytes long, at most {MAX_EXPRESSION} are allowed")


def _compiles(one: Expression, at: str) -> Iterator[Issue]:
    if any(too_long(one, at)):
        return
    try:
        compile_selector(one.text, one.gates)
    except CelCompileError as failure:
        yield Issue(at, str(failure))


def _cost(one: Expression, at: str) -> Iterator[Issue]:
    if any(too_long(one, at)) or any(_compiles(one, at)):
        return
    cost = estimated_cost(one.text, one.gates)
    if cost > MAX_COST:
        yield Issue(at, f"is too complex: it may cost {cost}, at most {MAX_COST} are allowed")


def raw_object(fields: str, most: int) -> Check:
    """Something is an object whose JSON is not too long."""

    def of_field(value: Any, at: str) -> Iterator[Issue]:
        if not isinstance(value, dict):
            yield Issue(at, "must be a JSON object")
        elif (size := size_of(json.dumps(value, separators=(",", ":"), ensure_ascii=False))) > most:
            yield Issue(at, f"is {size} bytes long as JSON, at most {most} are allowed")

    return on(fields, of_field)


_EXPRESSIONS: Final = expressions(SELECTORS / "cel.expression")
_LISTS: Final = CLASSES / "spec" | DETAILS

RULES: Final = (
    *errors(_LISTS, ("selector-limit", limit(32, "selectors", "selectors"), "There are at most 32 selectors.")),
    *errors(SELECTORS, ("selector-cel", required("cel"), "A selector is a CEL expression.")),
    *errors(
        _EXPRESSIONS,
        ("selector-length", too_long, "An expression has at most 10 KiB."),
        ("selector-compile", _compiles, "An expression compiles and gives a bool."),
        ("selector-cost", _cost, "An expression costs at most 1,000,000 by its estimate."),
        origin=_COMPILE,
    ),
    *errors(CONFIGURATIONS, ("config-opaque", required("opaque"), "A configuration has opaque parameters.")),
    *errors(
        OPAQUE,
        ("config-driver", form("driver", driver_name), "A driver's name is a DNS subdomain of at most 63 characters."),
        (
            "config-parameters",
            raw_object("parameters", MAX_PARAMETERS),
            "Parameters are a JSON object of at most 10 KiB.",
        ),
    ),
)
