"""Ordered plans as plain data and as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dralloc.ask.checking import check_newcomers
from dralloc.ask.scenario import Scenario
from dralloc.ask.whatif.document import ClaimMove, StepFields
from dralloc.ask.whatif.moves.cluster_migration import ClusterMigration
from dralloc.ask.whatif.moves.rearrange import MigrationPlan
from dralloc.ask.whatif.moves.steps import MigrationStep, gains
from dralloc.check.objects import Binding
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Table, folded

__all__ = ["Itinerary"]


@dataclass(frozen=True)
class Itinerary:
    """An ordered plan with the names of what it is about."""

    movable: ClusterMigration
    outcome: MigrationPlan

    @property
    def steps(self) -> Iterator[StepFields]:
        """Each step with the claims that it concerns."""
        for number, step in enumerate(self.outcome.steps, 1):
            claims = [*self._moved(step), *self._admitted(step)]
            yield StepFields(step=number, action=step.action, claims=claims)

    def _moved(self, step: MigrationStep) -> Iterator[ClaimMove]:
        for move in step.moves:
            got = gains(move.option.demands, move.placements) if step.placements else ()
            homes = {key: (node, devices) for key, node, devices in got}
            for number in move.option.movers:
                mover = self.movable.migration.movers[number]
                node, devices = homes.get(mover.key, (None, ()))
                yield ClaimMove(
                    claim=str(mover.key),
                    from_node=self._node(mover.home),
                    from_=tuple(self.held(mover.key)),
                    to_node=None if node is None else self._node(node),
                    to=self._devices(devices),
                )

    def _admitted(self, step: MigrationStep) -> Iterator[ClaimMove]:
        moved = sum(len(move.demands) for move in step.moves) if step.placements else 0
        for key, node, devices in gains(step.demands[moved:], step.placements[moved:]):
            yield ClaimMove(
                claim=str(key), to_node=self._node(node), to=self._devices(devices)
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
        moved = {migration.movers[number].key for number in self.outcome.moved}
        moving = {
            binding.pod
            for binding in bindings
            if users.cluster.pods_by_key[binding.pod].spec.node_name
        }
        cluster = Scenario(users.cluster).release(moved).unbind(moving).cluster
        check_newcomers(
            compiled, self.movable.choices, cluster, bindings, moving=moving
        )

    def _bindings(self) -> Iterator[Binding]:
        """The pods that move or come, each with the node where it is in the end."""
        for step in self.outcome.steps:
            if step.placements:
                moved = [
                    pair
                    for move in step.moves
                    for pair in zip(move.option.demands, move.placements, strict=True)
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
            str(result.device_id) for result in self.movable.users.claim(key).results
        )

    def _node(self, node: int) -> str:
        return self.movable.compiled.problem.nodes[node].name

    def _devices(self, devices: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(
            str(self.movable.compiled.problem.devices[device].id) for device in devices
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
            number = self.outcome.restarts
            moves = (
                "1 move is a restart: it frees before it holds" if number == 1 else ""
            )
            moves = moves or f"{number} moves are restarts: they free before they hold"
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
            Line(f"warning: {warning}", "yellow") for warning in self.outcome.warnings
        )
