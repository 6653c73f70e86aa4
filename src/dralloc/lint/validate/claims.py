"""Rules about what claims and templates ask for: requests, constraints, configurations and how they refer.

Attributes that a request derives by an expression (Kubernetes 1.37) are for constraints to compare. Admin access is for
namespaces that allow it (KEP-5018).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from dralloc.lint.validate.checks import (
    Judge,
    before_137,
    choice,
    distinct,
    dns_label,
    dns_subdomain,
    form,
    fully_qualified_name,
    keys,
    limit,
    qualified_name,
    told,
)
from dralloc.lint.validate.expressions import (
    MAX_COST,
    Expression,
    compiles_by,
    expressions_at,
    too_long,
)
from dralloc.lint.validate.references import (
    MAX_REQUESTS,
    alternatives,
    covers,
    in_lists,
    refers,
)
from dralloc.lint.validate.rule import (
    DETAILS,
    EXACT,
    REQUESTS,
    SPECS,
    Check,
    Details,
    Issue,
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
from kubecel import (
    CheckedExpression,
    FeatureGates,
    check_expression,
    compile_derivation,
)

__all__ = ["CLAIM_RULES"]

MAX_RESULTS: Final = 32
MAX_DERIVED: Final = 32


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
    return compiles_by(_derived)(expression, at) if expression.text else ()


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
        expressions_at(_DERIVED / "expression"),
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
