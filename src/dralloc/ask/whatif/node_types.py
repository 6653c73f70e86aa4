"""Types of nodes: what they are called, and which node stands for others that publish the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Final

from dralloc.ask.scenario import Scenario
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.inventory import (
    NodeSelections,
    compared_values,
    find_drift,
    find_reach,
    held_results,
)
from dralloc.compile.match import cel_device
from dralloc.objects.api import (
    Device,
    DeviceRequestAllocationResult,
    DeviceTaint,
    ResourceSlice,
)
from dralloc.objects.api import Node as ApiNode
from dralloc.objects.choices import Choices
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError, did_you_mean
from dralloc.objects.names import DeviceID, PoolID
from dralloc.problem import Demand, NodeIndex, Problem
from dralloc.problem.equivalence import (
    NodeClasses,
    Recurrence,
    equivalent_nodes,
)

__all__ = [
    "NodeType",
    "NotRepresentativeError",
    "find_node_types",
    "find_representatives",
    "parse_price",
]

_INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""The label by which clouds tell kinds of machines."""


@dataclass(frozen=True, slots=True)
class NodeType:
    """A type of node.

    Parameters
    ----------
    name
        What it is called.
    example
        The node that stands for it.
    price
        What a node costs.
    existing
        How many there are in the cluster: of a type that a label names, the nodes with that label. Of a node to copy,
        those of its instance type that offer the same; if its labels tell none, all that offer the same.
    """

    name: str
    example: str
    price: Fraction
    existing: int


def parse_price(text: str) -> tuple[str, Fraction]:
    """Read ``KIND=AMOUNT``; the amount is a decimal number or a fraction.

    Raises
    ------
    DrallocError
        It has another form, or the amount is not above 0.
    """
    name, _, amount = text.rpartition("=")
    try:
        price = Fraction(amount)
    except (ValueError, ZeroDivisionError):
        price = Fraction(0)
    if not name or price <= 0:
        raise DrallocError(
            f"--price {text}: expected KIND=AMOUNT, with an amount above 0"
        )
    return name, price


def find_node_types(
    cluster: Cluster,
    problem: Problem,
    demands: Sequence[Demand],
    named: Mapping[str, str],
    prices: Mapping[str, Fraction],
) -> tuple[NodeType, ...]:
    """The kinds of nodes that may be had; one of a name for each of its parts that not the same demands may go to.

    Parameters
    ----------
    problem
        The cluster as if nothing were allocated.
    named
        For each kind the name of a node, or ``LABEL=VALUE`` for the nodes with that label, which offer the same.
        Without any, nodes that are equivalent to the demands are a kind, which is called by the first of them.
    prices
        By kind; 1 for all without any.

    Raises
    ------
    DrallocError
        There is no such node, the nodes with a label offer different devices, a kind has no price, a price is for no
        kind or not above 0, or devices are not on one node only.
    """
    classes = equivalent_nodes(problem, demands)
    if classes is None:
        raise DrallocError(
            f"{_shared_device(problem)}: a node of a kind brings devices and counters of its own only"
        )
    names = [node.name for node in problem.nodes]
    # By node the class that it is in; nodes where the demands can do nothing are in none.
    parts = {
        names[node]: part
        for part, group in enumerate(classes.groups)
        for node in group
    }
    useful = {
        names[node]
        for demand in demands
        for node in problem.candidate_nodes(demand)
    }
    chosen: dict[str, list[str]] = {}
    members: dict[str, Collection[str]] = {}
    for kind, text in named.items():
        option = f"--kind {kind}={text}"
        nodes = _named(cluster, option, text)
        # Nodes that no demand may go to are no examples, unless the kind has no others.
        chosen[kind] = _examples(
            classes,
            parts,
            option,
            [node for node in nodes if node in useful] or nodes[:1],
        )
        members[kind] = nodes if "=" in text else _like(cluster, text, parts)
    if not named:
        chosen = {
            names[group[0]]: [names[group[0]]] for group in classes.groups
        }
        members = dict.fromkeys(chosen, names)
    for kind, price in prices.items():
        if kind not in chosen:
            raise DrallocError(
                f"--price {kind}: there is no such kind of node, only {', '.join(chosen) or 'none'}"
            )
        if price <= 0:
            raise DrallocError(
                f"--price {kind}={price}: expected an amount above 0"
            )
    for kind in chosen:
        if prices and kind not in prices:
            raise DrallocError(
                f"node kind {kind}: has no price; give all kinds one with --price, or none"
            )
    node_types = []
    for kind, nodes in chosen.items():
        # Of all nodes that count for the kind, those of the example's part are there already.
        part_sizes = Counter(parts.get(member) for member in members[kind])
        for node in nodes:
            price = prices.get(kind, Fraction(1))
            node_types.append(
                NodeType(kind, node, price, part_sizes[parts.get(node)])
            )
    return tuple(node_types)


