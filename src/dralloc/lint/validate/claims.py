"""Rules about what users ask for: classes with their selectors and configurations, claims and templates."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from dralloc.compile.match.slips import compile_slip
from dralloc.lint.validate.checks import (
    Judge,
    before_137,
    choice,
    distinct,
    dns_label,
    dns_subdomain,
    driver_name,
    extended_resource_name,
    form,
    fully_qualified_name,
    keys,
    length,
    limit,
    on,
    qualified_name,
    required,
    size_of,
    told,
)
from dralloc.lint.validate.rule import (
    CLASSES,
    CONFIGURATIONS,
    DETAILS,
    EXACT,
    OPAQUE,
    REQUESTS,
    SELECTORS,
    SPECS,
    Check,
    Details,
    Issue,
    Parts,
    Places,
    RulePart,
    ValidationContext,
    errors,
    remarks,
    said,
    warnings,
)
from dralloc.objects.api import (
    DEFAULT_NAMESPACE,
    DeviceClaim,
    DeviceConstraint,
    Namespace,
)
from dralloc.objects.api.disclosure import ADMIN_LABEL
from dralloc.objects.errors import did_you_mean
from dralloc.objects.features import Features
from kubecel import (
    CelCompileError,
    CheckedExpression,
    FeatureGates,
    check_expression,
    compile_derivation,
    compile_selector,
    estimated_cost,
)

__all__ = [
    "CLAIM_RULES",
    "CLASS_RULES",
    "MAX_REQUESTS",
    "alternatives",
    "covers",
    "in_lists",
    "raw_object",
    "refers",
    "request_names",
]

# ----------------------------------------------------------------------------
# Rules about classes, and what they share with claims: selectors and configurations.

MAX_EXPRESSION: Final = 10 * 1024
MAX_COST: Final = 1_000_000
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


def _expressions(places: Places) -> Parts:
    """Yield the expressions at some places, with what they may use."""

    def found(context: ValidationContext) -> Iterator[RulePart[Expression]]:
        for owner, path, text in places(context):
            yield RulePart(owner, path, Expression(text, context.features))

    return found


too_long: Final = told(
    "", lambda expression: length(expression.text, MAX_EXPRESSION), "{1}"
)
"""An expression is longer than the API allows."""


def _compiled(compile_: Callable[[str, FeatureGates], object]) -> Check:
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


_COMPILES: Final = _compiled(compile_selector)


def _cost(expression: Expression, at: str) -> Iterator[Issue]:
    if any(too_long(expression, at)) or any(_COMPILES(expression, at)):
        return
    cost = estimated_cost(expression.text, expression.gates)
    if cost > MAX_COST:
        yield Issue(
            at,
            f"is too complex: it may cost {cost}, at most {MAX_COST} are allowed",
        )


def raw_object(fields: str, maximum: int) -> Check:
    """Check that a value is an object whose JSON is not too long."""

    def of_field(value: Any, at: str) -> Iterator[Issue]:
        if not isinstance(value, dict):
            yield Issue(at, "must be a JSON object")
        elif (
            size := size_of(
                json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            )
        ) > maximum:
            yield Issue(
                at,
                f"is {size} bytes long as JSON, at most {maximum} are allowed",
            )

    return on(fields, of_field)


_EXPRESSIONS: Final = _expressions(SELECTORS / "cel.expression")
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


# ----------------------------------------------------------------------------
# Rules about what claims and templates ask for: requests, constraints, configurations
# and how they refer.
#
# Attributes that a request derives by an expression (Kubernetes 1.37) are for
# constraints to compare. Admin access is for namespaces that allow it (KEP-5018).

MAX_REQUESTS: Final = 32
MAX_RESULTS: Final = 32
MAX_DERIVED: Final = 32


def request_names(spec: DeviceClaim) -> frozenset[str]:
    """Return the names that constraints can refer to: ``request`` and ``request/subrequest``."""
    return frozenset(
        (
            *(request.name for request in spec.requests),
            *(name for name, _ in spec.alternatives),
        )
    )


def alternatives(
    spec: DeviceClaim, at: str
) -> Iterator[list[tuple[str, str, Details]]]:
    """Yield for each request its alternatives, each with its path and the name that allocations have for it."""
    for request_index, request in enumerate(spec.requests):
        fields = (
            ["exactly"]
            if request.exactly
            else (
                f"firstAvailable[{n}]"
                for n in range(len(request.first_available))
            )
        )
        named = zip(fields, request.alternatives, strict=True)
        yield [
            (f"{at}.requests[{request_index}].{field}", name, details)
            for field, (name, details) in named
        ]


def covers(requests: Collection[str], name: str) -> bool:
    """Return whether a constraint that names some requests (all, if none) is about a request or subrequest."""
    return (
        not requests or name in requests or name.partition("/")[0] in requests
    )


def refers(
    names: Iterable[tuple[str, str]], spec: DeviceClaim
) -> Iterator[Issue]:
    """Yield issues with names, each behind its path, that no request or subrequest of the claim has."""
    requests_of_claim = request_names(spec)
    listed = ", ".join(sorted(filter(None, requests_of_claim))) or "none"
    for path, name in names:
        if name not in requests_of_claim:
            text = f"is no request of the claim, and no request and subrequest: {listed}"
            meant = did_you_mean(name, requests_of_claim)
            yield Issue(path, f'"{name}" {text}{meant}')


def in_lists(items: Iterable[Any], at: str) -> Iterator[tuple[str, str]]:
    """Yield the names in the lists of requests that constraints or configurations have, each behind its path."""
    for index, entry in enumerate(items):
        yield from (
            (f"{at}[{index}].requests[{request_index}]", name)
            for request_index, name in enumerate(entry.requests)
        )


def _count(request: Details, at: str) -> Iterator[Issue]:
    if request.allocation_mode == "ExactCount" and request.count <= 0:
        yield Issue(f"{at}.count", f"{request.count} is not greater than zero")


def _count_of_all(request: Details, at: str) -> Iterator[Issue]:
    if request.allocation_mode == "All" and "count" in request.model_fields_set:
        yield Issue(f"{at}.count", "must be left out with allocationMode All")


def _constraint_kind(constraint: DeviceConstraint, at: str) -> Iterator[Issue]:
    if (
        constraint.match_attribute is None
        and constraint.distinct_attribute is None
    ):
        yield Issue(
            at,
            "exactly one of matchAttribute and distinctAttribute is required",
        )


def _compared(judge: Judge) -> Check:
    """The attribute that counts has a form."""
    match, distinct_ = (
        form("matchAttribute", judge),
        form("distinctAttribute", judge),
    )
    return lambda constraint, at: (
        distinct_ if constraint.match_attribute is None else match
    )(constraint, at)


def _constraint_both(constraint: DeviceConstraint, at: str) -> Iterator[Issue]:
    if (
        constraint.match_attribute is not None
        and constraint.distinct_attribute is not None
    ):
        yield Issue(
            f"{at}.distinctAttribute",
            "is ignored, as there is a matchAttribute: make it two constraints",
        )


def _result_limit(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    fewest = sum(
        _fewest(request.exactly)
        if request.exactly
        else min(map(_fewest, request.first_available), default=0)
        for request in spec.requests
    )
    if fewest > MAX_RESULTS:
        yield Issue(
            f"{at}.requests",
            f"ask for {fewest} devices, but a claim gets at most {MAX_RESULTS}",
        )


def _fewest(request: Details) -> int:
    return 1 if request.allocation_mode == "All" else request.count


def _derived(text: str, gates: FeatureGates) -> CheckedExpression:
    compile_derivation(text, gates)
    return check_expression(text, gates)


def _compiles(expression: Expression, at: str) -> Iterable[Issue]:
    return _compiled(_derived)(expression, at) if expression.text else ()


def _costly(context: ValidationContext) -> Iterator[RulePart[str]]:
    """Claims whose derivations cost too much together."""
    for owner, path, spec in SPECS(context):
        total = 0
        for _, alternative in spec.alternatives:
            for attribute in alternative.derived_attributes:
                expression = Expression(attribute.expression, context.features)
                # What does not compile is an issue of its own.
                if expression.text and not any(_compiles(expression, path)):
                    total += _derived(expression.text, expression.gates).cost
        if total > MAX_COST:
            text = f"they may cost {total}, at most {MAX_COST} are allowed"
            yield RulePart(
                owner, path, f"its derived attributes are too complex: {text}"
            )


def _used(spec: DeviceClaim, at: str) -> Iterator[Issue]:
    # A derived attribute is for constraints alone: one that none of them compares is a mistake.
    for path, name, request in chain.from_iterable(alternatives(spec, at)):
        compared = {
            constraint.match_attribute or constraint.distinct_attribute
            for constraint in spec.constraints
            if covers(constraint.requests, name)
        }
        derived = request.derived_attributes
        for index, attribute in enumerate(
            derived if len(derived) <= MAX_DERIVED else ()
        ):
            if attribute.name and attribute.name not in compared:
                text = f'"{attribute.name}" is in no constraint that covers this request'
                yield Issue(f"{path}.derivedAttributes[{index}].name", text)


def _references(lists: str) -> Check:
    """Constraints or configurations name requests of their claim."""
    return lambda spec, at: refers(
        in_lists(getattr(spec, lists), f"{at}.{lists}"), spec
    )


def _admin_requests(
    context: ValidationContext,
) -> Iterator[RulePart[tuple[str, Namespace | None]]]:
    """Requests for admin access: the namespace of their claim by its name, and as it was given."""
    for owner, path, request in EXACT(context):
        if request.admin_access:
            name = owner.metadata.namespace or DEFAULT_NAMESPACE
            yield RulePart(
                owner,
                f"{path}.adminAccess",
                (name, context.cluster.namespaces.get(name)),
            )


def _admin_allowed(
    namespaced: tuple[str, Namespace | None], at: str
) -> Iterator[Issue]:
    name, namespace = namespaced
    if (
        namespace is not None
        and namespace.metadata.labels.get(ADMIN_LABEL) != "true"
    ):
        text = f'is only allowed in a namespace with the label {ADMIN_LABEL}: "true", which {name} does not have'
        yield Issue(at, text)


def _admin_unknown(
    namespaced: tuple[str, Namespace | None], at: str
) -> Iterator[Issue]:
    name, namespace = namespaced
    if namespace is None:
        yield Issue(
            at,
            f'needs the label {ADMIN_LABEL}: "true" on the namespace {name}, which was not found',
        )


_TYPES: Final = "resource.k8s.io types"
_CLAIM_LISTS: Final = SPECS / "constraints[]|config[]"
_CONSTRAINTS: Final = SPECS / "constraints[]"
_FIRST: Final = "firstAvailable"
_DERIVED: Final = DETAILS / "derivedAttributes[]"
_DERIVATION: Final = (
    "resource.k8s.io validation, validateDeviceDerivedAttributes"
)
_DERIVED_LIST: Final = "derivedAttributes"
_ADMIN: Final = "resource.k8s.io registry, AuthorizedForAdmin; KEP-5018"

CLAIM_RULES: Final = (
    *errors(
        SPECS,
        (
            "request-limit",
            limit(MAX_REQUESTS, "requests", "requests"),
            "A claim has at most 32 requests.",
        ),
        (
            "request-unique",
            distinct("requests", "name"),
            "The names of a claim's requests differ.",
        ),
        (
            "constraint-limit",
            limit(32, "constraints", "constraints"),
            "A claim has at most 32 constraints.",
        ),
        (
            "config-limit",
            limit(32, "config", "configurations"),
            "A claim has at most 32 configurations.",
        ),
        (
            "constraint-request",
            _references("constraints"),
            "Constraints name requests of the claim.",
        ),
        (
            "config-request",
            _references("config"),
            "Configurations name requests of the claim.",
        ),
    ),
    *errors(
        REQUESTS,
        (
            "request-name",
            form("name", dns_label),
            "A request's name is a DNS label.",
        ),
        (
            "alternative-limit",
            limit(8, _FIRST, "alternatives"),
            "A request has at most 8 alternatives.",
        ),
        (
            "alternative-unique",
            distinct(_FIRST, "name"),
            "The names of a request's alternatives differ.",
        ),
    ),
    *errors(
        REQUESTS / "firstAvailable[]",
        (
            "alternative-name",
            form("name", dns_label),
            "An alternative's name is a DNS label.",
        ),
    ),
    *errors(
        DETAILS,
        (
            "request-class",
            form("deviceClassName", dns_subdomain),
            "A request names a class, a DNS subdomain.",
        ),
        (
            "request-mode",
            choice("allocationMode", ("All", "ExactCount")),
            "The allocation mode is All or ExactCount.",
        ),
        ("request-count", _count, "A request is for at least one device."),
        (
            "request-count-of-all",
            _count_of_all,
            "With allocationMode All there is no count.",
        ),
    ),
    *errors(
        _CLAIM_LISTS,
        (
            "reference-limit",
            limit(MAX_REQUESTS, "requests", "requests"),
            "A list of requests has at most 32 names.",
        ),
        (
            "reference-unique",
            distinct("requests"),
            "A list of requests names each once.",
        ),
    ),
    *errors(
        _CONSTRAINTS,
        (
            "constraint-kind",
            _constraint_kind,
            "A constraint has an attribute to match or to differ.",
        ),
        (
            "constraint-attribute",
            _compared(fully_qualified_name),
            "A constraint's attribute has a domain.",
            _compared(before_137(fully_qualified_name)),
        ),
    ),
    *warnings(
        _CONSTRAINTS,
        (
            "constraint-both",
            _constraint_both,
            "Of matchAttribute and distinctAttribute only one counts.",
        ),
        origin=f"{_TYPES}, DeviceConstraint",
    ),
    *warnings(
        DETAILS / "capacity",
        (
            "request-capacity-name",
            keys("requests", qualified_name),
            "A requested capacity has a name that a capacity can have.",
        ),
        origin=f"{_TYPES}, QualifiedName",
    ),
    *warnings(
        SPECS,
        (
            "request-result-limit",
            _result_limit,
            "A claim gets at most 32 devices.",
        ),
        origin=f"{_TYPES}, AllocationResultsMaxSize",
    ),
    *errors(
        DETAILS,
        (
            "derived-limit",
            limit(MAX_DERIVED, _DERIVED_LIST, "derived attributes"),
            "A request derives at most 32 attributes.",
        ),
        (
            "derived-unique",
            distinct(_DERIVED_LIST, "name"),
            "The names of a request's derived attributes differ.",
        ),
        origin=_DERIVATION,
    ),
    *errors(
        _DERIVED,
        (
            "derived-name",
            form("name", fully_qualified_name),
            "A derived attribute's name has a domain.",
        ),
        origin=_DERIVATION,
    ),
    *errors(
        _expressions(_DERIVED / "expression"),
        (
            "derived-expression",
            told("", lambda expression: not expression.text, "is required"),
            "A derived attribute has an expression.",
        ),
        ("derived-length", too_long, "An expression has at most 10 KiB."),
        (
            "derived-compile",
            _compiles,
            "An expression compiles and gives a value to compare.",
        ),
        origin=_DERIVATION,
    ),
    *errors(
        _costly,
        (
            "derived-cost",
            said,
            "Derivations of a claim cost at most 1,000,000 together.",
        ),
        origin=_DERIVATION,
    ),
    *errors(
        SPECS,
        (
            "derived-use",
            _used,
            "A constraint on the request compares each derived attribute.",
        ),
        origin=_DERIVATION,
    ),
    *errors(
        _admin_requests,
        (
            "admin-access",
            _admin_allowed,
            "Admin access is for namespaces with its label.",
        ),
        origin=_ADMIN,
    ),
    *remarks(
        _admin_requests,
        (
            "admin-access-unknown",
            _admin_unknown,
            "Whether a namespace allows admin access is not known.",
        ),
        origin=_ADMIN,
    ),
)
