"""What caps leave to a demand, and who in its namespace uses how much of what is capped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dralloc.ask.explain.change import Change
from dralloc.objects.budget import Budget, BudgetKey
from dralloc.objects.names import ClaimKey
from dralloc.problem import Charge, Demand, Problem
from dralloc.problem.holdings import Holding
from dralloc.problem.solution import Placement
from dralloc.problem.spending import amount_used, spending, spent

__all__ = ["Caps", "charged"]


@dataclass(frozen=True)
class Caps:
    """What caps leave to a demand.

    Parameters
    ----------
    budgets
        Those with a cap; ``used`` is what allocated claims and those placed before use.
    uses
        By resource, what each of these claims uses of it, in nanos, as far as that is known by claim.
    """

    budgets: tuple[Budget, ...] = ()
    uses: Mapping[str, Mapping[ClaimKey, int]] = field(default_factory=dict)

    @classmethod
    def at(
        cls,
        problem: Problem,
        allocated: Iterable[Holding],
        placements: Sequence[Placement],
    ) -> Caps:
        """The caps of a problem once these placements are made.

        Parameters
        ----------
        allocated
            What is known of those who were there before.
        """
        capped = tuple(
            replace(one, fair=False) for one in problem.budgets if one.most is not None
        )
        if not capped:
            return cls()
        uses: dict[str, dict[ClaimKey, int]] = {
            one.resource: defaultdict(int) for one in capped
        }
        known = list(allocated)
        for resource, found in uses.items():
            for holding in known:
                found[holding.claim] += _held(problem, holding, resource)
            for claim, amount in spending(problem, placements, resource):
                found[claim] += amount
        return cls(charged(capped, problem, placements), uses)

    def under(self, change: Change) -> tuple[Budget, ...]:
        """The caps that are in force with a change, and what is used then."""
        return tuple(
            replace(
                one,
                used=one.used
                - sum(
                    amount
                    for key, amount in self.users(one).items()
                    if key in change.released
                ),
                most=change.raised.get(one.key, one.most),
            )
            for one in self.budgets
            if one.key not in change.caps
        )

    @property
    def most(self) -> Mapping[BudgetKey, int]:
        """What each of them allows, in nanos."""
        return {one.key: one.most or 0 for one in self.budgets}

    def used(
        self, problem: Problem, placements: Sequence[Placement]
    ) -> Mapping[BudgetKey, int]:
        """What namespaces use of each of them once these placements are made, in nanos."""
        return {one.key: one.used for one in charged(self.budgets, problem, placements)}

    def of(self, demand: Demand) -> tuple[Budget, ...]:
        """The caps of a demand's namespace."""
        namespaces = {claim.key.namespace for claim in demand.claims}
        return tuple(one for one in self.budgets if one.namespace in namespaces)

    def users(self, budget: Budget) -> Mapping[ClaimKey, int]:
        """The claims of a namespace that use what is capped, with the amounts."""
        found = self.uses[budget.resource]
        return {
            key: amount
            for key, amount in found.items()
            if amount and key.namespace == budget.namespace
        }


def charged(
    budgets: Iterable[Budget], problem: Problem, placements: Sequence[Placement]
) -> tuple[Budget, ...]:
    """The budgets once these placements are made."""
    return tuple(
        replace(
            one,
            used=one.used
            + spent(problem, placements, one.resource).get(one.namespace, 0),
        )
        for one in budgets
    )


def _held(problem: Problem, holding: Holding, resource: str) -> int:
    """What is held of a resource, by the newest that is published of the device."""
    device = problem.devices[problem.versions[holding.slot][-1]]
    drawn = tuple(
        pair
        for pair in holding.charge.counters
        if problem.counters[pair[0]].group == device.group
    )
    return amount_used(
        resource, device, Charge(holding.charge.capacity, drawn), problem.counters
    )