def _named(cluster: Cluster, option: str, text: str) -> list[str]:
    """The nodes that the user means."""
    label, equals, value = text.partition("=")
    labels = {
        node.metadata.name: node.metadata.labels for node in cluster.nodes
    }
    if not equals and text not in labels:
        meant = did_you_mean(text, labels)
        raise DrallocError(f'{option}: node "{text}" does not exist{meant}')
    nodes = (
        [name for name in labels if labels[name].get(label) == value]
        if equals
        else [text]
    )
    if not nodes:
        raise DrallocError(f"{option}: no node has the label")
    return nodes


def _like(
    cluster: Cluster, example: str, parts: Mapping[str, int]
) -> list[str]:
    """The nodes that count as copies of a node, as far as they offer the same: those of its instance type, or all."""
    types = {
        node.metadata.name: node.metadata.labels.get(_INSTANCE_TYPE)
        for node in cluster.nodes
    }
    if types[example] is None and example not in parts:
        return [
            example
        ]  # Nothing can happen there, and nothing tells what is like it.
    return [
        name for name, of_type in types.items() if of_type == types[example]
    ]


def _examples(
    classes: NodeClasses,
    parts: Mapping[str, int],
    option: str,
    nodes: Sequence[str],
) -> list[str]:
    """The first node of each part, all of which offer the same."""
    first: dict[int | None, str] = {}
    for node in nodes:
        first.setdefault(parts.get(node), node)
    offers = {
        None if part is None else classes.offers[part]: node
        for part, node in first.items()
    }
    if len(offers) > 1:
        differing = " and ".join(sorted(offers.values())[:2])
        raise DrallocError(
            f"{option}: nodes {differing} differ in what they offer; name one as example"
        )
    return list(first.values())


def _shared_device(problem: Problem) -> str:
    """Some device that is not on one node only, for the message."""
    seen: dict[int, str] = {}
    for node in problem.nodes:
        for index in node.devices():
            device = problem.devices[index]
            if (
                seen.setdefault(device.slot, node.name) != node.name
                or device.nodes is not None
            ):
                return f"device {device.id}: is within reach of other nodes than {seen[device.slot]}"
    return "some counters are shared by nodes"


# ----------------------------------------------------------------------------
# Nodes that publish the same, found before their devices are compiled.
#
# Where only numbers are asked for, one of many equal nodes tells about all of them,
# and the others need not be compiled: in large clusters that is most of the time.
# Such are nodes of which nobody else reaches the pools, and whose pools are equal
# slice by slice and device by device in all that the demands could tell apart, with
# the same places in use.
#
# This only decides which nodes are compiled. It may take equal nodes for different
# ones, never the reverse; what they have in common beyond this is seen when they are
# compiled (see `dralloc.problem.equivalence`).


class NotRepresentativeError(Exception):
    """The result for one of several equal nodes does not hold for the others: all of them have to be compiled."""


