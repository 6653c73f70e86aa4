"""Why not all units can go: a smallest set of claims that cannot, and the rules in the way of a single pod or claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dralloc.choices import Mode
from dralloc.compiler import CompiledCluster, compile_cluster
from dralloc.context.node_rules import Exclusions
from dralloc.explain.conflict import Conflict, find_conflict
from dralloc.explain.lab import Lab
from dralloc.explain.members import members_of
from dralloc.explain.subject import find_demand
from dralloc.explain.turn import take_turn
from dralloc.explain.wording import Wording
from dralloc.names import ClaimKey
from dralloc.solvers.cpsat import Options
from dralloc.whatif.moves.rearrange import rearrange
from dralloc.whatif.moves.tenancy import Tenancy, unbound
from dralloc.whatif.moves.tenants import Unit

__all__ = ["Obstacle"]


class _OpenError(Exception):
    """The time was too short to tell whether some units can go."""


@dataclass(frozen=True)
class Obstacle:
    """Looks for the reason why the units of a tenancy cannot all go."""

    tenancy: Tenancy
    options: Options | None = None

    def find(self, *, proven: bool) -> tuple[tuple[ClaimKey, ...], Conflict | None]:
        """The claims that cannot all go, though without one unit of them the rest could; none if time is too short."""
        if not proven:
            return (), None
        try:
            units = self._minimal(self.tenancy.units)
        except _OpenError:
            return (), None
        claims = tuple(key for unit in units for key in unit.claims if key in self.tenancy.must)
        return claims, self._rules(units[0]) if len(units) == 1 else None

    def _minimal(self, units: Sequence[Unit]) -> tuple[Unit, ...]:
        """Units that cannot all go: leave out one after the other, as long as the rest cannot."""
        for unit in units:
            if not self._can_go([unit]):
                return (unit,)
        kept = list(units)
        for unit in units:
            rest = [one for one in kept if one is not unit]
            if not self._can_go(rest):
                kept = rest
        if self._can_go(kept) or not all(self._can_go([one for one in kept if one is not unit]) for unit in kept):
            raise AssertionError("a conflict between claims turned out to be none, or not to be minimal")
        return tuple(kept)

    def _can_go(self, units: Sequence[Unit]) -> bool:
        """Whether these units can all go while the others stay."""
        numbers = {number for number, unit in enumerate(self.tenancy.units) if unit in units}
        worth = sum(key in self.tenancy.must for unit in units for key in unit.claims)
        tier = rearrange(self.tenancy.estate.only(numbers), None, self.options).tiers[0]
        if tier.value < worth <= tier.bound:
            raise _OpenError
        return tier.value == worth

    def _rules(self, unit: Unit) -> Conflict | None:
        """The rules in the way of a unit of one pod, or of a claim that no pod uses."""
        if len(unit.pods) > 1:
            return None
        moving = {key for key in unit.claims if key in self.tenancy.must}
        compiled = self._staged(unit, moving)
        number = find_demand(compiled, None if unit.pods else unit.claims[0], unit.pods[0].key if unit.pods else None)
        turn = take_turn(compiled.problem, number, (), compiled)
        lab = Lab(turn, compiled.problem, Exclusions(compiled), Mode.OPTIMAL)
        return find_conflict(lab, members_of(lab, compiled.problem, Wording(turn.placed, compiled), compiled))

    def _staged(self, unit: Unit, moving: set[ClaimKey]) -> CompiledCluster:
        """The cluster in which a unit's pod is about to ask anew for what has to go, for extended resources, too."""
        part = replace(self.tenancy, units=(Unit(tuple(sorted(moving)), unit.pods),))
        whole = part.compiled.cluster
        mine = {pod.key: dict.fromkeys((*whole.pod_claims(pod), *sorted(moving))) for pod in unit.pods}
        cluster = replace(
            whole,
            pods=tuple(unbound(pod) if pod.key in mine else pod for pod in whole.pods),
            claims_of_pods={**whole.claims_of_pods, **{pod: tuple(claims) for pod, claims in mine.items()}},
        )
        return compile_cluster(cluster, part.choices)
