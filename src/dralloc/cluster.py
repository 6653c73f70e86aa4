"""The cluster as the API server holds it: slices, classes, nodes, claims, templates and pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

from pydantic import BaseModel

from dralloc.api import (
    ApiObject,
    DeviceClass,
    DeviceTaintRule,
    Job,
    Namespace,
    Node,
    ObjectMeta,
    Pod,
    PodGroup,
    PodOwner,
    PodResourceClaim,
    PriorityClass,
    ReplicaSet,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceQuota,
    ResourceSlice,
    Workload,
)
from dralloc.api.expansion import POD_CLAIM_ANNOTATION, claim_for, claim_name, generated_name, pods_of
from dralloc.api.node_names import HOSTNAME_LABEL, named_nodes
from dralloc.errors import Finding, InputError
from dralloc.names import ClaimKey

__all__ = ["SYNTHETIC_NODE", "Cluster", "Located"]

SYNTHETIC_NODE: Final = "node"
"""Name of the only node when neither nodes are given nor slices name any."""

_BUILTIN_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

T = TypeVar("T", bound=ApiObject)
M = TypeVar("M", bound=BaseModel)


class Located(NamedTuple):
    """An object and where it was read."""

    object: ApiObject
    source: str = ""


@dataclass(frozen=True)
class Cluster:
    """Everything that was given, made complete: pods of owners and claims of templates are there as objects.

    Made by `Cluster.of`; the constructor takes the parts as they are.

    Parameters
    ----------
    slices, nodes, templates
        As given, in order.
    classes
        DeviceClasses by name.
    claims
        Given claims in order, then those made from templates in the order of their pods.
    pods
        Pods in order, with those of a Deployment, ReplicaSet, StatefulSet or Job in its place. No pods that have run
        to their end or are being deleted.
    findings
        Remarks about the input, none of which makes it unusable.
    skipped
        How many objects of other kinds were given.
    claims_of_pods
        For each pod by its key, the keys of the claims that it uses. A claim that is missing is named here too.
    unresolved
        For each pod that refers to something missing, what is missing. Such a pod cannot be placed.
    namespaces
        Namespaces by name, as far as they were given.
    sources
        Where each given object was read, by kind and key. Claims made from templates are not in it.
    taint_rules, quotas
        As given, in order.
    pod_groups, workloads
        By key.
    made
        The claims that were not given, but made from templates.
    abandoned
        Claims that were made for pods which have ended or are being deleted: nobody waits for them.
    group_claims
        The PodGroup for which a claim is reserved as a whole, by claim (KEP-5729).
    """

    slices: tuple[ResourceSlice, ...] = ()
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()
    pods: tuple[Pod, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    claims_of_pods: Mapping[ClaimKey, tuple[ClaimKey, ...]] = field(default_factory=dict)
    unresolved: Mapping[ClaimKey, tuple[str, ...]] = field(default_factory=dict)
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    sources: Mapping[tuple[str, ClaimKey], str] = field(default_factory=dict)
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    pod_groups: Mapping[ClaimKey, PodGroup] = field(default_factory=dict)
    workloads: Mapping[ClaimKey, Workload] = field(default_factory=dict)
    made: frozenset[ClaimKey] = frozenset()
    abandoned: frozenset[ClaimKey] = frozenset()
    group_claims: Mapping[ClaimKey, PodGroup] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        objects: Iterable[ApiObject | Located],
        findings: Iterable[Finding] = (),
        skipped: Mapping[str, int] | None = None,
    ) -> Cluster:
        """Build the cluster from single objects.

        Pods are made for an owner unless an object that it controls is given. Claims are made for entries of pods that
        name a template, unless the claim is given. Without Node objects the nodes are those that slices name; if they
        name none but are available on all nodes, there is one node, `SYNTHETIC_NODE`.

        Raises
        ------
        InputError
            The same object is given twice with different content.
        """
        builder = _Builder(objects)
        notice = _skipped_notice(skipped or {})
        return builder.cluster((*findings, *notice), dict(skipped or {}))

    def pod_claims(self, pod: Pod) -> tuple[ClaimKey, ...]:
        """The keys of the claims that a pod uses, in the order of its specification; missing claims are named too."""
        return self.claims_of_pods[pod.key]

    def claim(self, key: ClaimKey) -> ResourceClaim | None:
        """The claim with this key, if there is one."""
        return self._claims_by_key.get(key)

    def remark(self, about: ApiObject, path: str, rule: str) -> Finding:
        """A finding about an object, with the place where it was read."""
        return Finding(self.sources.get((about.kind, about.key), ""), about.title, path, rule)

    @cached_property
    def _claims_by_key(self) -> Mapping[ClaimKey, ResourceClaim]:
        return {claim.key: claim for claim in self.claims}


class _Builder:
    """Puts a cluster together. Findings name where the object that they are about was read."""

    def __init__(self, objects: Iterable[ApiObject | Located]) -> None:
        self.findings: list[Finding] = []
        self.sources: dict[tuple[str, ClaimKey], str] = {}
        self.objects = self._distinct(objects)
        self.claims = {claim.key: claim for claim in self._all(ResourceClaim)}
        self.templates = {template.key: template for template in self._all(ResourceClaimTemplate)}
        self.classes = {one.name: one for one in self._all(DeviceClass)}
        self.made_for = {
            (
                owner.kind,
                claim.key.namespace,
                owner.name,
                claim.metadata.annotations.get(POD_CLAIM_ANNOTATION),
            ): claim.name
            for claim in self.claims.values()
            for owner in claim.metadata.owner_references
        }
        self.priorities = dict(_BUILTIN_PRIORITIES)
        for one in self._all(PriorityClass):
            self.priorities.update({one.name: one.value, **({"": one.value} if one.global_default else {})})
        self.unresolved: dict[ClaimKey, list[str]] = {}
        self.groups = {group.key: group for group in self._all(PodGroup)}
        self.group_claims: dict[ClaimKey, PodGroup] = {}
        self.given = frozenset(self.claims)

    def cluster(self, findings: Iterable[Finding], skipped: Mapping[str, int]) -> Cluster:
        """The whole cluster."""
        pods = tuple(self._pods())
        claims_of_pods = {pod.key: tuple(self._claims_of(pod)) for pod in pods}
        self._check_classes()
        slices = tuple(self._all(ResourceSlice))
        nodes = self._nodes(slices)
        return Cluster(
            slices=slices,
            classes=self.classes,
            nodes=nodes,
            claims=tuple(self.claims.values()),
            templates=tuple(self.templates.values()),
            pods=pods,
            findings=(*findings, *self.findings),
            skipped=skipped,
            claims_of_pods=claims_of_pods,
            unresolved={key: tuple(reasons) for key, reasons in self.unresolved.items()},
            namespaces={one.name: one for one in self._all(Namespace)},
            sources=self.sources,
            taint_rules=tuple(self._all(DeviceTaintRule)),
            quotas=tuple(self._all(ResourceQuota)),
            pod_groups=self.groups,
            workloads={one.key: one for one in self._all(Workload)},
            made=frozenset(self.claims) - self.given,
            abandoned=frozenset(self._abandoned()),
            group_claims=self.group_claims,
        )

    def _abandoned(self) -> Iterator[ClaimKey]:
        leaving = {pod.key for pod in self._all(Pod) if pod.leaving}
        for claim in self.claims.values():
            owners = (one for one in claim.metadata.owner_references if one.kind == Pod.kind)
            if any(ClaimKey(claim.key.namespace, owner.name) in leaving for owner in owners):
                yield claim.key

    def _all(self, kind: type[T]) -> Iterator[T]:
        return (one for one in self.objects if isinstance(one, kind))

    def _remark(self, about: ApiObject, path: str, rule: str) -> None:
        source = self.sources.get((about.kind, about.key), "")
        self.findings.append(Finding(source, about.title, path, rule))

    def _distinct(self, objects: Iterable[ApiObject | Located]) -> list[ApiObject]:
        found: dict[tuple[str, ClaimKey], ApiObject] = {}
        conflicts: list[Finding] = []
        for item in objects:
            one, source = item if isinstance(item, Located) else Located(item)
            identity = (one.kind, one.key)
            first = found.setdefault(identity, one)
            if first is one:
                self.sources[identity] = source
                continue
            where = f" in {self.sources[identity]}" if self.sources[identity] else ""
            if first == one:
                self.findings.append(Finding(source, one.title, "", f"is the same as{where or ' before'}, kept once"))
            else:
                conflicts.append(Finding(source, one.title, "", f"was given before{where} with different content"))
        if conflicts:
            raise InputError(conflicts)
        return list(found.values())

    def _pods(self) -> Iterator[Pod]:
        controlled = {
            (owner.kind, one.key.namespace, owner.name)
            for one in self.objects
            if isinstance(one, Pod | ReplicaSet | Job)
            for owner in one.metadata.owner_references
        }
        taken = {pod.key for pod in self._all(Pod)}
        for one in self.objects:
            if isinstance(one, Pod):
                yield from () if one.leaving else (self._with_priority(one),)
            elif isinstance(one, PodOwner) and (one.kind, *one.key) not in controlled:
                for pod in pods_of(one):
                    made = self._with_priority(_renamed(pod, one.kind) if pod.key in taken else pod)
                    taken.add(made.key)
                    self.sources[made.kind, made.key] = self.sources[one.kind, one.key]
                    yield made

    def _with_priority(self, pod: Pod) -> Pod:
        """The pod with the priority that admission would give it."""
        if pod.spec.priority is not None:
            return pod
        name = pod.spec.priority_class_name
        if name and name not in self.priorities:
            self._remark(
                pod, "spec.priorityClassName", f'PriorityClass "{name}" was not given, its priority counts as 0'
            )
        priority = self.priorities.get(name)
        return pod if priority is None else _changed(pod, spec=_changed(pod.spec, priority=priority))

    def _claims_of(self, pod: Pod) -> Iterator[ClaimKey]:
        group = self.groups.get(ClaimKey(pod.key.namespace, pod.pod_group or ""))
        for number, entry in enumerate(pod.spec.resource_claims):
            owner = group if group is not None and entry in group.spec.resource_claims else pod
            key = self._claim_of(pod, owner, entry, f"spec.resourceClaims[{number}]")
            if key is not None:
                if isinstance(owner, PodGroup):
                    self.group_claims[key] = owner
                yield key

    def _claim_of(self, pod: Pod, owner: Pod | PodGroup, entry: PodResourceClaim, path: str) -> ClaimKey | None:
        """The claim of one entry of a pod: an entry that its PodGroup has too is the group's (KEP-5729)."""
        if entry.resource_claim_name is not None:
            key = ClaimKey(pod.key.namespace, entry.resource_claim_name)
            if key not in self.claims:
                self._missing(pod, f"{path}.resourceClaimName", f'ResourceClaim "{key.name}" was not given')
            return key
        if entry.resource_claim_template_name is None:
            self._missing(pod, path, "needs resourceClaimName or resourceClaimTemplateName")
            return None
        statuses = (*pod.status.resource_claim_statuses, *owner.status.resource_claim_statuses)
        status = next((one for one in statuses if one.name == entry.name), None)
        if status is not None and status.resource_claim_name is None:
            return None
        name = status.resource_claim_name if status else self.made_for.get((owner.kind, *owner.key, entry.name))
        return self._claim_from_template(pod, owner, entry, path, name or claim_name(owner, entry.name))

    def _claim_from_template(
        self, pod: Pod, owner: Pod | PodGroup, entry: PodResourceClaim, path: str, name: str
    ) -> ClaimKey:
        namespace = pod.key.namespace
        key = ClaimKey(namespace, name)
        if key in self.claims:
            return key
        template = self.templates.get(ClaimKey(namespace, str(entry.resource_claim_template_name)))
        if template is None:
            missing = f'ResourceClaimTemplate "{entry.resource_claim_template_name}" was not given'
            self._missing(pod, f"{path}.resourceClaimTemplateName", missing)
        else:
            self.claims[key] = claim_for(owner, entry.name, template, name)
        return key

    def _missing(self, pod: Pod, path: str, rule: str) -> None:
        self.unresolved.setdefault(pod.key, []).append(f"{path}: {rule}")
        self._remark(pod, path, f"{rule}; the pod cannot be placed")

    def _check_classes(self) -> None:
        """Remark each class that is missing once, at the first request that names it."""
        missing: dict[str, tuple[ApiObject, str]] = {}
        times: Counter[str] = Counter()
        for one in self.objects:
            for name, path in _classes_named_by(one):
                if name not in self.classes:
                    missing.setdefault(name, (one, path))
                    times[name] += 1
        for name, (one, path) in missing.items():
            more = f"; {times[name]} requests name it" if times[name] > 1 else ""
            self._remark(one, path, f'DeviceClass "{name}" was not given{more}')

    def _nodes(self, slices: tuple[ResourceSlice, ...]) -> tuple[Node, ...]:
        given = tuple(self._all(Node))
        if given or not slices:
            return given
        named = named_nodes(slices)
        if named:
            self.findings.append(Finding("", "", "", f"no Node was given: assuming the {len(named)} that slices name"))
            return named
        everywhere = any(one.spec.all_nodes or any(device.all_nodes for device in one.spec.devices) for one in slices)
        if not everywhere:
            self.findings.append(Finding("", "", "", "no Node was given, and slices name none: nothing can be placed"))
            return ()
        self.findings.append(Finding("", "", "", f'no Node was given: assuming one, "{SYNTHETIC_NODE}"'))
        return (Node(metadata=ObjectMeta(name=SYNTHETIC_NODE, labels={HOSTNAME_LABEL: SYNTHETIC_NODE})),)


