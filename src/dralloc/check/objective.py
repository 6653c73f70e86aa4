"""Rules about what an answer says about itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dralloc.check.view import View
from dralloc.solution import Status

__all__ = ["bounds_and_status_agree", "values_are_true"]

SENSES: Final = {"weight": 1, "alternatives": -1}
"""The tiers that can be worked out from the answer, with their senses."""


def values_are_true(view: View) -> Iterator[str]:
    """Tier ``weight`` is the weight of all placed demands, ``alternatives`` the sum of the ranks that serve them."""
    ranks = {(award.claim.key, use.request): use.alternative.rank for award in view.awards for use in award.uses}
    weights = (view.problem.demands[placement.demand].weight for placement in view.solution.placements)
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
