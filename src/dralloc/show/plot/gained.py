"""The gain of the optimum: demands by the modes that place them, and the alternatives of requests in each mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Request
from dralloc.show.comparison import Comparison, Difference
from dralloc.show.plan import Plan
from dralloc.show.plot.canvas import WIDTH, axes
from dralloc.show.plot.charts import (
    SMALL,
    TEXT,
    answers_drawn,
    bars,
    name_rows,
    swatch,
    tidy,
    under,
)
from dralloc.show.plot.colours import Palette, Style, Theme, theme
from dralloc.show.plot.profiles import RequestProfile, RequestProfiles
from dralloc.show.plot.texts import clean, fitted

__all__ = ["gained", "has_alternatives", "ranks"]

_GAIN_ROW: Final = 24.0
_MARGINS: Final = 70.0
_LABEL: Final = 300.0
_THICKNESS: Final = 0.66

_Missing = tuple[bool, bool]
"""Whether the baseline does not place a demand, and whether the optimum does not."""


class _Segment(NamedTuple):
    """A part of a bar: the demands that it counts, its words in the legend and in a description, and its outline."""

    missing: _Missing
    label: str
    words: str
    line: Literal["-", "--", ":"]
    width: float
    sign: str = ""

    @property
    def is_filled(self) -> bool:
        """Whether the optimum places them."""
        return not self.missing[1]

    def edge(self, colours: Theme) -> str:
        """Return the colour of its outline: strong where only one of the two answers places them."""
        return colours.ink if self.sign else colours.muted


_ONLY_OPTIMUM: Final = (True, False)


def _segments(gain: Difference) -> tuple[_Segment, ...]:
    """Return the parts of a bar. "Only" is said where no third answer was asked."""
    best, baseline = gain.words(gain.placed_by), gain.words(gain.not_by)
    star, circle = "\N{BLACK STAR}", "\N{WHITE CIRCLE}"
    gains, gains_words = f"only {best}", f"only by {best}"
    losses, losses_words = f"only {baseline}", f"only by {baseline}"
    if not gain.of_all:
        gains, gains_words = (
            f"{best}, not {baseline}",
            f"by {best} and not by {baseline}",
        )
        losses, losses_words = (
            f"{baseline}, not {best}",
            f"by {baseline} and not by {best}",
        )
    return (
        _Segment((False, False), "both place it", "placed by both", "-", 0.7),
        _Segment(
            _ONLY_OPTIMUM, f"{gains} ({star})", gains_words, "-", 2.0, sign=star
        ),
        _Segment(
            (False, True),
            f"{losses} ({circle})",
            losses_words,
            ":",
            2.0,
            sign=circle,
        ),
        _Segment((True, True), "not placed", "not placed", "--", 0.9),
    )


@dataclass(frozen=True, slots=True)
class _Gain:
    """The demands that want the same: what, the profile of their first request, and how many by who misses them."""

    wants: str
    profile: RequestProfile
    counts: Counter[_Missing]

    def told(self, segments: Sequence[_Segment]) -> str:
        """Return the size of each part of its bar, in words."""
        counts = ((self.counts[part.missing], part.words) for part in segments)
        return f"{self.wants}: " + ", ".join(
            f"{count} {words}" for count, words in counts if count
        )


def gained(
    comparison: Comparison,
    ax: Axes | None = None,
    *,
    most: int = 16,
    title: str | None = None,
) -> Axes:
    """Draw how many demands of each request profile are placed by the optimum and the baseline: both, one, or none.

    The baseline is kube-scheduler's answer if it was asked, or else first fit's.

    Parameters
    ----------
    most
        The most rows to draw: those with most that the optimum places and the baseline does not, then those with most
        demands.
    title
        The heading; what the optimum places and which baseline does not if None. Empty for none.
    """
    segments = _segments(comparison.gain)
    profiles = RequestProfiles(comparison.best.compiled.cluster)
    colours, palette, gains = (
        theme(),
        Palette(profiles),
        _gains(comparison, profiles),
    )
    counts = [gain.counts for gain in gains]
    # The rows that tell most are chosen, and drawn in the order of the demands, which
    # is that of all other pictures.
    order = sorted(
        range(len(gains)),
        key=lambda gain_index: (
            -counts[gain_index][_ONLY_OPTIMUM],
            -counts[gain_index].total(),
        ),
    )
    shown = [gains[gain_index] for gain_index in sorted(order[:most])]
    ax = axes(
        ax,
        _MARGINS + _GAIN_ROW * max(len(shown), 1),
        says=[gain.told(segments) for gain in gains],
    )
    for row, gain in enumerate(shown):
        _bar(ax, row, gain.counts, segments, palette.style(gain.profile))
    name_rows(
        ax, colours, [fitted(clean(gain.wants), TEXT, _LABEL) for gain in shown]
    )
    ax.set_xlim(
        0, max((gain.counts.total() for gain in shown), default=1) * 1.01
    )
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    ax.set_xlabel("pods and claims", size=TEXT, color=colours.ink)
    usual = comparison.gain.heading if title is None else title
    heading = (
        f"{usual} (and {len(gains) - most} more kinds)"
        if len(gains) > most
        else usual
    )
    totals: Counter[_Missing] = sum((gain.counts for gain in shown), Counter())
    drawn = [part for part in segments if totals[part.missing]]
    tidy(ax, colours, heading, legend=[_entry(colours, part) for part in drawn])
    return ax


def _bar(
    ax: Axes,
    row: int,
    counts: Counter[_Missing],
    segments: Sequence[_Segment],
    style: Style,
) -> None:
    # Segments without demands are left out, as a bar of no length still has an outline.
    start, colours = 0, theme()
    for part in segments:
        count = counts[part.missing]
        if count:
            _patch(ax, colours, part, (start, row, count), style)
            text = f"{part.sign} {count}".strip()
            ink = colours.label if part.is_filled else colours.ink
            weight = "bold" if part.sign else "normal"
            ax.text(
                start + count / 2,
                row,
                text,
                size=SMALL,
                color=ink,
                weight=weight,
                ha="center",
                va="center_baseline",
            )
        start += count


def _patch(
    ax: Axes,
    colours: Theme,
    part: _Segment,
    bar: tuple[float, float, float],
    style: Style,
) -> None:
    start, row, count = bar
    fill = style.colour if part.is_filled else "none"
    # matplotlib draws hatches in the colour of the edge: a hatched bar gets its outline
    # from a second, empty one on top of it.
    if style.hatch and part.is_filled:
        bars(ax, [row], [count], _THICKNESS, style, left=start)
        fill = "none"
    ax.barh(
        row,
        count,
        _THICKNESS,
        left=start,
        facecolor=fill,
        edgecolor=part.edge(colours),
        linewidth=part.width,
        linestyle=part.line,
        # Bold outlines are above those of their neighbours, which would cover half of them.
        zorder=3 if part.sign else 2,
    )


def _entry(colours: Theme, part: _Segment) -> Patch:
    fill = colours.faint if part.is_filled else "none"
    edge = part.edge(colours)
    return Patch(
        facecolor=fill,
        edgecolor=edge,
        linewidth=part.width,
        linestyle=part.line,
        label=part.label,
    )


def _gains(comparison: Comparison, profiles: RequestProfiles) -> list[_Gain]:
    """Return the demands by what they want, in the order in which each request profile shows first."""
    baseline = {demand.key for demand in comparison.baseline.unplaced}
    best = {demand.key for demand in comparison.best.unplaced}
    by_words: dict[str, _Gain] = {}
    for demand in comparison.best.demands:
        wants, profile = _wants(demand, profiles)
        gain = by_words.setdefault(wants, _Gain(wants, profile, Counter()))
        gain.counts[demand.key in baseline, demand.key in best] += 1
    return list(by_words.values())


def _wants(
    demand: Demand, profiles: RequestProfiles
) -> tuple[str, RequestProfile]:
    """Return a demand's request in words, and the request profile that stands for it."""
    alternatives = [
        (request, _profiles(claim.key, request, profiles))
        for claim in demand.claims
        for request in claim.requests
    ]
    # Equal requests are counted: "2x a100", not "a100 + a100".
    texts = Counter(
        " or ".join(_words(request, profiles_found))
        for request, profiles_found in alternatives
    )
    words = " + ".join(
        f"{count}\N{MULTIPLICATION SIGN} {text}" if count > 1 else text
        for text, count in texts.items()
    )
    return words or "nothing", next(
        (
            profile
            for _, profiles_found in alternatives
            for profile in profiles_found
        ),
        RequestProfile(""),
    )


