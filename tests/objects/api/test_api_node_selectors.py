"""Node selectors, operator by operator."""

from __future__ import annotations

import pytest

from dralloc.objects.api import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
)
from dralloc.objects.api.selecting import names_of, selector_matches

NODE = Node(
    metadata=ObjectMeta(
        name="node-1", labels={"zone": "a", "gpus": "8", "grouped": "1_000"}
    )
)


def matches(*terms: NodeSelectorTerm) -> bool:
    return selector_matches(NodeSelector(node_selector_terms=terms), NODE)


def where(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    requirement = NodeSelectorRequirement(
        key=key, operator=operator, values=values
    )
    return NodeSelectorTerm(match_expressions=(requirement,))


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (where("zone", "In", "a", "b"), True),
        (where("zone", "In", "b"), False),
        (where("rack", "In", "a"), False),
        (where("zone", "NotIn", "a"), False),
        (where("zone", "NotIn", "b"), True),
        (where("rack", "NotIn", "a"), True),
        (where("zone", "Exists"), True),
        (where("rack", "Exists"), False),
        (where("zone", "DoesNotExist"), False),
        (where("rack", "DoesNotExist"), True),
        (where("gpus", "Gt", "7"), True),
        (where("gpus", "Gt", "8"), False),
        (where("gpus", "Lt", "9"), True),
        (where("zone", "Lt", "9"), False),
        (where("rack", "Gt", "1"), False),
        (where("gpus", "Gt", "seven"), False),
        (where("gpus", "Gt", "+7"), True),
        (where("gpus", "Gt", " 7"), False),
        (where("gpus", "Lt", "9223372036854775807"), True),
        (where("gpus", "Lt", "9223372036854775808"), False),
        (where("grouped", "Gt", "7"), False),
        (where("zone", "Near", "a"), False),
    ],
)
def test_operators(term: NodeSelectorTerm, *, expected: bool) -> None:
    assert matches(term) is expected


def field(name: str) -> NodeSelectorTerm:
    requirement = NodeSelectorRequirement(
        key="metadata.name", operator="In", values=(name,)
    )
    return NodeSelectorTerm(match_fields=(requirement,))


def test_fields_match_the_name() -> None:
    assert matches(field("node-1"))
    assert not matches(field("node-2"))


def test_terms_are_alternatives_and_requirements_are_not() -> None:
    assert matches(where("zone", "In", "b"), where("gpus", "In", "8"))
    both = NodeSelectorTerm(
        match_expressions=where("zone", "In", "a").match_expressions
        + where("gpus", "In", "4").match_expressions
    )
    assert not matches(both)


def test_an_empty_term_matches_nothing() -> None:
    assert not matches(NodeSelectorTerm())


def test_names_are_those_that_every_term_gives() -> None:
    def named(*names: str) -> NodeSelectorRequirement:
        return NodeSelectorRequirement(
            key="metadata.name", operator="In", values=names
        )

    both = NodeSelectorTerm(match_fields=(named("a", "b"), named("b", "c")))
    assert names_of(NodeSelector(node_selector_terms=(both, field("d")))) == {
        "b",
        "d",
    }


def test_a_selector_with_a_term_that_names_none_names_none() -> None:
    assert (
        names_of(
            NodeSelector(
                node_selector_terms=(field("a"), where("zone", "Exists"))
            )
        )
        is None
    )
    assert names_of(NodeSelector(node_selector_terms=())) is None
