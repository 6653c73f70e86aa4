"""Whether an answer keeps the rules of the API's objects about pods, nodes and groups.

It reads pods, nodes, groups and namespaces of the cluster by itself, and shares no code with the compiler, which reads
them for the searches, nor with the scheduler: what one of them misreads is found here. Devices and amounts of devices
are the matter of `dralloc.check.problem`.

It is given which pod goes to which node, and what kind of answer that is (`dralloc.check.objects.promise`):

- `dralloc.check.objects.selection`: what selectors select, and which taints are tolerated, by the API's text;
- `dralloc.check.objects.node_requests`: what a pod requests of its node, by the API's text;
- `dralloc.check.objects.promise`: what an answer says and promises about pods;
- `dralloc.check.objects.whereabouts`: who is where;
- `dralloc.check.objects.affinity`: rules between pods by domain, and whether pods can have come in some order;
- `dralloc.check.objects.domains`: topology spread; PodGroups, Workloads and CompositePodGroups.

Whether a pod may be on its node, and whether there is room for it, is found here.

Pods are grouped by what they say, and looked up by their labels, so that the effort grows with pods and nodes, and not
with their product. What is ignored as asked, or with a notice, is not looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from dralloc.check.objects import affinity, domains
from dralloc.check.objects.node_requests import PODS, amounts_of, requests_of
from dralloc.check.objects.promise import Binding, Filters, Promise
from dralloc.check.objects.selection import (
    is_tolerated,
    may_be_on_cordoned,
    node_is_selected,
)
from dralloc.check.objects.whereabouts import PodOnNode, Whereabouts
from dralloc.objects.cluster import Cluster
from dralloc.objects.limits import without_garbage_collection

__all__ = ["Binding", "Filters", "Promise", "violations"]

# ----------------------------------------------------------------------------
# A newcomer and its node: whether it may be there, and whether there is room beside the
# other pods on it. Sources: ``nodeunschedulable``, ``tainttoleration``,
# ``nodeaffinity``, ``nodeports``, ``noderesources/fit.go`` and ``dynamicresources`` of
# ``kubernetes/pkg/scheduler/framework/plugins``.

_ANYWHERE: Final = "0.0.0.0"


def nodes_are_allowed(whereabouts: Whereabouts) -> Iterator[str]:
    """A newcomer is on a node that is not cordoned or tainted for it, and that it selects."""
    for pod in whereabouts.newcomers:
        node, spec = pod.node, pod.pod.spec
        for key, value in spec.node_selector.items():
            if node.metadata.labels.get(
                key
            ) != value and whereabouts.has_filter(pod, "NodeAffinity"):
                yield f"{pod}: node {node.name} has no label {key}={value}, which its node selector asks for"
        required = spec.required_nodes
        if (
            required
            and not node_is_selected(required, node)
            and whereabouts.has_filter(pod, "NodeAffinity")
        ):
            yield f"{pod}: its node affinity does not select node {node.name}"
        added = whereabouts.promise.filters_of(pod.pod).added_affinity
        if (
            added
            and not node_is_selected(added, node)
            and whereabouts.has_filter(pod, "NodeAffinity")
        ):
            yield f"{pod}: the node affinity that its scheduler adds does not select node {node.name}"
        if (
            node.spec.taints
            and not is_tolerated(node.spec.taints, pod.pod)
            and whereabouts.has_filter(pod, "TaintToleration")
        ):
            yield f"{pod}: does not tolerate a taint of node {node.name}"
        if (
            node.spec.unschedulable
            and not may_be_on_cordoned(pod.pod)
            and whereabouts.has_filter(pod, "NodeUnschedulable")
        ):
            yield f"{pod}: node {node.name} is unschedulable"


def claims_can_be_used(whereabouts: Whereabouts) -> Iterator[str]:
    """A newcomer is where the claims that were allocated before can be used."""
    for pod in whereabouts.newcomers:
        for key in whereabouts.cluster.pod_claims(pod.pod):
            claim = whereabouts.cluster.claim(key)
            allocation = claim.status.allocation if claim else None
            selector = allocation.node_selector if allocation else None
            if selector and not node_is_selected(selector, pod.node):
                yield f"{pod}: its claim {key} is allocated, and not for node {pod.node.name}"


def resources_suffice(whereabouts: Whereabouts) -> Iterator[str]:
    """Of what a newcomer requests its node has enough for all pods on it, as far as the node says what it has.

    What devices take of nodes (KEP-5517) is not looked at.
    """
    on_devices = whereabouts.offered_by_classes
    newcomers = _by_node(whereabouts.newcomers)
    running = _by_node(
        [pod for pod in whereabouts.running if pod.node.name in newcomers]
    )
    for name, coming in newcomers.items():
        if not whereabouts.nodes[name].status.allocatable:
            continue
        requested: Counter[str] = Counter()
        for pod in running.get(name, ()):
            requested.update(_requested(whereabouts, pod, on_devices))
        allocatable = amounts_of(whereabouts.nodes[name].status.allocatable)
        short: dict[str, tuple[PodOnNode, int]] = {}
        # They come as they are listed: who need not find room may take more than there is, once the others have come.
        for pod in coming:
            of_pod = _requested(whereabouts, pod, on_devices)
            requested.update(of_pod)
            for resource in of_pod:
                # What a pod does not request does not bind it, even where it is overcommitted.
                if requested[resource] > allocatable.get(
                    resource, 0
                ) and _binds(whereabouts, pod, resource, on_devices):
                    short[resource] = pod, requested[resource]
        for resource, (pod, amount) in sorted(short.items()):
            amounts = f"{amount} of {resource} are requested, {allocatable.get(resource, 0)} are there"
            yield f"{pod}: no room on node {name}: {amounts}"


def _by_node(pods: Sequence[PodOnNode]) -> Mapping[str, list[PodOnNode]]:
    by_node: dict[str, list[PodOnNode]] = defaultdict(list)
    for pod in pods:
        by_node[pod.node.name].append(pod)
    return by_node


def _binds(
    whereabouts: Whereabouts,
    pod: PodOnNode,
    resource: str,
    on_devices: frozenset[str],
) -> bool:
    filters = whereabouts.promise.filters_of(pod.pod)
    is_looked_at = (
        "NodeResourcesFit" not in filters.off and not filters.ignores(resource)
    )
    return (
        is_looked_at
        and _requested(whereabouts, pod, on_devices).get(resource, 0) > 0
    )


def _requested(
    whereabouts: Whereabouts, pod: PodOnNode, on_devices: frozenset[str]
) -> Mapping[str, int]:
    """Return the pod's requests of its node, without extended resources that it gets as devices (KEP-5004).

    A claim that the answer allocates is for those alone that the node does not offer itself.
    """
    requested = {**requests_of(pod.pod.spec), PODS: 1}
    if on_devices.isdisjoint(requested):
        return requested
    claims = [
        claim
        for key in whereabouts.cluster.pod_claims(pod.pod)
        if (claim := whereabouts.cluster.claim(key)) and claim.is_extended
    ]
    if not claims:
        return requested
    own = amounts_of(pod.node.status.allocatable)
    if any(claim.is_allocated for claim in claims):
        # It may have got devices before the node had a device plugin.
        own = {}
    return {
        name: amount
        for name, amount in requested.items()
        if name not in on_devices or own.get(name)
    }


class _Port(NamedTuple):
    """A port of a node that a pod takes; on any address, it takes it on all of them."""

    address: str
    protocol: str
    number: int

    def collides(self, port: _Port) -> bool:
        if (self.protocol, self.number) != (port.protocol, port.number):
            return False
        return self.address == port.address or _ANYWHERE in (
            self.address,
            port.address,
        )


def ports_are_free(whereabouts: Whereabouts) -> Iterator[str]:
    """No newcomer wants a port of its node that another pod there has."""
    newcomers = {
        name: list(_with_ports(pods))
        for name, pods in _by_node(whereabouts.newcomers).items()
    }
    nodes = {name for name, pods in newcomers.items() if pods}
    if not nodes:
        return
    running = _by_node(
        [pod for pod in whereabouts.running if pod.node.name in nodes]
    )
    for name, coming in newcomers.items():
        present = [*_with_ports(running.get(name, ()))]
        for pod, ports in coming:
            for holder, held_ports in present:
                collisions = [
                    port
                    for port in ports
                    if any(map(port.collides, held_ports))
                ]
                if collisions and whereabouts.has_filter(pod, "NodePorts"):
                    yield f"{pod}: port {collisions[0].number} of node {name} is taken by {holder}"
            # Of two newcomers the later one breaks the rule: the earlier one found the port free.
            present.append((pod, ports))


def _with_ports(
    pods: Sequence[PodOnNode],
) -> Iterator[tuple[PodOnNode, Sequence[_Port]]]:
    for pod in pods:
        ports = list(_ports_of(pod))
        if ports:
            yield pod, ports


def _ports_of(pod: PodOnNode) -> Iterator[_Port]:
    """The ports of the node that containers and sidecars want; on the node's network these are all of theirs."""
    spec = pod.pod.spec
    sidecars = (
        container
        for container in spec.init_containers
        if container.restart_policy == "Always"
    )
    for container in (*sidecars, *spec.containers):
        for port in container.ports:
            port_number = port.host_port or (
                port.container_port if spec.host_network else 0
            )
            if port_number > 0:
                yield _Port(
                    port.host_ip or _ANYWHERE,
                    port.protocol or "TCP",
                    port_number,
                )


