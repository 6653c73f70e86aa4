"""The order of moves against all orders, where moves draw on two amounts that are limited."""

from __future__ import annotations

from itertools import combinations, permutations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dralloc.ask.whatif.moves import steps as order
from dralloc.ask.whatif.moves.steps import shortest_order
from examples import examples

Amounts = tuple[int, int]
MOVES = st.lists(
    st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 3))] * 2),
    min_size=1,
    max_size=4,
)


class Room:
    """Moves with what they hold before and after, in no more room than they need before or after."""

    def __init__(
        self, moves: list[tuple[Amounts, Amounts]], spare: Amounts
    ) -> None:
        self.moves = moves
        self.limits = [
            max(
                sum(old[axis] for old, _ in moves),
                sum(new[axis] for _, new in moves),
            )
            + spare[axis]
            for axis in (0, 1)
        ]

    def fits(
        self, done: frozenset[int], stopped: frozenset[int], move: int
    ) -> bool:
        held = [
            old
            for other, (old, _) in enumerate(self.moves)
            if other not in done | stopped
        ]
        held += [self.moves[other][1] for other in done] + [self.moves[move][1]]
        return all(
            sum(amounts[axis] for amounts in held) <= self.limits[axis]
            for axis in (0, 1)
        )

    def fewest(self) -> int:
        """Whoever stops may as well stop at once."""
        every = range(len(self.moves))
        return next(
            size
            for size in range(len(self.moves) + 1)
            for stopped in combinations(every, size)
            for path in permutations(every)
            if all(
                self.fits(
                    frozenset(path[:position]),
                    frozenset(stopped) - set(path[:position]),
                    move,
                )
                for position, move in enumerate(path)
            )
        )

    def follow(self, ordering: order.Order) -> None:
        """Every start of the order has room."""
        done: frozenset[int] = frozenset()
        stopped: frozenset[int] = frozenset()
        for phase in ordering.phases:
            stopped |= set(phase.moves) if phase.stops else frozenset()
            for move in phase.moves if phase.starts else ():
                assert self.fits(done, stopped, move)
                done, stopped = done | {move}, stopped - {move}
        assert done == frozenset(range(len(self.moves)))


@settings(deadline=None, max_examples=examples(200))
@given(MOVES, st.tuples(st.integers(0, 2), st.integers(0, 2)))
def test_no_order_needs_fewer_restarts(
    moves: list[tuple[Amounts, Amounts]], spare: Amounts
) -> None:
    room = Room(moves, spare)
    ordering = shortest_order(len(moves), room.fits)
    room.follow(ordering)
    assert ordering.proven
    assert ordering.restarts == room.fewest()


def test_many_moves_are_ordered_step_by_step() -> None:
    room = Room([((1, 0), (0, 1)), ((0, 1), (1, 0)), ((1, 0), (1, 0))], (0, 0))
    ordering = shortest_order(3, room.fits, exhaustive=0)
    room.follow(ordering)
    assert ordering.restarts >= room.fewest() > 0
    assert not ordering.proven


@settings(deadline=None, max_examples=examples(60))
@given(MOVES)
def test_with_room_for_all_nobody_restarts(
    moves: list[tuple[Amounts, Amounts]],
) -> None:
    room = Room(moves, (99, 99))
    assume(len(moves) > 1)
    assert shortest_order(len(moves), room.fits).restarts == 0
