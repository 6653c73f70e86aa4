"""More or less of what is to be placed: the same pods, fewer of them, or some of them twice.

That is done to the objects, so that every mode is asked about the same.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple, TypeVar

from dralloc.ask.scenario import Scenario as Changed
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.api import (
    CompositePodGroup,
    ObjectMeta,
    Pod,
    PodGroup,
    PodSchedulingGroup,
    PodStatus,
    ResourceClaim,
)
from dralloc.objects.api.base import changed
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import LIMITS
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand

__all__ = ["scaled"]


def scaled(
    cluster: Cluster,
    demand: float,
    seed: int,
    choices: Choices | None = None,
    most: int = LIMITS.pods,
) -> Cluster:
    """Return the cluster with so many times as many demands: pods that wait for devices, and claims of their own.

    Below 1 some are left out, above 1 all are there and copies of some come after them: as many of each as of any
    other, up to one. Which ones is drawn by the seed; the order stays. A gang is left out or copied as a whole, so that
    the number is met up to the size of a gang. Copies have claims and groups of their own; claims that several pods use
    are copied once for all of them.

    Parameters
    ----------
    demand
        How many times as many, not below 0; rounded to whole demands.
    choices
        Say what is to be placed, and what is a gang.
    most
        How many demands may come out, if there are not that many already.

    Raises
    ------
    DrallocError
        More would come out.
    """
    if demand == 1:
        return cluster
    choices = choices or Choices()
    cluster = cluster.including(choices.include)
    compiled = compile_cluster(cluster, choices)
    demands = tuple(compiled.problem.demands)
    count = demand * len(demands)
    if count > max(most, len(demands)):
        limit = f"more than {most}; --limit pods=AMOUNT allows more"
        raise DrallocError(
            f"demand: {demand} times {len(demands)} pods and claims are {limit}"
        )
    full_rounds, part = divmod(round(count), max(len(demands), 1))
    drawn = _drawn(demands, part, Random(f"{seed}")) if part else ()
    # The first round says who stays, each further one who is copied. Below 1 the first is what was drawn.
    rounds = [*[range(len(demands))] * full_rounds, drawn]
    waiting = [
        DrawnDemands.of(compiled, demands, demand_indices)
        for demand_indices in rounds
    ]
    result = _only(cluster, compiled, waiting[0])
    for turn, copied in enumerate(waiting[1:], 1):
        result = _with_copies(result, cluster, copied, turn, choices.gang)
    return result


def _drawn(
    demands: Sequence[Demand], count: int, random: Random
) -> Sequence[int]:
    """Draw as many of the demands as wanted, or fewer by less than a gang, in their order."""
    groups: dict[object, list[int]] = {}
    for demand_index, demand in enumerate(demands):
        groups.setdefault(demand.placed_with or demand_index, []).append(
            demand_index
        )
    order = list(groups.values())
    random.shuffle(order)
    chosen: list[int] = []
    for members in order:
        if len(chosen) + len(members) <= count:
            chosen += members
    return sorted(chosen)


class DrawnDemands(NamedTuple):
    """Some demands: pods, and claims that no pod uses."""

    pods: frozenset[ClaimKey]
    claims: frozenset[ClaimKey]

    @classmethod
    def of(
        cls,
        compiled: CompiledCluster,
        demands: Sequence[Demand],
        demand_indices: Iterable[int],
    ) -> DrawnDemands:
        pods: set[ClaimKey] = set()
        claims: set[ClaimKey] = set()
        for demand_index in demand_indices:
            demand = demands[demand_index]
            (claims if compiled.is_claim(demand) else pods).add(demand.key)
        return cls(frozenset(pods), frozenset(claims))


def _only(
    cluster: Cluster, compiled: CompiledCluster, remaining: DrawnDemands
) -> Cluster:
    """Return the cluster without all other demands, and without the claims that nobody else uses."""
    demands = tuple(compiled.problem.demands)
    every = DrawnDemands.of(compiled, demands, range(len(demands)))
    omitted = every.pods - remaining.pods
    if not omitted and every == remaining:
        return cluster
    pods = tuple(pod for pod in cluster.pods if pod.key not in omitted)
    unused = set(every.claims - remaining.claims)
    for key in omitted:
        unused.update(cluster.claims_of_pods[key])
    for pod in pods:
        unused.difference_update(cluster.pod_claims(pod))
    claims = tuple(
        claim
        for claim in cluster.claims
        if claim.is_allocated or claim.key not in unused
    )
    return replace(cluster, pods=pods, claims=claims)


def _with_copies(
    cluster: Cluster,
    given: Cluster,
    waiting: DrawnDemands,
    turn: int,
    gang_label: str,
) -> Cluster:
    """Return a cluster with one more of each of these pods and claims of the cluster that was given."""
    groups = {given.pods_by_key[key].pod_group for key in waiting.pods}
    # Members that ask for no device count for their group, too.
    pods = [
        pod
        for pod in given.pods
        if pod.key in waiting.pods
        or (
            pod.pod_group is not None
            and pod.pod_group in groups
            and not pod.spec.node_name
        )
    ]
    used = set(waiting.claims)
    for pod in pods:
        used.update(given.pod_claims(pod))
    claims: dict[ClaimKey, ResourceClaim] = {}
    for claim in given.claims:
        if claim.key in used and not claim.is_allocated:
            metadata = _renamed(claim.metadata, turn)
            claims[claim.key] = changed(claim, metadata=metadata)
    keys = {key: claim.key for key, claim in claims.items()}
    copies: list[tuple[Pod, list[ClaimKey]]] = []
    for pod in pods:
        copied_claims = [keys.get(key, key) for key in given.pod_claims(pod)]
        copies.append((_copied_pod(pod, turn, gang_label), copied_claims))
    more = Changed(cluster).with_pods(copies, claims.values()).cluster
    members = Tally(pod.pod_group for pod in pods if pod.pod_group)
    pod_groups = {
        key: _copied_group(given.pod_groups[key], size, turn)
        for key, size in members.items()
        if key in given.pod_groups
    }
    group_claims: dict[tuple[ClaimKey, ClaimKey], PodGroup] = {}
    for (pod_key, key), group in given.group_claims.items():
        if key in keys and group.key in pod_groups:
            user = _renamed_key(pod_key, turn), keys[key]
            group_claims[user] = pod_groups[group.key]
    return replace(
        more,
        made=more.made | {keys[key] for key in given.made & keys.keys()},
        pod_groups={**more.pod_groups, **_by_key(pod_groups.values())},
        composite_pod_groups={
            **more.composite_pod_groups,
            **_by_key(_copied_parents(given, pod_groups, turn)),
        },
        group_claims={**more.group_claims, **group_claims},
    )


def _copied_pod(pod: Pod, turn: int, gang_label: str) -> Pod:
    """Return a pod that asks for the same under another name, in groups of their own."""
    metadata, spec = _renamed(pod.metadata, turn), pod.spec
    if gang_label in metadata.labels:
        gang = f"{metadata.labels[gang_label]}+{turn}"
        metadata = changed(
            metadata, labels={**metadata.labels, gang_label: gang}
        )
    if pod.pod_group:
        name = _renamed_key(pod.pod_group, turn).name
        group = PodSchedulingGroup(pod_group_name=name)
        spec = changed(spec, scheduling_group=group)
    if spec.workload_ref:
        replica = f"{spec.workload_ref.pod_group_replica_key}+{turn}"
        spec = changed(
            spec,
            workload_ref=changed(
                spec.workload_ref, pod_group_replica_key=replica
            ),
        )
    return changed(pod, metadata=metadata, spec=spec, status=PodStatus())


def _copied_group(group: PodGroup, size: int, turn: int) -> PodGroup:
    """Return a copy of a group with so many pods. None of them runs, so that it needs no more pods than it has."""
    copy = _renamed_group(group, turn)
    policy = group.spec.scheduling_policy
    if policy.gang is None:
        return copy
    least = min(policy.gang.min_count, size)
    policy = changed(policy, gang=changed(policy.gang, min_count=least))
    return changed(copy, spec=changed(copy.spec, scheduling_policy=policy))


def _copied_parents(
    cluster: Cluster, groups: Iterable[ClaimKey], turn: int
) -> Iterator[CompositePodGroup]:
    """Yield copies of all groups of groups above these groups."""
    above = cluster.composite_pod_groups
    keys = {
        ClaimKey(group.key.namespace, name)
        for group in map(cluster.pod_groups.__getitem__, groups)
        if (name := group.spec.parent_composite_pod_group_name)
    }
    done: set[ClaimKey] = set()
    while keys := (keys & above.keys()) - done:
        done |= keys
        yield from (_renamed_group(above[key], turn) for key in sorted(keys))
        keys = {
            ClaimKey(key.namespace, name)
            for key in keys
            if (name := above[key].spec.parent_composite_pod_group_name)
        }


G = TypeVar("G", PodGroup, CompositePodGroup)


def _renamed_group(group: G, turn: int) -> G:
    """Return a copy of a group, which is below a copy of the group that it is in."""
    parent = group.spec.parent_composite_pod_group_name
    spec = changed(
        group.spec,
        parent_composite_pod_group_name=parent and f"{parent}+{turn}",
    )
    return changed(group, metadata=_renamed(group.metadata, turn), spec=spec)


def _by_key(groups: Iterable[G]) -> dict[ClaimKey, G]:
    return {group.key: group for group in groups}


def _renamed(metadata: ObjectMeta, turn: int) -> ObjectMeta:
    """Return what an object says of itself under another name, which no object can have."""
    return changed(metadata, name=f"{metadata.name}+{turn}", uid="")


def _renamed_key(key: ClaimKey, turn: int) -> ClaimKey:
    return ClaimKey(key.namespace, f"{key.name}+{turn}")
