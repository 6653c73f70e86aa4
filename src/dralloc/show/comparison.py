"""The answers to one problem, side by side, and what each pair of them differs in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from dralloc.objects.answer import Documented
from dralloc.objects.choices import Mode, ObjectiveWord
from dralloc.objects.errors import DrallocError, Finding
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import (
    Line,
    Part,
    Table,
    amount,
    percent,
    timing_line,
)
from dralloc.show.documents import ComparisonDocument
from dralloc.show.plan import Plan
from dralloc.show.question import (
    WHO,
    asked,
    empty_remark,
    kinds_asked,
    unasked_table,
    unmodelled_table,
    unread,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "TAKEN_NAMES",
    "Comparison",
    "Difference",
    "Scheduled",
    "answer_words",
]

_SHOWN: Final = 20


@dataclass(frozen=True)
class Scheduled:
    """The answers of kube-scheduler: one plan for each seed, which stands for an order of nodes and pods."""

    plans: tuple[Plan, ...]
    seeds: tuple[int, ...]

    @property
    def placed(self) -> tuple[int, ...]:
        """The number of demands that each plan places, in the order of the seeds."""
        return tuple(len(plan.solution.placements) for plan in self.plans)

    @cached_property
    def _median_number(self) -> int:
        """The index of the median plan: the first of those that place as much as half of them."""
        by_placed = sorted(range(len(self.plans)), key=self.placed.__getitem__)
        return by_placed[(len(by_placed) - 1) // 2]

    @property
    def median(self) -> Plan:
        """A plan that places as much as half of them: the one that is shown, and that others are held against."""
        return self.plans[self._median_number]

    @property
    def median_seed(self) -> int:
        """The seed of that plan: ``dralloc allocate --mode scheduler --seed`` gives it again."""
        return self.seeds[self._median_number]

    @property
    def words(self) -> str:
        """The median with the range."""
        least, greatest = min(self.placed), max(self.placed)
        seeds = f" over {len(self.plans)} seeds" if len(self.plans) > 1 else ""
        between = f" ({least} to {greatest}{seeds})" if least < greatest else ""
        return f"{len(self.median.solution.placements)}{between}"


_WORDS: Final = {
    Mode.SCHEDULER: "kube-scheduler",
    Mode.FIRST_FIT: "first fit",
    Mode.OPTIMAL: "the optimum",
}
_TITLES: Final = {
    Mode.SCHEDULER: "scheduler",
    Mode.FIRST_FIT: "first fit",
    Mode.OPTIMAL: "optimum",
}


TAKEN_NAMES: Final = frozenset((*Mode, *_WORDS.values(), *_TITLES.values()))
"""What a policy of one's own cannot be called beside others: it would be taken for another answer."""


def answer_words(mode: Mode | str) -> str:
    """Return the words for the answer in a mode, or by a policy."""
    return _WORDS[mode] if isinstance(mode, Mode) else mode


@dataclass(frozen=True, slots=True)
class Difference:
    """The demands that one answer places and another does not, in order.

    Parameters
    ----------
    placed_by, not_by
        The modes of the two answers, or the names of policies.
    demands
        The pods, and claims that no pod uses, that the first places and the second does not.
    seed
        The seed of kube-scheduler's answer, if that is one of the two.
    of_all
        Whether the two are all that is compared, so that "only" is true.
    """

    placed_by: Mode | str
    not_by: Mode | str
    demands: tuple[ClaimKey, ...]
    seed: int | None
    of_all: bool

    @property
    def title(self) -> str:
        """The statement that its demands make true."""
        if self.of_all:
            return f"Only {self.words(self.placed_by)} places"
        statement = f"{self.words(self.placed_by)} places, {self.words(self.not_by)} does not"
        return (
            statement
            if self.placed_by is Mode.SCHEDULER
            else statement[0].upper() + statement[1:]
        )

    @property
    def heading(self) -> str:
        """The same as the heading of a picture or section."""
        if self.of_all:
            return f"What only {self.words(self.placed_by)} places"
        return f"What {self.words(self.placed_by)} places and {self.words(self.not_by)} does not"

    def words(self, mode: Mode | str) -> str:
        """Return the name of one of its answers, kube-scheduler's with the seed."""
        if mode is Mode.SCHEDULER:
            return f"{answer_words(mode)} (seed {self.seed})"
        return answer_words(mode)


