"""Everything on the nodes while pods are scheduled.

From top to bottom: nodes with their pods in the scheduler's order; the same as columns over all nodes; counts of pods
by domain, kept up as pods come and go; and what the devices of a pod take of its node (KEP-5517).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.compiler.node_amounts import Footprints
from dralloc.compile.pods import (
    CPU,
    MEMORY,
    PODS,
    HostPort,
    PodInfo,
    PodKind,
    Term,
    amounts_of,
)
from dralloc.objects.api import Node, Pod, ResourceClaim
from dralloc.objects.errors import FatalError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, NodeIndex
from dralloc.problem.node_claims import footprint_of
from dralloc.problem.solution import Grant

if TYPE_CHECKING:
    from dralloc.solve.scheduler.plugin import Rejection

__all__ = [
    "EVERY_NODE",
    "EligibleNodes",
    "Granted",
    "NodeInfo",
    "NodesAt",
    "PodFootprints",
    "Snapshot",
    "Tally",
    "TooLargeError",
    "image_names",
]

# ----------------------------------------------------------------------------
# Nodes with the pods on them, in the order in which the scheduler goes through them.
# Source: ``framework/types.go`` (NodeInfo), ``backend/cache/node_tree.go`` of
# ``kubernetes/pkg/scheduler``.

_ZONES = (
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
)
_REGIONS = (
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/region",
)


class NodeInfo:
    """A node, and what the pods on it use.

    Parameters
    ----------
    number
        Its index in the problem.
    place
        Its index in the order of the scheduler.
    usages
        Numbers of what nodes have and of what is requested of them (see `usage`).
    """

    def __init__(
        self,
        node: Node,
        number: NodeIndex,
        place: int,
        usages: dict[Hashable, int],
    ) -> None:
        self.node = node
        self.number = number
        self.place = place
        self.name = node.metadata.name
        self.labels: Mapping[str, str] = node.metadata.labels
        self.allocatable = amounts_of(node.status.allocatable)
        self.pods: list[PodInfo] = []
        self.requested: dict[str, int] = {}
        self.occupied: dict[str, int] = {CPU: 0, MEMORY: 0}
        self.ports: list[HostPort] = []
        self._usages = usages
        self._usage: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether it says what it has. One that does not limits nothing."""
        return bool(self.allocatable)

    @property
    def pod_room(self) -> int:
        """The number of pods that may be on it in addition."""
        return self.allocatable.get(PODS, 0) - len(self.pods)

    def counted_in_scores(self, resource: str) -> int:
        """Return what is requested of it as scores of other pods count it."""
        amounts = self.occupied if resource in (CPU, MEMORY) else self.requested
        return amounts.get(resource, 0)

    def lacking(self, requests: Mapping[str, int]) -> list[str]:
        """The resources of which more is requested than is free."""
        allocatable, used = self.allocatable, self.requested
        # More may be requested than there is, if the node has shrunk: then nothing is
        # free, and who requests nothing lacks nothing.
        return [
            name
            for name, amount in requests.items()
            if amount > max(allocatable.get(name, 0) - used.get(name, 0), 0)
        ]

    @property
    def usage(self) -> int:
        """A number for what it has and what is requested of it by how many pods: equal nodes have the same."""
        if self._usage is None:
            key = (
                frozenset(self.allocatable.items()),
                frozenset(self.requested.items()),
                frozenset(self.occupied.items()),
                len(self.pods),
            )
            self._usage = self._usages.setdefault(key, len(self._usages))
        return self._usage

    def add(self, pod: PodInfo) -> None:
        """Put a pod on the node."""
        self.pods.append(pod)
        self.ports += pod.kind.host_ports
        self._count(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        """Take a pod off the node."""
        self.pods.remove(pod)
        for port in pod.kind.host_ports:
            self.ports.remove(port)
        self._count(pod, -1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        self._usage = None
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        for name in (CPU, MEMORY):
            self.occupied[name] += sign * pod.occupied.get(name, 0)


class NodesAt(Sequence[NodeInfo]):
    """Nodes by their positions; most often nobody asks for more than one of them."""

    def __init__(
        self, nodes: Sequence[NodeInfo], positions: NDArray[np.intp]
    ) -> None:
        self._nodes, self._places = nodes, positions

    def __getitem__(self, index: Any) -> Any:
        return self._nodes[self._places[index]]

    def __iter__(self) -> Iterator[NodeInfo]:
        return map(self._nodes.__getitem__, self._places.tolist())

    def __len__(self) -> int:
        return len(self._places)


def _by_zones(
    nodes: Sequence[Node], heard_of: Sequence[NodeIndex]
) -> list[NodeIndex]:
    """Indices of the nodes as the scheduler goes through them: one of each zone in turn, each as it heard of them."""
    zones: dict[tuple[str, str], list[NodeIndex]] = {}
    for node_index in heard_of:
        zones.setdefault(_zone(nodes[node_index].metadata.labels), []).append(
            node_index
        )
    order: list[NodeIndex] = []
    for rank in zip_longest(*zones.values()):
        order += [node_index for node_index in rank if node_index is not None]
    return order


def _zone(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return region and zone; the labels of old go before those of today."""
    return _first_label(labels, _REGIONS), _first_label(labels, _ZONES)


def _first_label(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((labels[key] for key in keys if key in labels), "")


# ----------------------------------------------------------------------------
# Columns over all nodes: what they have, what is requested of them, and what they are.

Numbers = NDArray[np.int64]

_LARGEST: Final = 2**50
"""Amounts below that can be multiplied by a hundred, and divided as floats, without losing anything."""

_NOBODY: Final = 2**40
"""The lowest priority on a node without pods: above all priorities."""


class TooLargeError(Exception):
    """An amount is too large to be counted in columns; nodes have to be looked at one by one."""


class NodeColumns:
    """Columns that are filled when somebody asks, and kept up as nodes change.

    Amounts of several resources are a table: a row for each node, a column for each resource.

    Parameters
    ----------
    nodes
        In the scheduler's order.
    changes
        Positions of nodes on which something has changed; it grows.
    """

    def __init__(
        self, nodes: Sequence[NodeInfo], changes: Sequence[int]
    ) -> None:
        self._nodes = nodes
        self._changes = changes
        self._columns: dict[Hashable, Numbers] = {}
        self._seen: dict[Hashable, int] = {}
        self._traits: dict[Hashable, Numbers] = {}
        self._numbers_of_domains: dict[str, dict[str, int]] = defaultdict(dict)

    def allocatable(self, resources: tuple[str, ...]) -> Numbers:
        """Return what nodes have of resources."""
        return self.trait(
            ("allocatable", resources),
            lambda node: [
                _checked(node.allocatable.get(resource, 0))
                for resource in resources
            ],
        )

    def requested(self, resources: tuple[str, ...]) -> Numbers:
        """Return what is requested of nodes."""
        return self._column(
            ("requested", resources),
            lambda node: [
                _checked(node.requested.get(resource, 0))
                for resource in resources
            ],
        )

    def free(self, resources: tuple[str, ...]) -> Numbers:
        """Return what nodes have of resources that is not requested of them; nothing where more is."""
        return self._column(
            ("free", resources),
            lambda node: [
                max(
                    _checked(node.allocatable.get(resource, 0))
                    - _checked(node.requested.get(resource, 0)),
                    0,
                )
                for resource in resources
            ],
        )

    def occupied(self, resources: tuple[str, ...]) -> Numbers:
        """Return what is requested of nodes as scores count it."""
        return self._column(
            ("occupied", resources),
            lambda node: [
                _checked(node.counted_in_scores(resource))
                for resource in resources
            ],
        )

    @property
    def limited(self) -> Numbers:
        """Whether nodes say what they have."""
        return self.trait("limited", lambda node: node.is_limited)

    @property
    def pod_room(self) -> Numbers:
        """The number of pods that may be on nodes in addition."""
        return self._column(PODS, lambda node: _checked(node.pod_room))

    @property
    def lowest_priority(self) -> Numbers:
        """The lowest priority of a pod on each node."""

        def lowest(node: NodeInfo) -> int:
            return min(
                [pod.kind.priority for pod in node.pods], default=_NOBODY
            )

        return self._column("lowest priority", lowest)

    def domains(self, topology_key: str) -> tuple[Numbers, Mapping[str, int]]:
        """By node the index of its domain, -1 without one, and the indices of the domains."""
        index_of = self._numbers_of_domains[topology_key]

        def number(node: NodeInfo) -> int:
            domain = node.labels.get(topology_key)
            if domain is None:
                return -1
            return index_of.setdefault(domain, len(index_of))

        return self.trait(("domain", topology_key), number), index_of

    def trait(
        self, key: Hashable, read: Callable[[NodeInfo], int | list[int]]
    ) -> Numbers:
        """Something about nodes that never changes, read once."""
        return self.once(
            key,
            lambda: np.array([read(node) for node in self._nodes], np.int64),
        )

    def once(self, key: Hashable, work_out: Callable[[], Numbers]) -> Numbers:
        """A column of something that never changes, worked out once."""
        if key not in self._traits:
            self._traits[key] = work_out()
        return self._traits[key]

    def _column(
        self, key: Hashable, read: Callable[[NodeInfo], int | list[int]]
    ) -> Numbers:
        values = self._columns.get(key)
        if values is None:
            values = np.array([read(node) for node in self._nodes], np.int64)
            self._columns[key] = values
        elif self._seen[key] < len(self._changes):
            # Only where something has changed since the column was read last.
            for position in set(self._changes[self._seen[key] :]):
                values[position] = read(self._nodes[position])
        self._seen[key] = len(self._changes)
        return values


def _checked(amount: int) -> int:
    if not -_LARGEST < amount < _LARGEST:
        raise TooLargeError
    return amount


# ----------------------------------------------------------------------------
# The snapshot: everything on the nodes, with counts of pods by domain that are kept up
# as pods come and go.

EVERY_NODE: Final = ""
"""Stands for a topology key with which every node is a domain of its own."""


@dataclass(eq=False)
class Tally:
    """The number of pods of some sort in each domain.

    Parameters
    ----------
    topology_key
        The label of nodes whose values are the domains.
    weigh
        How often a pod of a kind counts, by what rules between pods know of it.
    places
        The only nodes that count; None for all.
    counts
        By domain; domains without such pods are left out.
    """

    topology_key: str
    weigh: Callable[[PodKind], int]
    places: Container[int] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    _weights: dict[Hashable, int] = field(default_factory=dict)

    def weight(self, kind: PodKind) -> int:
        """Return how often a pod of a kind counts, worked out once."""
        weight = self._weights.get(kind.inter_pod_key)
        if weight is None:
            weight = self._weights[kind.inter_pod_key] = self.weigh(kind)
        return weight

    def count(self, kind: PodKind, node: NodeInfo, pod_count: int) -> None:
        """Enter so many pods of a kind, or revoke them."""
        weight = self.weight(kind)
        if not weight or (
            self.places is not None and node.place not in self.places
        ):
            return
        domain = (
            node.labels.get(self.topology_key)
            if self.topology_key
            else node.name
        )
        if domain is not None:
            self.counts[domain] = (
                self.counts.get(domain, 0) + pod_count * weight
            )
            if not self.counts[domain]:
                del self.counts[domain]

    def on(self, node: NodeInfo) -> int:
        """Return how many there are in the node's domain."""
        if not self.topology_key:
            return self.counts.get(node.name, 0)
        return self.counts.get(node.labels.get(self.topology_key, ""), 0)


class EligibleNodes(NamedTuple):
    """The nodes on which pods count for a constraint, by position, and their domains."""

    places: frozenset[int]
    domains: frozenset[str]


class Snapshot:
    """The nodes in the scheduler's order and the pods on them.

    Parameters
    ----------
    nodes
        As the problem has them.
    heard_of
        Indices of the nodes in the order in which the scheduler heard of them.

    Notes
    -----
    ``changes``: positions of nodes on which something has changed, in order, some more than once. ``states``: by
    position a number that a node had before only if everything on it is as it was then. ``numbers``: by position the
    index of the node in the problem. ``columns``: what nodes have and are, for all of them at once. ``carried``: for
    each sort of terms (`PodKind.required_anti_affinity`, ...) the terms that pods on nodes have, with the number of
    pods that have them by domain. ``eligible``: on which nodes pods count for constraints, by all that makes a
    difference.
    """

    def __init__(
        self, nodes: Sequence[Node], heard_of: Sequence[NodeIndex]
    ) -> None:
        order = _by_zones(nodes, heard_of)
        usages: dict[Hashable, int] = {}
        self.nodes = tuple(
            NodeInfo(nodes[node_index], node_index, position, usages)
            for position, node_index in enumerate(order)
        )
        # What is against nodes for what they are, with a number for each.
        self.rejections: dict[Rejection, int] = {}
        # What plugins say that look at nothing of nodes that changes, by what they read of pods.
        self.answers: dict[Hashable, Any] = {}
        self._heard_of = [nodes[node_index] for node_index in heard_of]
        self.by_name = {node.name: node for node in self.nodes}
        self.numbers = np.array(order, np.intp)
        self.changes: list[int] = []
        self.states = np.zeros(len(order), np.int64)
        self._latest_state = 0
        self.columns = NodeColumns(self.nodes, self.changes)
        self._tallies: dict[Hashable, Tally] = {}
        # By key between pods: in how many tallies it was looked for, and those in which it counts.
        self._tallies_of_kind: dict[Hashable, tuple[int, list[Tally]]] = {}
        # By key between pods: a kind with it, and the number of such pods by position.
        self._places_of_kinds: dict[
            Hashable, tuple[PodKind, dict[int, int]]
        ] = {}
        self.carried: dict[str, dict[Term, Tally]] = defaultdict(dict)
        self.eligible: dict[Hashable, EligibleNodes] = {}

    @cached_property
    def images(self) -> Mapping[str, int]:
        """The worth of finding an image: its size, less the fewer nodes have it (upstream: as float64).

        The size is what the first node says that the scheduler heard of.
        """
        sizes: dict[str, int] = {}
        nodes: Counter[str] = Counter()
        for node in self._heard_of:
            nodes.update(image_names(node))
            for image in node.status.images:
                for name in image.names:
                    sizes.setdefault(name, image.size_bytes)
        return {
            name: int(float(size) * (nodes[name] / len(self.nodes)))
            for name, size in sizes.items()
        }

    def add(self, pod: PodInfo, node: NodeInfo) -> None:
        """Put a pod on a node."""
        for sort in (
            "required_affinity",
            "required_anti_affinity",
            "preferred",
        ):
            for term in getattr(pod.kind, sort):
                if term not in self.carried[sort]:
                    weigh = partial(_times, sort, term)
                    tally = self.tally((sort, term), term.topology_key, weigh)
                    self.carried[sort][term] = tally
        node.add(pod)
        self.note_change(node.place)
        self._count(pod.kind, node, 1)

    def remove(self, pod: PodInfo, node: NodeInfo) -> None:
        """Take a pod off a node."""
        node.remove(pod)
        self.note_change(node.place)
        self._count(pod.kind, node, -1)

    def _count(self, kind: PodKind, node: NodeInfo, pod_count: int) -> None:
        """Enter so many pods of a kind in the counts by domain, or revoke them."""
        for tally in self._counting(kind):
            tally.count(kind, node, pod_count)
        _, pod_counts = self._places_of_kinds.setdefault(
            kind.inter_pod_key, (kind, {})
        )
        pod_counts[node.place] = pod_counts.get(node.place, 0) + pod_count
        if not pod_counts[node.place]:
            del pod_counts[node.place]

    def note_change(self, position: int) -> None:
        """Know that something has changed on a node, or about the devices that it sees."""
        self.changes.append(position)
        self._latest_state += 1
        self.states[position] = self._latest_state

    def states_at(self, positions: Iterable[int]) -> dict[int, int]:
        """The states of some nodes."""
        return {position: int(self.states[position]) for position in positions}

    def restore(self, states: Mapping[int, int]) -> None:
        """Know that nodes are as they were in these states."""
        for position, state in states.items():
            self.states[position] = state

    def _counting(self, kind: PodKind) -> Sequence[Tally]:
        """The tallies in which pods of a kind count."""
        key = kind.inter_pod_key
        looked_at, counting = self._tallies_of_kind.get(key, (0, []))
        if looked_at < len(self._tallies):
            new_tallies = list(self._tallies.values())[looked_at:]
            counting += [tally for tally in new_tallies if tally.weight(kind)]
            self._tallies_of_kind[key] = len(self._tallies), counting
        return counting

    def tally(
        self,
        key: Hashable,
        topology_key: str,
        weigh: Callable[[PodKind], int],
        positions: Container[int] | None = None,
    ) -> Tally:
        """The count of some sort of pods by domain; ``key`` stands for the sort and the positions."""
        identity = key, topology_key
        if identity not in self._tallies:
            tally = self._tallies[identity] = Tally(
                topology_key, weigh, positions
            )
            for kind, places_of_kind in self._places_of_kinds.values():
                if tally.weight(kind):
                    for position, pod_count in places_of_kind.items():
                        tally.count(kind, self.nodes[position], pod_count)
        return self._tallies[identity]


def image_names(node: Node) -> Set[str]:
    """Names of the images that a node has."""
    return {name for image in node.status.images for name in image.names}


def _times(sort: str, term: Term, kind: PodKind) -> int:
    """Return how often a kind has a term."""
    terms: tuple[Term, ...] = getattr(kind, sort)
    return terms.count(term)


# ----------------------------------------------------------------------------
# Footprints: what the devices of a pod take of its node (KEP-5517), found out with the
# devices. Source:
# ``framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`` of
# ``kubernetes/pkg/scheduler``, 1.37.

Granted = Callable[[ClaimKey], Sequence[Grant]]
"""What claims get that were not allocated before the run."""


class PodFootprints:
    """The amounts that devices of a cluster take of nodes."""

    def __init__(self, compiled: CompiledCluster) -> None:
        self._problem = compiled.problem
        self._footprints = Footprints(
            compiled.cluster, compiled.problem.devices
        )
        self._demands: dict[ClaimKey, Demand] = {}
        self._pods: dict[ClaimKey, Pod] = {}
        if self._footprints:
            self._pods = {pod.key: pod for pod in compiled.cluster.pods}
            for demand in compiled.problem.demands:
                if not compiled.is_claim(demand):
                    self._demands[demand.key] = demand

    def __bool__(self) -> bool:
        return bool(self._footprints)

    def containers(self, pod: PodInfo) -> Mapping[ClaimKey, int]:
        """Return how many containers refer to each of the pod's claims."""
        return self._footprints.containers(self._pods[pod.key])

    def of(self, pod: PodInfo, granted: Granted) -> Mapping[str, int]:
        """Return what the devices of a pod take, by resource and in nanos.

        Raises
        ------
        FatalError
            A device follows a capacity, and nothing is consumed of any.
        """
        total: Counter[str] = Counter()
        if self._footprints:
            total.update(self._footprints.of_allocated(self._pods[pod.key]))
            for amounts in self._of_granted(pod, granted):
                total.update(amounts)
        return total

    def entered(self, pod: PodInfo, granted: Granted) -> PodInfo:
        """The pod with what its devices take of the node that it has."""
        if self._footprints:
            return replace(pod, of_devices=self.of(pod, granted))
        return pod

    def _of_granted(
        self, pod: PodInfo, granted: Granted
    ) -> Iterator[Mapping[str, int]]:
        demand = self._demands.get(pod.key)
        if demand is None:
            return
        containers = self.containers(pod)
        for claim in demand.claims:
            for request, choice, device_index in granted(claim.key):
                alternative = claim.requests[request].alternatives[choice]
                device = self._problem.devices[device_index]
                charge = self._problem.eligibility.charge(
                    alternative.index, device_index
                )
                recorded = charge.recorded if charge else ()
                consumed = {name: amount.nanos for name, amount in recorded}
                count = containers.get(claim.key, 0)
                amounts = footprint_of(device.footprint, consumed, count)
                if amounts is None:
                    raise FatalError(
                        f"claim {claim.key}, device {device.id.device}: ConsumedCapacity is nil"
                    )
                yield amounts

    def is_mapped(self, claim: ResourceClaim, granted: Granted) -> bool:
        """Whether an allocated claim has a device that stands for a part of its node."""
        if self._footprints.is_mapped(claim):
            return True
        for grant in granted(claim.key):
            footprint = self._problem.devices[grant.device].footprint
            if any(part.is_mapped for part in footprint):
                return True
        return False
