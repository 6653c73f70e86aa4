"""Answers as users hold them: a plan for one mode, the comparison of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dralloc.api import AllocationResult, ResourceClaim
from dralloc.compiler import Compiled
from dralloc.metrics import Metrics, Utilisation, measure
from dralloc.names import ClaimKey
from dralloc.problem import Claim, Demand
from dralloc.quantity import Format, Quantity
from dralloc.report import Line, Part, Table, as_text, duration, percent
from dralloc.solution import Grant, Placement, Solution, Status, Tier
from dralloc.write import allocated_claims, allocations

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "Mode", "Plan", "Unplaced"]


class Mode(StrEnum):
    """How to answer: as upstream's scheduler would, or as well as possible."""

    FIRST_FIT = "first-fit"
    OPTIMAL = "optimal"


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A demand that got nothing: the pod (or the claim that no pod uses), its claims, the error if there was one."""

    key: ClaimKey
    claims: tuple[ClaimKey, ...]
    error: str = ""


@dataclass(frozen=True)
class Plan:
    """A checked answer. ``print(plan)`` is a readable report.

    Parameters
    ----------
    mode
        How it was found.
    compiled
        The problem that it answers, and the objects behind it.
    solution
        The answer in the problem's numbers.
    timings
        Seconds by phase.
    """

    mode: Mode
    compiled: Compiled
    solution: Solution
    timings: Mapping[str, float]

    @cached_property
    def allocations(self) -> Mapping[ClaimKey, AllocationResult]:
        """What each placed claim gets, as its ``status.allocation``."""
        return allocations(self.compiled, self.solution)

    @cached_property
    def metrics(self) -> Metrics:
        """Figures of the answer."""
        return measure(self.compiled.problem, self.solution)

    @property
    def claims(self) -> Iterator[ResourceClaim]:
        """The placed claims with their new status, as the API server would store them."""
        return allocated_claims(self.compiled, self.solution)

    @property
    def demands(self) -> tuple[Demand, ...]:
        """What was to be placed, in order."""
        return self.compiled.problem.demands

    @cached_property
    def unplaced(self) -> tuple[Unplaced, ...]:
        """The demands that got nothing, in order."""
        placed = {placement.demand for placement in self.solution.placements}
        return tuple(
            Unplaced(demand.key, tuple(claim.key for claim in demand.claims), str(self.solution.errors.get(number, "")))
            for number, demand in enumerate(self.demands)
            if number not in placed
        )

    @property
    def status(self) -> Status:
        """What is known about the answer."""
        return self.solution.status

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The objective, most important tier first; empty for first fit."""
        return self.solution.tiers

    @property
    def objective(self) -> int:
        """The sum of the weights of the placed demands: the first tier of the objective."""
        return self.metrics.weight

    @property
    def bound(self) -> int | None:
        """The proven limit of the first tier; None for first fit, which proves nothing."""
        return self.tiers[0].bound if self.tiers else None

    @property
    def gap(self) -> float | None:
        """The largest gap of any tier, 0 if all are proven; None for first fit."""
        return max((tier.gap for tier in self.tiers), default=None)

    def node_of(self, placement: Placement) -> str:
        """Name of the node of a placement."""
        return self.compiled.problem.nodes[placement.node].name

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""
        return {
            "mode": self.mode.value,
            "status": self.status.value,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "tiers": [_tier(tier) for tier in self.tiers],
            "demands": len(self.demands),
            "placed": [
                {
                    "demand": str(self.demands[placement.demand].key),
                    "node": self.node_of(placement),
                    "claims": {
                        str(claim.key): _wire(self.allocations[claim.key])
                        for claim in self.demands[placement.demand].claims
                    },
                }
                for placement in self.solution.placements
            ],
            "unplaced": [
                {"demand": str(one.key), "claims": [str(key) for key in one.claims], "error": one.error or None}
                for one in self.unplaced
            ],
            "metrics": _metrics(self.metrics),
            "warnings": list(self.solution.warnings),
            "timings": dict(self.timings),
        }

    def to_frame(self) -> pd.DataFrame:
        """One row per granted device, unplaced claims with empty node and device. Needs pandas (extra ``notebook``)."""
        from pandas import DataFrame  # noqa: PLC0415 - an optional dependency

        columns = ["demand", "claim", "node", "request", "rank", "driver", "pool", "device"]
        return DataFrame(self._rows(), columns=columns)

    def _rows(self) -> Iterator[tuple[str | int | None, ...]]:
        for placement, claim, grant in self._grants():
            alternative = claim.requests[grant.request].alternatives[grant.alternative]
            device = self.compiled.problem.devices[grant.device].id
            demand = self.demands[placement.demand]
            start = str(demand.key), str(claim.key), self.node_of(placement)
            yield (*start, str(alternative.name), alternative.rank, *device)
        for one in self.unplaced:
            for key in one.claims:
                yield str(one.key), str(key), None, None, None, None, None, None

    def _grants(self) -> Iterator[tuple[Placement, Claim, Grant]]:
        for placement in self.solution.placements:
            claims = self.demands[placement.demand].claims
            for claim, grants in zip(claims, placement.grants, strict=True):
                for grant in grants:
                    yield placement, claim, grant

    def parts(self) -> list[Part]:
        """The answer as tables and lines."""
        total, placed = len(self.demands), self.metrics.placed
        found: list[Part] = [Line(f"{self.mode.value}: {placed} of {total} placed, {_verdict(self)}", "bold")]
        placements = [
            (
                str(self.demands[placement.demand].key),
                self.node_of(placement),
                str(claim.key.name),
                str(claim.requests[grant.request].alternatives[grant.alternative].name),
                str(self.compiled.problem.devices[grant.device].id),
            )
            for placement, claim, grant in self._grants()
        ]
        found.append(Table("Placed", ("demand", "node", "claim", "request", "device"), _folded(placements, 3)))
        otherwise = "fits on no node" if self.compiled.problem.nodes else "there are no nodes"
        unplaced = [(str(one.key), one.error or otherwise) for one in self.unplaced]
        found.append(Table("Not placed", ("demand", "reason"), unplaced))
        used = [row for row in self.metrics.utilisation if row.used]
        found.append(Table("In use", ("what", ">used", ">of", ">share"), [_usage(row) for row in used]))
        found += (Line(f"warning: {warning}", "yellow") for warning in self.solution.warnings)
        found.append(_timing_line(self.timings))
        return found

    def __str__(self) -> str:
        return as_text(self.parts())


