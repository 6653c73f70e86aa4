"""Small mixed clusters: several kinds of nodes, usage, CPU and memory, gangs, racks, priorities, taints and zones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from benchmarks.mixture.recipe import HARDWARE, INGREDIENTS
from benchmarks.mixture.servers import ZONE
from benchmarks.nodes import PCI_ROOT
from benchmarks.objects import Json, claim
from benchmarks.registry import WORKLOADS
from benchmarks.workloads.mixed import mixed
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.choices import (
    Choices,
    Goal,
    Keep,
    ObjectiveWord,
    Priorities,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load_documents
from wire import device, resource_slice

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
    """Draw the same with several racks and many gangs, of which not all members may be needed.

    Some nodes have a pool beside the others that is not valid.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.mixture.servers.RACK_NODES", 2)
        patch.setattr("benchmarks.mixture.arrivals.GANGS", 0.3)
        workload = WORKLOADS["mixed"].without(draw(_WITHOUT))
        nodes = draw(st.integers(3, most_nodes))
        objects = list(workload.objects(nodes, draw(_SEEDS)))
    dispensable = draw(st.integers(0, 2))
    for item in objects:
        if item["kind"] == "PodGroup":
            gang = item["spec"]["schedulingPolicy"]["gang"]
            gang["minCount"] = max(1, gang["minCount"] - dispensable)
    if draw(st.booleans()):
        names = [item["metadata"]["name"] for item in objects]
        kinds = [item["kind"] for item in objects]
        for name, kind in zip(names, kinds, strict=True):
            if kind == "Node" and draw(st.booleans()):
                objects.append(_invalid_slice(name))
    return load_documents(objects)


def _invalid_slice(home: str) -> Json:
    """A slice of a node in which a device is there twice, so that its pool is not valid."""
    return resource_slice(
        [device("twin"), device("twin")],
        name=f"{home}-twins",
        pool=f"{home}-twins",
        nodeName=home,
    )


