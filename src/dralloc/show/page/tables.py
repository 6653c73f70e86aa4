"""The tables that only the page has; all others are those of the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Table, duration, percent, tier_text
from dralloc.problem.solution import Tier
from dralloc.show.comparison import Comparison
from dralloc.show.plan import Plan
from dralloc.show.question import WHO

__all__ = ["placements", "tiers", "timings", "titled", "unplaced"]

_TIERS = {
    "weight": "weight of what is placed, the more the better",
    "alternatives": "ranks of the picked alternatives, the less the better",
}


def titled(source: Comparison | Plan, title: str, new_title: str = "") -> Table:
    """Return the table of that title in a report for the terminal, under another title; empty if there is none."""
    same_title = (
        part
        for part in source.parts()
        if isinstance(part, Table) and part.title == title
    )
    table = next(same_title, Table(title, (), ()))
    return replace(table, title=new_title or title)


def placements(plan: Plan, title: str) -> Table:
    """Return every device that is granted, then those that were allocated before."""
    granted = [
        (
            str(plan.demands[placement.demand].key),
            plan.node_of(placement),
            claim.key.name,
            str(claim.requests[grant.request].alternatives[grant.alternative].name),
            str(plan.compiled.problem.devices[grant.device].id),
            "now",
        )
        for placement, claim, grant in plan.grants()
    ]
    before = [
        (
            str(claim.key),
            "",
            claim.key.name,
            result.request,
            str(result.device_id),
            "before",
        )
        for claim in plan.compiled.cluster.claims
        for result in claim.results
    ]
    return Table(
        title,
        (WHO, "node", "claim", "request", "device", "allocated"),
        [*granted, *before],
    )


def unplaced(comparison: Comparison) -> Table:
    """Return a row for each demand that one of the answers does not place: the reason or the node, by answer."""
    plans = list(comparison.answers.values())
    fates = list(map(_fates, plans))
    rows: list[tuple[str, ...]] = []
    for demand in comparison.optimal.demands:
        key = demand.key
        if any(key in plan.reasons for plan in plans):
            rows.append((str(key), *(fate[key] for fate in fates)))
    which = "both" if len(plans) == 2 else "more"
    return Table(
        f"Not placed by one answer or {which}, with the reason",
        (WHO, *comparison.answers),
        rows,
    )


def _fates(plan: Plan) -> Mapping[ClaimKey, str]:
    """Return the node of each demand that is placed, and the reason of each that is not."""
    placed = {
        plan.demands[placement.demand].key: f"placed on {plan.node_of(placement)}"
        for placement in plan.solution.placements
    }
    return {**placed, **plan.reasons}


def tiers(plan: Plan) -> Table:
    """Return the objective, with what is proven of each tier."""
    rows = [
        (
            tier.name,
            _counted(tier),
            tier_text(tier.name, tier.value),
            tier_text(tier.name, tier.bound),
            percent(tier.gap),
            "proven" if tier.proven else f"not proven: {tier.why}",
        )
        for tier in plan.tiers
    ]
    columns = ("tier", "what it counts", ">value", ">bound", ">gap", "status")
    return Table("Tiers of the objective, the most important first", columns, rows)


def _counted(tier: Tier) -> str:
    if tier.name.startswith("fairness-"):
        number = tier.name.rpartition("-")[2]
        poorest = (
            "the poorest namespace uses"
            if number == "1"
            else f"the {number} poorest namespaces use together"
        )
        return f"what {poorest}, the more the better"
    return _TIERS.get(
        tier.name, "the more the better" if tier.sense > 0 else "the less the better"
    )


def timings(seconds: Mapping[str, float]) -> Table:
    """Seconds by phase."""
    return Table(
        "Time by phase",
        ("phase", ">time"),
        [(name, duration(value)) for name, value in seconds.items()],
    )
