"""The scheduler: one pod after the other, each attempt with what the attempts before have left.

Source: ``schedule_one.go`` of ``kubernetes/pkg/scheduler``. Preemption is off: nobody is evicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dralloc.api import Namespace
from dralloc.compiler import Compiled
from dralloc.errors import FatalError
from dralloc.names import ClaimKey
from dralloc.scheduling.attempt import Attempt, checks_of, filtered, scored
from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.devices import Devices
from dralloc.scheduling.message import fit_error, refused
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins import PLUGINS
from dralloc.scheduling.plugins.plugin import Rejection
from dralloc.scheduling.pods import PodKinds
from dralloc.scheduling.preemption import after_filters
from dralloc.scheduling.profile import Profile
from dralloc.scheduling.sampling import feasible_nodes_to_find
from dralloc.scheduling.snapshot import Snapshot
from dralloc.solution import Solution

__all__ = ["Scheduler"]

_NAME_LABEL: Final = "kubernetes.io/metadata.name"


class Scheduler:
    """The state of nodes, pods and devices between attempts.

    Parameters
    ----------
    compiled
        The cluster; pods on its nodes count.
    profiles
        One for each scheduler name.
    heard_of
        Indices of the nodes in the order in which the scheduler heard of them; as given if there are none.
    """

    def __init__(self, compiled: Compiled, profiles: Sequence[Profile], heard_of: Sequence[int] = ()) -> None:
        self._cluster = compiled.cluster
        self.profiles = {profile.name: profile for profile in profiles}
        by_name = {node.name: node for node in compiled.cluster.nodes}
        nodes = [by_name[node.name] for node in compiled.problem.nodes]
        self.snapshot = Snapshot(nodes, heard_of or compiled.problem.all_nodes)
        self._devices = Devices(compiled)
        self._next = 0
        kinds = PodKinds(self._labels_of)
        self.pods = {info.key: info for info in kinds.infos(self._cluster.pods)}
        for pod in self._cluster.pods:
            node = self.snapshot.by_name.get(pod.spec.node_name or "")
            if node is not None:
                self.snapshot.add(self.pods[pod.key], node)

    def _labels_of(self, namespace: str) -> dict[str, str]:
        known = self._cluster.namespaces.get(namespace, Namespace())
        return {_NAME_LABEL: namespace, **known.metadata.labels}

    @property
    def solution(self) -> Solution:
        """What was bound so far."""
        return Solution(tuple(sorted(self._devices.placements, key=lambda placement: placement.demand)))

    def attempt(self, key: ClaimKey, sample: Sequence[str] = ()) -> Attempt:
        """Look for a node for a pod. Nothing is bound.

        Parameters
        ----------
        sample
            Names of the only nodes to look at, in order; without, they are found as usual.
        """
        pod = self.pods[key]
        profile = self.profiles[pod.kind.spec.scheduler_name]
        cycle = Cycle(pod, profile, self.snapshot, self._devices, self._cluster.classes)
        try:
            return self._attempt(cycle, [self.snapshot.by_name[name] for name in sample])
        except FatalError as error:
            return Attempt(key, message=str(error))

    def bind(self, key: ClaimKey, node: NodeInfo) -> None:
        """Put a pod on a node that an attempt found feasible, with its devices."""
        self._devices.bind(self.pods[key], node)
        self.snapshot.add(self.pods[key], node)

    def _attempt(self, cycle: Cycle, sample: Sequence[NodeInfo]) -> Attempt:
        key, everywhere = cycle.pod.key, len(self.snapshot.nodes)
        if not everywhere:
            return Attempt(key, message="no nodes available to schedule pods")
        nodes = sample or self._nodes_for(cycle)
        checks = []
        for check in checks_of(cycle):
            if isinstance(check, Rejection):
                return Attempt(key, refused=check, message=refused(everywhere, check, after_filters(cycle, {})))
            checks.append(check)
        enough = feasible_nodes_to_find(cycle.profile.percentage, len(nodes))
        start = self._next % len(nodes) if nodes and not sample else 0
        feasible, rejected = filtered(checks, [*nodes[start:], *nodes[:start]], enough)
        self._next = (self._next + len(feasible) + len(rejected)) % everywhere
        if not feasible:
            after = after_filters(cycle, rejected)
            message = fit_error(everywhere, rejected.values(), _ABSENT, after)
            return Attempt(key, rejected=rejected, message=message, has_victims=not after)
        return Attempt(key, feasible, rejected, scored(cycle, feasible) if len(feasible) > 1 else {})

    def _nodes_for(self, cycle: Cycle) -> Sequence[NodeInfo]:
        """The nodes, but for those that a plugin rules out before it looks at them."""
        nodes: Sequence[NodeInfo] = self.snapshot.nodes
        for plugin in PLUGINS:
            names = plugin.named(cycle)
            if names is not None and plugin.name not in cycle.profile.no_filters:
                nodes = [node for node in nodes if node.name in names]
        return nodes


_ABSENT: Final = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
