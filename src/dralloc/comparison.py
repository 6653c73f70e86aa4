"""Both answers to one problem, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Final

from dralloc.answer import Documented
from dralloc.choices import ObjectiveWord
from dralloc.errors import Finding
from dralloc.grouping import grouped
from dralloc.names import ClaimKey
from dralloc.plan import Plan
from dralloc.plan_document import ComparisonDocument
from dralloc.provisional import unmodelled_table, unread
from dralloc.question import WHO, asked, empty_remark, kinds_asked, unasked_table
from dralloc.report import Line, Part, Table, amount, percent, timing_line

__all__ = ["Comparison", "Scheduled"]

_SHOWN: Final = 20


@dataclass(frozen=True)
class Scheduled:
    """What kube-scheduler places: one plan for each seed, which stands for an order of nodes and pods."""

    plans: tuple[Plan, ...]

    @property
    def placed(self) -> tuple[int, ...]:
        """How much each plan places, in the order of the seeds."""
        return tuple(len(plan.solution.placements) for plan in self.plans)

    @cached_property
    def median(self) -> Plan:
        """A plan that places as much as half of them."""
        return sorted(self.plans, key=lambda plan: len(plan.solution.placements))[(len(self.plans) - 1) // 2]

    @property
    def words(self) -> str:
        """The median with the range."""
        least, most = min(self.placed), max(self.placed)
        seeds = f" over {len(self.plans)} seeds" if len(self.plans) > 1 else ""
        between = f" ({least} to {most}{seeds})" if least < most else ""
        return f"{len(self.median.solution.placements)}{between}"


@dataclass(frozen=True, repr=False)
class Comparison(Documented):
    """Both answers to one problem. ``print(comparison)`` is a readable report.

    ``scheduler``: what kube-scheduler places beside them, if that was asked.

    Examples
    --------
    >>> import dralloc
    >>> found = dralloc.compare(dralloc.example())
    >>> [str(key) for key in found.only_optimal]
    ['default/large']
    """

    document = ComparisonDocument

    first_fit: Plan
    optimal: Plan
    timings: Mapping[str, float]
    scheduler: Scheduled | None = None

    @cached_property
    def only_optimal(self) -> tuple[ClaimKey, ...]:
        """What only the optimum places, in order."""
        return _only_in(self.optimal, self.first_fit)

    @cached_property
    def only_first_fit(self) -> tuple[ClaimKey, ...]:
        """What only first fit places, in order: given up for something worth more."""
        return _only_in(self.first_fit, self.optimal)

    @cached_property
    def only_scheduler(self) -> tuple[ClaimKey, ...]:
        """What kube-scheduler places and the optimum does not, in order; nothing if it was not asked."""
        return () if self.scheduler is None else _only_in(self.scheduler.median, self.optimal)

    @cached_property
    def neither(self) -> tuple[ClaimKey, ...]:
        """What neither answer places, in order."""
        missing = {one.key for one in self.first_fit.unplaced}
        return tuple(one.key for one in self.optimal.unplaced if one.key in missing)

    @property
    def headline(self) -> str:
        """Both answers in one line."""
        first, best = (len(plan.solution.placements) for plan in (self.first_fit, self.optimal))
        if not self.optimal.demands:
            return self.optimal.verdict
        what = asked(self.optimal.compiled)
        scheduler = f"kube-scheduler places {self.scheduler.words}, first fit" if self.scheduler else "first fit places"
        return f"{what}: {scheduler} {first}, the optimum {best} ({self.optimal.verdict})"

    @property
    def answers(self) -> dict[str, Plan]:
        """All answers by their titles: the scheduler's, if it was asked, first fit's and the optimum."""
        scheduler = {"scheduler": self.scheduler.median} if self.scheduler else {}
        return {**scheduler, "first fit": self.first_fit, "optimum": self.optimal}

    def parts(self) -> list[Part]:
        """The comparison as tables and lines."""
        plans = (self.first_fit, self.optimal)
        titles = [f">{title}" for title in self.answers]
        found: list[Part] = [
            Line(self.headline, "bold"),
            Table(
                "All answers" if self.scheduler else "Both answers",
                ("", *titles),
                _figures(list(self.answers.values())) if self.optimal.demands else [],
            ),
            Table("Utilisation", ("what", ">of", ">before", *titles), _utilisation(list(self.answers.values()))),
            Table("Namespaces", ("namespace", "what", ">before", ">first fit", ">optimum", ">cap"), _spending(*plans)),
            Table("Only the optimum places", (WHO, "asks for", "node", "devices"), self._gains()),
            Table("Only first fit places", (WHO, "asks for"), self._sized(self.only_first_fit)),
            Table("Only kube-scheduler places", (WHO, "asks for"), self._sized(self.only_scheduler)),
            Table("Neither places", (WHO, "reason"), list(self._losses())),
            unasked_table(self.optimal.compiled),
            unmodelled_table(self._unmodelled),
        ]
        found += (Line(f"first fit exceeds a cap: {text}", "yellow") for text in self.exceeded())
        found += (Line(f"warning: {warning}", "yellow") for warning in self.optimal.solution.warnings)
        found.append(timing_line(self.timings))
        return found

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Remarks about the input, and what of it some of the answers do not model."""
        return (*self.optimal.compiled.findings, *unread(self._unmodelled), *empty_remark(self.optimal.compiled))

    @property
    def _unmodelled(self) -> tuple[Finding, ...]:
        return self.optimal.compiled.unmodelled({plan.mode for plan in self.answers.values()})

    def exceeded(self) -> Iterator[str]:
        """The caps that first fit, which does not look at them, exceeds."""
        for row in self.first_fit.metrics.spending:
            if row.exceeded and row.most is not None:
                yield f"{row.namespace} uses {amount(row.used)} of {row.resource}, allowed are {amount(row.most)}"

    def _sized(self, keys: Sequence[ClaimKey]) -> list[tuple[str, str]]:
        return [(str(key), self._sizes[key]) for key in keys]

    @cached_property
    def _sizes(self) -> Mapping[ClaimKey, str]:
        """What each demand asks for, in words."""
        values = {name: each for name, each in self.optimal.compiled.worth.values.items() if name != ObjectiveWord.PODS}
        return {
            demand.key: ", ".join(_counted(name, each[number]) for name, each in values.items())
            for number, demand in enumerate(self.optimal.demands)
        }

    def _gains(self) -> list[tuple[str, str, str, str]]:
        best, wanted = self.optimal, set(self.only_optimal)
        found = ((best.demands[placement.demand].key, placement, grant) for placement, _, grant in best.grants())
        devices = grouped(
            ((key, best.node_of(placement)), best.compiled.problem.devices[grant.device].id.device)
            for key, placement, grant in found
            if key in wanted
        )
        return [(str(key), self._sizes[key], node, ", ".join(names)) for (key, node), names in devices.items()]

    def _losses(self) -> Iterator[tuple[str, str]]:
        """The first of what neither places, and why; the optimum's reason where it is another one."""
        first, best = self.first_fit.reasons, self.optimal.reasons
        for key in self.neither[:_SHOWN]:
            beside = "" if first[key] == best[key] else f"; the optimum: {best[key]}"
            yield str(key), f"{first[key]}{beside}"
        if len(self.neither) > _SHOWN:
            yield f"and {len(self.neither) - _SHOWN} more", ""


