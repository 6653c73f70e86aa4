"""Disjoint sets, held to the connected components of networkx."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from dralloc.problem.disjoint_sets import DisjointSets

LETTERS = st.sampled_from("abcdefghij")


@given(st.lists(st.lists(LETTERS, max_size=4), max_size=8))
def test_sets_are_connected_components(unions: list[list[str]]) -> None:
    sets = DisjointSets[str]()
    graph: nx.Graph[str] = nx.Graph()
    for members in unions:
        sets.unite(*members)
        nx.add_path(graph, members)
        components = list(nx.connected_components(graph))
        assert set(sets) == set(graph)
        assert all(
            (sets[one] == sets[other]) == (other in component)
            for component in components
            for one in component
            for other in graph
        )


def test_who_is_not_united_is_a_set_of_its_own() -> None:
    sets = DisjointSets("ab")
    sets.unite("b", "c")
    assert sets["d"] == "d"
    assert list(sets) == ["a", "b", "c", "d"]
    assert sets["a"] == "a"
    assert sets["b"] == sets["c"] != "a"


def test_a_long_row_is_one_set() -> None:
    sets = DisjointSets[int]()
    for number in range(10_000):
        sets.unite(number + 1, number)
    assert {sets[number] for number in range(10_001)} == {sets[0]}