@dataclass(frozen=True)
class Comparison:
    """Both answers to one problem. ``print(comparison)`` is a readable report."""

    first_fit: Plan
    optimal: Plan
    timings: Mapping[str, float]

    @cached_property
    def only_optimal(self) -> tuple[ClaimKey, ...]:
        """What only the optimum places, in order."""
        missing = {one.key for one in self.optimal.unplaced}
        return tuple(one.key for one in self.first_fit.unplaced if one.key not in missing)

    @cached_property
    def only_first_fit(self) -> tuple[ClaimKey, ...]:
        """What only first fit places, in order: given up for something worth more."""
        missing = {one.key for one in self.first_fit.unplaced}
        return tuple(one.key for one in self.optimal.unplaced if one.key not in missing)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data, ready for JSON."""
        return {
            "firstFit": self.first_fit.to_dict(),
            "optimal": self.optimal.to_dict(),
            "onlyOptimal": [str(key) for key in self.only_optimal],
            "onlyFirstFit": [str(key) for key in self.only_first_fit],
            "timings": dict(self.timings),
        }

    def parts(self) -> list[Part]:
        """The comparison as tables and lines."""
        plans = (self.first_fit, self.optimal)
        found: list[Part] = [
            Line(_headline(self), "bold"),
            Table("Both answers", ("", ">first fit", ">optimum"), _both(*plans)),
            Table("Utilisation", ("what", ">of", ">before", ">first fit", ">optimum"), _utilisation(*plans)),
            Table("Only the optimum places", ("demand", "node", "devices"), self._gains()),
            Table("Only first fit places", ("demand",), [(str(key),) for key in self.only_first_fit]),
        ]
        found += (Line(f"warning: {warning}", "yellow") for warning in self.optimal.solution.warnings)
        found.append(_timing_line(self.timings))
        return found

    def _gains(self) -> list[tuple[str, str, str]]:
        wanted = set(self.only_optimal)
        devices: dict[tuple[str, str], list[str]] = {}
        for placement, _, grant in self.optimal._grants():
            key = self.optimal.demands[placement.demand].key
            if key in wanted:
                device = self.optimal.compiled.problem.devices[grant.device].id.device
                devices.setdefault((str(key), self.optimal.node_of(placement)), []).append(device)
        return [(demand, node, ", ".join(names)) for (demand, node), names in devices.items()]

    def __str__(self) -> str:
        return as_text(self.parts())


def _wire(allocation: AllocationResult) -> dict[str, Any]:
    wire: dict[str, Any] = allocation.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return wire


def _tier(tier: Tier) -> dict[str, Any]:
    return {"name": tier.name, "value": tier.value, "bound": tier.bound, "gap": tier.gap, "sense": tier.sense}


def _metrics(metrics: Metrics) -> dict[str, Any]:
    return {
        "placed": metrics.placed,
        "weight": metrics.weight,
        "devices": metrics.devices,
        "nodes": metrics.nodes,
        "ranks": list(metrics.ranks),
        "utilisation": [
            {
                "kind": row.kind,
                "driver": row.driver,
                "name": row.name,
                "total": str(Quantity(row.total)),
                "before": str(Quantity(row.before)),
                "used": str(Quantity(row.used)),
                "share": row.share,
            }
            for row in metrics.utilisation
        ],
    }


def _verdict(plan: Plan) -> str:
    if plan.mode is Mode.FIRST_FIT:
        return "nothing proven"
    if plan.status is Status.OPTIMAL:
        return "proven optimal"
    return f"not proven: bound {plan.bound}, gap {percent(plan.gap)}"


def _headline(comparison: Comparison) -> str:
    first, best = comparison.first_fit.metrics.placed, comparison.optimal.metrics.placed
    total = len(comparison.optimal.demands)
    return f"{total} demands: first fit places {first}, the optimum {best} ({_verdict(comparison.optimal)})"


def _both(first: Plan, best: Plan) -> list[tuple[str, str, str]]:
    ranks = max(len(first.metrics.ranks), len(best.metrics.ranks))

    def pair(name: str, values: Sequence[object]) -> tuple[str, str, str]:
        left, right = ("" if value is None else str(value) for value in values)
        return name, left, right

    plans = (first, best)
    rows = [
        pair("demands placed", [f"{plan.metrics.placed} of {len(plan.demands)}" for plan in plans]),
        pair("weight placed", [plan.metrics.weight for plan in plans]),
        pair("devices used", [plan.metrics.devices for plan in plans]),
        pair("nodes used", [plan.metrics.nodes for plan in plans]),
    ]
    if ranks > 1:
        for rank in range(ranks):
            counts = [plan.metrics.ranks[rank] if rank < len(plan.metrics.ranks) else 0 for plan in plans]
            rows.append(pair(f"requests with alternative {rank + 1}", counts))
    rows += [
        pair("status", [plan.status.value for plan in plans]),
        pair("bound", [plan.bound for plan in plans]),
        pair("gap", [percent(plan.gap) for plan in plans]),
    ]
    return rows


def _utilisation(first: Plan, best: Plan) -> list[tuple[str, ...]]:
    return [
        (
            _title(left),
            _amount(left.total),
            percent(left.before / left.total if left.total else 0.0),
            percent(left.share),
            percent(right.share),
        )
        for left, right in zip(first.metrics.utilisation, best.metrics.utilisation, strict=True)
        if left.total
    ]


def _title(row: Utilisation) -> str:
    return f"{row.kind} {row.name} ({row.driver})"


def _amount(nanos: int) -> str:
    """The amount in decimal or binary units, whichever is shorter."""
    return min(str(Quantity(nanos)), str(Quantity(nanos, Format.BINARY)), key=len)


def _usage(row: Utilisation) -> tuple[str, str, str, str]:
    return _title(row), _amount(row.used), _amount(row.total), percent(row.share)


def _folded(rows: Sequence[tuple[str, ...]], columns: int) -> list[tuple[str, ...]]:
    """The rows with their first columns left empty where they repeat the row before."""
    folded: list[tuple[str, ...]] = []
    for before, row in zip([(), *rows], rows, strict=False):
        same = 0
        while same < columns and before[same : same + 1] == row[same : same + 1]:
            same += 1
        folded.append(("",) * same + row[same:])
    return folded


def _timing_line(timings: Mapping[str, float]) -> Line:
    return Line("\n" + ", ".join(f"{name} {duration(seconds)}" for name, seconds in timings.items()), "dim")
