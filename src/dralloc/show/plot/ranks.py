"""Which alternatives requests got in each mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from dralloc.problem import Request
from dralloc.show.comparison import Comparison
from dralloc.show.plan import Plan
from dralloc.show.plot.canvas import (
    SMALL,
    UNDER,
    WIDTH,
    answers_drawn,
    axes,
    bars,
    name_rows,
    swatch,
    theme,
    tidy,
)

__all__ = ["has_alternatives", "rank_counts", "ranks"]

_ROW: Final = 40.0
_MARGINS: Final = 70.0
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
    counts = [rank_counts(plan) for plan, _, _ in plans]
    rows = max((len(rank_row) for rank_row in counts), default=1)
    names = [*(f"alternative {rank + 1}" for rank in range(rows - 1)), "none"]
    titles = [UNDER[answer] for answer in comparison.answers]
    told: list[str] = []
    for name, *row in zip(names, *counts, strict=True):
        under = [f"{count} {title}" for count, title in zip(row, titles, strict=True)]
        told.append(f"{name}: {', '.join(under)}")
    ax = axes(ax, _MARGINS + _ROW * rows, WIDTH / 2 - 10, says=told)
    for (_, kind, shift), rank_row in zip(plans, counts, strict=True):
        places = [place + shift for place in range(rows)]
        bars(ax, places, rank_row, _ROOM / len(plans), kind.style(colours))
        for place, count in zip(places, rank_row, strict=True):
            ax.annotate(
                str(count),
                (count, place),
                xytext=(3, 0),
                textcoords="offset points",
                size=SMALL,
                color=colours.ink,
                va="center_baseline",
            )
    name_rows(ax, colours, names)
    ax.set_xlim(0, max((*chain(*counts), 1)) * 1.12)
    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    tidy(ax, colours, title, legend=[swatch(colours, kind) for _, kind, _ in plans])
    return ax


def has_alternatives(plan: Plan) -> bool:
    """Return whether any request has more than one alternative."""
    return any(True for _ in _with_choice(plan))


def rank_counts(plan: Plan) -> list[int]:
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
    deepest = max((len(request.alternatives) for request in requests), default=0)
    return [
        *(counts[rank] for rank in range(deepest)),
        len(requests) - len(granted_ranks),
    ]


def _with_choice(plan: Plan) -> Iterator[Request]:
    seen = {claim.key: claim for demand in plan.demands for claim in demand.claims}
    for claim in seen.values():
        yield from (
            request for request in claim.requests if len(request.alternatives) > 1
        )