def _only_in(plan: Plan, other: Plan) -> tuple[ClaimKey, ...]:
    """What one plan places and another does not, in order."""
    missing = {one.key for one in plan.unplaced}
    return tuple(one.key for one in other.unplaced if one.key not in missing)


def _figures(plans: Sequence[Plan]) -> list[tuple[str, ...]]:
    ranks = list(zip_longest(*(plan.metrics.ranks for plan in plans), fillvalue=0))
    rows: list[tuple[object, ...]] = [
        (
            f"{kinds_asked(plans[0].compiled)} placed",
            *(f"{plan.metrics.placed} of {len(plan.demands)}" for plan in plans),
        ),
        *_objectives(plans),
        ("devices used", *(plan.metrics.devices for plan in plans)),
        ("nodes used", *(plan.metrics.nodes for plan in plans)),
    ]
    if len(ranks) > 1:
        rows += ((f"requests with alternative {rank}", *counts) for rank, counts in enumerate(ranks, 1))
    rows.append(("status", *(plan.status_text for plan in plans)))
    if not plans[0].compiled.worth.levels:
        rows.append(("bound", *(plan.bound for plan in plans)))
    rows.append(("gap", *(percent(plan.gap) for plan in plans)))
    return [tuple("" if value is None else str(value) for value in row) for row in rows]


def _objectives(plans: Sequence[Plan]) -> Iterator[tuple[str, ...]]:
    """What each answer reaches of every objective, by priority if there are several."""
    worth, demands = plans[0].compiled.worth, plans[0].demands
    if not worth.levels:
        yield "weight placed", *(str(plan.metrics.weight) for plan in plans)
    priorities = sorted({demand.priority for demand in demands}, reverse=True)
    for name, values in worth.values.items():
        for priority in priorities:
            at = [value if one.priority == priority else 0 for one, value in zip(demands, values, strict=True)]
            reached = (sum(at[placement.demand] for placement in plan.solution.placements) for plan in plans)
            title = "devices asked for" if name == ObjectiveWord.DEVICES else name
            if len(priorities) > 1 or name != ObjectiveWord.PODS:
                where = f" at priority {priority}" if len(priorities) > 1 else ""
                yield f"{title}{where}", *(f"{_text(name, each)} of {_text(name, sum(at))}" for each in reached)


def _text(objective: str, value: int) -> str:
    return str(value) if objective in tuple(ObjectiveWord) else amount(value)


def _counted(objective: str, value: int) -> str:
    """What one demand counts."""
    if objective == ObjectiveWord.VALUE:
        return f"value {value}"
    name = objective.removesuffix("s") if value == 1 else objective
    return f"{_text(objective, value)} {name}"


def _utilisation(plans: Sequence[Plan]) -> list[tuple[str, ...]]:
    return [
        (row.title, amount(row.total), percent(row.share_before), *(percent(one.share) for one in (row, *others)))
        for row, *others in zip(*(plan.metrics.utilisation for plan in plans), strict=True)
        if row.total
    ]


def _spending(first: Plan, best: Plan) -> list[tuple[str, ...]]:
    return [
        (
            left.namespace,
            left.resource,
            amount(left.before),
            amount(left.used),
            amount(right.used),
            "" if left.most is None else amount(left.most),
        )
        for left, right in zip(first.metrics.spending, best.metrics.spending, strict=True)
    ]
