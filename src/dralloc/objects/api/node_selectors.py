"""Which nodes a node selector selects.

Source: ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity``. Terms are alternatives; inside a term every
requirement must hold; a term without requirements selects nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from typing import Final

from dralloc.objects.api.base import INT64
from dralloc.objects.api.nodes import Node, NodeSelector, NodeSelectorTerm

__all__ = ["holds", "integer", "names_of", "selector_matches", "term_matches"]


_INTEGER: Final = re.compile("[+-]?[0-9]{1,63}")
"""As long as the value of a label can be."""


def integer(text: str) -> int | None:
    """The number that a text is for Kubernetes: decimal, of 64 bits, and nothing else beside a sign; else None."""
    return value if _INTEGER.fullmatch(text) and (value := int(text)) in INT64 else None


def _compare(
    value: str | None, values: Sequence[str], holds: Callable[[int, int], bool]
) -> bool:
    left = None if value is None else integer(value)
    right = integer(values[0]) if len(values) == 1 else None
    return left is not None and right is not None and holds(left, right)


_OPERATORS: dict[str, Callable[[str | None, Sequence[str]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _compare(value, values, int.__gt__),
    "Lt": lambda value, values: _compare(value, values, int.__lt__),
}


def holds(operator: str, values: Sequence[str], value: str | None) -> bool:
    """Whether a condition on a label or field holds for its value; None if there is no such label."""
    known = _OPERATORS.get(operator)
    return known is not None and known(value, values)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether every requirement of the term holds for the node, and there is at least one."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(
        holds(one.operator, one.values, node.metadata.labels.get(one.key))
        for one in term.match_expressions
    ) and all(
        holds(
            one.operator,
            one.values,
            node.metadata.name if one.key == "metadata.name" else None,
        )
        for one in term.match_fields
    )


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Whether at least one term of the selector selects the node."""
    return any(term_matches(term, node) for term in selector.node_selector_terms)


def names_of(selector: NodeSelector) -> Set[str] | None:
    """The only names that nodes which it selects can have; None if a term names none, or if there is no term."""
    names: set[str] = set()
    for term in selector.node_selector_terms:
        named = [
            set(one.values)
            for one in term.match_fields
            if (one.key, one.operator) == ("metadata.name", "In")
        ]
        if not named:
            return None
        names |= set.intersection(*named)
    return names if selector.node_selector_terms else None
