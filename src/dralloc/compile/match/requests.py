"""From a claim's specification to requests, alternatives and constraints.

What makes a request impossible whatever the devices is kept as its defect, in upstream's words and order of checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from dralloc.compile.match.derived import derived_name
from dralloc.compile.match.table import Criteria, MatchTable
from dralloc.objects.api import (
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey, RequestName
from dralloc.problem import (
    Alternative,
    Claim,
    Constraint,
    ConstraintKind,
    Request,
)

__all__ = ["compile_claim", "compile_equal_claim", "in_claim"]


def compile_claim(
    claim: ResourceClaim,
    classes: Mapping[str, DeviceClass],
    table: MatchTable,
    features: Features,
    across: Iterable[Constraint] = (),
) -> Claim:
    """Enter the claim's alternatives into the match table and return the claim as the problem knows it.

    Parameters
    ----------
    across
        Constraints over this claim and others.
    """
    spec = claim.spec.devices
    constraints = tuple(
        in_claim(constraint, spec, features)
        for constraint in (*_constraints(spec), *across)
    )
    compiler = _ClaimCompiler(claim.key, classes, table, features, constraints)
    requests = tuple(compiler.request(request) for request in spec.requests)
    return Claim(
        key=claim.key,
        uid=claim.metadata.uid,
        requests=requests,
        constraints=constraints,
        defect=_empty_constraint(claim),
    )


def _empty_constraint(claim: ResourceClaim) -> str:
    """The defect of a claim with a constraint of no type that this version of the API knows."""
    for constraint_index, constraint in enumerate(
        claim.spec.devices.constraints
    ):
        if not _kinds_of(constraint):
            return (
                f"claim {claim.key}, constraint #{constraint_index}: "
                "empty constraint (unsupported constraint type?)"
            )
    return ""


def compile_equal_claim(
    claim: ResourceClaim, compiled: Claim, table: MatchTable
) -> Claim:
    """As `compile_claim`, for a claim that says the same as one that is compiled and without defect."""
    key = claim.key
    requests = []
    for request in compiled.requests:
        alternatives = [
            Alternative(
                table.add_again(alternative.index, key),
                alternative.name,
                alternative.rank,
                alternative.count,
                alternative.admin,
            )
            for alternative in request.alternatives
        ]
        requests.append(Request(request.name, tuple(alternatives)))
    return Claim(key, claim.metadata.uid, tuple(requests), compiled.constraints)


def _constraints(spec: DeviceClaim) -> Iterator[Constraint]:
    for constraint in spec.constraints:
        # Upstream looks at the first kind only. Without any, the claim has a defect, and it does not matter which.
        [kind, *_] = _kinds_of(constraint) or [ConstraintKind.DISTINCT]
        attribute = _attribute_of(constraint, kind) or ""
        yield Constraint(kind, attribute, frozenset(constraint.requests))


def _kinds_of(constraint: DeviceConstraint) -> list[ConstraintKind]:
    """The kinds of which a constraint names an attribute, in upstream's order."""
    return [
        kind
        for kind in ConstraintKind
        if _attribute_of(constraint, kind) is not None
    ]


def _attribute_of(
    constraint: DeviceConstraint, kind: ConstraintKind
) -> str | None:
    """The attribute that a constraint of this kind is about; None if it is of another kind."""
    match kind:
        case ConstraintKind.MATCH:
            return constraint.match_attribute
        case ConstraintKind.DISTINCT:
            return constraint.distinct_attribute
        case _:
            assert_never(kind)


def in_claim(
    constraint: Constraint, spec: DeviceClaim, features: Features
) -> Constraint:
    """A constraint with the attributes that requests of a claim derive under its name (KEP-6080)."""
    if not features.DerivedAttributes:
        return constraint
    derived: list[tuple[RequestName, str]] = []
    for text, details in spec.alternatives:
        name = RequestName.parse(text)
        if constraint.covers(name):
            derived += (
                (name, derived_name(attribute.expression))
                for attribute in details.derived_attributes
                if attribute.name == constraint.attribute
            )
    return replace(constraint, derived=tuple(derived))


