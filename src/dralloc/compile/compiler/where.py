"""On which nodes a pod may be placed, as far as the pod itself and its allocated claims say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property

from dralloc.objects.api import Node as ApiNode
from dralloc.objects.api import NodeSelector, Pod
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.api.node_selectors import names_of, selector_matches
from dralloc.objects.api.tolerating import all_tolerated, goes_to_cordoned

__all__ = ["Where"]


class Where:
    """Finds nodes. Pods with equal rules, as most pods have, get the same answer at once.

    Parameters
    ----------
    tainted
        Whether taints of nodes keep pods away that do not tolerate them.
    """

    def __init__(self, nodes: Sequence[ApiNode], *, tainted: bool = True) -> None:
        self._nodes = nodes
        self._tainted = tainted and any(node.spec.taints for node in nodes)
        self._by_name = {node.metadata.name: index for index, node in enumerate(nodes)}
        self._known: dict[Hashable, tuple[int, ...] | None] = {}

    def of(
        self, pod: Pod, selectors: Sequence[NodeSelector], elsewhere: frozenset[str]
    ) -> tuple[int, ...] | None:
        """Indices of the nodes for a pod, in order; None for all.

        Parameters
        ----------
        selectors
            Of the claims that it uses.
        elsewhere
            Names of nodes that are not for the pod.
        """
        if pod.spec.node_name:
            index = self._by_name.get(pod.spec.node_name)
            return () if index is None else (index,)
        affinity = pod.spec.required_nodes
        every = [*selectors, affinity] if affinity else selectors
        wanted = pod.spec.node_selector
        hardy = goes_to_cordoned(pod)
        tolerations = pod.spec.tolerations if self._tainted else ()
        key = (
            tuple(wanted.items()),
            repr(every) if every else "",
            elsewhere,
            hardy,
            tolerations,
        )
        if key not in self._known:
            homes = (
                index
                for index in self._named(wanted, every)
                if wanted.items()
                <= (node := self._nodes[index]).metadata.labels.items()
                and node.metadata.name not in elsewhere
                and all(selector_matches(selector, node) for selector in every)
                and (not self._tainted or all_tolerated(node.spec.taints, tolerations))
            )
            self._known[key] = (
                self._all_or(homes) if hardy else self._schedulable(homes)
            )
        return self._known[key]

    def _named(
        self, labels: Mapping[str, str], selectors: Iterable[NodeSelector]
    ) -> Sequence[int]:
        """The nodes that rules name, lest all be looked at for each pod of a DaemonSet; all if rules name none."""
        each = (names for names in map(names_of, selectors) if names is not None)
        found = [
            {self._by_name[name] for name in names if name in self._by_name}
            for names in each
        ]
        if HOSTNAME_LABEL in labels:
            found.append(set(self._by_hostname.get(labels[HOSTNAME_LABEL], ())))
        return sorted(set.intersection(*found)) if found else range(len(self._nodes))

    @cached_property
    def _by_hostname(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for index, node in enumerate(self._nodes):
            found[node.metadata.labels.get(HOSTNAME_LABEL, "")].append(index)
        return found

    def everywhere(self) -> tuple[int, ...] | None:
        """The nodes for a pod without rules."""
        if () not in self._known:
            self._known[()] = self._schedulable(range(len(self._nodes)))
        return self._known[()]

    def _schedulable(self, nodes: Iterable[int]) -> tuple[int, ...] | None:
        return self._all_or(
            index for index in nodes if not self._nodes[index].spec.unschedulable
        )

    def _all_or(self, nodes: Iterable[int]) -> tuple[int, ...] | None:
        kept = tuple(nodes)
        return None if len(kept) == len(self._nodes) else kept