@dataclass(frozen=True, slots=True)
class Representatives:
    """One node for each class of equal nodes.

    Parameters
    ----------
    names
        The first node of each class, in search order.
    order
        For each node in search order the index of the name that stands for it.
    """

    names: tuple[str, ...]
    order: tuple[NodeIndex, ...]


def find_representatives(cluster: Cluster, choices: Choices) -> Representatives:
    """Group the nodes by what they publish.

    Parameters
    ----------
    cluster
        With what is pending, by which nodes are told apart.
    choices
        As for `dralloc.compile.compiler.compile_cluster`.
    """
    without_devices = compile_cluster(
        Scenario(cluster).without_slices().cluster, choices
    )
    by_name = {node.name: node for node in cluster.nodes}
    chosen = [by_name[node.name] for node in without_devices.problem.nodes]
    drifts = (
        find_drift(cluster.slices, cluster.claims, choices.features)
        if choices.strict
        else ()
    )
    published = _PublishedNodes(
        without_devices,
        cluster,
        chosen,
        frozenset(drift.pool for drift in drifts),
    )
    groups: Iterable[list[NodeIndex]] = [
        list(map(NodeIndex, range(len(chosen))))
    ]
    # What is found out in no time comes first, so that a node which has no equal is not looked at any closer.
    for key in (published.outline, published.devices):
        groups = _refined(groups, key)
    classes = sorted(groups)
    class_of = {
        node: NodeIndex(index)
        for index, group in enumerate(classes)
        for node in group
    }
    names = tuple(chosen[group[0]].name for group in classes)
    return Representatives(
        names,
        tuple(class_of[node] for node in map(NodeIndex, range(len(chosen)))),
    )


def _refined(
    groups: Iterable[list[NodeIndex]], key: Callable[[NodeIndex], Hashable]
) -> Iterator[list[NodeIndex]]:
    for group in groups:
        parts: dict[Hashable, list[NodeIndex]] = defaultdict(list)
        for node in group:
            parts[key(node) if len(group) > 1 else None].append(node)
        yield from parts.values()


