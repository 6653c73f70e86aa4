"""The pictures of the page, each with its title, description and caption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from dralloc.comparison import Comparison
from dralloc.page.descriptions import of_gains, of_map, of_progress, of_ranks, of_utilisation
from dralloc.page.html import Html
from dralloc.page.parts import figure
from dralloc.plan import Plan
from dralloc.plot import device_map, gained, progress, ranks, utilisation
from dralloc.plot.gains import gains
from dralloc.plot.ranks import rank_counts
from dralloc.plot.svg import svg
from dralloc.solvers.cpsat import Progress

__all__ = ["gains_picture", "map_picture", "progress_pictures", "ranks_picture", "utilisation_picture"]


def map_picture(plan: Plan, beside: Plan, name: str, title: str) -> Html:
    """Where everything is under one answer."""
    missing = {one.key for one in beside.unplaced} - {one.key for one in plan.unplaced}
    only_here = [demand.key for demand in plan.demands if demand.key in missing]
    drawn = svg(lambda: device_map(plan, beside=beside, title=""), name, title, of_map(plan, only_here))
    count = f"{plan.metrics.placed} of {len(plan.demands)} demands placed"
    return figure(drawn, name, f"{title}: {count}. Point at a box for its claim and device.")


def utilisation_picture(comparison: Comparison) -> Html:
    """How full everything is."""
    title = "Utilisation before, with first fit and with the optimum"
    drawn = svg(lambda: utilisation(comparison, title=""), "utilisation-picture", title, of_utilisation(comparison))
    return figure(drawn, "utilisation-picture", "Part in use by counter and capacity, over all nodes.")


def gains_picture(comparison: Comparison) -> Html:
    """What only the optimum places."""
    title = "Demands by what they want and by who places them"
    drawn = svg(lambda: gained(comparison, title=""), "gains-picture", title, of_gains(gains(comparison)))
    return figure(drawn, "gains-picture", f"{title}. A bold outline marks what only one answer places.")


def ranks_picture(comparison: Comparison) -> Html:
    """Which alternatives requests got."""
    title = "Alternatives that requests with firstAvailable got"
    told = of_ranks(rank_counts(comparison.first_fit), rank_counts(comparison.optimal))
    drawn = svg(lambda: ranks(comparison, title=""), "ranks-picture", title, told)
    return figure(drawn, "ranks-picture", f"{title}, by answer.", wide=False)


def progress_pictures(plan: Plan, records: Sequence[Progress]) -> Iterator[Html]:
    """Best and bound over time, for each tier of which more is known than how it ended."""
    timings = plan.solution.timings
    end = timings.get("classes", 0.0) + timings.get("survey", 0.0)
    for number, tier in enumerate(plan.tiers):
        end += timings.get(tier.name, 0.0)
        found = [one for one in records if one.phase == tier.name]
        if found:
            found.append(Progress(tier.name, tier.value, tier.bound, max(end, found[-1].seconds)))
            name, title = f"progress-{number}", f"Best and bound over time: {tier.name}"
            drawn = svg(partial(progress, found, title=""), name, title, of_progress(found))
            yield figure(drawn, name, f"{title}.", wide=False)
