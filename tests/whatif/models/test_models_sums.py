"""Best sums of vectors, against trying every choice."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

from hypothesis import given, settings
from hypothesis import strategies as st

from dralloc.solvers.cpsat import Options
from dralloc.whatif.models.sums import Summands, best_sum
from examples import examples

VECTOR = st.tuples(st.integers(0, 3), st.integers(0, 3))
SETS = st.lists(
    st.builds(Summands, st.integers(1, 3), st.lists(VECTOR, min_size=1, max_size=3, unique=True).map(tuple)), max_size=3
)


def every_sum(sets: list[Summands]) -> set[tuple[int, int]]:
    choices = [list(combinations_with_replacement(each.vectors, each.times)) for each in sets]
    taken = ([vector for chosen in each for vector in chosen] for each in product(*choices))
    return {(sum(a for a, _ in vectors), sum(b for _, b in vectors)) for vectors in taken}


@settings(max_examples=examples(80), deadline=None)
@given(SETS, st.tuples(st.integers(0, 8), st.integers(0, 8)), st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_against_trying_every_choice(sets: list[Summands], least: tuple[int, int], worth: tuple[int, int]) -> None:
    possible = [one for one in every_sum(sets) if one[0] >= least[0] and one[1] >= least[1]]
    found, proven = best_sum(sets, least, worth, Options())
    assert proven
    if found is None:
        assert not possible
    else:
        assert found in possible
        a, b = found
        assert a * worth[0] + b * worth[1] == max(x * worth[0] + y * worth[1] for x, y in possible)


def test_many_of_a_set() -> None:
    found = best_sum([Summands(40_000, ((7, 0), (4, 1), (0, 2)))], (1000, 70_001), (40_000, 1), Options())
    assert found == ((39_996, 70_001), True)
