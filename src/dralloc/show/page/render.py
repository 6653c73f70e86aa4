"""The whole page: its pictures, the tables that only it has, and the template that they are put into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

from markupsafe import Markup

from dralloc.objects.answer import Answer
from dralloc.objects.choices import Mode
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Table, duration, percent
from dralloc.show.comparison import Comparison, answer_words
from dralloc.show.page import rendered
from dralloc.show.plan import Plan
from dralloc.show.plot import device_map, gained, progress, ranks, utilisation
from dralloc.show.plot.charts import under
from dralloc.show.plot.colours import DARK, LIGHT, Theme
from dralloc.show.plot.gained import has_alternatives
from dralloc.show.plot.over_time import PICTURES, OverTime
from dralloc.show.plot.svg import colour_variables, svg
from dralloc.show.question import WHO, asked, kinds_asked
from dralloc.show.tiers import tiers_table
from dralloc.solve.optimum import Progress

__all__ = [
    "Circumstances",
    "Picture",
    "gains_picture",
    "map_picture",
    "render",
    "render_over_time",
    "time_pictures",
    "unplaced_table",
    "utilisation_picture",
]

# ----------------------------------------------------------------------------
# The pictures of the page, each with its title, description and caption.


class Picture(NamedTuple):
    """A picture as SVG, with a name that is its id, and its caption. A wide one needs the whole width."""

    svg: Markup
    name: str
    caption: str
    wide: bool


def _picture(
    draw: Callable[[], Any],
    name: str,
    title: str,
    caption: str,
    *,
    wide: bool = True,
) -> Picture:
    return Picture(Markup(svg(draw, name, title)), name, caption, wide)


def map_picture(
    plan: Plan, beside: Plan | None, name: str, title: str
) -> Picture:
    """Draw where everything is under one answer."""
    placed = f"{plan.metrics.placed} of {asked(plan.compiled)} placed"
    caption = f"{title}: {placed}. Point at a box for its claim and device."
    return _picture(
        partial(device_map, plan, beside=beside, title=""), name, title, caption
    )


def utilisation_picture(
    comparison: Comparison, name: str = "utilisation-picture"
) -> Picture:
    """Draw how full everything is."""
    *first, last = map(under, comparison.answers)
    title = f"Utilisation before, {', '.join(first)} and {last}"
    caption = (
        "Share in use of devices, counters and capacities, over all nodes."
    )
    return _picture(
        partial(utilisation, comparison, title=""), name, title, caption
    )


def gains_picture(
    comparison: Comparison, name: str = "gains-picture"
) -> Picture:
    """Draw what the optimum places and the answer that it is held against does not."""
    gain = comparison.gain
    both = f"{gain.words(gain.not_by)} and {gain.words(gain.placed_by)}"
    title = (
        f"Pods and claims by what they ask for, and which of {both} places them"
    )
    caption = (
        f"{title}. A bold outline marks what only one of these two places."
    )
    return _picture(partial(gained, comparison, title=""), name, title, caption)


def ranks_picture(comparison: Comparison) -> Picture:
    """Draw which alternatives requests got."""
    title = "Alternatives that requests with firstAvailable got"
    draw = partial(ranks, comparison, title="")
    return _picture(
        draw, "ranks-picture", title, f"{title}, by answer.", wide=False
    )


def progress_pictures(
    plan: Plan, records: Sequence[Progress]
) -> Iterator[Picture]:
    """Best and bound over time, for each tier of which more is known than how it ended."""
    timings = plan.solution.timings
    # Phases follow each other: a tier ends when all phases up to it have taken their time.
    end = timings.get("classes", 0.0) + timings.get("survey", 0.0)
    for tier_index, tier in enumerate(plan.tiers):
        end += timings.get(tier.name, 0.0)
        of_tier = [record for record in records if record.phase == tier.name]
        if of_tier:
            # What was reported last need not be how the tier ended.
            of_tier.append(
                Progress(
                    tier.name,
                    tier.value,
                    tier.bound,
                    max(end, of_tier[-1].seconds),
                )
            )
            name, title = (
                f"progress-{tier_index}",
                f"Best and bound over time: {tier.name}",
            )
            yield _picture(
                partial(progress, of_tier, title=""),
                name,
                title,
                f"{title}.",
                wide=False,
            )


def time_pictures(
    answer: OverTime, name: Callable[[str], str] = str
) -> Iterator[Picture]:
    """Draw what happened over time, as far as there is anything to be seen; each picture gets a name of its own."""
    for picture in PICTURES:
        frame = picture.frame(answer)
        if len(frame):
            draw = partial(picture.draw, frame, title="")
            title = picture.title
            yield _picture(
                draw, name(f"{picture.name}-picture"), title, f"{title}."
            )


# ----------------------------------------------------------------------------
# The tables that only the page has; all others are those of the terminal.


def titled(source: Comparison | Plan, title: str, new_title: str = "") -> Table:
    """Return the table of that title in a report for the terminal, under another title; empty if there is none."""
    same_title = (
        part
        for part in source.parts()
        if isinstance(part, Table) and part.title == title
    )
    table = next(same_title, Table(title, (), ()))
    return replace(table, title=new_title or title)


def placements_table(plan: Plan, title: str) -> Table:
    """Return every device that is granted, for each who uses it, then those that were allocated before."""
    granted = [
        (
            str(plan.demands[placement.demand].key),
            plan.node_of(placement),
            claim.key.name,
            str(
                claim.requests[grant.request]
                .alternatives[grant.alternative]
                .name
            ),
            str(plan.compiled.problem.devices[grant.device].id),
            "now",
        )
        for placement, claim, grant in plan.uses()
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
        [*granted, *((*row, "now") for row in plan.bare_rows()), *before],
    )


def unplaced_table(comparison: Comparison) -> Table:
    """Return a row for each demand that one of the answers does not place: the reason or the node, by answer."""
    plans = list(comparison.answers.values())
    fates = list(map(_fates, plans))
    rows: list[tuple[str, ...]] = []
    for demand in comparison.best.demands:
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
        plan.demands[
            placement.demand
        ].key: f"placed on {plan.node_of(placement)}"
        for placement in plan.solution.placements
    }
    return {**placed, **plan.reasons}


def timings_table(seconds: Mapping[str, float]) -> Table:
    """Seconds by phase."""
    return Table(
        "Time by phase",
        ("phase", ">time"),
        [(name, duration(value)) for name, value in seconds.items()],
    )


# ----------------------------------------------------------------------------
# The page. Its sections are in ``templates/page.html``; those that have nothing to show
# are left out.


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The circumstances in which the answers were found, as the page tells them.

    Parameters
    ----------
    source
        What was read, e.g. paths; the page's title has it where there is no other.
    options
        Choices by name.
    progress
        What was reported while the optimum was searched for.
    remarks
        What is remarkable about the input.
    timed
        Whether to show seconds. Without them, equal answers give equal pages.
    title
        What the page is about, in its title.
    """

    source: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    progress: Sequence[Progress] = ()
    remarks: Sequence[str] = ()
    timed: bool = True
    title: str = ""


