"""Label selectors and pod affinity terms, ready to be asked often.

Source: ``k8s.io/apimachinery/pkg/labels``, ``AffinityTerm`` of ``k8s.io/kube-scheduler/framework``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dralloc.objects.api import (
    LabelSelector,
    LabelSelectorRequirement,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from dralloc.objects.api.node_selectors import holds

__all__ = [
    "Selector",
    "Term",
    "of_same_label",
    "selector_of",
    "spread_selector",
    "term_of",
]

Labels = Mapping[str, str]


class Selector(NamedTuple):
    """Conditions on labels that must all hold; None for a selector that selects nothing."""

    requirements: tuple[LabelSelectorRequirement, ...] | None

    @property
    def is_empty(self) -> bool:
        """Whether it selects everything."""
        return self.requirements == ()

    def matches(self, labels: Labels) -> bool:
        """Whether it selects something with these labels."""
        return self.requirements is not None and all(
            holds(one.operator, one.values, labels.get(one.key))
            for one in self.requirements
        )


def selector_of(
    given: LabelSelector | None, more: Iterable[LabelSelectorRequirement] = ()
) -> Selector:
    """A selector of the API; without one nothing is selected."""
    if given is None:
        return Selector(None)
    labels = of_same_label(sorted(given.match_labels), given.match_labels, "In")
    return Selector((*more, *labels, *given.match_expressions))


def of_same_label(
    keys: Iterable[str], labels: Labels, operator: str
) -> tuple[LabelSelectorRequirement, ...]:
    """Conditions that a label is (``In``), or is not (``NotIn``), what it is for these labels (``matchLabelKeys``)."""
    return tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for key in keys
        if key in labels
    )


def spread_selector(given: TopologySpreadConstraint, labels: Labels) -> Selector:
    """The pods that a constraint of a pod with these labels counts; an empty selector counts nobody."""
    return selector_of(
        given.label_selector, of_same_label(given.match_label_keys, labels, "In")
    )


class Term(NamedTuple):
    """A pod affinity term of a pod."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str
    weight: int = 0

    def matches(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Whether it means a pod in this namespace with these labels."""
        return (
            namespace in self.namespaces
            or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)


def term_of(
    given: PodAffinityTerm, namespace: str, labels: Labels, weight: int = 0
) -> Term:
    """A term of a pod in a namespace, with these labels."""
    own = not given.namespaces and given.namespace_selector is None
    more = (
        *of_same_label(given.match_label_keys, labels, "In"),
        *of_same_label(given.mismatch_label_keys, labels, "NotIn"),
    )
    return Term(
        namespaces=frozenset((namespace,) if own else given.namespaces),
        namespace_selector=selector_of(given.namespace_selector),
        selector=selector_of(given.label_selector, more),
        topology_key=given.topology_key,
        weight=weight,
    )
