"""Rules about classes, and what they share with claims: selectors and configurations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from dralloc.lint.validate.checks import (
    driver_name,
    extended_resource_name,
    form,
    limit,
    raw_object,
    required,
)
from dralloc.lint.validate.expressions import (
    MAX_COST,
    Expression,
    compiles_by,
    expressions_at,
    too_long,
)
from dralloc.lint.validate.rule import (
    CLASSES,
    CONFIGURATIONS,
    DETAILS,
    OPAQUE,
    SELECTORS,
    Issue,
    RulePart,
    ValidationContext,
    errors,
    said,
    warnings,
)
from kubecel import compile_selector, estimated_cost

__all__ = ["CLASS_RULES"]

MAX_PARAMETERS: Final = 10 * 1024
_COMPILE: Final = "resource.k8s.io validation, validateCELExpression; KEP-4381"


def _ambiguous(context: ValidationContext) -> Iterator[RulePart[str]]:
    """Extended resources that stand for several classes."""
    by_name: dict[str, list[Any]] = defaultdict(list)
    for device_class in context.cluster.classes.values():
        if device_class.spec.extended_resource_name:
            by_name[device_class.spec.extended_resource_name].append(
                device_class
            )
    for resource, classes in by_name.items():
        if len(classes) > 1:
            names = ", ".join(device_class.name for device_class in classes)
            text = f'"{resource}" stands for several classes, one of which is used: {names}'
            yield RulePart(classes[-1], "spec.extendedResourceName", text)


_COMPILES: Final = compiles_by(compile_selector)


def _cost(expression: Expression, at: str) -> Iterator[Issue]:
    if any(too_long(expression, at)) or any(_COMPILES(expression, at)):
        return
    cost = estimated_cost(expression.text, expression.gates)
    if cost > MAX_COST:
        yield Issue(
            at,
            f"is too complex: it may cost {cost}, at most {MAX_COST} are allowed",
        )


_EXPRESSIONS: Final = expressions_at(SELECTORS / "cel.expression")
_CLASS_LISTS: Final = CLASSES / "spec" | DETAILS

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
        _CLASS_LISTS,
        (
            "selector-limit",
            limit(32, "selectors", "selectors"),
            "There are at most 32 selectors.",
        ),
    ),
    *errors(
        SELECTORS,
        ("selector-cel", required("cel"), "A selector is a CEL expression."),
    ),
    *errors(
        _EXPRESSIONS,
        ("selector-length", too_long, "An expression has at most 10 KiB."),
        (
            "selector-compile",
            _COMPILES,
            "An expression compiles and gives a bool.",
        ),
        (
            "selector-cost",
            _cost,
            "An expression costs at most 1,000,000 by its estimate.",
        ),
        origin=_COMPILE,
    ),
    *errors(
        CONFIGURATIONS,
        (
            "config-opaque",
            required("opaque"),
            "A configuration has opaque parameters.",
        ),
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
