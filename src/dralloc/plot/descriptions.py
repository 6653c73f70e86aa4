"""What there is to see in each picture, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from dralloc.comparison import Comparison
from dralloc.plan import Plan
from dralloc.plot.gains import Gain
from dralloc.question import asked
from dralloc.report import percent, tier_text
from dralloc.solvers.cpsat import Progress

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["of_demand", "of_gains", "of_map", "of_progress", "of_ranks", "of_utilisation"]

_UNDER: Final = {"scheduler": "with kube-scheduler", "first fit": "with first fit", "optimum": "with the optimum"}
"""The words for an answer by its title."""

_MOST: Final = 8


def of_map(plan: Plan, only_here: Sequence[object]) -> str:
    """What a device map shows."""
    nodes = Counter(plan.node_of(placement) for placement in plan.solution.placements)
    before = sum(claim.is_allocated for claim in plan.compiled.cluster.claims)
    parts = [f"{plan.metrics.placed} of {asked(plan.compiled)} are placed"]
    if nodes:
        parts.append("by node: " + _listed(f"{name} {count}" for name, count in nodes.items()))
    if before:
        parts.append(f"{before} claims were allocated before")
    if only_here:
        parts.append("placed by this answer alone: " + _listed(str(key) for key in only_here))
    return _sentences(parts)


def of_utilisation(comparison: Comparison) -> str:
    """Where first fit and the optimum differ most, with what is in use under each of the answers."""
    every = zip(*(plan.metrics.utilisation for plan in comparison.answers.values()), strict=True)
    rows = [row for row in every if row[0].total]
    rows.sort(key=lambda row: -abs(row[-1].share - row[-2].share))
    told = (
        f"{row[0].kind} {row[0].name} {percent(row[0].share_before)} before, "
        + ", ".join(
            f"{percent(one.share)} {_UNDER[answer]}" for answer, one in zip(comparison.answers, row, strict=True)
        )
        for row in rows
    )
    return _sentences(["in use, the largest differences first: " + _listed(told)])


def of_gains(gains: Iterable[Gain]) -> str:
    """Who places what."""
    return _sentences(_gain(gain) for gain in gains)


def _gain(gain: Gain) -> str:
    counts = {
        "placed by both": gain.both,
        "only by the optimum": gain.only_optimum,
        "only by first fit": gain.only_first_fit,
        "not placed": gain.neither,
    }
    return f"{gain.wants}: " + ", ".join(f"{count} {words}" for words, count in counts.items() if count)


def of_ranks(counts: Sequence[Sequence[int]], answers: Sequence[str]) -> str:
    """How many requests got which alternative under each of the answers."""
    names = [*(f"alternative {rank + 1}" for rank in range(len(counts[0]) - 1)), "none"]
    rows = zip(names, *counts, strict=True)
    return _sentences(
        f"{name}: " + ", ".join(f"{count} {_UNDER[answer]}" for answer, count in zip(answers, row, strict=True))
        for name, *row in rows
    )


def of_progress(records: Sequence[Progress]) -> str:
    """How best and bound met."""
    if not records:
        return ""
    start, end = records[0], records[-1]
    text = partial(tier_text, start.phase)
    return _sentences(
        [
            f"the best value goes from {text(start.best)} to {text(end.best)}",
            f"the bound from {text(start.bound)} to {text(end.bound)}",
            f"between {start.seconds:.2f} and {end.seconds:.2f} seconds",
        ]
    )


def of_demand(means: Mapping[str, pd.Series[float]]) -> str:
    """Where each policy's line begins and ends."""
    return _sentences(
        f"{name} places {percent(mean.iloc[0])} at demand {mean.index[0]}, {percent(mean.iloc[-1])} at {mean.index[-1]}"
        for name, mean in means.items()
        if len(mean)
    )


def _listed(items: Iterable[str]) -> str:
    every = list(items)
    more = [f"and {len(every) - _MOST} more"] if len(every) > _MOST else []
    return "; ".join([*every[:_MOST], *more])


def _sentences(parts: Iterable[str]) -> str:
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)