def _classes_named_by(one: ApiObject) -> Iterator[tuple[str, str]]:
    """The classes that something unallocated asks for, with the paths of their names."""
    if isinstance(one, ResourceClaim) and one.status.allocation is None:
        spec, path = one.spec, "spec"
    elif isinstance(one, ResourceClaimTemplate):
        spec, path = one.spec.spec, "spec.spec"
    else:
        return
    for number, request in enumerate(spec.devices.requests):
        at = f"{path}.devices.requests[{number}]"
        if request.exactly:
            yield request.exactly.device_class_name, f"{at}.exactly.deviceClassName"
        for rank, alternative in enumerate(request.first_available):
            yield alternative.device_class_name, f"{at}.firstAvailable[{rank}].deviceClassName"


def _changed(model: M, **update: object) -> M:
    return model.model_copy(update=update)


def _renamed(pod: Pod, kind: str) -> Pod:
    """The pod under a name that no pod of an owner of another kind has."""
    name = generated_name(f"{pod.name}-", pod.key.namespace, kind)
    return _changed(pod, metadata=_changed(pod.metadata, name=name))


def _skipped_notice(skipped: Mapping[str, int]) -> Iterator[Finding]:
    if skipped:
        kinds = ", ".join(f"{kind} ({number})" for kind, number in sorted(skipped.items()))
        yield Finding("", "", "", f"not used: {kinds}")
