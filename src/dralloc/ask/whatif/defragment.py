"""The few moves of allocated claims that admit the most of what is pending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Unpack

from dralloc.ask.whatif.document import DefragmentationDocument
from dralloc.ask.whatif.moves import rearrange
from dralloc.ask.whatif.moves.claim_users import ClaimUsers
from dralloc.ask.whatif.moves.cluster_migration import ClusterMigration
from dralloc.ask.whatif.moves.itinerary import Itinerary
from dralloc.ask.whatif.moves.migration import Migration
from dralloc.ask.whatif.time_left import with_time_left
from dralloc.check import check
from dralloc.objects.choices import Choices, ChoiceWords
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError
from dralloc.objects.garbage import without_garbage_collection
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table, counted
from dralloc.problem.solution import Solution, Status, Tier
from dralloc.show.provisional import Provisional
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.stopping import Stop
from dralloc.solve.timing import phase

__all__ = ["Defragmentation", "defragment"]

_WITHOUT_MOVES: Final = 0.4
"""The part of the time for what is possible without any move, where the rest of the search begins."""


@dataclass(frozen=True, repr=False)
class Defragmentation(Provisional):
    """What moves admit. ``print(defragmentation)`` is a readable report.

    Parameters
    ----------
    most
        How many claims may move.
    itinerary
        The ordered plan.
    pending
        How many demands are pending.
    before
        What the optimum admits without any move.
    """

    document = DefragmentationDocument

    most: int
    itinerary: Itinerary
    pending: int
    before: Solution

    @property
    def admitted(self) -> tuple[ClaimKey, ...]:
        """The pods, and claims that no pod uses, that are admitted with the moves."""
        demands = self.itinerary.movable.migration.problem.demands
        return tuple(demands[number].key for number in self.itinerary.outcome.admitted)

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """``weight`` that is admitted, ``moves``, ``alternatives``: with bounds."""
        return self.itinerary.outcome.tiers

    @property
    def moves(self) -> int:
        """How many claims move."""
        return len(self.itinerary.outcome.moved)

    def body(self) -> list[Part]:
        """The answer as tables and lines."""
        found: list[Part] = [
            Line(self.headline, "bold"),
            Table("Admitted", *self._figures()),
        ]
        found.append(self.itinerary.table())
        found += self.itinerary.remarks()
        return found

    @property
    def conclusion(self) -> str:
        """How much is admitted with how many moves."""
        moves = counted(self.moves, "move")
        proof = (
            "proven optimal"
            if self.itinerary.outcome.status is Status.OPTIMAL
            else "not proven"
        )
        return f"{len(self.admitted)} of {self.pending} admitted with {moves} of at most {self.most}, {proof}"

    def _figures(self) -> tuple[Sequence[str], list[Sequence[str]]]:
        before, after = self.before.tiers[0], self.tiers[0]
        rows: list[Sequence[str]] = [
            (
                "without moves",
                str(len(self.before.placements)),
                str(before.value),
                str(before.bound),
            ),
            (
                f"at most {self.most} moves",
                str(len(self.admitted)),
                str(after.value),
                str(after.bound),
            ),
        ]
        return ("", ">placed", ">weight", ">bound"), rows


@without_garbage_collection()
def defragment(
    cluster: Cluster,
    moves: int,
    *,
    choices: Choices | None = None,
    **words: Unpack[ChoiceWords],
) -> Defragmentation:
    """Find the moves of allocated claims that admit the most of what is pending, in an order that can be carried out.

    A claim moves with the pods that use it. It holds its new devices before it gives the old ones back, unless its move
    is marked as a restart. Of all answers with the most weight the fewest claims move, and of those as few as possible
    are restarted. A claim stays if one of its pods waits for something else, if a pod that is pending uses it, or if it
    could not be allocated again what it has.

    Parameters
    ----------
    moves
        How many claims may move.
    choices, words
        As in `dralloc.allocate`, without caps and fairness.

    Raises
    ------
    DrallocError
        The number of moves is negative, or a named node does not exist.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.defragment(dralloc.example(), moves=1)
    <Defragmentation: 2 of 2 admitted with 0 moves of at most 1, proven optimal>
    """
    if moves < 0:
        raise DrallocError(f"--moves {moves}: expected a number of at least 0")
    options = Choices.of(choices, words, unused=("caps", "fair", "keep"))
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        users = ClaimUsers(
            cluster_of(cluster).including(options.include), options.nodes
        )
        # It has to be known where the claims are used.
        settled = (
            group
            for group in users.groups()
            if users.is_settled(group) and all(map(users.home, group.claims))
        )
        movable = ClusterMigration(users, tuple(settled), choices=options)
        migration = movable.migration
    stop = Stop.after(options.time_limit)
    with phase(timings, "without moves"):
        problem = migration.before
        limited = with_time_left(options, stop, _WITHOUT_MOVES)
        before = solve(problem, limited, hint=first_fit(problem))
        check(problem, before)
    with phase(timings, "moves"):
        short = before.tiers[0].value < sum(demand.weight for demand in problem.demands)
        helpful = migration if moves and short else Migration(problem, (), ())
        outcome = rearrange(
            helpful, moves, with_time_left(options, stop), before.placements
        )
    itinerary, pending = Itinerary(movable, outcome), len(problem.demands)
    with phase(timings, "check"):
        itinerary.check()
    return Defragmentation(
        moves,
        itinerary,
        pending,
        before,
        unmodelled=movable.unmodelled,
        timings=timings,
    )
