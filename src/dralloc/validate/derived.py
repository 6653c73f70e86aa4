"""Rules about attributes that a request derives by an expression, for constraints to compare (Kubernetes 1.37)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.api import DeviceClaim
from dralloc.validate.checks import distinct, form, limit
from dralloc.validate.names import fully_qualified_name
from dralloc.validate.places import DETAILS, SPECS, Details
from dralloc.validate.rule import Issue, Part, ValidationContext, errors
from dralloc.validate.selectors import MAX_COST, Expression, expressions, too_long
from kubecel import CelCompileError, CheckedExpression, check_expression, compile_derivation

__all__ = ["RULES"]

MAX_DERIVED: Final = 32


def _claims(context: ValidationContext) -> Iterator[Part[list[Expression]]]:
    """All derivations of a claim: their cost counts together."""
    for owner, path, spec in SPECS(context):
        texts = [one.expression for _, alternative in spec.alternatives for one in alternative.derived_attributes]
        yield Part(owner, path, [Expression(text, context.features) for text in texts])


def _present(one: Expression, at: str) -> Iterator[Issue]:
    if not one.text:
        yield Issue(at, "is required")


def _derived(one: Expression) -> CheckedExpression:
    compile_derivation(one.text, one.gates)
    return check_expression(one.text, one.gates)


def _compiles(one: Expression, at: str) -> Iterator[Issue]:
    if not one.text or any(too_long(one, at)):
        return
    try:
        _derived(one)
    except CelCompileError as failure:
        yield Issue(at, str(failure))


def _cost(expressions: list[Expression], at: str) -> Iterator[Issue]:
    costs = (_derived(one).cost for one in expressions if not any(_compiles(one, at)) and one.text)
    total = sum(costs)
    if total > MAX_COST:
        yield Issue(
            at, f"its derived attributes are too complex: they may cost {total}, at most {MAX_COST} are allowed"
        )


def _used(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    for number, request in enumerate(spec.requests):
        path = f"{at}.requests[{number}]"
        if request.exactly is not None:
            yield from _unused(spec, request.exactly, (request.name,), f"{path}.exactly")
        for index, sub in enumerate(request.first_available):
            names = (request.name, f"{request.name}/{sub.name}")
            yield from _unused(spec, sub, names, f"{path}.firstAvailable[{index}]")


def _unused(spec: DeviceClaim, request: Details, names: tuple[str, ...], at: str) -> Iterator[Issue]:
    compared = {
        constraint.match_attribute or constraint.distinct_attribute
        for constraint in spec.constraints
        if not constraint.requests or set(constraint.requests) & set(names)
    }
    derived = request.derived_attributes
    for index, one in enumerate(derived if len(derived) <= MAX_DERIVED else ()):
        if one.name and one.name not in compared:
            text = f'"{one.name}" is in no constraint that covers this request'
            yield Issue(f"{at}.derivedAttributes[{index}].name", text)


_ORIGIN: Final = "resource.k8s.io validation, validateDeviceDerivedAttributes"

_DERIVED: Final = DETAILS / "derivedAttributes[]"
_EXPRESSIONS: Final = expressions(_DERIVED / "expression")
_LIST: Final = "derivedAttributes"

RULES: Final = (
    *errors(
        DETAILS,
        ("derived-limit", limit(MAX_DERIVED, _LIST, "derived attributes"), "A request derives at most 32 attributes."),
        ("derived-unique", distinct(_LIST, "name"), "The names of a request's derived attributes differ."),
        origin=_ORIGIN,
    ),
    *errors(
        _DERIVED,
        ("derived-name", form("name", fully_qualified_name), "A derived attribute's name has a domain."),
        origin=_ORIGIN,
    ),
    *errors(
        _EXPRESSIONS,
        ("derived-expression", _present, "A derived attribute has an expression."),
        ("derived-length", too_long, "An expression has at most 10 KiB."),
        ("derived-compile", _compiles, "An expression compiles and gives a value to compare."),
        origin=_ORIGIN,
    ),
    *errors(
        _claims, ("derived-cost", _cost, "Derivations of a claim cost at most 1,000,000 together."), origin=_ORIGIN
    ),
    *errors(
        SPECS, ("derived-use", _used, "A constraint on the request compares each derived attribute."), origin=_ORIGIN
    ),
)
