"""Required anti-affinity of pods by node, where those that have a term are meant by it, too.

Of each such term a node has as much as all pods together could take: who has the term takes all of it, who is only
meant by it takes a little. So there is one of those that have it, or any number of the others.
Source: ``framework/plugins/interpodaffinity/filtering.go`` of ``kubernetes/pkg/scheduler``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dralloc.api import Node
from dralloc.pods.kinds import PodKind
from dralloc.pods.selectors import Term
from dralloc.quantity import NANOS

__all__ = ["HostExclusion"]


class HostExclusion:
    """What pods take of the terms of each other.

    Parameters
    ----------
    terms
        The terms, each with a name.
    most
        A number that no node has as many pods as.
    """

    def __init__(self, terms: Iterable[Term], most: int) -> None:
        self._names: Mapping[Term, str] = {term: f"podAntiAffinity {number}" for number, term in enumerate(terms)}
        self._all = most * NANOS

    def asked(self, kind: PodKind) -> dict[str, int]:
        """What such a pod takes of its node."""
        return {
            name: self._all if term in kind.required_anti_affinity else NANOS
            for term, name in self._names.items()
            if term in kind.required_anti_affinity or kind.is_meant_by(term)
        }

    def there(self, node: Node) -> dict[str, int]:
        """What there is; nodes without the label are no place that a term means."""
        return {name: self._all for term, name in self._names.items() if term.topology_key in node.metadata.labels}
