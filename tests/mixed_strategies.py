"""Small mixed clusters: several kinds of nodes, usage, CPU and memory, gangs, racks, priorities, taints and zones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from benchmarks.mixture.recipe import HARDWARE, INGREDIENTS
from benchmarks.objects import Json
from benchmarks.registry import WORKLOADS
from benchmarks.workloads.mixed import mixed
from dralloc.objects.choices import (
    Choices,
    Goal,
    Keep,
    ObjectiveWord,
    Priorities,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load_documents

__all__ = ["mixed_choices", "mixed_clusters", "mixed_racks", "mixed_teams"]

_TEAMS: Final = ("default", "green", "red")
"""The namespaces of those who wait."""

_WITHOUT = st.sets(st.sampled_from(INGREDIENTS)).filter(
    lambda left_out: not left_out.issuperset(HARDWARE)
)
"""Any ingredients may be left out, but not every kind of nodes."""

_SEEDS = st.integers(0, 2**32)


def mixed_clusters(most_nodes: int = 5) -> SearchStrategy[Cluster]:
    """Clusters with any ingredients, but always with some kind of nodes."""
    return st.builds(
        mixed, nodes=st.integers(1, most_nodes), seed=_SEEDS, without=_WITHOUT
    )


@st.composite
def mixed_racks(draw: st.DrawFn, most_nodes: int = 8) -> Cluster:
    """Draw the same with several racks and many gangs, of which not all members may be needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.mixture.servers.RACK_NODES", 2)
        patch.setattr("benchmarks.mixture.arrivals.GANGS", 0.3)
        workload = WORKLOADS["mixed"].without(draw(_WITHOUT))
        nodes = draw(st.integers(3, most_nodes))
        objects = list(workload.objects(nodes, draw(_SEEDS)))
    dispensable = draw(st.integers(0, 2))
    for one in objects:
        if one["kind"] == "PodGroup":
            gang = one["spec"]["schedulingPolicy"]["gang"]
            gang["minCount"] = max(1, gang["minCount"] - dispensable)
    return load_documents(objects)


@st.composite
def mixed_teams(draw: st.DrawFn, most_nodes: int = 5) -> Cluster:
    """Draw the same, with pods that wait in several namespaces."""
    workload = WORKLOADS["mixed"].without(draw(_WITHOUT))
    return load_documents(
        _in_teams(
            workload.objects(draw(st.integers(2, most_nodes)), draw(_SEEDS))
        )
    )


def _in_teams(objects: Iterable[Json]) -> Iterator[Json]:
    """The same objects, where teams wait in turn: each gang, and each of those who are alone."""
    turn = 0
    team_of: dict[str, str] = {}
    for one in objects:
        name, spec = one["metadata"]["name"], one.get("spec", {})
        group = (
            name
            if one["kind"] == "PodGroup"
            else spec.get("schedulingGroup", {}).get("podGroupName", "")
        )
        if one["kind"] == "ResourceClaimTemplate":
            yield from (
                {**one, "metadata": {**one["metadata"], "namespace": team}}
                for team in _TEAMS
            )
        elif one["kind"] == "PodGroup" or (
            one["kind"] == "Pod" and "nodeName" not in spec
        ):
            turn += not group or group not in team_of
            team = (
                team_of.setdefault(group, _TEAMS[turn % len(_TEAMS)])
                if group
                else _TEAMS[turn % len(_TEAMS)]
            )
            yield {**one, "metadata": {**one["metadata"], "namespace": team}}
        else:
            yield one


def mixed_choices(cluster: Cluster) -> SearchStrategy[Choices]:
    """What may be asked about the cluster: objectives, goals, caps, fairness, and whom to keep."""
    resources = sorted(
        {
            name
            for each in cluster.slices
            for device in each.spec.devices
            for name in device.capacity
        }
        | {
            name
            for each in cluster.slices
            for known in each.spec.shared_counters
            for name in known.counters
        }
    )
    amounts = {
        "memory": ("20Gi", "100Gi"),
        "memory-slices": ("2", "9"),
        "cores": ("40", "150"),
    }
    caps = [
        f"{team}={name}:{amount}"
        for team in _TEAMS
        for name in resources
        for amount in amounts.get(name, ("1", "3"))
    ]
    fair = st.sampled_from(["", *resources])
    return st.builds(
        Choices,
        goal=st.sampled_from(Goal),
        caps=st.lists(
            st.sampled_from(caps),
            max_size=2,
            unique_by=lambda cap: cap.split(":")[0],
        )
        if caps
        else st.just([]),
        fair=fair,
        objective=st.sampled_from([*ObjectiveWord, *resources]),
        priorities=st.sampled_from(Priorities),
        keep=st.sampled_from([Keep.NOBODY, Keep.FIRST_FIT]),
    )
