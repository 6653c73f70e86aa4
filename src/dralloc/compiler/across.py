"""Constraints over the claims of a pod, or of all pods of a group, and what devices that they hold mean for them.

Neither Kubernetes nor its scheduler knows such constraints: a claim can only say what is to be true of its own devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dralloc.across import ACROSS, Across, annotated
from dralloc.api import ApiObject, Pod
from dralloc.cluster import Cluster
from dralloc.compiler.gangs import Gangs
from dralloc.errors import DrallocError
from dralloc.features import Features
from dralloc.inventory import Inventory
from dralloc.match.requests import in_claim
from dralloc.names import ClaimKey, RequestName
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
        return frozenset(one.attribute for constraints in self.of_pods.values() for one in constraints)

    def beside(self, cluster: Cluster, inventory: Inventory, features: Features) -> ConstraintsAcross:
        """The same with what the pods' allocated claims hold."""
        holders = _Holders(cluster, inventory, features)
        known: dict[tuple[object, Constraint], tuple[Constraint, str]] = {}
        of_pods, defects = {}, {}
        for pod, constraints in self.of_pods.items():
            found = []
            for one in constraints:
                group = one.scope.group if one.scope else ""
                key = group or pod, one
                if key not in known:
                    pods = [member.key for member in self.groups[group]] if group else [pod]
                    known[key] = holders.told(one, pods)
                constraint, defect = known[key]
                found.append(constraint)
                if defect:
                    defects[pod] = f"pod {pod}: {defect}"
            of_pods[pod] = tuple(found)
        return replace(self, of_pods=of_pods, defects=defects)


def find_across(cluster: Cluster, gangs: Gangs, across: Sequence[Across]) -> ConstraintsAcross:
    """Find the constraints over several claims: those that objects say, then those that are asked for.

    Raises
    ------
    DrallocError
        An annotation has another form.
    """
    chosen: dict[str, list[Across]] = {over: [one for one in across if one.over == over] for over in ("pod", "gang")}
    of_groups = {
        name: tuple(_constraints((*_annotated(group.about, "gang"), *chosen["gang"]), name))
        for name, group in gangs.groups.items()
    }
    found = {pod.key: tuple(_constraints((*_annotated(pod, "pod"), *chosen["pod"]), "")) for pod in cluster.pods}
    groups = {name: gangs.groups[name].pods for name, constraints in of_groups.items() if constraints}
    for name, pods in groups.items():
        for pod in pods:
            found[pod.key] += of_groups[name]
    return ConstraintsAcross({pod: constraints for pod, constraints in found.items() if constraints}, groups)


def _annotated(about: ApiObject | None, over: str) -> tuple[Across, ...]:
    text = about.metadata.annotations.get(ACROSS) if about else None
    if about is None or text is None:
        return ()
    try:
        return annotated(text, over)
    except ValueError as error:
        raise DrallocError(f'{about.title}: metadata.annotations["{ACROSS}"]: {error}') from None


def _constraints(across: Iterable[Across], group: str) -> Iterator[Constraint]:
    for number, one in enumerate(across):
        yield Constraint(ConstraintKind(one.kind), one.attribute, frozenset(one.requests), scope=Scope(number, group))


@dataclass(frozen=True)
class _Holders:
    cluster: Cluster
    inventory: Inventory
    features: Features

    def told(self, constraint: Constraint, pods: Iterable[ClaimKey]) -> tuple[Constraint, str]:
        """A constraint with what these pods hold under it; and why nothing can be right any more."""
        assert constraint.scope is not None
        claims = dict.fromkeys(key for pod in pods for key in self.cluster.claims_of_pods[pod])
        held = held_values(constraint.kind, [values for key in claims for values in self._values(constraint, key)])
        if held is None:
            of = f"group {constraint.scope.group}" if constraint.scope.group else "the pod"
            what = f"{constraint.kind.value} {constraint.attribute} over the claims of {of}"
            return constraint, f"{what}: devices that they hold violate it"
        return replace(constraint, scope=constraint.scope._replace(held=held)), ""

    def _values(self, constraint: Constraint, key: ClaimKey) -> Iterator[frozenset[Scalar] | None]:
        claim = self.cluster.claim(key)
        if claim is None or claim.status.allocation is None:
            return
        form = in_claim(constraint, claim.spec.devices, self.features)
        for result in claim.status.allocation.devices.results:
            name = RequestName(*result.request.split("/"))
            if form.covers(name):
                newest = self.inventory.newest(result.device_id)
                yield None if newest is None else self.inventory.devices[newest].attributes.get(form.compared(name))
