"""The pictures of the page, each with its title, description and caption."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from markupsafe import Markup

from dralloc.show.comparison import Comparison
from dralloc.show.plan import Plan
from dralloc.show.plot import device_map, gained
from dralloc.show.plot import progress as progress_chart
from dralloc.show.plot import ranks as ranks_chart
from dralloc.show.plot import utilisation as utilisation_chart
from dralloc.show.plot.canvas import svg
from dralloc.show.plot.ranks import has_alternatives
from dralloc.show.question import asked
from dralloc.solve.optimum import Progress

__all__ = [
    "Picture",
    "gains",
    "has_alternatives",
    "map",
    "progress",
    "ranks",
    "utilisation",
]


class Picture(NamedTuple):
    """A picture as SVG, with a name that is its id, and its caption. A wide one needs the whole width."""

    svg: Markup
    name: str
    caption: str
    wide: bool


def _picture(
    draw: Callable[[], Any], name: str, title: str, caption: str, *, wide: bool = True
) -> Picture:
    return Picture(Markup(svg(draw, name, title)), name, caption, wide)


def map(plan: Plan, beside: Plan | None, name: str, title: str) -> Picture:  # noqa: A001 - what it is
    """Draw where everything is under one answer."""
    placed = f"{plan.metrics.placed} of {asked(plan.compiled)} placed"
    caption = f"{title}: {placed}. Point at a box for its claim and device."
    return _picture(
        partial(device_map, plan, beside=beside, title=""), name, title, caption
    )


def utilisation(comparison: Comparison, name: str = "utilisation-picture") -> Picture:
    """Draw how full everything is."""
    title = "Utilisation before, with first fit and with the optimum"
    caption = "Part in use by counter and capacity, over all nodes."
    return _picture(
        partial(utilisation_chart, comparison, title=""), name, title, caption
    )


def gains(comparison: Comparison, name: str = "gains-picture") -> Picture:
    """Draw what the optimum places and the answer that it is held against does not."""
    gain = comparison.gain
    title = f"Pods and claims by what they want and by which of {gain.words(gain.not_by)} and the optimum places them"
    caption = f"{title}. A bold outline marks what only one of these two places."
    return _picture(partial(gained, comparison, title=""), name, title, caption)


def ranks(comparison: Comparison) -> Picture:
    """Draw which alternatives requests got."""
    title = "Alternatives that requests with firstAvailable got"
    draw = partial(ranks_chart, comparison, title="")
    return _picture(draw, "ranks-picture", title, f"{title}, by answer.", wide=False)


def progress(plan: Plan, records: Sequence[Progress]) -> Iterator[Picture]:
    """Best and bound over time, for each tier of which more is known than how it ended."""
    timings = plan.solution.timings
    end = timings.get("classes", 0.0) + timings.get("survey", 0.0)
    for number, tier in enumerate(plan.tiers):
        end += timings.get(tier.name, 0.0)
        of_tier = [record for record in records if record.phase == tier.name]
        if of_tier:
            of_tier.append(
                Progress(
                    tier.name, tier.value, tier.bound, max(end, of_tier[-1].seconds)
                )
            )
            name, title = f"progress-{number}", f"Best and bound over time: {tier.name}"
            yield _picture(
                partial(progress_chart, of_tier, title=""),
                name,
                title,
                f"{title}.",
                wide=False,
            )
