"""From single objects to what a cluster consists of.

First the objects that were given, each once; then the nodes and classes that they name and that were not given; then
the pods, with those that controllers would make of their owners; then the claims of pods, with those that are made
from templates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from dralloc.objects.api import (
    ApiObject,
    Node,
    NodeSelector,
    ObjectMeta,
    Pod,
    PodGroup,
    PodOwner,
    PodResourceClaim,
    PriorityClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dralloc.objects.api.base import changed
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.api.owners import (
    OWNERS,
    POD_CLAIM_ANNOTATION,
    WORKLOAD_ANNOTATION,
    claim_for,
    claim_name,
    generated_name,
    pods_of,
)
from dralloc.objects.choices import Include
from dralloc.objects.errors import Finding, did_you_mean, file_of
from dralloc.objects.names import ClaimKey

__all__ = [
    "SYNTHETIC_NODE",
    "Claiming",
    "Identity",
    "Located",
    "Objects",
    "Population",
    "Unasked",
    "assumed_nodes",
    "first_of",
    "identity",
    "missing_classes",
]

# ----------------------------------------------------------------------------
# The objects that were given, each once, and where they were read.

T = TypeVar("T", bound=ApiObject)
Identity = tuple[str, ClaimKey]
"""The kind of an object and its key; kinds outside of Kubernetes with the API group, as in ``kubectl get``."""


class Located(NamedTuple):
    """An object and where it was read."""

    object: ApiObject
    source: str = ""


def identity(subject: ApiObject) -> Identity:
    """Return the key by which an object is told from every other one."""
    group = subject.api_version.partition("/")[0]
    foreign = isinstance(subject, PodOwner) and "." in group
    return f"{subject.kind}.{group}" if foreign else subject.kind, subject.key


class Objects:
    """The objects that were given.

    Parameters
    ----------
    findings, errors
        Objects that were given more than once, with the same and with other content. The first is kept.
    sources
        Where each object was read.
    overriding
        Whether an object takes the place of one with its name that was read from another file before.
    """

    def __init__(
        self,
        objects: Iterable[ApiObject | Located],
        *,
        overriding: bool = False,
    ) -> None:
        self._overriding = overriding
        self.findings: list[Finding] = []
        self.errors: list[Finding] = []
        self.sources: dict[Identity, str] = {}
        self._by_identity: dict[Identity, ApiObject] = {}
        self._by_type: dict[type, list[Any]] = defaultdict(list)
        self._equal: list[Finding] = []
        for item in objects:
            self._add(*(item if isinstance(item, Located) else Located(item)))
        self.findings += first_of(self._equal, "object")

    def __iter__(self) -> Iterator[ApiObject]:
        return iter(self._by_identity.values())

    def of(self, kind: type[T]) -> Iterator[T]:
        """Yield those of one kind, in order."""
        return iter(self._by_type.get(kind, ()))

    def _add(self, added: ApiObject, source: str) -> None:
        key = identity(added)
        first = self._by_identity.setdefault(key, added)
        if first is added:
            self.sources[key] = source
            self._by_type[type(added)].append(added)
            return
        where = f" in {self.sources[key]}" if self.sources[key] else ""
        if first == added:
            self._equal.append(
                Finding(
                    source,
                    added.title,
                    "",
                    f"is the same as{where or ' before'}, kept once",
                )
            )
        elif self._overriding and file_of(source) != file_of(self.sources[key]):
            rule = f"overrides the one{where or ' that was given before'}"
            self.findings.append(Finding(source, added.title, "", rule))
            same_type = self._by_type[type(added)]
            same_type[
                next(
                    at
                    for at, earlier in enumerate(same_type)
                    if earlier is first
                )
            ] = added
            self._by_identity[key] = added
            self.sources[key] = source
        else:
            self.errors.append(
                Finding(
                    source,
                    added.title,
                    "",
                    f"was given before{where} with different content",
                )
            )


def first_of(alike: Sequence[Finding], thing: str) -> Iterator[Finding]:
    """Yield one line about things of which the same is to be said, as folders of examples are full of them."""
    if alike:
        first, further = alike[0], len(alike) - 1
        more = f"; so are {further} more {thing}s" if further > 1 else ""
        more = f"; so is 1 more {thing}" if further == 1 else more
        yield replace(first, rule=first.rule + more)


# ----------------------------------------------------------------------------
# What objects name that was not given: the nodes of slices, and classes of devices.

SYNTHETIC_NODE: Final = "node"
"""Name of the only node when neither nodes are given nor slices name any."""


def assumed_nodes(
    slices: Sequence[ResourceSlice],
) -> tuple[tuple[Node, ...], str]:
    """Return the nodes to go by, and the remark to make about it."""
    named = _named_nodes(slices)
    if named:
        return (
            named,
            f"no Node was given: assuming the {len(named)} that slices name",
        )
    if any(map(_is_everywhere, slices)):
        only = Node(
            metadata=ObjectMeta(
                name=SYNTHETIC_NODE, labels={HOSTNAME_LABEL: SYNTHETIC_NODE}
            )
        )
        return (only,), f'no Node was given: assuming one, "{SYNTHETIC_NODE}"'
    return (), "no Node was given, and slices name none: nothing can be placed"


def _is_everywhere(published: ResourceSlice) -> bool:
    spec = published.spec
    return bool(spec.all_nodes) or any(
        device.all_nodes for device in spec.devices
    )


def _named_nodes(slices: Iterable[ResourceSlice]) -> tuple[Node, ...]:
    """Return one node for each name in slices, in the order of appearance, with its name as hostname label.

    Names are node names of slices and of devices, and in node selectors the values of ``In`` for the field
    ``metadata.name`` or the hostname label.
    """
    names = dict.fromkeys(
        name for published in slices for name in _names(published)
    )
    return tuple(
        Node(metadata=ObjectMeta(name=name, labels={HOSTNAME_LABEL: name}))
        for name in names
    )


def _names(published: ResourceSlice) -> Iterator[str]:
    if published.spec.node_name:
        yield published.spec.node_name
    yield from _selected(published.spec.node_selector)
    if published.spec.per_device_node_selection:
        for device in published.spec.devices:
            if device.node_name:
                yield device.node_name
            yield from _selected(device.node_selector)


def _selected(selector: NodeSelector | None) -> Iterator[str]:
    for term in selector.node_selector_terms if selector else ():
        for requirement in (*term.match_fields, *term.match_expressions):
            if requirement.operator == "In" and requirement.key in (
                "metadata.name",
                HOSTNAME_LABEL,
            ):
                yield from requirement.values


def missing_classes(
    objects: Iterable[ApiObject], class_names: Collection[str]
) -> Iterator[tuple[ApiObject, str, str]]:
    """Yield each class that is missing once: the first object that names it, the path, and what is wrong."""
    missing: dict[str, tuple[ApiObject, str]] = {}
    times: Counter[str] = Counter()
    for requester in objects:
        for name, path in _classes_named_by(requester):
            if name not in class_names:
                missing.setdefault(name, (requester, path))
                times[name] += 1
    for name, (requester, path) in missing.items():
        further = f"; {times[name]} requests name it" if times[name] > 1 else ""
        meant = did_you_mean(name, class_names)
        rule = f'DeviceClass "{name}" not found{further}{meant}'
        yield requester, path, rule


def _classes_named_by(requester: ApiObject) -> Iterator[tuple[str, str]]:
    """Yield the classes that something unallocated asks for, with the paths of their names."""
    if (
        isinstance(requester, ResourceClaim)
        and requester.status.allocation is None
    ):
        spec, path = requester.spec, "spec"
    elif isinstance(requester, ResourceClaimTemplate):
        spec, path = requester.spec.spec, "spec.spec"
    else:
        return
    for request_index, request in enumerate(spec.devices.requests):
        at = f"{path}.devices.requests[{request_index}]"
        if request.exactly:
            yield (
                request.exactly.device_class_name,
                f"{at}.exactly.deviceClassName",
            )
        for rank, alternative in enumerate(request.first_available):
            yield (
                alternative.device_class_name,
                f"{at}.firstAvailable[{rank}].deviceClassName",
            )


# ----------------------------------------------------------------------------
# Why a pod of the input is no part of the question.


class Unasked(StrEnum):
    """The reason why a pod is not to be placed, in words that follow its name; what says the least comes last."""

    GATED = "has scheduling gates"
    SUSPENDED = "belongs to a suspended owner"
    PLUGIN = "asks only for extended resources of device plugins"
    ALLOCATED = "has all of its claims allocated"
    BOUND = "is bound to a node"
    FINISHED = "has run to its end"
    DELETED = "is being deleted"
    NO_DEVICE = "asks for no device"

    @property
    def include(self) -> Include | None:
        """The inclusion that makes such a pod part of the question."""
        return {
            Unasked.GATED: Include.GATED,
            Unasked.SUSPENDED: Include.SUSPENDED,
        }.get(self)

    @property
    def telling(self) -> bool:
        """Whether it is worth the names of the pods."""
        return self in {Unasked.GATED, Unasked.SUSPENDED, Unasked.PLUGIN}


# ----------------------------------------------------------------------------
# The pods of the input: those that were given, and those that controllers would make
# of their owners.

_BUILTIN_PRIORITIES: Final = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_KUEUE_WORKLOAD: Final = OWNERS["kueue.x-k8s.io", "Workload"]
_Remark = tuple[ApiObject, str, str]


class _Owner(NamedTuple):
    """An object that is named as an owner."""

    kind: str
    namespace: str
    name: str


@dataclass
class Population:
    """The pods of some objects.

    Parameters
    ----------
    pods
        Those to look at, in order, with those of an owner in its place.
    suspended
        Those that owners would make which are suspended.
    gone
        Those that have run to their end, are being deleted or would be made by such an owner: nobody places them.
    remarks
        What is remarkable: the object, the path, and the rule.
    excesses
        Owners, likewise, that ask for more pods than are left of ``limit``; none are made for them.
    """

    objects: Objects
    nodes: Sequence[Node]
    limit: int
    pods: list[Pod] = field(default_factory=list)
    suspended: list[Pod] = field(default_factory=list)
    gone: dict[ClaimKey, Unasked] = field(default_factory=dict)
    remarks: list[_Remark] = field(default_factory=list)
    excesses: list[_Remark] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._priorities = dict(_BUILTIN_PRIORITIES)
        for named in self.objects.of(PriorityClass):
            self._priorities.update(
                {
                    named.name: named.value,
                    **({"": named.value} if named.global_default else {}),
                }
            )
        pod_keys = {pod.key for pod in self.objects.of(Pod)}
        spoken_for = _SpokenFor(self.objects)
        for source in self.objects:
            if isinstance(source, Pod):
                self._put(source, _resting(source, ended=source.terminated))
            elif isinstance(source, PodOwner) and source not in spoken_for:
                for pod in self._expanded(source):
                    expanded = (
                        _renamed(pod, source.kind)
                        if pod.key in pod_keys
                        else pod
                    )
                    pod_keys.add(expanded.key)
                    self.objects.sources[identity(expanded)] = (
                        self.objects.sources[identity(source)]
                    )
                    self._put(
                        expanded,
                        _resting(
                            source,
                            ended=source.ended,
                            suspended=source.suspended,
                        ),
                    )

    def _expanded(self, owner: PodOwner) -> Iterable[Pod]:
        """Return the pods that its controller makes; none, and a remark, if they exceed what is left of the limit."""
        pods = owner.pods_on(len(self.nodes))
        if pods > self.limit:
            rule = f"asks for {pods} pods when {self.limit} more may be made; --limit pods=AMOUNT allows more"
            self.excesses.append((owner, "spec", rule))
            return ()
        self.limit -= pods
        return pods_of(owner, self.nodes)

    def _put(self, pod: Pod, why: Unasked | None) -> None:
        if why is None:
            self.pods.append(self._with_priority(pod))
        elif why is Unasked.SUSPENDED:
            self.suspended.append(self._with_priority(pod))
        else:
            self.gone[pod.key] = why

    def _with_priority(self, pod: Pod) -> Pod:
        """Return the pod with the priority that admission would give it."""
        if pod.spec.priority is not None:
            return pod
        name = pod.spec.priority_class_name
        if name and name not in self._priorities:
            rule = f'PriorityClass "{name}" not found, its priority counts as 0'
            self.remarks.append((pod, "spec.priorityClassName", rule))
        priority = self._priorities.get(name)
        return (
            pod
            if priority is None
            else changed(pod, spec=changed(pod.spec, priority=priority))
        )


def _resting(
    source: ApiObject, *, ended: bool, suspended: bool = False
) -> Unasked | None:
    """Return why a pod is not scheduled any more, or an owner makes no pods."""
    if ended:
        return Unasked.FINISHED
    if source.metadata.deletion_timestamp is not None:
        return Unasked.DELETED
    return Unasked.SUSPENDED if suspended else None


class _SpokenFor:
    """Owners of which no pods are made, as others stand for them.

    An owner is spoken for by an object that it controls. A Workload of Kueue, which comes beside the object that makes
    the pods, is spoken for by its owner, by what this owner controls, and by pods that name it.
    """

    def __init__(self, objects: Objects) -> None:
        makers = [
            maker
            for maker in objects
            if isinstance(maker, Pod | PodOwner)
            and not isinstance(maker, _KUEUE_WORKLOAD)
        ]
        self._controlled = {
            owner for maker in makers for owner in _owners(maker)
        }
        self._there = {
            _Owner(maker.kind, *maker.key) for maker in makers
        } | self._controlled
        workloads = (
            (
                pod.key.namespace,
                pod.metadata.annotations.get(WORKLOAD_ANNOTATION),
            )
            for pod in objects.of(Pod)
        )
        self._admitted = {
            ClaimKey(namespace, name) for namespace, name in workloads if name
        }

    def __contains__(self, owner: PodOwner) -> bool:
        if isinstance(owner, _KUEUE_WORKLOAD):
            return owner.key in self._admitted or not self._there.isdisjoint(
                _owners(owner)
            )
        return _Owner(owner.kind, *owner.key) in self._controlled


def _owners(owned: ApiObject) -> Iterator[_Owner]:
    for owner in owned.metadata.owner_references:
        yield _Owner(owner.kind, owned.key.namespace, owner.name)


def _renamed(pod: Pod, kind: str) -> Pod:
    """Return the pod under a name that no pod of an owner of another kind has."""
    name = generated_name(f"{pod.name}-", pod.key.namespace, kind)
    return changed(pod, metadata=changed(pod.metadata, name=name))


# ----------------------------------------------------------------------------
# The claims of pods: those that were given, and those that are made from templates.


_HINTED: Final = 20
"""For so many things that are missing it is looked up what may be meant."""


class Claiming:
    """Finds the claims of pods and makes those that are missing, as the resource claim controller does.

    Parameters
    ----------
    claims
        All claims by key; those that are made come behind the others.
    unresolved
        For each pod that refers to something missing, what is missing.
    group_claims
        The PodGroup whose claim a pod uses, by pod and claim: it is reserved for the group as a whole (KEP-5729).
    """

    def __init__(
        self,
        claims: Iterable[ResourceClaim],
        templates: Iterable[ResourceClaimTemplate],
        groups: Mapping[ClaimKey, PodGroup],
    ) -> None:
        self.claims = {claim.key: claim for claim in claims}
        self.unresolved: dict[ClaimKey, tuple[str, ...]] = {}
        self.group_claims: dict[tuple[ClaimKey, ClaimKey], PodGroup] = {}
        self._missing: dict[tuple[str, str], list[tuple[Pod, str]]] = {}
        self._templates = {template.key: template for template in templates}
        self._groups = groups
        self._made_for = {
            (
                owner.kind,
                claim.key.namespace,
                owner.name,
                claim.metadata.annotations.get(POD_CLAIM_ANNOTATION),
            ): claim.name
            for claim in self.claims.values()
            for owner in claim.metadata.owner_references
        }

    def of(self, pod: Pod) -> Iterator[ClaimKey]:
        """Yield the keys of the claims of a pod, in the order of its specification; missing claims are named too."""
        group = self._groups.get(pod.pod_group) if pod.pod_group else None
        for entry_index, entry in enumerate(pod.spec.resource_claims):
            owner = (
                group
                if group is not None and entry in group.spec.resource_claims
                else pod
            )
            key = self._claim_of(
                pod, owner, entry, f"spec.resourceClaims[{entry_index}]"
            )
            if key is not None:
                if isinstance(owner, PodGroup):
                    self.group_claims[pod.key, key] = owner
                yield key

    def remarks(self) -> Iterator[tuple[ApiObject, str, str]]:
        """Yield missing objects, once for all pods of a namespace that refer to one: the first pod, path and rule."""
        for (_, rule), references in self._missing.items():
            (pod, path), further_pods = references[0], len(references) - 1
            pods = (
                f"it and {further_pods} more pods"
                if further_pods
                else "the pod"
            )
            yield pod, path, f"{rule}; {pods} cannot be placed"

    def _claim_of(
        self,
        pod: Pod,
        owner: Pod | PodGroup,
        entry: PodResourceClaim,
        path: str,
    ) -> ClaimKey | None:
        """Return the claim of one entry of a pod: an entry that its PodGroup has too is the group's (KEP-5729)."""
        if entry.resource_claim_name is not None:
            key = ClaimKey(pod.key.namespace, entry.resource_claim_name)
            if key not in self.claims:
                missing = f'ResourceClaim "{key.name}" not found'
                meant = self._meant(key, self.claims)
                self._miss(pod, f"{path}.resourceClaimName", missing + meant)
            return key
        if entry.resource_claim_template_name is None:
            self._miss(
                pod,
                path,
                "needs resourceClaimName or resourceClaimTemplateName; before "
                "Kubernetes 1.31 they stood below source",
            )
            return ClaimKey(pod.key.namespace, claim_name(owner, entry.name))
        statuses = (
            *pod.status.resource_claim_statuses,
            *owner.status.resource_claim_statuses,
        )
        status = next(
            (
                entry_status
                for entry_status in statuses
                if entry_status.name == entry.name
            ),
            None,
        )
        if status is not None and status.resource_claim_name is None:
            return None
        name = (
            status.resource_claim_name
            if status
            else self._made_for.get((owner.kind, *owner.key, entry.name))
        )
        return self._from_template(
            pod, owner, entry, path, name or claim_name(owner, entry.name)
        )

    def _from_template(
        self,
        pod: Pod,
        owner: Pod | PodGroup,
        entry: PodResourceClaim,
        path: str,
        name: str,
    ) -> ClaimKey:
        namespace = pod.key.namespace
        key = ClaimKey(namespace, name)
        if key in self.claims:
            return key
        template = self._templates.get(
            ClaimKey(namespace, str(entry.resource_claim_template_name))
        )
        if template is None:
            named = str(entry.resource_claim_template_name)
            missing = f'ResourceClaimTemplate "{named}" not found'
            missing_key = ClaimKey(namespace, named)
            meant = self._meant(missing_key, self._templates)
            path = f"{path}.resourceClaimTemplateName"
            self._miss(pod, path, missing + meant)
        else:
            self.claims[key] = claim_for(owner, entry.name, template, name)
        return key

    def _meant(self, missing: ClaimKey, known: Iterable[ClaimKey]) -> str:
        """Return the names in the namespace that may be meant; only for the first missing ones, which are shown."""
        if len(self._missing) >= _HINTED:
            return ""
        namespace = missing.namespace
        names = [key.name for key in known if key.namespace == namespace]
        return did_you_mean(missing.name, names)

    def _miss(self, pod: Pod, path: str, rule: str) -> None:
        self.unresolved[pod.key] = (
            *self.unresolved.get(pod.key, ()),
            f"{path}: {rule}",
        )
        self._missing.setdefault((pod.key.namespace, rule), []).append(
            (pod, path)
        )