class _ClaimCompiler:
    def __init__(
        self,
        claim: ClaimKey,
        classes: Mapping[str, DeviceClass],
        table: MatchTable,
        features: Features,
        constraints: Sequence[Constraint],
    ) -> None:
        self.claim = claim
        self.classes = classes
        self.table = table
        self.features = features
        self.compared: set[tuple[RequestName, str]] = set()
        for constraint in constraints:
            self.compared.update(constraint.derived)

    def request(self, request: DeviceRequest) -> Request:
        """A request with its alternatives."""
        if request.exactly is not None:
            name = RequestName(request.name)
            defect = self._defect(
                request.exactly, f"request {request.name}", request.name
            )
            return Request(
                request.name,
                (self._alternative(name, 0, request.exactly, defect),),
            )
        # With the gate off the request is refused as such, whatever else is wrong with its subrequests.
        off = ""
        if not self.features.PrioritizedList:
            prefix = f"claim {self.claim}, request {request.name}"
            off = f"{prefix}: has subrequests, but the DRAPrioritizedList feature is disabled"
        return Request(
            request.name,
            tuple(
                self._alternative(
                    RequestName(request.name, sub.name),
                    rank,
                    sub,
                    off
                    or self._defect(sub, f"subrequest {sub.name}", sub.name),
                )
                for rank, sub in enumerate(request.first_available)
            ),
        )

    def _alternative(
        self,
        name: RequestName,
        rank: int,
        details: ExactDeviceRequest | DeviceSubRequest,
        defect: str,
    ) -> Alternative:
        amounts = (
            details.capacity.requests if details.capacity is not None else {}
        )
        criteria = Criteria(
            claim=self.claim,
            device_class=self.classes.get(details.device_class_name),
            selectors=tuple(
                selector.cel.expression
                for selector in details.selectors
                if selector.cel is not None
            ),
            tolerations=details.tolerations,
            amounts=tuple(amounts.items()),
            # What no constraint compares is not evaluated, so it cannot fail.
            derived=tuple(
                (attribute.name, attribute.expression)
                for attribute in details.derived_attributes
                if (name, derived_name(attribute.expression)) in self.compared
            ),
        )
        return Alternative(
            index=self.table.add(criteria),
            name=name,
            rank=rank,
            count=None if details.allocation_mode == "All" else details.count,
            admin=isinstance(details, ExactDeviceRequest)
            and details.admin_access,
            defect=defect,
        )

    def _defect(
        self,
        details: ExactDeviceRequest | DeviceSubRequest,
        title: str,
        name: str,
    ) -> str:
        """Return why upstream refuses the request before any device is looked at; empty if it does not."""
        if (
            details.capacity is not None
            and not self.features.ConsumableCapacity
        ):
            return (
                f"claim {self.claim}, {title}: has capacity requests, "
                "but the DRAConsumableCapacity feature is disabled"
            )
        request = f"claim {self.claim}, request {name}"
        for selector_index, selector in enumerate(details.selectors):
            if selector.cel is None:
                return f"{request}, selector #{selector_index}: CEL expression empty (unsupported selector type?)"
        if (
            getattr(details, "admin_access", False)
            and not self.features.AdminAccess
        ):
            return f"{request}: admin access is requested, but the feature is disabled"
        if not details.device_class_name:
            return f"{request}: missing device class name (unsupported request type?)"
        if details.device_class_name not in self.classes:
            return (
                f"{request}: could not retrieve device class {details.device_class_name}: "
                f'deviceclass.resource.k8s.io "{details.device_class_name}" not found'
            )
        if details.allocation_mode not in ("ExactCount", "All"):
            return (
                f"{request}: unsupported count mode {details.allocation_mode}"
            )
        if (
            details.count < 0
        ):  # The API server lets none through, and upstream's allocator would find nothing to do.
            return f"{request}: count {details.count} is not greater than zero"
        return ""
