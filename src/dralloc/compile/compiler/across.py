"""Constraints over the claims of a pod, or of all pods of a group, and what devices that they hold mean for them.

Neither Kubernetes nor its scheduler knows such constraints: a claim can only say what is to be true of its own devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from dralloc.compile.compiler.gangs import Gangs
from dralloc.compile.inventory import Inventory
from dralloc.compile.match.requests import in_claim
from dralloc.objects.across import ACROSS, Across, annotated
from dralloc.objects.api import ApiObject, Pod, ResourceClaim
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey, RequestName
from dralloc.problem import Constraint, ConstraintKind, Scalar, Scope
from dralloc.problem.open_claims import held_values

__all__ = ["ConstraintsAcross", "find_across"]


@dataclass(frozen=True)
class ConstraintsAcross:
    """The constraints of each pod that go beyond single claims.

    Parameters
    ----------
    of_pods
        By pod.
    groups
        The pods of each group that has some.
    defects
        Why a pod cannot be placed whatever it gets: what is allocated breaks one of them.
    """

    of_pods: Mapping[ClaimKey, tuple[Constraint, ...]] = field(default_factory=dict)
    groups: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    defects: Mapping[ClaimKey, str] = field(default_factory=dict)

    @property
    def attributes(self) -> frozenset[str]:
        """The names of the attributes that they compare."""
        return frozenset(
            one.attribute
            for constraints in self.of_pods.values()
            for one in constraints
        )

    def beside(self, cluster: Cluster, inventory: Inventory) -> ConstraintsAcross:
        """The same with what the pods' allocated claims hold."""

        @cache
        def beside(
            constraint: Constraint, scope: Scope, pod: ClaimKey | None
        ) -> tuple[Constraint, str]:
            pods = [pod] if pod else [member.key for member in self.groups[scope.group]]
            claims = dict.fromkeys(
                key for each in pods for key in cluster.claims_of_pods[each]
            )
            values = [
                each
                for key in claims
                for each in _values(constraint, cluster.claim(key), inventory)
            ]
            held = held_values(constraint.kind, values)
            if held is not None:
                return replace(constraint, scope=scope._replace(held=held)), ""
            of = "the pod" if pod else f"group {scope.group}"
            what = f"{constraint.kind.value} {constraint.attribute} over the claims of {of}"
            return constraint, f"{what}: devices that they hold violate it"

        scoped = {
            pod: [(one, one.scope) for one in own if one.scope]
            for pod, own in self.of_pods.items()
        }
        found = {
            pod: [
                beside(one, scope, None if scope.group else pod) for one, scope in own
            ]
            for pod, own in scoped.items()
        }
        return replace(
            self,
            of_pods={
                pod: tuple(constraint for constraint, _ in each)
                for pod, each in found.items()
            },
            defects={
                pod: f"pod {pod}: {defect}"
                for pod, each in found.items()
                for _, defect in each
                if defect
            },
        )


def find_across(
    cluster: Cluster, gangs: Gangs, across: Sequence[Across]
) -> ConstraintsAcross:
    """Find the constraints over several claims: those that objects say, then those that are asked for.

    Raises
    ------
    DrallocError
        An annotation has another form.
    """
    chosen: dict[str, list[Across]] = {
        over: [one for one in across if one.over == over] for over in ("pod", "gang")
    }
    of_groups = {
        name: tuple(
            _constraints((*_annotated(group.about, "gang"), *chosen["gang"]), name)
        )
        for name, group in gangs.groups.items()
    }
    found = {
        pod.key: tuple(_constraints((*_annotated(pod, "pod"), *chosen["pod"]), ""))
        for pod in cluster.pods
    }
    groups = {
        name: gangs.groups[name].pods
        for name, constraints in of_groups.items()
        if constraints
    }
    for name, pods in groups.items():
        for pod in pods:
            found[pod.key] += of_groups[name]
    return ConstraintsAcross(
        {pod: constraints for pod, constraints in found.items() if constraints}, groups
    )


def _annotated(about: ApiObject | None, over: str) -> tuple[Across, ...]:
    text = about.metadata.annotations.get(ACROSS) if about else None
    if about is None or text is None:
        return ()
    try:
        return annotated(text, over)
    except ValueError as error:
        raise DrallocError(
            f'{about.title}: metadata.annotations["{ACROSS}"]: {error}'
        ) from None


def _constraints(across: Iterable[Across], group: str) -> Iterator[Constraint]:
    for number, one in enumerate(across):
        yield Constraint(
            ConstraintKind(one.kind),
            one.attribute,
            frozenset(one.requests),
            scope=Scope(number, group),
        )


def _values(
    constraint: Constraint, claim: ResourceClaim | None, inventory: Inventory
) -> Iterator[frozenset[Scalar] | None]:
    """The values of the devices that a claim holds under a constraint."""
    if claim is None or not claim.is_allocated:
        return
    form = in_claim(constraint, claim.spec.devices, inventory.features)
    for result in claim.results:
        name = RequestName(*result.request.split("/"))
        if form.covers(name):
            newest = inventory.newest(result.device_id)
            yield (
                None
                if newest is None
                else inventory.devices[newest].attributes.get(form.compared(name))
            )
