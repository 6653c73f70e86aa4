"""The few moves of allocated claims that admit the most of what is pending.

First ordered plans as plain data and as tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Unpack

from dralloc.ask.answer_checks import check_newcomers
from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.document import (
    ClaimMove,
    DefragmentationDocument,
    StepFields,
)
from dralloc.ask.whatif.moves import rearrange
from dralloc.ask.whatif.moves.cluster_migration import (
    ClaimUsers,
    ClusterMigration,
)
from dralloc.ask.whatif.moves.migration import Migration
from dralloc.ask.whatif.moves.rearrange import MigrationPlan
from dralloc.ask.whatif.moves.steps import MigrationStep, gains
from dralloc.check import check
from dralloc.check.objects import Binding
from dralloc.compile.compiler.extended import with_extended_resources
from dralloc.objects.choices import Choices, ChoiceWords, spelled_out
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table, counted, folded
from dralloc.objects.value_kinds import WHOLE_NUMBER, takes
from dralloc.problem import DeviceIndex, NodeIndex
from dralloc.problem.solution import Solution, Status, Tier
from dralloc.show.question import Provisional
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.stopping import Stop, with_time_left
from dralloc.solve.work import phase

__all__ = ["Defragmentation", "Itinerary", "defragment"]

# ----------------------------------------------------------------------------
# Ordered plans as plain data and as tables.


@dataclass(frozen=True)
class Itinerary:
    """An ordered plan with the names of what it is about."""

    movable: ClusterMigration
    outcome: MigrationPlan

    @property
    def steps(self) -> Iterator[StepFields]:
        """Each step with the claims that it concerns."""
        for ordinal, step in enumerate(self.outcome.steps, 1):
            claims = [*self._moved(step), *self._admitted(step)]
            yield StepFields(step=ordinal, action=step.action, claims=claims)

    def _moved(self, step: MigrationStep) -> Iterator[ClaimMove]:
        for move in step.moves:
            gained = (
                gains(move.option.demands, move.placements)
                if step.placements
                else ()
            )
            homes = {key: (node, devices) for key, node, devices in gained}
            for mover_index in move.option.movers:
                mover = self.movable.migration.movers[mover_index]
                node, devices = homes.get(mover.key, (None, ()))
                yield ClaimMove(
                    claim=str(mover.key),
                    from_node=self._node(mover.home),
                    from_=tuple(self.held(mover.key)),
                    to_node=None if node is None else self._node(node),
                    to=self._devices(devices),
                )

    def _admitted(self, step: MigrationStep) -> Iterator[ClaimMove]:
        moved = (
            sum(len(move.demands) for move in step.moves)
            if step.placements
            else 0
        )
        for key, node, devices in gains(
            step.demands[moved:], step.placements[moved:]
        ):
            yield ClaimMove(
                claim=str(key),
                to_node=self._node(node),
                to=self._devices(devices),
            )

    def check(self) -> None:
        """Make sure that pods that move or come keep the rules of the objects where they are in the end.

        Raises
        ------
        CheckError
            They do not.
        """
        users, compiled = self.movable.users, self.movable.compiled
        migration, bindings = self.movable.migration, list(self._bindings())
        moved = {migration.movers[mover].key for mover in self.outcome.moved}
        moving = {
            binding.pod
            for binding in bindings
            if users.cluster.pods_by_key[binding.pod].spec.node_name
        }
        cluster = Scenario(users.cluster).release(moved).unbind(moving).cluster
        # Who waits for an extended resource gets its devices by a claim that is made for it.
        extended = with_extended_resources(
            cluster, tuple(users.nodes), compiled.problem.features
        )
        check_newcomers(
            compiled,
            self.movable.choices,
            extended.cluster,
            bindings,
            moving=moving,
        )

    def _bindings(self) -> Iterator[Binding]:
        """The pods that move or come, each with the node where it is in the end."""
        for step in self.outcome.steps:
            if step.placements:
                moved = [
                    pair
                    for move in step.moves
                    for pair in zip(
                        move.option.demands, move.placements, strict=True
                    )
                ]
                admitted = zip(
                    step.demands[len(moved) :],
                    step.placements[len(moved) :],
                    strict=True,
                )
                for demand, placement in (*moved, *admitted):
                    if not self.movable.compiled.is_claim(demand):
                        yield Binding(demand.key, self._node(placement.node))

    def held(self, key: ClaimKey) -> Iterator[str]:
        """The devices that an allocated claim has now."""
        return (
            str(result.device_id)
            for result in self.movable.users.claim(key).results
        )

    def _node(self, node: NodeIndex) -> str:
        return self.movable.compiled.problem.nodes[node].name

    def _devices(self, devices: tuple[DeviceIndex, ...]) -> tuple[str, ...]:
        return tuple(
            str(self.movable.compiled.problem.devices[device].id)
            for device in devices
        )

    def names(self) -> Iterable[str]:
        """The claims that move or come, in the order of the plan; one that is freed first has two steps."""
        return dict.fromkeys(
            change.claim for step in self.steps for change in step.claims
        )

    def table(self) -> Table:
        """The plan, one line for each claim of a step."""
        rows = [
            (
                str(step.step),
                step.action.value,
                change.claim,
                change.from_node or "",
                "\n".join(change.from_),
                change.to_node or "",
                "\n".join(change.to),
            )
            for step in self.steps
            for change in step.claims
        ]
        columns = (">#", "step", "claim", "from", "devices", "to", "devices")
        return Table("Plan, in this order", columns, folded(rows, 2))

    def remarks(self) -> Iterator[Line]:
        """Restarts, warnings, and what is not known."""
        if self.outcome.restarts:
            proof = "" if self.outcome.fewest else ", perhaps fewer would do"
            restarts = self.outcome.restarts
            moves = (
                "1 move is a restart: it frees before it holds"
                if restarts == 1
                else ""
            )
            moves = (
                moves
                or f"{restarts} moves are restarts: they free before they hold"
            )
            yield Line(f"\n{moves}{proof}.")
        if self.movable.unknown:
            claims = (
                "1 claim is"
                if self.movable.unknown == 1
                else f"{self.movable.unknown} claims are"
            )
            yield Line(
                f"{claims} reserved for pods that were not found: it is taken that these can run anywhere.",
                "yellow",
            )
        yield from (
            Line(f"warning: {warning}", "yellow")
            for warning in self.outcome.warnings
        )


_WITHOUT_MOVES: Final = 0.4
"""The part of the time for what is possible without any move, where the rest of the search begins."""


@dataclass(frozen=True, repr=False)
class Defragmentation(Provisional):
    """The pods that moves admit, and the moves. ``print(defragmentation)`` is a readable report.

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
        return tuple(
            demands[demand].key for demand in self.itinerary.outcome.admitted
        )

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """``weight`` that is admitted, ``moves``, ``alternatives``: with bounds."""
        return self.itinerary.outcome.tiers

    @property
    def moves(self) -> int:
        """The number of claims that move."""
        return len(self.itinerary.outcome.moved)

    def names(self) -> Iterable[str]:
        """Return the claims that move or come, in the order of the plan."""
        return self.itinerary.names()

    def body(self) -> list[Part]:
        """The answer as tables and lines."""
        parts: list[Part] = [
            Line(self.headline, "bold"),
            Table("Admitted", *self._figures()),
        ]
        parts.append(self.itinerary.table())
        parts += self.itinerary.remarks()
        return parts

    @property
    def conclusion(self) -> str:
        """Say how much is admitted with how many moves."""
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