def _profiles(
    claim: ClaimKey, request: Request, profiles: RequestProfiles
) -> list[RequestProfile]:
    return [
        profiles.of(claim, str(alternative.name))
        for alternative in request.alternatives
    ]


def _words(request: Request, profiles: list[RequestProfile]) -> Iterator[str]:
    for alternative, profile in zip(
        request.alternatives, profiles, strict=True
    ):
        count = (
            "all "
            if alternative.count is None
            else f"{alternative.count}\N{MULTIPLICATION SIGN} "
        )
        yield profile.short if alternative.count == 1 else count + profile.short


# ----------------------------------------------------------------------------
# Which alternatives requests got in each mode.

_RANK_ROW: Final = 40.0
_ROOM: Final = 0.72
"""What of a row the bars of all answers take."""


def ranks(
    comparison: Comparison,
    ax: Axes | None = None,
    *,
    title: str = "Alternatives of firstAvailable",
) -> Axes:
    """Draw how many requests got their first, second, ... alternative, and how many got none.

    Only requests with ``firstAvailable`` (KEP-4816) count; the others have nothing to choose from.
    """
    colours = theme()
    plans = answers_drawn(comparison, _ROOM / len(comparison.answers))
    counts = [_rank_counts(plan) for plan, _, _ in plans]
    rows = max((len(rank_row) for rank_row in counts), default=1)
    names = [*(f"alternative {rank + 1}" for rank in range(rows - 1)), "none"]
    titles = [under(answer) for answer in comparison.answers]
    # The same in words, for those who cannot see the picture.
    told: list[str] = []
    for name, *row in zip(names, *counts, strict=True):
        rows_told = [
            f"{count} {title}" for count, title in zip(row, titles, strict=True)
        ]
        told.append(f"{name}: {', '.join(rows_told)}")
    ax = axes(ax, _MARGINS + _RANK_ROW * rows, WIDTH / 2 - 10, says=told)
    for (_, kind, shift), rank_row in zip(plans, counts, strict=True):
        positions = [row_index + shift for row_index in range(rows)]
        bars(ax, positions, rank_row, _ROOM / len(plans), kind.style(colours))
        for position, count in zip(positions, rank_row, strict=True):
            ax.annotate(
                str(count),
                (count, position),
                xytext=(3, 0),
                textcoords="offset points",
                size=SMALL,
                color=colours.ink,
                va="center_baseline",
            )
    name_rows(ax, colours, names)
    # Room for the number behind the longest bar.
    ax.set_xlim(0, max((*chain(*counts), 1)) * 1.12)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    tidy(
        ax,
        colours,
        title,
        legend=[swatch(colours, kind) for _, kind, _ in plans],
    )
    return ax


def has_alternatives(plan: Plan) -> bool:
    """Return whether any request has more than one alternative."""
    return next(_with_choice(plan), None) is not None


def _rank_counts(plan: Plan) -> list[int]:
    """Count the requests with alternatives by the rank that they got; the last entry is how many got none."""
    requests = list(_with_choice(plan))
    granted_ranks = {
        (claim.key, grant.request): claim.requests[grant.request]
        .alternatives[grant.alternative]
        .rank
        for _, claim, grant in plan.grants()
        if len(claim.requests[grant.request].alternatives) > 1
    }
    counts = Counter(granted_ranks.values())
    deepest = max(
        (len(request.alternatives) for request in requests), default=0
    )
    return [
        *(counts[rank] for rank in range(deepest)),
        len(requests) - len(granted_ranks),
    ]


def _with_choice(plan: Plan) -> Iterator[Request]:
    seen = {
        claim.key: claim for demand in plan.demands for claim in demand.claims
    }
    for claim in seen.values():
        yield from (
            request
            for request in claim.requests
            if len(request.alternatives) > 1
        )
