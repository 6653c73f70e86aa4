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


def tables(found: Sequence[Outcome]) -> list[Part]:
    """One line for each demand and policy; published policies have a column for each demand."""
    published = [one for one in found if one.source == "published"]
    demands = list(dict.fromkeys(one.demand for one in published))
    columns = ("policy", *(f">{_share(demand)}" for demand in demands))
    return [
        Table("GPUs allocated", _COLUMNS, folded(list(_measured(found)), 1)),
        Table(
            "The same as published, by demand",
            columns,
            list(_published(published, demands)),
        ),
    ]


def _measured(found: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    for one in found:
        if one.source == "measured":
            yield (
                _share(one.demand),
                one.policy,
                _percent(one.allocated_percent),
                _percent(one.bound_percent),
                str(one.pods),
                str(one.placed),
                str(one.status),
                f"{one.seconds:.1f}",
            )


def _published(
    found: Sequence[Outcome], demands: Sequence[float]
) -> Iterator[tuple[str, ...]]:
    figures = {(one.policy, one.demand): one.allocated_percent for one in found}
    for policy in dict.fromkeys(one.policy for one in found):
        yield (
            policy,
            *(_percent(figures.get((policy, demand))) for demand in demands),
        )


def _share(demand: float) -> str:
    return f"{100 * demand:g}%"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}%"
