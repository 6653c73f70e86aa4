"""The pods of the input: those that were given, and those that controllers would make of their owners."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from dralloc.objects.api import (
    ApiObject,
    Node,
    ObjectMeta,
    Pod,
    PodOwner,
    PriorityClass,
)
from dralloc.objects.api.base import changed
from dralloc.objects.api.owners import (
    OWNERS,
    WORKLOAD_ANNOTATION,
    generated_name,
    pods_of,
)
from dralloc.objects.assembly.given_objects import Objects, identity
from dralloc.objects.assembly.unasked import Unasked
from dralloc.objects.names import ClaimKey

__all__ = ["Population"]

_BUILTIN_CLASSES: Final = tuple(
    PriorityClass(metadata=ObjectMeta(name=name), value=value)
    for name, value in (
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    )
)
_KUEUE_WORKLOAD: Final = OWNERS["kueue.x-k8s.io", "Workload"]
_Remark = tuple[ApiObject, str, str]


class _Owner(NamedTuple):
    """An object that is named as an owner; without an API group where a reference says none."""

    group: str | None
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
        classes = (*_BUILTIN_CLASSES, *self.objects.of(PriorityClass))
        self._classes = {named.name: named for named in classes}
        defaults = [named for named in classes if named.global_default]
        # Several can be there if they were made at the same time: admission takes the lowest then.
        if defaults:
            self._classes[""] = min(defaults, key=lambda named: named.value)
        # Pods that are given keep their names, wherever they stand: one that is made gives way.
        pod_keys = {pod.key for pod in self.objects.of(Pod)}
        spoken_for = _SpokenFor(self.objects)
        for source in self.objects:
            if isinstance(source, Pod):
                self._put(source, _resting(source, ended=source.terminated))
            elif isinstance(source, PodOwner) and source not in spoken_for:
                for pod in self._expanded(source):
                    expanded = (
                        _renamed(pod, source.kind, pod_keys)
                        if pod.key in pod_keys
                        else pod
                    )
                    pod_keys.add(expanded.key)
                    # Findings about a pod that is made point to its owner.
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
        """Return the pod with the priority that admission would give it, and whether it may preempt."""
        if pod.spec.priority is not None:
            return pod
        name = pod.spec.priority_class_name
        if name and name not in self._classes:
            rule = f'PriorityClass "{name}" not found, its priority counts as 0'
            self.remarks.append((pod, "spec.priorityClassName", rule))
        named = self._classes.get(name)
        if named is None:
            return pod
        policy = pod.spec.preemption_policy or named.preemption_policy
        spec = changed(pod.spec, priority=named.value, preemption_policy=policy)
        return changed(pod, spec=spec)


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
            named for maker in makers for named in _names_of(maker)
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
        return not self._controlled.isdisjoint(_names_of(owner))


def _group(api_version: str) -> str:
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def _names_of(owner: ApiObject) -> Iterator[_Owner]:
    """Yield how references name an object: with its group, whatever the version, or with none."""
    yield _Owner(_group(owner.api_version), owner.kind, *owner.key)
    yield _Owner(None, owner.kind, *owner.key)


def _owners(owned: ApiObject) -> Iterator[_Owner]:
    for owner in owned.metadata.owner_references:
        group = _group(owner.api_version) if owner.api_version else None
        yield _Owner(group, owner.kind, owned.key.namespace, owner.name)


def _renamed(pod: Pod, kind: str, taken: Collection[ClaimKey]) -> Pod:
    """Return the pod under a name that no other has: its owner's kind is in it, which several groups may have."""
    namespace = pod.key.namespace
    for attempt in count():
        again = (str(attempt),) if attempt else ()
        name = generated_name(f"{pod.name}-", namespace, kind, *again)
        if ClaimKey(namespace, name) not in taken:
            break
    return changed(pod, metadata=changed(pod.metadata, name=name))