# ----------------------------------------------------------------------------
# Every rule, and the answer.

Rule = Callable[[Whereabouts], Iterator[str]]

_ALWAYS: tuple[Rule, ...] = (
    nodes_are_allowed,
    claims_can_be_used,
    resources_suffice,
    ports_are_free,
    affinity.nobody_is_too_near,
    domains.groups_are_kept,
)
_OF_BATCHES: tuple[Rule, ...] = (
    affinity.affinity_holds_in_some_order,
    domains.spread_is_even_in_some_order,
)
_IN_ORDER: tuple[Rule, ...] = (
    affinity.affinity_holds_in_order,
    domains.spread_is_even_in_order,
)


@without_garbage_collection()
def violations(
    cluster: Cluster, bindings: Sequence[Binding], promise: Promise
) -> list[str]:
    """Every rule of the cluster's objects that an answer breaks, each with the object and the rule.

    Parameters
    ----------
    bindings
        The pods that get a node, or something on the node that they have.
    """
    unknown = list(_unknown(cluster, bindings, promise))
    if unknown:
        return unknown
    whereabouts = Whereabouts(cluster, bindings, promise)
    rules = (*_ALWAYS, *(_IN_ORDER if promise.in_order else _OF_BATCHES))
    return [violation for rule in rules for violation in rule(whereabouts)]


def _unknown(
    cluster: Cluster, bindings: Sequence[Binding], promise: Promise
) -> Iterator[str]:
    """Yield bindings that make no sense: of unknown pods or nodes, of pods bound twice, or that nobody may bind."""
    nodes = frozenset(promise.nodes)
    for key, name in bindings:
        pod = cluster.pods_by_key.get(key)
        if pod is None:
            yield f"pod {key}: is not there"
        elif name not in nodes:
            yield f"pod {key}: there is no node {name} for it"
        elif pod.spec.node_name and pod.spec.node_name != name:
            yield f"pod {key}: is on node {pod.spec.node_name} already, and cannot come to node {name}"
        elif pod.spec.scheduling_gates and not pod.spec.node_name:
            yield f"pod {key}: has scheduling gates"
    for key, times in Counter(binding.pod for binding in bindings).items():
        if times > 1:
            yield f"pod {key}: gets a node {times} times"
