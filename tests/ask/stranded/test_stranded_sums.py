"""Sums that can be taken, against trying all of them."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from dralloc.ask.stranded.split import FINEST, largest_sum

AMOUNTS = st.integers(1, 12)


@given(
    st.integers(0, 40),
    st.lists(st.lists(AMOUNTS, min_size=1, max_size=2).map(tuple), max_size=4),
    st.lists(AMOUNTS, max_size=2),
)
def test_the_largest_sum(
    free: int, choices: list[tuple[int, ...]], repeated: list[int]
) -> None:
    once = [(0, *choice) for choice in choices]
    often = [range(0, free + 1, amount) for amount in repeated]
    sums = (sum(taken) for taken in product(*once, *often))
    assert largest_sum(free, tuple(choices), tuple(repeated)) == max(
        total for total in sums if total <= free
    )


def test_what_is_too_fine_counts_as_usable() -> None:
    assert largest_sum(2 * FINEST + 1, ((2, 3),), ()) == 2 * FINEST + 1
