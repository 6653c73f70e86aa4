"""What is asked for: a claim, a template or a pod by name, to be had several times, whatever state it is in itself.

An entry becomes a pending copy in a cluster of which only the allocated claims stay: what is pending otherwise, and
what quotas say, does not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import count
from typing import Final, Unpack

from dralloc.ask.scenario import Scenario, without_resources
from dralloc.ask.whatif.copies import MOST_COPIES
from dralloc.ask.whatif.representatives import find_representatives
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.compiler.extended import classes_by_resource
from dralloc.compile.compiler.pod_rules import has_rules_between
from dralloc.objects.api import (
    ObjectMeta,
    Pod,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from dralloc.objects.api.objects import changed
from dralloc.objects.choices import Choices, ChoiceWords
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem

__all__ = ["CompiledMix", "MixEntry", "Source", "compile_mix"]
_MARK = " (copy)"
"""No object can have a name like this."""

_NUMBER: Final = re.compile("[0-9]{1,18}")


class Source(StrEnum):
    """Where to look for an entry: ``CLAIM`` means a template if there is no such claim."""

    CLAIM = "claim"
    TEMPLATE = "template"
    POD = "pod"


@dataclass(frozen=True)
class MixEntry:
    """Something to be had, by name; ``number`` is how many of it, or its share of a mix.

    ``user``: the pod of which a claim is asked for, without any other of its claims; none if it does not matter.

    Raises
    ------
    DrallocError
        The number is less than 1.
    """

    key: ClaimKey
    source: Source = Source.CLAIM
    number: int | None = None
    user: ClaimKey | None = None

    def __post_init__(self) -> None:
        if self.number is not None and self.number < 1:
            raise DrallocError(
                f"{self.title}={self.number}: expected a number of at least 1"
            )

    @classmethod
    def parse(cls, text: str, source: Source = Source.CLAIM) -> MixEntry:
        """Read ``NAMESPACE/NAME`` or ``NAMESPACE/NAME=NUMBER``; without namespace it is ``default``.

        Raises
        ------
        DrallocError
            The number is none, or less than 1.
        """
        name, equals, number = text.partition("=")
        if equals and not (_NUMBER.fullmatch(number) and int(number)):
            raise DrallocError(
                f"--{source} {text}: expected NAMESPACE/NAME=NUMBER, with a number of at least 1"
            )
        namespace, slash, own = name.partition("/")
        key = ClaimKey(namespace, own) if slash else ClaimKey("default", name)
        return cls(key, source, int(number) if equals else None)

    @classmethod
    def of(cls, entry: MixEntry | str) -> MixEntry:
        """The entry itself, or what the text says (see `parse`)."""
        return cls.parse(entry) if isinstance(entry, str) else entry

    @property
    def title(self) -> str:
        """What it is, as answers show it."""
        return f"{'' if self.source is Source.CLAIM else f'{self.source} '}{self.key}"


@dataclass(frozen=True)
class CompiledMix:
    """A compiled cluster in which nothing is pending but the entries, any number of each.

    Parameters
    ----------
    compiled
        The cluster with one copy of each entry.
    problem
        The same with all that binds many of each to nodes and to each other.
    demands, of_devices
        What the entries ask for, in order: of the problem, and of that of devices alone.
    order
        For each node in search order the index of the node that is compiled for it.
    """

    compiled: CompiledCluster
    problem: Problem
    demands: tuple[Demand, ...]
    of_devices: tuple[Demand, ...]
    order: Sequence[int]


def compile_mix(
    cluster: Cluster,
    entries: Sequence[MixEntry],
    choices: Choices | None = None,
    *,
    empty: bool = False,
    once: bool = False,
    **words: Unpack[ChoiceWords],
) -> CompiledMix:
    """Compile a cluster with one copy of each entry.

    Parameters
    ----------
    empty
        Whether to leave out what is allocated, too.
    once
        Whether to compile one of equal nodes for all.
    choices, words
        As in `dralloc.allocate`.

    Raises
    ------
    DrallocError
        There is no such claim, template or pod, it asks for nothing, or it is in the mix twice.
    """
    choices = Choices.of(choices, words)
    for title, times in Counter(entry.title for entry in entries).items():
        if times > 1:
            raise DrallocError(
                f"{title}: is asked for {times} times; give it once, with a number"
            )
    builder = _MixBuilder(cluster)
    keys = [builder.enter(entry) for entry in entries]
    changed = builder.cluster(empty=empty)
    represented = (
        find_representatives(changed, choices)
        if once and not has_rules_between(changed.pods)
        else None
    )
    compiled = compile_cluster(
        changed, choices, nodes=represented.names if represented else choices.nodes
    )
    problem = compiled.pods.applied(compiled.problem, copies=MOST_COPIES)
    places = {demand.key: place for place, demand in enumerate(problem.demands)}
    for entry, key in zip(entries, keys, strict=True):
        if key not in places:
            raise DrallocError(f"{entry.title}: uses no claims")
    demands, of_devices = (
        tuple(each.demands[places[key]] for key in keys)
        for each in (problem, compiled.problem)
    )
    order = represented.order if represented else compiled.problem.all_nodes
    return CompiledMix(compiled, problem, demands, of_devices, order)


class _MixBuilder:
    """Puts copies of the entries beside what is allocated."""

    def __init__(self, cluster: Cluster) -> None:
        self.whole = cluster
        self.claims: dict[ClaimKey, ResourceClaim] = {}
        self.pods: dict[ClaimKey, tuple[Pod, tuple[ClaimKey, ...]]] = {}

    def cluster(self, *, empty: bool) -> Cluster:
        """The cluster with nothing but all copies, beside what runs and is allocated unless it is to be empty."""
        whole = Scenario(self.whole)
        before = whole.emptied() if empty else whole.without_pending()
        return before.with_pods(self.pods.values(), self.claims.values()).cluster

    def enter(self, entry: MixEntry) -> ClaimKey:
        """Add a copy; returns the key of its demand."""
        if entry.source is Source.POD:
            return self._pod(entry)
        claim = self._claim(entry.key, self._spec(entry))
        user = None if entry.user is None else self._pods.get(entry.user)
        if user is None:
            return claim
        key = self._copied(user.key)
        backed = classes_by_resource(self.whole.classes.values()).keys()
        self.pods[key] = _anew(without_resources(user, backed), key), (claim,)
        return key

    def _spec(self, entry: MixEntry) -> ResourceClaimSpec:
        claim = self.whole.claim(entry.key) if entry.source is Source.CLAIM else None
        if claim is not None:
            return claim.spec
        for template in self.whole.templates:
            if template.key == entry.key:
                return template.spec.spec
        kinds = (
            "ResourceClaim or ResourceClaimTemplate"
            if entry.source is Source.CLAIM
            else "ResourceClaimTemplate"
        )
        raise DrallocError(f"{kinds} {entry.key}: not found")

    def _claim(self, key: ClaimKey, spec: ResourceClaimSpec) -> ClaimKey:
        copy = self._copied(key)
        metadata = ObjectMeta(name=copy.name, namespace=copy.namespace)
        self.claims[copy] = ResourceClaim(
            metadata=metadata, spec=spec, status=ResourceClaimStatus()
        )
        return copy

    def _copied(self, key: ClaimKey) -> ClaimKey:
        """A key of its own: a pod and a claim that is asked for by itself may have the same one."""
        copies = (
            ClaimKey(key.namespace, f"{key.name}{_MARK * times}") for times in count(1)
        )
        return next(
            copy for copy in copies if copy not in self.claims and copy not in self.pods
        )

    def _pod(self, entry: MixEntry) -> ClaimKey:
        pod = self._pods.get(entry.key)
        if pod is None:
            raise DrallocError(f"Pod {entry.key}: not found")
        missing = self.whole.unresolved.get(pod.key)
        if missing:
            raise DrallocError(f"Pod {entry.key}: {missing[0]}")
        key = self._copied(pod.key)
        claims = filter(None, map(self.whole.claim, self.whole.pod_claims(pod)))
        self.pods[key] = (
            _anew(pod, key),
            tuple(self._claim(claim.key, claim.spec) for claim in claims),
        )
        return key

    @cached_property
    def _pods(self) -> dict[ClaimKey, Pod]:
        return {pod.key: pod for pod in self.whole.pods}


def _anew(pod: Pod, key: ClaimKey) -> Pod:
    """The pod as it would be before it was scheduled."""
    metadata = changed(pod.metadata, name=key.name, owner_references=())
    return changed(
        pod,
        metadata=metadata,
        spec=changed(pod.spec, node_name=None, scheduling_gates=()),
    )
