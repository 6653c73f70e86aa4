"""Rules about who may use a node or a device: node selectors, taints and tolerations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from dralloc.objects.api.base import INT64
from dralloc.objects.api.claims import DeviceToleration
from dralloc.objects.api.nodes import (
    Node,
    NodeSelector,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from dralloc.objects.api.slices import DeviceTaint
from dralloc.objects.api.workloads import Pod

__all__ = [
    "CORDON_TAINT",
    "CORDON_TOLERATION",
    "all_tolerated",
    "goes_to_cordoned",
    "holds",
    "names_of",
    "selector_matches",
    "term_matches",
    "tolerates",
]

# ----------------------------------------------------------------------------
# Which nodes a node selector selects.
#
# Source: ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity``. Terms are
# alternatives; inside a term every requirement must hold; a term without requirements
# selects nothing.

_INTEGER: Final = re.compile("[+-]?[0-9]{1,63}")
"""As long as the value of a label can be."""


def _integer(text: str) -> int | None:
    """Return the number that a text is for Kubernetes: decimal digits, perhaps a sign, of 64 bits; else None."""
    return (
        value
        if _INTEGER.fullmatch(text) and (value := int(text)) in INT64
        else None
    )


def _compare(
    value: str | None, values: Sequence[str], holds: Callable[[int, int], bool]
) -> bool:
    integer = None if value is None else _integer(value)
    limit = _integer(values[0]) if len(values) == 1 else None
    return integer is not None and limit is not None and holds(integer, limit)


_REQUIREMENT_OPERATORS: dict[
    str, Callable[[str | None, Sequence[str]], bool]
] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _compare(value, values, int.__gt__),
    "Lt": lambda value, values: _compare(value, values, int.__lt__),
}


def holds(operator: str, values: Sequence[str], value: str | None) -> bool:
    """Return whether a condition on a label or field holds for its value; None if there is no such label."""
    condition = _REQUIREMENT_OPERATORS.get(operator)
    return condition is not None and condition(value, values)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Return whether every requirement of the term holds for the node, and there is at least one."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(
        holds(
            requirement.operator,
            requirement.values,
            node.metadata.labels.get(requirement.key),
        )
        for requirement in term.match_expressions
    ) and all(
        holds(
            requirement.operator,
            requirement.values,
            node.metadata.name if requirement.key == "metadata.name" else None,
        )
        for requirement in term.match_fields
    )


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Return whether at least one term of the selector selects the node."""
    return any(
        term_matches(term, node) for term in selector.node_selector_terms
    )


def names_of(selector: NodeSelector) -> Set[str] | None:
    """Return the only names that nodes which it selects can have; None if a term names none, or if there is no term."""
    names: set[str] = set()
    for term in selector.node_selector_terms:
        named = [
            set(requirement.values)
            for requirement in term.match_fields
            if (requirement.key, requirement.operator)
            == ("metadata.name", "In")
        ]
        if not named:
            return None
        names |= set.intersection(*named)
    return names if selector.node_selector_terms else None


# ----------------------------------------------------------------------------
# Taints of devices and the tolerations of requests (KEP-5055); taints of nodes and
# the tolerations of pods.
#
# Source: upstream's ``ToleratesTaint``, the same for both. Only the effects
# NoSchedule and NoExecute keep anything away.

CORDON_TAINT: Final = Taint(
    key="node.kubernetes.io/unschedulable", effect="NoSchedule"
)
"""The taint that a cordoned node has."""
CORDON_TOLERATION: Final = Toleration(
    key=CORDON_TAINT.key, operator="Exists", effect=CORDON_TAINT.effect
)
"""What a pod has that may go to cordoned nodes, as those of a DaemonSet do."""

_PREVENTING = frozenset(("NoSchedule", "NoExecute"))


def tolerates(
    toleration: DeviceToleration | Toleration, taint: DeviceTaint | Taint
) -> bool:
    """Return whether a toleration covers a taint: an empty key or effect of the toleration covers all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    compare = _TOLERATION_OPERATORS.get(toleration.operator)
    return compare is not None and compare(taint.value, toleration.value)


def _numeric(compare: Callable[[int, int], bool]) -> Callable[[str, str], bool]:
    """Return a comparison of integers in canonical form; with anything else it does not hold."""

    def holds(taint: str, toleration: str) -> bool:
        taint_number, toleration_number = _integer(taint), _integer(toleration)
        if (
            taint_number is None
            or toleration_number is None
            or (taint, toleration)
            != (str(taint_number), str(toleration_number))
        ):
            return False
        return compare(taint_number, toleration_number)

    return holds


_TOLERATION_OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "": str.__eq__,
    "Equal": str.__eq__,
    "Exists": lambda _taint, _toleration: True,
    "Gt": _numeric(int.__gt__),
    "Lt": _numeric(int.__lt__),
}
"""How the value of a taint has to compare with that of the toleration; numbers only for nodes (KEP-5471)."""


def all_tolerated(
    taints: Sequence[DeviceTaint] | Sequence[Taint],
    tolerations: Sequence[DeviceToleration] | Sequence[Toleration],
) -> bool:
    """Return whether every taint that keeps something away is tolerated."""
    for taint in taints:
        # A taint of another effect (PreferNoSchedule, None) keeps nothing away.
        if taint.effect in _PREVENTING and not any(
            tolerates(toleration, taint) for toleration in tolerations
        ):
            return False
    return True


def goes_to_cordoned(pod: Pod) -> bool:
    """Return whether a pod may go to cordoned nodes, as those of a DaemonSet may (upstream's NodeUnschedulable)."""
    return any(
        tolerates(toleration, CORDON_TAINT)
        for toleration in pod.spec.tolerations
    )
