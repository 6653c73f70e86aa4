"""Packed amounts say what sums of integers say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dralloc.solve.recreate.cells import Cell, packed

amounts = st.integers(0, 10)


@given(st.lists(st.tuples(amounts, amounts, amounts), min_size=1))
def test_what_fits_is_what_is_there_of_each_row(
    rows: list[tuple[int, int, int]],
) -> None:
    """Rows have so much in total, of which somebody takes something first, and somebody else after that."""
    cell = Cell()
    keyed = [cell.row(key, total) for key, (total, _, _) in enumerate(rows)]
    remaining = [total for total, _, _ in rows]
    for take in (1, 2):
        wanted = [row[take] for row in rows]
        need = packed(zip(keyed, wanted, strict=True))
        enough = all(map(int.__le__, wanted, remaining))
        assert (need is not None and cell.fits(need)) == enough
        if need is None or not enough:
            continue
        cell.free -= need
        remaining = list(map(int.__sub__, remaining, wanted))


def test_more_than_there_ever_is_has_no_room_among_other_rows() -> None:
    cell = Cell()
    row = cell.row("memory", 3)
    cell.row("devices", 5)
    assert packed([(row, 2), (row, 2)]) is None


def test_rows_may_come_later() -> None:
    cell = Cell()
    first = packed([(cell.row("memory", 3), 2)])
    assert first is not None
    cell.free -= first
    later = packed([(cell.row("memory", 3), 1), (cell.row("devices", 1), 1)])
    assert later is not None
    assert cell.fits(later)
    cell.free -= later
    assert not cell.fits(later)
