"""Whether an answer keeps the rules of the API's objects about pods, nodes and groups.

It reads pods, nodes, groups and namespaces of the cluster by itself, and shares no code with the compiler, which reads
them for the searches, nor with the scheduler: what one of them misreads is found here. Devices and amounts of devices
are the matter of `dralloc.check.problem`.

It is given which pod goes to which node, and what kind of answer that is (`dralloc.check.objects.whereabouts`):

- `dralloc.check.objects.whereabouts`: selectors, taints and amounts by the API's text, and who is where;
- `dralloc.check.objects.on_node`: whether a pod may be on its node, and whether there is room for it;
- `dralloc.check.objects.affinity`: rules between pods by domain, and whether pods can have come in some order;
- `dralloc.check.objects.domains`: topology spread; PodGroups, Workloads and CompositePodGroups.

Pods are grouped by what they say, and looked up by their labels, so that the effort grows with pods and nodes, and not
with their product. What is ignored as asked, or with a notice, is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from dralloc.check.objects import affinity, domains, on_node
from dralloc.check.objects.whereabouts import (
    Binding,
    Filters,
    Promise,
    Whereabouts,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.limits import without_garbage_collection

__all__ = ["Binding", "Filters", "Promise", "violations"]

Rule = Callable[[Whereabouts], Iterator[str]]

_ALWAYS: tuple[Rule, ...] = (
    on_node.nodes_are_allowed,
    on_node.claims_can_be_used,
    on_node.resources_suffice,
    on_node.ports_are_free,
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
    """Yield what makes no sense: unknown pods or nodes, pods that are placed twice, or that nobody may place."""
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
