"""Which nodes a node selector selects.

Source: ``k8s.io/component-helpers/scheduling/corev1/nodeaffinity``. Terms are alternatives; inside a term every
requirement must hold; a term without requirements selects nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dralloc.api.nodes import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

__all__ = ["selector_matches", "term_matches"]


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _compare(value: str | None, values: Sequence[str], holds: Callable[[int, int], bool]) -> bool:
    left = None if value is None else _integer(value)
    right = _integer(values[0]) if len(values) == 1 else None
    return left is not None and right is not None and holds(left, right)


_OPERATORS: dict[str, Callable[[str | None, Sequence[str]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": lambda value, values: _compare(value, values, int.__gt__),
    "Lt": lambda value, values: _compare(value, values, int.__lt__),
}


def _holds(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    operator = _OPERATORS.get(requirement.operator)
    return operator is not None and operator(value, requirement.values)


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether every requirement of the term holds for the node, and there is at least one."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(
        _holds(requirement, node.metadata.labels.get(requirement.key)) for requirement in term.match_expressions
    ) and all(
        _holds(requirement, node.metadata.name if requirement.key == "metadata.name" else None)
        for requirement in term.match_fields
    )


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Whether at least one term of the selector selects the node."""
    return any(term_matches(term, node) for term in selector.node_selector_terms)