@takes(moves=WHOLE_NUMBER)
@without_garbage_collection()
@spelled_out(ChoiceWords)
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
    are restarted. A claim stays if one of its pods waits for something else, if a pod that is pending uses it or has a
    constraint across claims in common with it, or if it could not be allocated again what it has.

    Parameters
    ----------
    moves
        How many claims may move.
    choices, words
        As in `dralloc.allocate`, without goals, caps and fairness.

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
    options = Choices.of(
        choices, words, unused=("caps", "fair", "keep", "goal")
    )
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        users = ClaimUsers(
            cluster_of(cluster)
            .including(options.include)
            .with_gates(options.features),
            options.nodes,
        )
        # It has to be known where the claims are used.
        settled = (
            group
            for group in users.groups()
            if users.is_settled(group) and all(map(users.home, group.claims))
        )
        movable = ClusterMigration(
            users, tuple(settled), choices=options
        ).united()
        migration = movable.migration
    stop = Stop.after(options.time_limit)
    with phase(timings, "without moves"):
        problem = migration.before
        limited = with_time_left(options, stop, _WITHOUT_MOVES)
        before = solve(problem, limited, hint=first_fit(problem))
        check(problem, before)
    with phase(timings, "moves"):
        short = before.tiers[0].value < sum(
            demand.weight for demand in problem.demands
        )
        helpful = migration if moves and short else Migration(problem, (), ())
        outcome = rearrange(
            helpful, moves, with_time_left(options, stop), before.placements
        )
        if helpful is migration:
            outcome = movable.as_far_as_seen(outcome)
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