@dataclass(frozen=True, repr=False)
class Comparison(Documented):
    """The answers to one problem. ``print(comparison)`` is a readable report.

    Parameters
    ----------
    plans
        The answers in the order in which they are shown; the last of them, the optimum if it was asked, is the one that
        the others are held against.
    scheduler
        What kube-scheduler places over several seeds, if that was asked; its median is the first of the answers.

    Examples
    --------
    >>> import dralloc
    >>> found = dralloc.compare(dralloc.example())
    >>> [str(key) for key in found.only_optimal]
    ['default/large']
    """

    document = ComparisonDocument

    plans: tuple[Plan, ...]
    timings: Mapping[str, float]
    scheduler: Scheduled | None = None

    def by(self, mode: Mode | str) -> Plan | None:
        """Return the answer in a mode, or by a policy; None if it was not asked."""
        return next((plan for plan in self.plans if plan.mode == mode), None)

    @property
    def first_fit(self) -> Plan:
        """First fit's answer.

        Raises
        ------
        DrallocError
            It was not asked.
        """
        return self._asked(Mode.FIRST_FIT)

    @property
    def optimal(self) -> Plan:
        """The optimum.

        Raises
        ------
        DrallocError
            It was not asked.
        """
        return self._asked(Mode.OPTIMAL)

    def _asked(self, mode: Mode) -> Plan:
        plan = self.by(mode)
        if plan is None:
            raise DrallocError(f"{answer_words(mode)} was not compared")
        return plan

    @property
    def best(self) -> Plan:
        """The answer that the others are held against: the optimum if it was asked."""
        return self.plans[-1]

    @property
    def by_first_fit(self) -> Plan | None:
        """First fit's answer; None if it was not asked."""
        return self.by(Mode.FIRST_FIT)

    @property
    def by_optimum(self) -> Plan | None:
        """The optimum; None if it was not asked."""
        return self.by(Mode.OPTIMAL)

    @property
    def policies(self) -> tuple[Plan, ...]:
        """The answers of policies."""
        return tuple(
            plan for plan in self.plans if not isinstance(plan.mode, Mode)
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the rows of each answer, as `Plan.to_frame` has them, with the answer's mode before them."""
        from pandas import concat  # noqa: PLC0415 - an optional dependency

        frames = {str(plan.mode): plan.to_frame() for plan in self.plans}
        rows = concat(frames, names=["mode", "row"])
        return rows.reset_index(level="mode").reset_index(drop=True)

    @cached_property
    def only_optimal(self) -> tuple[ClaimKey, ...]:
        """The demands that the optimum places and first fit does not, in order; none if one of them was not asked."""
        return _only_in(self.by_optimum, self.by_first_fit)

    @cached_property
    def only_first_fit(self) -> tuple[ClaimKey, ...]:
        """The demands that first fit places and the optimum gives up for something worth more, in order."""
        return _only_in(self.by_first_fit, self.by_optimum)

    @cached_property
    def only_scheduler(self) -> tuple[ClaimKey, ...]:
        """The demands that kube-scheduler places and the optimum does not, in order; none if it was not asked."""
        return _only_in(self.by(Mode.SCHEDULER), self.by_optimum)

    @cached_property
    def baseline(self) -> Plan:
        """The answer that the gain is shown against: kube-scheduler's if it was asked, or else first fit's."""
        return self.plans[0]

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """The differences of the best to each other answer, then the reverse. The first pair is the baseline's."""
        baselines = self.plans[:-1]
        pairs = [
            pair
            for other_plan in baselines
            for pair in ((self.best, other_plan), (other_plan, self.best))
        ]
        return tuple(
            self._difference(plan, other_plan, of_all=len(baselines) == 1)
            for plan, other_plan in pairs
        )

    def _difference(
        self, plan: Plan, other_plan: Plan, *, of_all: bool
    ) -> Difference:
        asks_scheduler = Mode.SCHEDULER in (plan.mode, other_plan.mode)
        seed = (
            self.scheduler.median_seed
            if self.scheduler and asks_scheduler
            else None
        )
        return Difference(
            plan.mode,
            other_plan.mode,
            _only_in(plan, other_plan),
            seed,
            of_all,
        )

    @cached_property
    def neither(self) -> tuple[ClaimKey, ...]:
        """The demands that no answer places, in order."""
        missing = [demand.key for demand in self.best.unplaced]
        for plan in self.plans:
            unplaced = {demand.key for demand in plan.unplaced}
            missing = [key for key in missing if key in unplaced]
        return tuple(missing)

    @property
    def gain(self) -> Difference:
        """The demands that the best answer places and the baseline does not."""
        return self.differences[0]

    @property
    def headline(self) -> str:
        """All answers in one line."""
        best = self.best
        if not best.demands:
            return best.verdict
        counts = [str(len(plan.solution.placements)) for plan in self.plans]
        if self.scheduler:
            counts[0] = self.scheduler.words
        counts[-1] = f"{counts[-1]} ({best.verdict})"
        names = [answer_words(plan.mode) for plan in self.plans]
        names[0] = f"{names[0]} places"
        told = ", ".join(map(" ".join, zip(names, counts, strict=True)))
        return f"{asked(best.compiled)}: {told}"

    @property
    def answers(self) -> dict[str, Plan]:
        """All answers by their titles, in the order in which they are shown."""
        return {
            _TITLES[plan.mode]
            if isinstance(plan.mode, Mode)
            else plan.mode: plan
            for plan in self.plans
        }

    @property
    def title(self) -> str:
        """How many answers there are, in words."""
        return "All answers" if len(self.plans) > 2 else "Both answers"

    def names(self) -> Iterator[str]:
        """Yield the names of the demands that the best answer places and the baseline does not."""
        yield from map(str, self.gain.demands)

    def parts(self) -> list[Part]:
        """Return the comparison as tables and lines."""
        plans = self.plans
        titles = [f">{title}" for title in self.answers]
        parts: list[Part] = [
            Line(self.headline, "bold"),
            Table(
                self.title,
                ("", *titles),
                _figures(plans) if self.best.demands else [],
            ),
            Table(
                "Utilisation",
                ("what", ">of", ">before", *titles),
                list(_utilisation(plans)),
            ),
            Table(
                "Namespaces",
                ("namespace", "what", ">before", *titles, ">cap"),
                list(_spending(plans)),
            ),
            *self.gains_and_losses(),
            Table(
                "None of them places" if len(plans) > 2 else "Neither places",
                (WHO, "reason"),
                list(self._losses()),
            ),
            *self.best.where_to_ask_why(self.neither),
            unasked_table(self.best.compiled),
            unmodelled_table(self._unmodelled),
        ]
        parts += (Line(text, "yellow") for text in self.exceeded())
        parts.append(timing_line(self.timings))
        return parts

    def gains_and_losses(self) -> Iterator[Table]:
        """Yield a table of each difference, with devices where the best answer grants them."""
        for difference in self.differences:
            if difference.placed_by == self.best.mode:
                yield Table(
                    difference.title,
                    (WHO, "asks for", "node", "devices"),
                    self._granted(difference.demands),
                )
            else:
                yield Table(
                    difference.title,
                    (WHO, "asks for"),
                    self._sized(difference.demands),
                )

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Remarks about the input, and what of it some of the answers do not model."""
        return (
            *self.best.compiled.findings,
            *unread(self._unmodelled),
            *empty_remark(self.best.compiled),
        )

    @property
    def _unmodelled(self) -> tuple[Finding, ...]:
        return self.best.compiled.unmodelled(
            {plan.rules for plan in self.plans}
        )

    def exceeded(self) -> Iterator[str]:
        """Yield the caps that answers exceed which do not look at them: all but the optimum."""
        uncapped = [
            plan for plan in self.plans if plan.mode is not Mode.OPTIMAL
        ]
        exceeding = [
            (answer_words(plan.mode), row)
            for plan in uncapped
            for row in plan.metrics.spending
            if row.exceeded
        ]
        for answer, row in exceeding:
            if row.most is not None:
                uses = f"{row.namespace} uses {amount(row.used)} of {row.resource}, allowed are {amount(row.most)}"
                yield f"{answer} exceeds a cap: {uses}"

    def _sized(self, keys: Sequence[ClaimKey]) -> list[tuple[str, str]]:
        return [(str(key), self._sizes[key]) for key in keys]

    @cached_property
    def _sizes(self) -> Mapping[ClaimKey, str]:
        """The size of each demand in words: what it counts by each objective."""
        sizes: dict[ClaimKey, str] = {}
        worth = self.best.compiled.worth.values
        for demand_index, demand in enumerate(self.best.demands):
            words = [
                _counted(name, by_demand[demand_index])
                for name, by_demand in worth.items()
                if name != ObjectiveWord.PODS
            ]
            sizes[demand.key] = ", ".join(words)
        return sizes

    def _granted(
        self, keys: Sequence[ClaimKey]
    ) -> list[tuple[str, str, str, str]]:
        """Return the devices that the best answer grants to demands."""
        best, shown = self.best, set(keys)
        devices: dict[tuple[ClaimKey, str], list[str]] = defaultdict(list)
        for placement, _, grant in best.uses():
            key = best.demands[placement.demand].key
            if key in shown:
                device = best.compiled.problem.devices[grant.device].id.device
                devices[key, best.node_of(placement)].append(device)
        rows = [
            (str(key), self._sizes[key], node, ", ".join(names))
            for (key, node), names in devices.items()
        ]
        for placement in best.without_devices():
            key = best.demands[placement.demand].key
            if key in shown:
                node = best.node_of(placement)
                rows.append((str(key), self._sizes[key], node, ""))
        return rows

    def _losses(self) -> Iterator[tuple[str, str]]:
        """Yield the first of what no answer places, and why; the best answer's reason where it is another one."""
        other_plan = self.by_first_fit or self.baseline
        first, best = other_plan.reasons, self.best.reasons
        words = answer_words(self.best.mode)
        # Each answer gives its own reason: first fit, for instance, knows no caps.
        for key in self.neither[:_SHOWN]:
            beside = (
                "" if first[key] == best[key] else f"; {words}: {best[key]}"
            )
            yield str(key), f"{first[key]}{beside}"
        if len(self.neither) > _SHOWN:
            yield f"and {len(self.neither) - _SHOWN} more", ""


def _only_in(
    plan: Plan | None, other_plan: Plan | None
) -> tuple[ClaimKey, ...]:
    """Return the demands that one plan places and another does not, in order; nothing if there is only one plan."""
    if plan is None or other_plan is None:
        return ()
    missing = {demand.key for demand in plan.unplaced}
    return tuple(
        demand.key
        for demand in other_plan.unplaced
        if demand.key not in missing
    )


def _figures(plans: Sequence[Plan]) -> list[tuple[str, ...]]:
    ranks = list(
        zip_longest(*(plan.metrics.ranks for plan in plans), fillvalue=0)
    )
    rows: list[tuple[object, ...]] = [
        (
            f"{kinds_asked(plans[0].compiled)} placed",
            *(
                f"{plan.metrics.placed} of {len(plan.demands)}"
                for plan in plans
            ),
        ),
        *_objectives(plans),
        ("devices used", *(plan.metrics.devices for plan in plans)),
        ("nodes used", *(plan.metrics.nodes for plan in plans)),
    ]
    # Without alternatives all requests get their first, which says nothing.
    if len(ranks) > 1:
        rows += (
            (f"requests with alternative {rank}", *counts)
            for rank, counts in enumerate(ranks, 1)
        )
    rows.append(("status", *(plan.status_text for plan in plans)))
    if not plans[0].compiled.worth.levels:
        rows.append(("bound", *(plan.bound for plan in plans)))
    rows.append(("gap", *(percent(plan.gap) for plan in plans)))
    return [tuple(map(_figure_text, row)) for row in rows]


def _figure_text(value: object) -> str:
    return "" if value is None else str(value)


def _objectives(plans: Sequence[Plan]) -> Iterator[tuple[str, ...]]:
    """Yield the value of every objective in each answer, by priority if there are several."""
    worth, demands = plans[0].compiled.worth, plans[0].demands
    if not worth.levels:
        yield "weight placed", *(str(plan.metrics.weight) for plan in plans)
    priorities = sorted({demand.priority for demand in demands}, reverse=True)
    for name, values in worth.values.items():
        title = "devices asked for" if name == ObjectiveWord.DEVICES else name
        # With one priority, the number of pods is a row of its own already.
        if name == ObjectiveWord.PODS and len(priorities) == 1:
            continue
        for priority in priorities:
            worth_at = [
                value if demand.priority == priority else 0
                for demand, value in zip(demands, values, strict=True)
            ]
            asked_for = _text(name, sum(worth_at))
            where = f" at priority {priority}" if len(priorities) > 1 else ""
            row = [f"{title}{where}"]
            for plan in plans:
                placements = plan.solution.placements
                reached = sum(
                    worth_at[placement.demand] for placement in placements
                )
                row.append(f"{_text(name, reached)} of {asked_for}")
            yield tuple(row)


def _text(objective: str, value: int) -> str:
    return str(value) if objective in tuple(ObjectiveWord) else amount(value)


def _counted(objective: str, value: int) -> str:
    """Return the amount that one demand counts for."""
    if objective == ObjectiveWord.VALUE:
        return f"value {value}"
    name = objective.removesuffix("s") if value == 1 else objective
    return f"{_text(objective, value)} {name}"


def _utilisation(plans: Sequence[Plan]) -> Iterator[tuple[str, ...]]:
    by_plan = [plan.metrics.utilisation for plan in plans]
    for answers in zip(*by_plan, strict=True):
        # What there is, and what was in use before, is the same for all answers.
        common = answers[0]
        if common.total:
            shares = [percent(answer.share) for answer in answers]
            yield (
                common.title,
                amount(common.total),
                percent(common.share_before),
                *shares,
            )


def _spending(plans: Sequence[Plan]) -> Iterator[tuple[str, ...]]:
    by_plan = [plan.metrics.spending for plan in plans]
    for answers in zip(*by_plan, strict=True):
        common = answers[0]
        yield (
            common.namespace,
            common.resource,
            amount(common.before),
            *(amount(answer.used) for answer in answers),
            "" if common.most is None else amount(common.most),
        )
