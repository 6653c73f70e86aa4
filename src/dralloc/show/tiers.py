"""How good an answer is, tier by tier of what it was to be good in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dralloc.objects.choices import Goal
from dralloc.objects.report import Table, percent, tier_text
from dralloc.problem.solution import Tier

__all__ = ["tiers_table"]

_COUNTED: Final[Mapping[str, str]] = {
    "weight": "weight of what is placed",
    "alternatives": "ranks of the picked alternatives",
    Goal.FEWEST_NODES: "nodes that get a placement",
    Goal.FEWEST_DEVICES: "devices that are no longer free",
    Goal.LEAST_FRAGMENTATION: "units that are no longer untouched",
    Goal.SPREAD: "placements on the node with the most",
}
"""What tiers count whose names do not say so."""


def tiers_table(tiers: Sequence[Tier], *, wide: bool = False) -> Table:
    """Return the objective, with what is proven of each tier.

    Parameters
    ----------
    wide
        Whether it is only for those who want to see more.
    """
    rows = [
        (
            tier.name,
            _counted(tier),
            tier_text(tier.name, tier.value),
            tier_text(tier.name, tier.bound),
            percent(tier.gap),
            "proven" if tier.proven else f"not proven: {tier.why}",
        )
        for tier in tiers
    ]
    columns = ("tier", "what it counts", ">value", ">bound", ">gap", "status")
    return Table(
        "Tiers of the objective, the most important first", columns, rows, wide
    )


def _counted(tier: Tier) -> str:
    direction = (
        "the more the better" if tier.sense > 0 else "the less the better"
    )
    return f"{_subject(tier.name)}, {direction}"


def _subject(name: str) -> str:
    """Return what a tier of this name counts."""
    amount, at, priority = name.rpartition("@")
    if at:
        return f"{amount} of priority {priority}"
    fairness, _, count = name.rpartition("-")
    if fairness == "fairness":
        if count == "1":
            return "what the poorest namespace uses"
        return f"what the {count} poorest namespaces use together"
    return _COUNTED.get(name, name)
