"""Outcomes as tables that fit on a narrow terminal: what was measured, and the published figures below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.openb.run import Outcome
from dralloc.objects.report import Part, Table, folded

__all__ = ["tables"]

_COLUMNS = (
    ">demand",
    "policy",
    ">GPUs",
    ">bound",
    ">pods",
    ">placed",
    "status",
    ">s",
)


def tables(outcomes: Sequence[Outcome]) -> list[Part]:
    """One line for each demand and policy; published policies have a column for each demand."""
    published = [
        outcome for outcome in outcomes if outcome.source == "published"
    ]
    demands = list(dict.fromkeys(outcome.demand for outcome in published))
    columns = ("policy", *(f">{_share(demand)}" for demand in demands))
    return [
        Table("GPUs allocated", _COLUMNS, folded(list(_measured(outcomes)), 1)),
        Table(
            "The same as published, by demand",
            columns,
            list(_published(published, demands)),
        ),
    ]


def _measured(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    for outcome in outcomes:
        if outcome.source == "measured":
            yield (
                _share(outcome.demand),
                outcome.policy,
                _percent(outcome.allocated_percent),
                _percent(outcome.bound_percent),
                str(outcome.pods),
                str(outcome.placed),
                str(outcome.status),
                f"{outcome.seconds:.1f}",
            )


def _published(
    outcomes: Sequence[Outcome], demands: Sequence[float]
) -> Iterator[tuple[str, ...]]:
    figures = {
        (outcome.policy, outcome.demand): outcome.allocated_percent
        for outcome in outcomes
    }
    for policy in dict.fromkeys(outcome.policy for outcome in outcomes):
        yield (
            policy,
            *(_percent(figures.get((policy, demand))) for demand in demands),
        )


def _share(demand: float) -> str:
    return f"{100 * demand:g}%"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}%"
