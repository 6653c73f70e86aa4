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
from dralloc.objects.api.selecting import holds

__all__ = ["Selector", "Term", "selector_of", "spread_selector", "term_of"]

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
            holds(
                requirement.operator,
                requirement.values,
                labels.get(requirement.key),
            )
            for requirement in self.requirements
        )


def selector_of(
    selector: LabelSelector | None,
    requirements: Iterable[LabelSelectorRequirement] = (),
) -> Selector:
    """A selector of the API; without one nothing is selected."""
    if selector is None:
        return Selector(None)
    labels = _of_same_label(
        sorted(selector.match_labels), selector.match_labels, "In"
    )
    return Selector((*requirements, *labels, *selector.match_expressions))


def _of_same_label(
    keys: Iterable[str], labels: Labels, operator: str
) -> tuple[LabelSelectorRequirement, ...]:
    """Conditions that a label is (``In``), or is not (``NotIn``), what it is for these labels (``matchLabelKeys``)."""
    return tuple(
        LabelSelectorRequirement(
            key=key, operator=operator, values=(labels[key],)
        )
        for key in keys
        if key in labels
    )


def spread_selector(
    constraint: TopologySpreadConstraint, labels: Labels
) -> Selector:
    """The pods that a constraint of a pod with these labels counts; an empty selector counts none."""
    return selector_of(
        constraint.label_selector,
        _of_same_label(constraint.match_label_keys, labels, "In"),
    )


class Term(NamedTuple):
    """A pod affinity term of a pod."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str
    weight: int = 0

    def matches(
        self, namespace: str, namespace_labels: Labels, labels: Labels
    ) -> bool:
        """Whether it means a pod in this namespace with these labels."""
        return (
            namespace in self.namespaces
            or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)


def term_of(
    term: PodAffinityTerm, namespace: str, labels: Labels, weight: int = 0
) -> Term:
    """A term of a pod in a namespace, with these labels."""
    # Without either, the term is about the pod's own namespace.
    in_own_namespace = not term.namespaces and term.namespace_selector is None
    requirements = (
        *_of_same_label(term.match_label_keys, labels, "In"),
        *_of_same_label(term.mismatch_label_keys, labels, "NotIn"),
    )
    return Term(
        namespaces=frozenset(
            (namespace,) if in_own_namespace else term.namespaces
        ),
        namespace_selector=selector_of(term.namespace_selector),
        selector=selector_of(term.label_selector, requirements),
        topology_key=term.topology_key,
        weight=weight,
    )
