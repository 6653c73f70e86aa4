"""Caps of namespaces, and fairness between them.

With ``use[n]`` what namespace *n* uses in the end, a cap is ``use[n] <= most[n]``. Fairness is max-min: the poorest
gets as much as possible, then the two poorest together, and so on (leximin; Ogryczak and Sliwinski 2003). Tier *i*
maximises the sum of the *i* smallest uses, as the smallest sum of the *i* largest distances to the total::

    minimise  i * s + sum_n d[n]    with  d[n] + s >= total - use[n],  d[n] >= 0,  s >= 0
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from math import gcd

from ortools.sat.python import cp_model

from dralloc.objects.budget import Budget
from dralloc.objects.errors import ModelError
from dralloc.problem import Problem
from dralloc.problem.grouping import grouped
from dralloc.problem.solution import Placement
from dralloc.problem.spending import amount_used, spent
from dralloc.solve.optimum.classes.count_model import CountModel
from dralloc.solve.optimum.classes.disjoint_sets import DisjointSets
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.rows import SAFE_SUM, Term, add_at_most
from dralloc.solve.optimum.search import most_of

__all__ = ["add_caps", "fairness", "within_caps"]


def add_caps(model: Model) -> None:
    """No namespace uses more than its cap leaves."""
    for budget in model.problem.budgets:
        if budget.left is not None:
            what = f"cap {budget.namespace}={budget.resource}"
            add_at_most(model.cp, list(_uses(model, budget)), budget.left, what)


def _uses(model: Model, budget: Budget) -> Iterator[Term]:
    """What each take of the namespace's claims uses."""
    problem = model.problem
    for serving in model.variables.every_serving():
        claim = problem.demands[serving.demand].claims[serving.choice.claim]
        own = claim.key.namespace == budget.namespace and not serving.choice.spec.admin
        for take in serving.takes if own else ():
            amount = amount_used(
                budget.resource, take.view, take.charge, problem.counters
            )
            if amount:
                yield take.literal, amount


def fairness(problem: Problem) -> tuple[Objective, ...]:
    """One tier for each namespace that shares fairly, the poorest first."""
    number, final = len(_sharing(problem.budgets)), _FinalUses()
    return tuple(
        Objective(
            name=f"fairness-{poorest}",
            cost=partial(_cost, poorest, final),
            terms=partial(_terms, poorest),
            counted=partial(_counted, poorest),
            count=partial(_count, poorest),
            worth=partial(_worth, poorest, final),
        )
        for poorest in range(1, number + 1)
    )


def _sharing(budgets: Sequence[Budget]) -> list[Budget]:
    return [budget for budget in budgets if budget.fair]


class _FinalUses:
    """What each namespace uses in the end, the poorest first: found once for all tiers of the same answer."""

    def __init__(self) -> None:
        self._answer: tuple[Problem, Sequence[Placement]] | None = None
        self._uses: list[int] = []

    def __reduce__(self) -> tuple[type[_FinalUses], tuple[()]]:
        """What is known of an answer is not sent to other processes."""
        return _FinalUses, ()

    def of(self, problem: Problem, placements: Sequence[Placement]) -> list[int]:
        """The same list as long as it is the same answer."""
        if (
            self._answer is None
            or self._answer[0] is not problem
            or self._answer[1] is not placements
        ):
            sharing = _sharing(problem.budgets)
            used = spent(problem, placements, sharing[0].resource)
            self._uses = sorted(
                budget.used + used.get(budget.namespace, 0) for budget in sharing
            )
            self._answer = problem, placements
        return self._uses


def _worth(
    poorest: int, final: _FinalUses, problem: Problem, placements: Sequence[Placement]
) -> int:
    return sum(final.of(problem, placements)[:poorest])


def _cost(
    poorest: int,
    final: _FinalUses,
    subset: DemandSubset,
    placements: Sequence[Placement],
) -> int:
    """How far the poorest are from the total. All demands that share are in one part."""
    return _distance(
        poorest, _sharing(subset.problem.budgets), final.of(subset.problem, placements)
    )


def _count(poorest: int, counts: CountModel, values: Sequence[int]) -> int:
    """The same, of an answer over classes."""
    sharing = _sharing(counts.budgets)
    uses = (
        sum(amount * values[variable.index] for variable, amount in counts.uses(budget))
        for budget in sharing
    )
    return _distance(
        poorest,
        sharing,
        sorted(budget.used + use for budget, use in zip(sharing, uses, strict=True)),
    )


def _distance(poorest: int, sharing: Sequence[Budget], final: Sequence[int]) -> int:
    return sum(max(0, sharing[0].total - use) for use in final[:poorest])


def _terms(poorest: int, model: Model) -> list[Term]:
    sharing = _sharing(model.problem.budgets)
    return _leximin(
        poorest, model.cp, sharing, [list(_uses(model, budget)) for budget in sharing]
    )


def _counted(poorest: int, counts: CountModel) -> list[Term]:
    sharing = _sharing(counts.budgets)
    return _leximin(
        poorest, counts.cp, sharing, [list(counts.uses(budget)) for budget in sharing]
    )


def _leximin(
    poorest: int,
    cp: cp_model.CpModel,
    sharing: Sequence[Budget],
    uses: Sequence[Sequence[Term]],
) -> list[Term]:
    """See the module; with what each namespace uses beside what it holds already."""
    gaps = [max(0, budget.total - budget.used) for budget in sharing]
    unit = gcd(*gaps, *(amount for terms in uses for _, amount in terms)) or 1
    if sum(gaps) + sum(map(most_of, uses)) > unit * SAFE_SUM:
        raise ModelError(
            f"--fair {sharing[0].resource}: amounts do not fit the solver's int64"
        )
    top = max(gaps) // unit
    level = cp.new_int_var(0, top, "level")
    found: list[Term] = [(level, poorest * unit)]
    for budget, terms, gap in zip(sharing, uses, gaps, strict=True):
        short = cp.new_int_var(0, top, f"short {budget.namespace}")
        use = cp_model.LinearExpr.weighted_sum(
            [each for each, _ in terms], [amount // unit for _, amount in terms]
        )
        cp.add(short + level + use >= gap // unit)
        found.append((short, unit))
    return found


def within_caps(problem: Problem, placements: Sequence[Placement]) -> list[Placement]:
    """As many of the placements as the caps allow, in order; whole gangs, and nothing that shares claims."""
    left = {
        (each.resource, each.namespace): each.left
        for each in problem.budgets
        if each.left is not None
    }
    if not left:
        return list(placements)
    kept: list[Placement] = []
    for together in _together(problem, placements):
        uses = {
            (resource, namespace): use
            for resource in dict.fromkeys(resource for resource, _ in left)
            for namespace, use in spent(problem, together, resource).items()
            if (resource, namespace) in left
        }
        if all(use <= left[capped] for capped, use in uses.items()):
            left |= {capped: left[capped] - use for capped, use in uses.items()}
            kept += together
    return sorted(kept, key=lambda placement: placement.demand)


def _together(
    problem: Problem, placements: Sequence[Placement]
) -> list[list[Placement]]:
    """Placements that are only kept together: those of a gang, and those with a claim in common."""
    sets = DisjointSets(len(placements))
    first: dict[Hashable, int] = {}
    for number, placement in enumerate(placements):
        demand = problem.demands[placement.demand]
        for key in (
            *(claim.key for claim in demand.claims),
            *([demand.placed_with] if demand.placed_with else []),
        ):
            sets.unite(first.setdefault(key, number), number)
    return list(
        grouped(
            (sets.find(number), placement)
            for number, placement in enumerate(placements)
        ).values()
    )