@st.composite
def mixed_teams(draw: st.DrawFn, most_nodes: int = 5) -> Cluster:
    """Draw the same, with pods that wait in several namespaces, in racks of two nodes, and mind each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.mixture.servers.RACK_NODES", 2)
        patch.setattr(
            "benchmarks.mixture.arrivals.GANGS",
            draw(st.sampled_from((1 / 16, 0.3))),
        )
        workload = WORKLOADS["mixed"].without(draw(_WITHOUT))
        nodes = draw(st.integers(2, most_nodes))
        objects = list(_in_teams(workload.objects(nodes, draw(_SEEDS))))
    company = _Company(objects, Random(draw(_SEEDS)))
    # A list: functions in a set have another order in each process.
    for rules in draw(st.lists(st.sampled_from(_RULES), unique=True)):
        rules(company)
    return load_documents(company.objects)


class _Company:
    """Objects of a cluster whose pods are told, some of them at random, to mind each other."""

    def __init__(self, objects: list[Json], random: Random) -> None:
        self.objects = objects
        self._random = random
        pods = self._of_kind("Pod")
        self._waiting = [pod for pod in pods if "nodeName" not in pod["spec"]]
        self._running = [pod for pod in pods if "nodeName" in pod["spec"]]

    def keep_apart(self) -> None:
        """Some want nobody of their kind on their node, or in their zone."""
        for pod in self._some(self._waiting, 0.15):
            self._relate(pod, "podAntiAffinity", "apart")

    def keep_together(self) -> None:
        """Some want to be in the zone, or on the node, of somebody of their kind."""
        for pod in self._some(self._waiting, 0.15):
            self._relate(pod, "podAffinity", "together")

    def have_members_outside(self) -> None:
        """Some gangs have a member that runs."""
        for group in self._some(self._of_kind("PodGroup"), 0.5):
            space = group["metadata"]["namespace"]
            alone = [
                pod
                for pod in self._running
                if pod["metadata"]["namespace"] == space
                and "schedulingGroup" not in pod["spec"]
            ]
            if alone:
                member = self._random.choice(alone)
                name = group["metadata"]["name"]
                member["spec"]["schedulingGroup"] = {"podGroupName": name}
                group["spec"]["schedulingPolicy"]["gang"]["minCount"] += 1

    def have_spare_members(self) -> None:
        """Some gangs do with fewer than all of their members."""
        for group in self._some(self._of_kind("PodGroup"), 0.5):
            gang = group["spec"]["schedulingPolicy"]["gang"]
            gang["minCount"] = max(1, gang["minCount"] - 1)

    def ask_twice(self) -> None:
        """Some have two claims, whose devices are to be on one PCIe root."""
        for pod in self._some(self._waiting, 0.1):
            entry = pod["spec"]["resourceClaims"][0]
            if "resourceClaimTemplateName" in entry:
                pod["spec"]["resourceClaims"].append({**entry, "name": "again"})
                _annotate(pod)

    def have_gangs_in_line(self) -> None:
        """The devices of some gangs are on PCIe roots of one name."""
        for group in self._some(self._of_kind("PodGroup"), 0.3):
            _annotate(group)

    def share(self) -> None:
        """Some have a claim together with somebody who has asked for the same."""
        templates = {
            (item["metadata"]["namespace"], item["metadata"]["name"]): item
            for item in self._of_kind("ResourceClaimTemplate")
        }
        alone = [
            pod
            for pod in self._waiting
            if "schedulingGroup" not in pod["spec"]
            and len(pod["spec"]["resourceClaims"]) == 1
        ]
        for claim_index, pod in enumerate(self._some(alone, 0.1)):
            mates = [
                mate
                for mate in alone
                if mate["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and mate["spec"]["resourceClaims"]
                == pod["spec"]["resourceClaims"]
                and "resourceClaimTemplateName"
                in mate["spec"]["resourceClaims"][0]
                and mate is not pod
            ]
            if not mates:
                continue
            [entry] = pod["spec"]["resourceClaims"]
            space = pod["metadata"]["namespace"]
            template = templates[space, entry["resourceClaimTemplateName"]]
            shared = claim(f"shared-{claim_index}", template["spec"]["spec"])
            shared["metadata"]["namespace"] = space
            self.objects.append(shared)
            for user in (pod, self._random.choice(mates)):
                user["spec"]["resourceClaims"] = [
                    {
                        "name": "shared",
                        "resourceClaimName": f"shared-{claim_index}",
                    }
                ]

    def _of_kind(self, kind: str) -> list[Json]:
        return [item for item in self.objects if item["kind"] == kind]

    def _some(self, objects: list[Json], part: float) -> list[Json]:
        return [item for item in objects if self._random.random() < part]

    def _relate(self, pod: Json, affinity: str, app: str) -> None:
        pod["metadata"].setdefault("labels", {}).setdefault("app", app)
        term = {
            "topologyKey": self._random.choice((ZONE, HOSTNAME_LABEL)),
            "labelSelector": {"matchLabels": {"app": app}},
        }
        rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        pod["spec"].setdefault("affinity", {})[affinity] = rules


_RULES: Final = (
    _Company.keep_apart,
    _Company.keep_together,
    _Company.have_members_outside,
    _Company.have_spare_members,
    _Company.ask_twice,
    _Company.have_gangs_in_line,
    _Company.share,
)
"""What pods may have to do with each other."""


def _annotate(item: Json) -> None:
    annotations = item["metadata"].setdefault("annotations", {})
    annotations["dralloc.dev/across"] = f"matchAttribute={PCI_ROOT}"


def _in_teams(objects: Iterable[Json]) -> Iterator[Json]:
    """The same objects, where teams wait in turn: each gang, and each of those who are alone."""
    turn = 0
    team_of: dict[str, str] = {}
    for item in objects:
        name, spec = item["metadata"]["name"], item.get("spec", {})
        group = (
            name
            if item["kind"] == "PodGroup"
            else spec.get("schedulingGroup", {}).get("podGroupName", "")
        )
        if item["kind"] == "ResourceClaimTemplate":
            yield from (
                {**item, "metadata": {**item["metadata"], "namespace": team}}
                for team in _TEAMS
            )
        elif item["kind"] == "PodGroup" or (
            item["kind"] == "Pod" and "nodeName" not in spec
        ):
            turn += not group or group not in team_of
            team = (
                team_of.setdefault(group, _TEAMS[turn % len(_TEAMS)])
                if group
                else _TEAMS[turn % len(_TEAMS)]
            )
            yield {**item, "metadata": {**item["metadata"], "namespace": team}}
        else:
            yield item


def mixed_choices(cluster: Cluster) -> SearchStrategy[Choices]:
    """What may be asked about the cluster: objectives, goals, caps, fairness, and whom to keep."""
    resources = sorted(
        {
            name
            for resource_slice in cluster.slices
            for device in resource_slice.spec.devices
            for name in device.capacity
        }
        | {
            name
            for resource_slice in cluster.slices
            for known in resource_slice.spec.shared_counters
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
