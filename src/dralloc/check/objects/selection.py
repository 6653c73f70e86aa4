"""The labels that selectors select, and the taints that are tolerated, by the text of the API.

Source: the comments of ``LabelSelector``, ``NodeSelector`` and ``Toleration`` in ``k8s.io/api`` and
``k8s.io/apimachinery``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from dralloc.objects.api import (
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    Pod,
    Taint,
    Toleration,
)

__all__ = [
    "Conditions",
    "LabelCondition",
    "Labels",
    "all_hold",
    "conditions_of",
    "is_tolerated",
    "may_be_on_cordoned",
    "node_is_selected",
]

Labels = Mapping[str, str]

_CORDON: Final = Taint(
    key="node.kubernetes.io/unschedulable", effect="NoSchedule"
)
_REPELLING: Final = ("NoSchedule", "NoExecute")


class LabelCondition(NamedTuple):
    """A condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Labels) -> bool:
        """Whether it holds for these labels."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        """Whether the label is an integer above (``Gt``) or below (``Lt``) the only value."""
        bound = _integer(self.values[0]) if len(self.values) == 1 else None
        integer = None if value is None else _integer(value)
        if bound is None or integer is None:
            return False
        return integer > bound if self.operator == "Gt" else integer < bound


Conditions = tuple[LabelCondition, ...] | None
"""Conditions that must all hold; None selects nothing."""


def all_hold(conditions: Conditions, labels: Labels) -> bool:
    """Whether labels are selected."""
    if conditions is None:
        return False
    return all(condition.holds(labels) for condition in conditions)


def conditions_of(
    selector: LabelSelector | None,
    pod_labels: Labels,
    same_keys: Iterable[str] = (),
    different_keys: Iterable[str] = (),
) -> Conditions:
    """The conditions of a selector, of a pod with these labels.

    Parameters
    ----------
    same_keys, different_keys
        ``matchLabelKeys`` and ``mismatchLabelKeys``: labels that must be, or must not be, what they are for the pod
        itself, if it has them.
    """
    if selector is None:
        return None
    keys = [
        LabelCondition(key, "In", (pod_labels[key],))
        for key in same_keys
        if key in pod_labels
    ]
    keys += [
        LabelCondition(key, "NotIn", (pod_labels[key],))
        for key in different_keys
        if key in pod_labels
    ]
    labels = [
        LabelCondition(key, "In", (value,))
        for key, value in sorted(selector.match_labels.items())
    ]
    expressions = [
        LabelCondition(
            requirement.key, requirement.operator, requirement.values
        )
        for requirement in selector.match_expressions
    ]
    return (*keys, *labels, *expressions)


def node_is_selected(selector: NodeSelector, node: Node) -> bool:
    """Whether a node selector selects a node: terms are alternatives, and an empty one selects nothing."""
    for term in selector.node_selector_terms:
        expressions, fields = (
            _plain(term.match_expressions),
            _plain(term.match_fields),
        )
        is_empty = not expressions and not fields
        # A node has one field that can be selected by.
        by_name = {"metadata.name": node.name}
        if (
            not is_empty
            and all_hold(expressions, node.metadata.labels)
            and all_hold(fields, by_name)
        ):
            return True
    return False


def _plain(
    conditions: Iterable[NodeSelectorRequirement],
) -> tuple[LabelCondition, ...]:
    return tuple(
        LabelCondition(
            requirement.key, requirement.operator, requirement.values
        )
        for requirement in conditions
    )


def is_tolerated(taints: Iterable[Taint], pod: Pod) -> bool:
    """Whether a pod tolerates all taints that keep pods away."""
    return all(
        _has_toleration(pod.spec.tolerations, taint)
        for taint in taints
        if taint.effect in _REPELLING
    )


def may_be_on_cordoned(pod: Pod) -> bool:
    """Whether a pod may come to nodes that are unschedulable."""
    return _has_toleration(pod.spec.tolerations, _CORDON)


def _has_toleration(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    for toleration in tolerations:
        # An empty key or effect tolerates all of them.
        same_key = toleration.key in ("", taint.key)
        same_effect = toleration.effect in ("", taint.effect)
        if same_key and same_effect and _has_value(toleration, taint.value):
            return True
    return False


def _has_value(toleration: Toleration, value: str) -> bool:
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == value
        case "Exists":
            return True
        case "Gt" | "Lt":
            # Taints are compared as integers that are written without sign or zeros in front (KEP-5471).
            integers = _integer(value), _integer(toleration.value)
            if (str(integers[0]), str(integers[1])) != (
                value,
                toleration.value,
            ):
                return False
            return LabelCondition(
                "", toleration.operator, (toleration.value,)
            ).holds({"": value})
    return False


def _integer(text: str) -> int | None:
    """The number of 64 bits that a text is, if it is one."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 63:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
