"""The mix that a question is about: claims, templates or pods by name, with the number of copies of each.

An entry becomes a pending copy in a cluster of which only the allocated claims stay, whatever state it is in itself:
what is pending otherwise, and what quotas say, does not count.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import count
from typing import Final, Unpack

from dralloc.ask.scenario import Scenario, without_resources
from dralloc.ask.whatif.copies import MOST_COPIES
from dralloc.ask.whatif.node_types import find_representatives
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
from dralloc.objects.api.base import changed
from dralloc.objects.choices import Choices, ChoiceWords, spelled_out
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError, did_you_mean
from dralloc.objects.names import ClaimKey
from dralloc.objects.value_kinds import instance_of
from dralloc.problem import Demand, NodeIndex, Problem, numbered
from dralloc.problem.equivalence import claim_key

__all__ = ["CompiledMix", "MixEntry", "Source", "compile_mix", "workload_mix"]

_MARK = " (copy)"
"""No object can have a name like this."""

_NUMBER: Final = re.compile("[0-9]{1,18}")


class Source(StrEnum):
    """The kind of object that an entry names: ``CLAIM`` means a template if there is no such claim."""

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
        namespace, slash, own_name = name.partition("/")
        key = (
            ClaimKey(namespace, own_name)
            if slash
            else ClaimKey("default", name)
        )
        return cls(key, source, int(number) if equals else None)

    @classmethod
    def of(cls, entry: MixEntry | str) -> MixEntry:
        """The entry itself, or what the text says (see `parse`).

        Raises
        ------
        DrallocError
            It is neither, or a text of another form.
        """
        _ENTRY.require("mix", entry)
        return cls.parse(entry) if isinstance(entry, str) else entry

    @property
    def title(self) -> str:
        """The name under which answers show it."""
        return f"{'' if self.source is Source.CLAIM else f'{self.source} '}{self.key}"


_ENTRY: Final = instance_of((MixEntry, str), "a MixEntry or a text")


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
    order: Sequence[NodeIndex]


@spelled_out(ChoiceWords)
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
    # Rules between pods tie nodes to each other: then none of them stands for others.
    represented = (
        find_representatives(changed, choices)
        if once and not has_rules_between(changed.pods)
        else None
    )
    compiled = compile_cluster(
        changed,
        choices,
        nodes=represented.names if represented else choices.nodes,
    )
    # Of many copies, also what a node has enough of for one can run short.
    problem = compiled.pods.applied(compiled.problem, copies=MOST_COPIES)
    demand_indices = {
        demand.key: index for index, demand in numbered(problem.demands)
    }
    for entry, key in zip(entries, keys, strict=True):
        if key not in demand_indices:
            raise DrallocError(f"{entry.title}: uses no claims")
    demands = tuple(problem.demands[demand_indices[key]] for key in keys)
    of_devices = tuple(
        compiled.problem.demands[demand_indices[key]] for key in keys
    )
    order = represented.order if represented else compiled.problem.all_nodes
    return CompiledMix(compiled, problem, demands, of_devices, order)


class _MixBuilder:
    """Puts copies of the entries beside what is allocated."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.claims: dict[ClaimKey, ResourceClaim] = {}
        self.pods: dict[ClaimKey, tuple[Pod, tuple[ClaimKey, ...]]] = {}

    def cluster(self, *, empty: bool) -> Cluster:
        """The cluster with nothing but all copies, beside what runs and is allocated unless it is to be empty."""
        scenario = Scenario(self._cluster)
        before = scenario.emptied() if empty else scenario.without_pending()
        return before.with_pods(
            self.pods.values(), self.claims.values()
        ).cluster

    def enter(self, entry: MixEntry) -> ClaimKey:
        """Add a copy; returns the key of its demand."""
        if entry.source is Source.POD:
            return self._pod(entry)
        claim = self._claim(entry.key, self._spec(entry))
        user = None if entry.user is None else self._pods.get(entry.user)
        if user is None:
            return claim
        key = self._copied(user.key)
        backed = classes_by_resource(self._cluster.classes.values()).keys()
        self.pods[key] = _anew(without_resources(user, backed), key), (claim,)
        return key

    def _spec(self, entry: MixEntry) -> ResourceClaimSpec:
        claim = (
            self._cluster.claim(entry.key)
            if entry.source is Source.CLAIM
            else None
        )
        if claim is not None:
            return claim.spec
        for template in self._cluster.templates:
            if template.key == entry.key:
                return template.spec.spec
        kinds = (
            "ResourceClaim or ResourceClaimTemplate"
            if entry.source is Source.CLAIM
            else "ResourceClaimTemplate"
        )
        templates = (template.key for template in self._cluster.templates)
        claims = (claim.key for claim in self._cluster.claims)
        known = map(str, (*templates, *claims))
        meant = did_you_mean(str(entry.key), known)
        raise DrallocError(f"{kinds} {entry.key}: not found{meant}")

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
            ClaimKey(key.namespace, f"{key.name}{_MARK * times}")
            for times in count(1)
        )
        return next(
            copy
            for copy in copies
            if copy not in self.claims and copy not in self.pods
        )

    def _pod(self, entry: MixEntry) -> ClaimKey:
        pod = self._pods.get(entry.key)
        if pod is None:
            meant = did_you_mean(str(entry.key), map(str, self._pods))
            raise DrallocError(f"Pod {entry.key}: not found{meant}")
        missing = self._cluster.unresolved.get(pod.key)
        if missing:
            raise DrallocError(f"Pod {entry.key}: {missing[0]}")
        key = self._copied(pod.key)
        claims = filter(
            None, map(self._cluster.claim, self._cluster.pod_claims(pod))
        )
        self.pods[key] = (
            _anew(pod, key),
            tuple(self._claim(claim.key, claim.spec) for claim in claims),
        )
        return key

    @cached_property
    def _pods(self) -> dict[ClaimKey, Pod]:
        return {pod.key: pod for pod in self._cluster.pods}


