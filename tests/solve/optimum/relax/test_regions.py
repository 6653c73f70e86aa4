"""Regions: as many as asked for at most, of nodes that differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dralloc.solve.optimum.relax.market import Market
from dralloc.solve.optimum.relax.regions import regions_of


def _regions(available: list[int], region_count: int) -> list[int]:
    """The regions of nodes that differ in how many they have of one item."""
    market = SimpleNamespace(
        offers=SimpleNamespace(nodes=len(available)),
        demand_kinds=SimpleNamespace(node_sets=[None]),
        available=np.array([available], dtype=np.int64),
        amount_limits=np.zeros((0, len(available)), dtype=np.int64),
    )
    regions = regions_of(cast(Market, market), region_count)
    return list(map(int, regions))


def test_equal_nodes_are_never_divided() -> None:
    # In floats the mean of three tenths is more than a tenth.
    assert _regions([1, 1, 1, 10], 3) == [0, 0, 0, 1]


@given(
    st.lists(st.sampled_from([0, 1, 3, 10]), min_size=2, max_size=30),
    st.integers(1, 12),
)
def test_regions_are_few_and_never_empty(
    available: list[int], region_count: int
) -> None:
    regions = _regions(available, region_count)
    kinds = len(set(available))
    if region_count < len(available):
        assert sorted(set(regions)) == list(range(min(region_count, kinds)))
    else:
        assert regions == list(range(len(available)))
