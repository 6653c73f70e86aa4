"""Shares that fit beside each other on one device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dralloc.solve.optimum.shares import TooManyPatterns, share_patterns

AMOUNTS = st.integers(0, 4)


def maximal(
    limits: Sequence[int],
    shares: Sequence[tuple[int, ...]],
    wanted: Sequence[int],
) -> set[tuple[int, ...]]:
    """All patterns, by trying all counts, without those that are part of another."""
    fitting = [
        counts
        for counts in product(*(range(most + 1) for most in wanted))
        if all(
            sum(
                count * share[row]
                for count, share in zip(counts, shares, strict=True)
            )
            <= limit
            for row, limit in enumerate(limits)
        )
    ]
    return {
        counts
        for counts in fitting
        if not any(
            counts != other and all(map(int.__le__, counts, other))
            for other in fitting
        )
    }


@given(
    st.lists(AMOUNTS, min_size=2, max_size=2),
    st.lists(
        st.tuples(st.tuples(AMOUNTS, AMOUNTS), st.integers(0, 3)), max_size=4
    ),
)
def test_they_are_those_that_trying_all_counts_finds(
    limits: Sequence[int], wanted_shares: Sequence[tuple[tuple[int, int], int]]
) -> None:
    shares = [share for share, _ in wanted_shares]
    wanted = [most for _, most in wanted_shares]
    patterns = share_patterns(limits, shares, 1000, wanted)
    assert len(patterns) == len(set(patterns))
    assert set(patterns) == maximal(limits, shares, wanted)


def test_a_list_that_would_be_too_long_is_none() -> None:
    shares = [(1, 5), (5, 1)]
    assert len(share_patterns((15, 15), shares, 3)) == 3
    with pytest.raises(TooManyPatterns):
        share_patterns((15, 15), shares, 2)


def test_of_a_byte_there_are_too_many_to_begin_a_list() -> None:
    with pytest.raises(TooManyPatterns):
        share_patterns((2**50,), [(1,)], 400)
