"""Best sums of vectors, against trying every choice."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

from hypothesis import given, settings
from hypothesis import strategies as st

from dralloc.ask.whatif.models.selection import Vector, best_sum
from dralloc.solve.optimum import Options
from examples import examples

VECTOR = st.tuples(st.integers(0, 3), st.integers(0, 3))
Sets = dict[tuple[Vector, ...], int]
SETS = st.dictionaries(
    st.lists(VECTOR, min_size=1, max_size=3, unique=True).map(tuple),
    st.integers(1, 3),
    max_size=3,
)


def every_sum(sets: Sets) -> set[tuple[int, int]]:
    choices = [
        list(combinations_with_replacement(vectors, times))
        for vectors, times in sets.items()
    ]
    taken = (
        [vector for chosen in selection for vector in chosen]
        for selection in product(*choices)
    )
    return {
        (sum(a for a, _ in vectors), sum(b for _, b in vectors))
        for vectors in taken
    }


@settings(max_examples=examples(80), deadline=None)
@given(
    SETS,
    st.tuples(st.integers(0, 8), st.integers(0, 8)),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_against_trying_every_choice(
    sets: Sets, least: tuple[int, int], worth: tuple[int, int]
) -> None:
    possible = [
        total
        for total in every_sum(sets)
        if total[0] >= least[0] and total[1] >= least[1]
    ]
    answer, proven = best_sum(sets, least, worth, Options())
    assert proven
    if answer is None:
        assert not possible
    else:
        assert answer in possible
        a, b = answer
        assert a * worth[0] + b * worth[1] == max(
            x * worth[0] + y * worth[1] for x, y in possible
        )


def test_many_of_a_set() -> None:
    answer = best_sum(
        {((7, 0), (4, 1), (0, 2)): 40_000},
        (1000, 70_001),
        (40_000, 1),
        Options(),
    )
    assert answer == ((39_996, 70_001), True)
