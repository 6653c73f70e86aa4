"""Rules about what namespaces use, and about what an answer says about itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from dralloc.check.problem.view import Use, View, amount
from dralloc.problem.solution import Status

__all__ = [
    "bounds_and_status_agree",
    "caps_are_kept",
    "fairness_is_true",
    "values_are_true",
]

SENSES: Final = {"weight": 1, "alternatives": -1}
"""The tiers that can be worked out from the answer, with their senses."""


def caps_are_kept(view: View) -> Iterator[str]:
    """A namespace uses no more than its cap; one that has more already gets nothing."""
    for budget in view.problem.budgets:
        taken = _taken(view, budget.resource)[budget.namespace]
        if budget.most is not None and taken and budget.used + taken > budget.most:
            sums = f"{amount(taken)} taken beside {amount(budget.used)}, at most {amount(budget.most)}"
            yield f"namespace {budget.namespace}: {budget.resource}: {sums}"


def fairness_is_true(view: View) -> Iterator[str]:
    """Tier ``fairness-i`` is what the i poorest namespaces use together."""
    sharing = [budget for budget in view.problem.budgets if budget.fair]
    if sharing:
        taken = _taken(view, sharing[0].resource)
        uses = sorted(budget.used + taken[budget.namespace] for budget in sharing)
        values = {
            f"fairness-{number}": sum(uses[:number])
            for number in range(1, len(uses) + 1)
        }
        for tier in view.solution.tiers:
            if tier.name in values and (
                tier.value != values[tier.name] or tier.sense != 1
            ):
                yield f"tier {tier.name}: value {tier.value}, but the placements have {values[tier.name]}"


def values_are_true(view: View) -> Iterator[str]:
    """Tier ``weight`` is the weight of all placed demands, ``alternatives`` the sum of the ranks that serve them."""
    ranks = {
        (award.claim.key, use.request): use.alternative.rank
        for award in view.awards
        for use in award.uses
    }
    weights = (
        view.problem.demands[placement.demand].weight
        for placement in view.solution.placements
    )
    values = {"weight": sum(weights), "alternatives": sum(ranks.values())}
    for tier in view.solution.tiers:
        if tier.name in values and tier.value != values[tier.name]:
            yield f"tier {tier.name}: value {tier.value}, but the placements have {values[tier.name]}"


def bounds_and_status_agree(view: View) -> Iterator[str]:
    """A bound is not worse than the value, and an optimal answer has reached every bound."""
    for tier in view.solution.tiers:
        if tier.sense != SENSES.get(tier.name, tier.sense) or tier.sense not in (1, -1):
            yield f"tier {tier.name}: sense {tier.sense}"
        elif (tier.bound - tier.value) * tier.sense < 0:
            yield f"tier {tier.name}: value {tier.value} is beyond the bound {tier.bound} (sense {tier.sense})"
        if view.solution.status is Status.OPTIMAL and not tier.proven:
            yield f"tier {tier.name}: status {Status.OPTIMAL}, but value {tier.value} and bound {tier.bound} differ"


def _taken(view: View, resource: str) -> Counter[str]:
    """What the grants use, by namespace."""
    taken: Counter[str] = Counter()
    for award in view.awards:
        for use in award.uses:
            if not use.alternative.admin:
                taken[award.claim.key.namespace] += _of(view, use, resource)
    return taken


def _of(view: View, use: Use, resource: str) -> int:
    """Counters of that name, if the device draws on any, or else the capacity of that name."""
    by_request = use.charge.counters if use.charge else ()
    draws = by_request if use.device.shareable else use.device.consumes + by_request
    named = [
        nanos
        for number, nanos in draws
        if view.problem.counters[number].id.counter == resource
    ]
    if named:
        return sum(named)
    if use.device.shareable:
        return dict(use.charge.capacity).get(resource, 0) if use.charge else 0
    return use.device.capacity[resource].total if resource in use.device.capacity else 0