class _PublishedNodes:
    """The published facts about nodes. Equal parts of devices, and equal counter sets, are one object after loading."""

    def __init__(
        self,
        compiled: CompiledCluster,
        cluster: Cluster,
        nodes: Sequence[ApiNode],
        closed: Set[PoolID],
    ) -> None:
        problem, slices = compiled.problem, cluster.slices
        self.slices, self.closed, self.table, self.features = (
            slices,
            closed,
            compiled.table,
            problem.features,
        )
        self.nodes, self.running = nodes, compiled.pods.running
        self.allowed = [
            None if demand.nodes is None else frozenset(demand.nodes)
            for demand in problem.demands
        ]
        # Constraints tell nodes apart by where values of these attributes recur.
        compared: set[str] = set()
        for demand in problem.demands:
            for claim in demand.claims:
                for constraint in claim.constraints:
                    compared.update(constraint.attributes)
        self.compared = tuple(sorted(compared))
        self.pools: dict[PoolID, list[int]] = defaultdict(list)
        for index, slice_ in enumerate(slices):
            self.pools[slice_.pool_id].append(index)
        self.reached = find_reach(
            slices, NodeSelections(nodes), self.features
        ).by_node
        # By pool, how many nodes reach it. A node with a pool that others reach has no equal (see `outline`).
        self.users = Counter(chain.from_iterable(self.reached))
        self.results: dict[PoolID, list[DeviceRequestAllocationResult]] = (
            defaultdict(list)
        )
        for _, result in held_results(cluster.claims):
            self.results[result.device_id.pool_id].append(result)

    def outline(self, node: NodeIndex) -> Hashable:
        """Return the key of a node (demands allowed there, form of its pools, usage); a special node is its own key."""
        reached = self.reached[node]
        for pool in reached:
            if self.users[pool] > 1 or not self._is_plain(pool):
                return node
        allowed = tuple(
            nodes is None or node in nodes for nodes in self.allowed
        )
        forms = tuple(
            self._form(pool, frozenset(reached[pool]))
            for pool in sorted(reached)
        )
        return allowed, self._room(node), forms

    def _room(self, node: NodeIndex) -> Hashable:
        """Return the resources of a node beside devices, and the pods that use them."""
        amounts = frozenset(self.nodes[node].status.allocatable.items())
        running = self.running.get(self.nodes[node].name, ())
        pods = Counter(
            (id(pod.kind), frozenset(pod.of_devices.items())) for pod in running
        )
        return amounts, frozenset(pods.items())

    def _is_plain(self, pool: PoolID) -> bool:
        """Whether there is one generation, whose devices have names of their own and leave the nodes to the slices."""
        specs = [self.slices[index].spec for index in self.pools[pool]]
        names = [device.name for spec in specs for device in spec.devices]
        return (
            len({spec.pool.generation for spec in specs}) == 1
            and not any(spec.per_device_node_selection for spec in specs)
            and len(set(names)) == len(names)
        )

    def _form(self, pool: PoolID, reached: Set[int]) -> Hashable:
        slice_indices = self.pools[pool]
        slices = tuple(
            (
                index in reached,
                self.slices[index].spec.pool.resource_slice_count,
                len(self.slices[index].spec.devices),
                tuple(map(id, self.slices[index].spec.shared_counters)),
            )
            for index in slice_indices
        )
        by_name = sorted(
            range(len(slice_indices)),
            key=lambda position: (
                self.slices[slice_indices[position]].metadata.name
            ),
        )
        return (
            pool.driver,
            pool in self.closed,
            slices,
            tuple(by_name),
            self._in_use(pool),
        )

    def _in_use(self, pool: PoolID) -> Hashable:
        """Return the holdings of allocated claims, by the position of the device."""
        results = self.results.get(pool, ())
        names = (
            device.name
            for index in self.pools[pool]
            for device in self.slices[index].spec.devices
        )
        # Equal nodes may call their devices by other names. In plain pools, which alone are compared, a name has one
        # position.
        positions = (
            {name: position for position, name in enumerate(names)}
            if results
            else {}
        )
        held: Counter[Hashable] = Counter()
        for result in results:
            if result.device in positions:
                consumed = frozenset(
                    (name, amount.nanos)
                    for name, amount in result.consumed_capacity.items()
                )
                is_share = result.share_id is not None
                held[positions[result.device], is_share, consumed] += 1
        return frozenset(held.items())

    def devices(self, node: NodeIndex) -> Hashable:
        """The devices in all pools, as far as demands could tell them apart."""
        recurrence = Recurrence(self.compared)
        return tuple(
            self._column(self.slices[index], recurrence)
            for pool in sorted(self.reached[node])
            for index in self.pools[pool]
        )

    def _column(
        self, slice_: ResourceSlice, recurrence: Recurrence
    ) -> Hashable:
        driver, devices = slice_.spec.driver, slice_.spec.devices
        published = (
            self.features.DeviceTaints and not self.table.taint_rules.rules
        )
        return (
            self.table.keys_of_template(slice_)
            or tuple(
                [
                    self.table.key_of(
                        driver,
                        device,
                        device.taints
                        if published
                        else self._taints(slice_, device),
                    )
                    for device in devices
                ]
            ),
            tuple([id(device.consumes_counters) for device in devices]),
            tuple([device.binds_to_node for device in devices]),
            tuple(
                recurrence.of(
                    {
                        **compared_values(
                            device, driver, self.compared, self.features
                        ),
                        **self.table.derived.of(driver, device),
                    }
                )
                for device in (devices if self.compared else ())
            ),
        )

    def _taints(
        self, slice_: ResourceSlice, device: Device
    ) -> tuple[DeviceTaint, ...]:
        """The taints that count."""
        if not self.features.DeviceTaints:
            return ()
        id_ = DeviceID(*slice_.pool_id, device.name)
        by_rules = self.table.taint_rules.taints(
            id_, partial(cel_device, slice_.spec.driver, device)
        )
        return (*device.taints, *by_rules)
