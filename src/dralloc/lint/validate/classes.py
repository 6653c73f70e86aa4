"""Rules about classes, and what they share with claims: selectors and configurations."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from dralloc.lint.validate.checks import form, limit, on, required, told
from dralloc.lint.validate.names import (
    driver_name,
    extended_resource_name,
    length,
    size_of,
)
from dralloc.lint.validate.places import (
    CLASSES,
    CONFIGURATIONS,
    DETAILS,
    OPAQUE,
    SELECTORS,
    Places,
)
from dralloc.lint.validate.rule import (
    Check,
    Issue,
    Part,
    Parts,
    ValidationContext,
    errors,
    said,
    warnings,
)
from dralloc.objects.features import Features
from kubecel import CelCompileError, FeatureGates, compile_selector, estimated_cost

__all__ = [
    "CLASS_RULES",
    "MAX_COST",
    "Expression",
    "compiled",
    "expressions",
    "raw_object",
    "too_long",
]

MAX_EXPRESSION: Final = 10 * 1024
MAX_COST: Final = 1_000_000
MAX_PARAMETERS: Final = 10 * 1024
_COMPILE: Final = "resource.k8s.io validation, validateCELExpression; KEP-4381"


def _ambiguous(context: ValidationContext) -> Iterator[Part[str]]:
    """Extended resources that stand for several classes."""
    by_name: dict[str, list[Any]] = defaultdict(list)
    for one in context.cluster.classes.values():
        if one.spec.extended_resource_name:
            by_name[one.spec.extended_resource_name].append(one)
    for resource, found in by_name.items():
        if len(found) > 1:
            names = ", ".join(one.name for one in found)
            text = f'"{resource}" stands for several classes, one of which is used: {names}'
            yield Part(found[-1], "spec.extendedResourceName", text)


class Expression(NamedTuple):
    """The text of an expression and what it may use."""

    text: str
    features: Features

    @property
    def gates(self) -> FeatureGates:
        """What it may use when it is created."""
        return FeatureGates(
            self.features.ConsumableCapacity, self.features.ListTypeAttributes
        )


def expressions(places: Places) -> Parts:
    """The expressions at some places, with what they may use."""

    def found(context: ValidationContext) -> Iterator[Part[Expression]]:
        for owner, path, text in places(context):
            yield Part(owner, path, Expression(text, context.features))

    return found


too_long: Final = told("", lambda one: length(one.text, MAX_EXPRESSION), "{1}")
"""An expression is longer than the API allows."""


def compiled(compile_: Callable[[str, FeatureGates], object]) -> Check:
    """An expression of allowed length compiles, by a function that raises CelCompileError."""

    def check(one: Expression, at: str) -> Iterator[Issue]:
        if any(too_long(one, at)):
            return
        try:
            compile_(one.text, one.gates)
        except CelCompileError as failure:
            yield Issue(at, str(failure))

    return check


_COMPILES: Final = compiled(compile_selector)


def _cost(one: Expression, at: str) -> Iterator[Issue]:
    if any(too_long(one, at)) or any(_COMPILES(one, at)):
        return
    cost = estimated_cost(one.text, one.gates)
    if cost > MAX_COST:
        yield Issue(
            at, f"is too complex: it may cost {cost}, at most {MAX_COST} are allowed"
        )


def raw_object(fields: str, most: int) -> Check:
    """Something is an object whose JSON is not too long."""

    def of_field(value: Any, at: str) -> Iterator[Issue]:
        if not isinstance(value, dict):
            yield Issue(at, "must be a JSON object")
        elif (
            size := size_of(
                json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            )
        ) > most:
            yield Issue(at, f"is {size} bytes long as JSON, at most {most} are allowed")

    return on(fields, of_field)


_EXPRESSIONS: Final = expressions(SELECTORS / "cel.expression")
_LISTS: Final = CLASSES / "spec" | DETAILS

CLASS_RULES: Final = (
    *errors(
        CLASSES,
        (
            "class-config-limit",
            limit(32, "spec.config", "configurations"),
            "A class has at most 32 configurations.",
        ),
    ),
    *errors(
        CLASSES,
        (
            "class-extended-resource",
            form("spec.extendedResourceName", extended_resource_name),
            "extendedResourceName is an extended resource's name.",
        ),
        origin="resource.k8s.io validation, validateDeviceClassSpec; KEP-5004",
    ),
    *warnings(
        _ambiguous,
        (
            "class-extended-resource-unique",
            said,
            "An extended resource stands for one class; of several, the newest is used.",
        ),
        origin="resource.k8s.io types, DeviceClassSpec; KEP-5004",
    ),
    *errors(
        _LISTS,
        (
            "selector-limit",
            limit(32, "selectors", "selectors"),
            "There are at most 32 selectors.",
        ),
    ),
    *errors(
        SELECTORS, ("selector-cel", required("cel"), "A selector is a CEL expression.")
    ),
    *errors(
        _EXPRESSIONS,
        ("selector-length", too_long, "An expression has at most 10 KiB."),
        ("selector-compile", _COMPILES, "An expression compiles and gives a bool."),
        (
            "selector-cost",
            _cost,
            "An expression costs at most 1,000,000 by its estimate.",
        ),
        origin=_COMPILE,
    ),
    *errors(
        CONFIGURATIONS,
        ("config-opaque", required("opaque"), "A configuration has opaque parameters."),
    ),
    *errors(
        OPAQUE,
        (
            "config-driver",
            form("driver", driver_name),
            "A driver's name is a DNS subdomain of at most 63 characters.",
        ),
        (
            "config-parameters",
            raw_object("parameters", MAX_PARAMETERS),
            "Parameters are a JSON object of at most 10 KiB.",
        ),
    ),
)
