"""Required anti-affinity between pods.

Source: ``framework/plugins/interpodaffinity/filtering.go`` of ``kubernetes/pkg/scheduler``.

It does not depend on an order: of two pods of which one keeps the other away, whoever comes last is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dralloc.check.objects.affinity import INTER_POD_AFFINITY
from dralloc.check.objects.whereabouts import (
    AffinityTerm,
    PodOnNode,
    Whereabouts,
    domain_of,
    term_of,
)

__all__ = ["nobody_is_too_near"]


def nobody_is_too_near(whereabouts: Whereabouts) -> Iterator[str]:
    """Nobody whom a term of anti-affinity means is in one domain with somebody else who has it."""
    for term, having in _anti_affinity(whereabouts).items():
        meant = whereabouts.meant_by(term)
        meant_when_it_comes = whereabouts.meant_by(whereabouts.of_incoming(term))
        if not any(pod.is_newcomer for pod in (*having, *meant)):
            continue
        by_domain = [
            _by_domain(pods, term.topology_key)
            for pods in (having, meant, meant_when_it_comes)
        ]
        for domain, here in by_domain[0].items():
            together = _Together(
                f"{term.topology_key}={domain}",
                here,
                *(each.get(domain, ()) for each in by_domain[1:]),
            )
            yield from together.violations(whereabouts)


def _anti_affinity(whereabouts: Whereabouts) -> Mapping[AffinityTerm, list[PodOnNode]]:
    """The pods that have each term."""
    having: dict[AffinityTerm, list[PodOnNode]] = defaultdict(list)
    for pod in whereabouts.everybody:
        affinity = pod.pod.spec.affinity
        for given in (
            affinity.pod_anti_affinity.required
            if affinity and affinity.pod_anti_affinity
            else ()
        ):
            having[term_of(given, pod)].append(pod)
    return having


def _by_domain(
    pods: Sequence[PodOnNode], topology_key: str
) -> Mapping[str, list[PodOnNode]]:
    by_domain: dict[str, list[PodOnNode]] = defaultdict(list)
    for pod in pods:
        domain = domain_of(pod.node, topology_key)
        if domain is not None:
            by_domain[domain].append(pod)
    return by_domain


class _Together(NamedTuple):
    """Pods in one domain: those that have a term of anti-affinity, and those that it means.

    Parameters
    ----------
    meant, meant_when_it_comes
        Whom it means if they come later, and if whoever has it comes later.
    """

    domain: str
    having: Sequence[PodOnNode]
    meant: Sequence[PodOnNode]
    meant_when_it_comes: Sequence[PodOnNode]

    def violations(self, whereabouts: Whereabouts) -> Iterator[str]:
        """One for each newcomer that came although somebody was there, as the one or as the other.

        In a free order, which makes no difference here, they come as they are listed.
        """
        for pod, other in _after_the_first(
            whereabouts, self.having, self.meant_when_it_comes
        ):
            yield f"{pod}: its anti-affinity keeps it away from {other}, in {self.domain}"
        for pod, other in _after_the_first(whereabouts, self.meant, self.having):
            yield f"{pod}: anti-affinity of {other} keeps it out of {self.domain}"


def _after_the_first(
    whereabouts: Whereabouts, pods: Sequence[PodOnNode], others: Sequence[PodOnNode]
) -> Iterator[tuple[PodOnNode, PodOnNode]]:
    """Newcomers that passed the filter when one of the others was there already, each with the first of these."""
    if not others:
        return
    first = min(others, key=lambda other: other.position)
    for pod in pods:
        if first.position < pod.position and whereabouts.has_filter(
            pod, INTER_POD_AFFINITY
        ):
            yield pod, first