def _tile(words: str) -> str:
    """Return the words for an answer as a heading of their own."""
    name = words.removeprefix("the ")
    return name if name == answer_words(Mode.SCHEDULER) else name.capitalize()


def _styled(mode: Mode | str) -> str:
    """Return the name of an answer's style."""
    return "optimum" if mode is Mode.OPTIMAL else str(mode)


def render(comparison: Comparison, about: Circumstances | None = None) -> str:
    """Write all answers as one HTML page that needs nothing else: no script, no style sheet, no font, no network."""
    about = about or Circumstances()
    best = comparison.best
    names = [answer_words(plan.mode) for plan in comparison.plans]
    tiles = [
        (_tile(words), _styled(plan.mode), plan)
        for words, plan in zip(names, comparison.plans, strict=True)
    ]
    mapped = [
        (plan, best, f"map-{plan.mode}", words)
        for words, plan in zip(names[:-1], comparison.plans, strict=False)
    ]
    source = {"input": about.source} if about.source else {}
    subject = about.title or about.source
    return rendered(
        "page.html",
        title=f"dralloc report: {subject}" if subject else "dralloc report",
        comparison=comparison,
        best=best,
        gain=comparison.gain,
        tiles=tiles,
        mapped=[
            *mapped,
            (
                best,
                comparison.baseline,
                f"map-{_styled(best.mode)}",
                names[-1],
            ),
        ],
        kinds=kinds_asked(best.compiled),
        about=about,
        facts={
            **source,
            **about.options,
            "version": f"dralloc {version('dralloc')}",
        },
        titled=partial(titled, comparison),
        has_alternatives=has_alternatives,
        map_picture=map_picture,
        utilisation_picture=utilisation_picture,
        gains_picture=gains_picture,
        ranks_picture=ranks_picture,
        progress_pictures=progress_pictures,
        placements_table=placements_table,
        unplaced_table=unplaced_table,
        tiers_table=tiers_table,
        timings_table=timings_table,
        percent=percent,
        rest="; dralloc compare --json lists all",
        light=_variables(LIGHT),
        dark=_variables(DARK),
        version=version("dralloc"),
    )


def render_over_time(answer: Answer, title: str = "") -> str:
    """Write an answer about what happened over time as one HTML page with its pictures and tables."""
    pictures = (
        list(time_pictures(answer)) if isinstance(answer, OverTime) else []
    )
    return rendered(
        "answer.html",
        title=f"dralloc simulate: {title}" if title else "dralloc simulate",
        headline=answer.headline,
        parts=answer.parts(),
        pictures=pictures,
        light=_variables(LIGHT),
        dark=_variables(DARK),
        version=version("dralloc"),
    )


def _variables(theme: Theme) -> str:
    return "".join(
        f"{name}:{colour};" for name, colour in colour_variables(theme)
    )
