"""Why claims cannot all leave drained nodes: a smallest set that cannot, and the rules in the way of a single one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dralloc.ask.explain.conflict import Conflict, find_conflict
from dralloc.ask.explain.conflict_members import members_of
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.snapshot import find_demand, snapshot_of
from dralloc.ask.whatif.moves.cluster_migration import (
    ClaimGroup,
    ClusterMigration,
)
from dralloc.ask.whatif.moves.rearrange import rearrange
from dralloc.objects.choices import Mode
from dralloc.objects.names import ClaimKey
from dralloc.solve.optimum import Options
from dralloc.solve.optimum.stopping import Stop, Stopped, with_time_left

__all__ = ["Obstacle"]


class _OpenError(Exception):
    """The time was too short to tell whether some groups can go."""


@dataclass(frozen=True)
class Obstacle:
    """Looks for the reason why the groups of a migration cannot all go.

    Parameters
    ----------
    movable
        The migration.
    options, stop
        How to search for places, and when there is no time for it any more.
    """

    movable: ClusterMigration
    options: Options
    stop: Stop

    def find(
        self, *, proven: bool
    ) -> tuple[tuple[ClaimKey, ...], Conflict | None]:
        """The claims that cannot all go, though without one group of them the rest could; none if time is too short."""
        if not proven:
            return (), None
        try:
            groups = self._minimal(self.movable.groups)
        except _OpenError:
            return (), None
        claims = tuple(
            key
            for group in groups
            for key in group.claims
            if key in self.movable.must
        )
        return claims, self._rules(groups[0]) if len(groups) == 1 else None

    def _minimal(self, groups: Sequence[ClaimGroup]) -> tuple[ClaimGroup, ...]:
        """Groups that cannot all go: one after the other is left out, as long as the rest cannot.

        Who goes can make room for others, so those who were needed are tried again until all of them are.
        """
        for group in groups:
            if not self._can_go([group]):
                return (group,)
        conflicting, before = tuple(groups), tuple[ClaimGroup, ...]()
        while conflicting != before:
            before = conflicting
            for group in before:
                without = tuple(
                    remaining
                    for remaining in conflicting
                    if remaining is not group
                )
                if not self._can_go(without):
                    conflicting = without
        return conflicting

    def _can_go(self, groups: Sequence[ClaimGroup]) -> bool:
        """Whether these groups can all go while the others stay."""
        group_indices = {
            index
            for index, group in enumerate(self.movable.groups)
            if group in groups
        }
        worth = sum(
            key in self.movable.must for group in groups for key in group.claims
        )
        if self.stop.reached():
            raise _OpenError
        limited = with_time_left(self.options, self.stop)
        tier = rearrange(
            self.movable.migration.only(group_indices), None, limited
        ).tiers[0]
        if tier.value < worth <= tier.bound:
            raise _OpenError
        return tier.value == worth

    def _rules(self, group: ClaimGroup) -> Conflict | None:
        """The rules in the way of a group of one pod, or of a claim that no pod uses."""
        if len(group.pods) > 1:
            return None
        moving = tuple(key for key in group.claims if key in self.movable.must)
        compiled = replace(
            self.movable, groups=(ClaimGroup(moving, group.pods),)
        ).compiled
        demand = find_demand(
            compiled,
            None if group.pods else group.claims[0],
            group.pods[0].key if group.pods else None,
        )
        oracle = FeasibilityOracle(
            snapshot_of(compiled, demand, ()), compiled, Mode.OPTIMAL, self.stop
        )
        try:
            return find_conflict(oracle, members_of(oracle))
        except Stopped:
            return None