def _anew(pod: Pod, key: ClaimKey) -> Pod:
    """The pod as it would be before it was scheduled, and in no group: its copies are not members of one."""
    metadata = changed(pod.metadata, name=key.name, owner_references=())
    spec = changed(
        pod.spec,
        node_name=None,
        scheduling_gates=(),
        scheduling_group=None,
        workload_ref=None,
    )
    return changed(pod, metadata=metadata, spec=spec)


# ----------------------------------------------------------------------------
# A mix of demands with numbers: what is named, or all that is pending.


@dataclass(frozen=True)
class WorkloadMix:
    """Classes of equal demands in an empty cluster, with the number that is to be had of each.

    Parameters
    ----------
    problem
        The cluster as if nothing were allocated.
    demands
        One of each class, as they are without rules for other pods: nobody knows where nodes will be.
    titles
        What each is called.
    numbers
        How many there are of each.
    named
        Whether somebody has named them, so that all must count.
    left_out
        What is pending and does not count, with the reason.
    compiled
        The cluster with one of each entry.
    """

    problem: Problem
    demands: tuple[Demand, ...]
    titles: tuple[str, ...]
    numbers: tuple[int, ...]
    named: bool
    left_out: tuple[str, ...]
    compiled: CompiledCluster

    @property
    def wanted(self) -> tuple[tuple[str, int], ...]:
        """Return the demands, and how many there are to be of each."""
        return tuple(zip(self.titles, self.numbers, strict=True))

    def without(self, left_out: Set[int], reason: str) -> WorkloadMix:
        """The same without some of the classes, by index.

        Raises
        ------
        DrallocError
            Somebody has named them.
        """
        texts = [
            f"{self.titles[index]}: {reason}" for index in sorted(left_out)
        ]
        if texts and self.named:
            raise DrallocError(texts[0])
        kept = [
            index for index in range(len(self.demands)) if index not in left_out
        ]
        return replace(
            self,
            demands=tuple(self.demands[index] for index in kept),
            titles=tuple(self.titles[index] for index in kept),
            numbers=tuple(self.numbers[index] for index in kept),
            left_out=(*self.left_out, *texts),
        )


def workload_mix(
    cluster: Cluster,
    entries: Sequence[MixEntry | str],
    choices: Choices,
    *,
    devices_alone: bool = False,
) -> WorkloadMix:
    """Compile the mix, once each if no number is given; without entries, all that is pending.

    Parameters
    ----------
    devices_alone
        Whether to leave out what pods take of nodes beside devices.

    Raises
    ------
    DrallocError
        There is no such claim, template or pod, or nothing is pending.
    """
    mix_entries, left_out = (
        (list(map(MixEntry.of, entries)), [])
        if entries
        else _pending(cluster, choices)
    )
    if not mix_entries:
        raise DrallocError(
            "nothing is pending: say what is wanted with --claim, --template or --pod"
        )
    mix = compile_mix(cluster, mix_entries, choices, empty=True)
    problem, of_problem = (
        (mix.compiled.problem, mix.of_devices)
        if devices_alone
        else (mix.problem, mix.demands)
    )
    # Rules between pods leave a demand fewer nodes, too: those that it may have are the ones without these rules.
    demands = [
        replace(demand, nodes=of_devices.nodes, roles=())
        for demand, of_devices in zip(of_problem, mix.of_devices, strict=True)
    ]
    offers = problem.eligibility
    classes: dict[Hashable, list[int]] = defaultdict(list)
    for entry_index, demand in enumerate(demands):
        key = (
            demand.nodes,
            demand.is_defective,
            tuple(claim_key(offers, claim) for claim in demand.claims),
        )
        classes[key].append(entry_index)
    titles: list[str] = []
    counts: list[int] = []
    for group in classes.values():
        title = mix_entries[group[0]].title
        equal_count = len(group) - 1
        titles.append(
            f"{title} and {equal_count} like it" if equal_count else title
        )
        counts.append(
            sum(mix_entries[entry_index].number or 1 for entry_index in group)
        )
    return WorkloadMix(
        problem,
        tuple(demands[group[0]] for group in classes.values()),
        tuple(titles),
        tuple(counts),
        bool(entries),
        tuple(left_out),
        mix.compiled,
    )


def _pending(
    cluster: Cluster, choices: Choices
) -> tuple[list[MixEntry], list[str]]:
    """An entry for every pending pod and lone claim, and what cannot be counted."""
    compiled = compile_cluster(cluster, choices)
    users = Counter(
        claim.key
        for demand in compiled.problem.demands
        for claim in demand.claims
    )
    entries, left_out = [], []
    for demand in compiled.problem.demands:
        entry = MixEntry(
            demand.key,
            Source.CLAIM if compiled.is_claim(demand) else Source.POD,
            1,
        )
        # Each entry brings claims of its own: pods that share one would be counted as if each had one.
        shared = any(users[claim.key] > 1 for claim in demand.claims)
        defect = next(
            (claim.defect for claim in demand.claims if claim.defect), ""
        )
        if shared or defect:
            why = (
                "shares a claim with other pods"
                if shared
                else defect.removeprefix(f"{entry.title}: ")
            )
            left_out.append(f"{entry.title}: {why}")
        else:
            entries.append(entry)
    return entries, left_out
