"""What a simulation found: the figures of each run, means over seeds, tables and data frames."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from statistics import mean, stdev
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from dralloc.lab.simulate.arrivals import MILLISECONDS, Arrival, Incoming
from dralloc.lab.simulate.measures import (
    DecisionRegret,
    FragmentationCause,
    FragmentationLook,
    values_of,
)
from dralloc.lab.simulate.simulation import ArrivalState, History, Moved, Stay
from dralloc.objects.answer import Answer
from dralloc.objects.errors import DrallocError
from dralloc.objects.report import Line, Part, Table, counted, percent
from dralloc.problem.solution import Placement
from dralloc.solve.policies.table import Sizes, amounts_of

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "MeanInterval",
    "RunRegret",
    "Simulated",
    "SimulatedRun",
    "figures_of",
    "reached_value",
]

# ----------------------------------------------------------------------------
# What a run comes to, by the names of the field.
#
# Resources are counters, capacities of shared devices, and devices that are neither
# partitioned nor shared. What arrivals ask for of each is what they take at least,
# whatever devices they get: of a slice of a GPU that they can avoid, nothing. What is
# allocated is what they take in fact.

_HOUR: Final = 3600 * MILLISECONDS
Amounts = Mapping[Hashable, int]


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Times in seconds; None of all if there are none."""

    mean: float | None
    p50: float | None
    p99: float | None

    @classmethod
    def of(cls, times: Sequence[int]) -> Quantiles:
        """Return the mean and the nearest-rank quantiles of some times in milliseconds."""
        if not times:
            return cls(None, None, None)
        ordered = sorted(times)
        at = (
            ordered[-(-len(ordered) * percent // 100) - 1]
            for percent in (50, 99)
        )
        return cls(
            sum(ordered) / len(ordered) / MILLISECONDS,
            *(time / MILLISECONDS for time in at),
        )


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a resource: what was asked for and allocated, as parts of what there is, on average over time.

    Parameters
    ----------
    resource
        The driver and the name of a counter or capacity; the driver alone for devices as a whole.
    offered
        What all arrivals ask for, each for its duration, over what there is for the time in which they arrive.
    allocated
        What was in use, over the same.
    """

    resource: str
    offered: float
    allocated: float


@dataclass(frozen=True)
class RunFigures:
    """Figures of one run, of arrivals after the warm-up.

    Parameters
    ----------
    arrivals
        How many have come.
    states
        How many of them ended in each state.
    acceptance
        The part of them that got a place.
    waiting, completion
        Seconds until they got one, and until they were done, from when they came.
    makespan
        Seconds from the first arrival to the end of the last that is done.
    device_hours
        Devices times the hours for which they were held.
    loads
        By resource, what is scarcest first.
    fairness
        The smallest part that a namespace got of the device-hours that it asked for; None if nobody asked for any.
    fragmentation
        The part of what is left that the next pod is expected to be unable to use (Weng et al.), on average over time;
        None if it was not looked at.
    decisions
        How often those who waited were looked at.
    moves, restarts
        How often somebody moved, and how often of these it gave back what it had before it held something new.
    """

    arrivals: int
    states: Mapping[ArrivalState, int]
    acceptance: float | None
    waiting: Quantiles
    completion: Quantiles
    makespan: float
    device_hours: float
    loads: tuple[Load, ...]
    fairness: float | None
    fragmentation: float | None
    decisions: int
    moves: int = 0
    restarts: int = 0


def reached_value(incoming: Incoming, history: History, horizon: int) -> int:
    """Return the worth of all arrivals while they had a place until the horizon: devices times milliseconds."""
    values = values_of(incoming)
    return sum(
        values[arrival] * _overlap(stay, 0, horizon)
        for arrival, stay in history.stays.items()
    )


def figures_of(
    incoming: Incoming,
    history: History,
    warm_up: int = 0,
    fragmentation: float | None = None,
) -> RunFigures:
    """Return the figures of a run.

    Parameters
    ----------
    warm_up
        Milliseconds; who comes before does not count, nor what is allocated before.
    """
    counted = {
        arrival: stay
        for arrival, stay in history.stays.items()
        if stay.arrived >= warm_up
    }
    stays = list(counted.values())
    started = [stay for stay in stays if stay.started is not None]
    done = [stay for stay in stays if stay.state is ArrivalState.DONE]
    end = max(
        (stay.ended for stay in done if stay.ended is not None), default=warm_up
    )
    first = min((stay.arrived for stay in stays), default=warm_up)
    held = _DeviceTime(incoming, history)
    states = Counter(stay.state for stay in stays)
    return RunFigures(
        arrivals=len(stays),
        states={state: states[state] for state in ArrivalState},
        acceptance=len(started) / len(stays) if stays else None,
        waiting=Quantiles.of(
            [
                stay.started - stay.arrived
                for stay in started
                if stay.started is not None
            ]
        ),
        completion=Quantiles.of(
            [
                stay.ended - stay.arrived
                for stay in done
                if stay.ended is not None
            ]
        ),
        makespan=max(0, end - first) / MILLISECONDS,
        device_hours=held.hours(counted),
        loads=tuple(_loads(incoming, history, warm_up)),
        fairness=held.fairness(counted),
        fragmentation=fragmentation,
        decisions=len(history.decided),
        moves=len(history.moves),
        restarts=history.restarts,
    )


class _DeviceTime:
    """Devices times the time for which they were held, and for which they were wanted."""

    def __init__(self, incoming: Incoming, history: History) -> None:
        self._incoming = incoming
        self._end = history.instants[-1].time if history.instants else 0

    def hours(self, stays: Mapping[int, Stay]) -> float:
        return (
            sum(self._held(arrival, stay) for arrival, stay in stays.items())
            / _HOUR
        )

    def fairness(self, stays: Mapping[int, Stay]) -> float | None:
        device_time_wanted: dict[str, int] = defaultdict(int)
        held: dict[str, int] = defaultdict(int)
        for arrival, stay in stays.items():
            namespace = self._incoming.pods[arrival].namespace
            device_time_wanted[namespace] += self._wanted(arrival, stay)
            held[namespace] += self._held(arrival, stay)
        shares = [
            held[namespace] / amount
            for namespace, amount in device_time_wanted.items()
            if amount
        ]
        return min(shares, default=None)

    def _wanted(self, arrival: int, stay: Stay) -> int:
        duration = self._incoming.arrivals[arrival].duration
        return self._incoming.asked_devices(arrival) * (
            self._end - stay.arrived if duration is None else duration
        )

    def _held(self, arrival: int, stay: Stay) -> int:
        if stay.started is None:
            return 0
        return self._incoming.asked_devices(arrival) * (
            (self._end if stay.ended is None else stay.ended) - stay.started
        )


def _loads(
    incoming: Incoming, history: History, warm_up: int
) -> Iterator[Load]:
    """Yield what was offered and allocated between the warm-up and the last arrival."""
    last = max((arrival.time for arrival in incoming.arrivals), default=0)
    span = last - warm_up
    if span <= 0:
        return
    least_amounts, moves_of = _AskedAmounts(incoming), history.moves_of
    offered: dict[Hashable, int] = defaultdict(int)
    allocated: dict[Hashable, int] = defaultdict(int)
    for arrival_index, stay in history.stays.items():
        duration = incoming.arrivals[arrival_index].duration
        running_time = span if duration is None else duration
        for resource, amount in (
            least_amounts.of(arrival_index).items()
            if stay.arrived >= warm_up
            else ()
        ):
            offered[resource] += amount * running_time
        held_times = _held_times(
            stay, moves_of.get(arrival_index, ()), warm_up, last
        )
        for placement, held in held_times:
            for resource, amount in least_amounts.held(placement).items():
                allocated[resource] += amount * held
    parts: dict[Hashable, tuple[float, float]] = {}
    for resource, amount in offered.items():
        capacity = least_amounts.totals[resource] * span
        if amount and capacity:
            parts[resource] = amount / capacity, allocated[resource] / capacity
    for resource in sorted(
        parts,
        key=lambda resource_key: (-parts[resource_key][0], str(resource_key)),
    ):
        yield Load(_title(resource), *parts[resource])


def _title(resource: Hashable) -> str:
    """Return the driver, and the name of what it publishes."""
    assert isinstance(resource, tuple)
    return "/".join(resource[1:])


class _AskedAmounts:
    """The amounts that arrivals ask for and hold, worked out once for each template, and for each set of devices."""

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming
        self._sizes = Sizes(incoming.compiled.problem)
        self._of: dict[Hashable, Amounts] = {}
        self.totals = self._sizes.totals

    def of(self, arrival: int) -> Amounts:
        """Of each resource what an arrival takes at least."""
        template = self._incoming.arrivals[arrival].template
        if template not in self._of:
            demand = self._incoming.demands[arrival]
            demands = self._incoming.compiled.problem.demands
            self._of[template] = (
                {} if demand is None else self._sizes.least(demands[demand])
            )
        return self._of[template]

    def held(self, placement: Placement) -> Amounts:
        """Return what somebody took in fact."""
        return amounts_of(self._incoming.problem, placement)


def _held_times(
    stay: Stay, moves: Iterable[Moved], begin: int, end: int
) -> Iterator[tuple[Placement, int]]:
    """Yield what an arrival had, and for how long between two times; more than one thing if it has moved."""
    for move in moves:
        until_then = replace(stay, ended=move.time)
        held = _overlap(until_then, begin, end)
        if held:
            yield move.before, held
        begin = max(begin, move.time)
    held = _overlap(stay, begin, end) if begin < end else 0
    if stay.placement is not None and held:
        yield stay.placement, held


def _overlap(stay: Stay, begin: int, end: int) -> int:
    """Return for how long somebody had a place between two times."""
    if stay.started is None:
        return 0
    return max(
        0,
        min(end, end if stay.ended is None else stay.ended)
        - max(begin, stay.started),
    )


# ----------------------------------------------------------------------------
# Means over seeds, and how far they may be from the mean over all seeds.
#
# Seeds are drawn independently, so that Student's distribution tells the interval:
# with as many seeds as ten it is a good approximation for means of figures that are
# no means themselves.

_STUDENT: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""The quantiles of 97.5% of Student's distribution with 1, 2, ... 30 degrees of freedom; with more, 2.042 is enough."""


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """The mean of a figure, and half the width of its confidence interval of 95%; 0 if there is one seed."""

    name: str
    mean: float
    half_width: float

    @classmethod
    def of(cls, name: str, values: Sequence[float]) -> MeanInterval:
        """Return the interval of some values, one for each seed."""
        freedom = len(values) - 1
        if not freedom:
            return cls(name, float(values[0]), 0.0)
        quantile = _STUDENT[min(freedom, len(_STUDENT)) - 1]
        return cls(
            name, mean(values), quantile * stdev(values) / sqrt(len(values))
        )


# ----------------------------------------------------------------------------
# What a simulation found, as figures, tables and data frames.

Row = dict[str, Any]


@dataclass(frozen=True)
class RunRegret:
    """The distance of a run from what could have been.

    Parameters
    ----------
    decisions
        One for each decision, in devices.
    reached
        Devices times milliseconds that were held until the horizon.
    bound
        What nobody could exceed, had he known all arrivals beforehand.
    horizon
        Milliseconds after which nothing counts: the time of the last arrival, or when the run was ended.
    """

    decisions: tuple[DecisionRegret, ...]
    reached: int
    bound: int
    horizon: int

    def figures(self) -> Row:
        """Sums of all decisions in devices, and the run in device hours."""
        return {
            "decision_regret": sum(
                decision.regret for decision in self.decisions
            ),
            "decision_regret_known": sum(
                decision.best - decision.placed for decision in self.decisions
            ),
            "reached_device_hours": self.reached / _HOUR,
            "clairvoyant_device_hours": self.bound / _HOUR,
        }


@dataclass(frozen=True)
class SimulatedRun:
    """One run.

    Parameters
    ----------
    seed
        What decided what is left to chance.
    arrivals
        Who came, in order.
    devices
        How many devices each asks for at least.
    history
        What became of them.
    figures
        What that comes to.
    regret
        How far it is from what could have been; None if nobody asked.
    fragmentation
        Looks at what was left, in order of time.
    """

    seed: int
    arrivals: tuple[Arrival, ...]
    devices: tuple[int, ...]
    history: History
    figures: RunFigures
    regret: RunRegret | None = None
    fragmentation: tuple[FragmentationLook, ...] = ()

    def arrival_rows(self) -> Iterator[Row]:
        """Yield a row for each arrival that has come, times in seconds."""
        for arrival_index, stay in sorted(self.history.stays.items()):
            arrival = self.arrivals[arrival_index]
            yield {
                "seed": self.seed,
                "arrival": arrival_index,
                "template": str(arrival.template),
                "namespace": arrival.namespace or arrival.template.namespace,
                "group": arrival.group,
                "state": stay.state.value,
                "arrived": stay.arrived / MILLISECONDS,
                "started": _seconds(stay.started),
                "ended": _seconds(stay.ended),
                "node": stay.node,
            }

    def instant_rows(self) -> Iterator[Row]:
        """Yield a row for each time at which something happened."""
        for instant in self.history.instants:
            seconds = instant.time / MILLISECONDS
            yield {
                "seed": self.seed,
                "time": seconds,
                "pending": instant.pending,
                "running": instant.running,
            }

    def fragmentation_rows(self) -> Iterator[Row]:
        """Yield a row for each look at what was left: the parts that were of no use, by cause."""
        for look in self.fragmentation:
            shares = {cause.value: part for cause, part in look.shares.items()}
            seconds = look.time / MILLISECONDS
            yield {"seed": self.seed, "time": seconds, **shares}

    def allocation_rows(self) -> Iterator[Row]:
        """Yield a row for each time at which somebody began, ended or moved: devices held, and asked for by then."""
        changes: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for arrival, stay in self.history.stays.items():
            devices = self.devices[arrival]
            changes[stay.arrived][1] += devices
            if stay.started is not None:
                changes[stay.started][0] += devices
                if stay.ended is not None:
                    changes[stay.ended][0] -= devices
            if stay.ended is not None:
                changes[stay.ended][1] -= devices
        held = wanted = 0
        for time in sorted(changes):
            held += changes[time][0]
            wanted += changes[time][1]
            seconds = time / MILLISECONDS
            yield {
                "seed": self.seed,
                "time": seconds,
                "held": held,
                "wanted": wanted,
            }

    def regret_rows(self) -> Iterator[Row]:
        """Yield a row for each decision that was held against the optimum, in devices."""
        pairs = zip(
            self.history.decided,
            self.regret.decisions if self.regret else (),
            strict=False,
        )
        for time, decision in pairs:
            seconds = time / MILLISECONDS
            amounts = {
                "placed": decision.placed,
                "best": decision.best,
                "bound": decision.bound,
                "regret": decision.regret,
            }
            yield {"seed": self.seed, "time": seconds, **amounts}

    def figure_row(self) -> Row:
        """Return all figures by name; times in seconds."""
        figures = self.figures
        states = {state.value: figures.states[state] for state in ArrivalState}
        loads = {
            f"{sort}.{load.resource}": value
            for load in figures.loads
            for sort, value in (
                ("offered", load.offered),
                ("allocated", load.allocated),
            )
        }
        return {
            "seed": self.seed,
            "arrivals": figures.arrivals,
            **states,
            "acceptance": figures.acceptance,
            **_quantiles("waiting", figures.waiting),
            **_quantiles("completion", figures.completion),
            "makespan": figures.makespan,
            "device_hours": figures.device_hours,
            "max_min_share": figures.fairness,
            "fragmentation": figures.fragmentation,
            **self._fragmentation_means(),
            "decisions": figures.decisions,
            "moves": figures.moves,
            "restarts": figures.restarts,
            **(self.regret.figures() if self.regret else {}),
            **loads,
        }

    def _fragmentation_means(self) -> Row:
        """Return the mean part by cause, over all looks; nothing if there was none."""
        shares_by_cause = {
            cause: [look.shares[cause] for look in self.fragmentation]
            for cause in FragmentationCause
        }
        return {
            f"fragmentation.{cause.value}": mean(shares)
            for cause, shares in shares_by_cause.items()
            if shares
        }


@dataclass(frozen=True, repr=False)
class Simulated(Answer):
    """The outcome of a policy, for some seeds.

    Parameters
    ----------
    policy
        Its name.
    runs
        One for each seed.

    Examples
    --------
    >>> import dralloc
    >>> arrivals = dralloc.PoissonArrivals({"large": 1}, per_hour=4, hours=5)
    >>> simulated = dralloc.simulate(dralloc.example(), arrivals, seeds=2)
    >>> simulated.figures()["acceptance"].tolist()
    [1.0, 1.0]
    """

    policy: str
    runs: tuple[SimulatedRun, ...]

    @property
    def headline(self) -> str:
        """The number of arrivals that got a place."""
        arrivals = sum(run.figures.arrivals for run in self.runs)
        placed = sum(
            round((run.figures.acceptance or 0) * run.figures.arrivals)
            for run in self.runs
        )
        seeds = f" over {len(self.runs)} seeds" if len(self.runs) > 1 else ""
        return f"{self.policy}: {placed} of {counted(arrivals, 'arrival')} got a place{seeds}"

    def parts(self) -> list[Part]:
        """Return what all runs came to, and how full the cluster was."""
        figures = [run.figures for run in self.runs]
        rows: list[tuple[str, ...]] = []
        for title, show in _FIGURES.items():
            rows.append((title, *map(show, figures)))
        has_seeds = len(figures) > 1
        titles = [
            f"seed {run.seed}" if has_seeds else self.policy
            for run in self.runs
        ]
        columns = ("", *(f">{title}" for title in titles))
        return [
            Line(self.headline, "bold"),
            Table("Figures", columns, rows),
            *self._means(),
            *self._loads(),
            *self._regrets(),
        ]

    def _means(self) -> Iterator[Part]:
        """Yield the means over the seeds, if there are several."""
        if len(self.runs) < 2:
            return
        rows = [
            (
                interval.name,
                f"{interval.mean:.6g}",
                f"{interval.half_width:.3g}",
            )
            for interval in self.intervals()
        ]
        columns = ("figure", ">mean", ">± 95%")
        yield Table(f"Means over {len(self.runs)} seeds", columns, rows)

    def intervals(self) -> list[MeanInterval]:
        """Return the mean of each figure over the seeds, with how far it may be off; of figures that every seed has."""
        rows = [run.figure_row() for run in self.runs]
        intervals: list[MeanInterval] = []
        for name in rows[0] if rows else ():
            values = [row[name] for row in rows if row.get(name) is not None]
            if name != "seed" and len(values) == len(rows):
                intervals.append(MeanInterval.of(name, values))
        return intervals

    def _loads(self) -> Iterator[Part]:
        """Yield a table of the load of each resource: what was asked for, and what was allocated."""
        rows = [
            (
                str(run.seed),
                load.resource,
                percent(load.offered),
                percent(load.allocated),
            )
            for run in self.runs
            for load in run.figures.loads
        ]
        yield Table(
            "Load, on average over time",
            (">seed", "resource", ">offered", ">allocated"),
            rows,
        )

    def _regrets(self) -> Iterator[Part]:
        """Yield how far each run is from what could have been."""
        rows: list[tuple[str, ...]] = []
        for run in self.runs:
            regret = run.regret
            if regret is None:
                continue
            missed = sum(
                decision.best - decision.placed for decision in regret.decisions
            )
            at_most = sum(decision.regret for decision in regret.decisions)
            share = 1 - regret.reached / regret.bound if regret.bound else 0.0
            rows.append(
                (
                    str(run.seed),
                    str(missed),
                    str(at_most),
                    f"{regret.reached / _HOUR:.1f}",
                    f"{regret.bound / _HOUR:.1f}",
                    percent(share),
                )
            )
        columns = (
            ">seed",
            ">missed at decisions, in devices",
            ">at most",
            ">device hours",
            ">clairvoyant bound",
            ">regret at most",
        )
        yield Table("Regret", columns, rows)

    def regrets(self) -> DataFrame:
        """Return one row per seed and decision: what was placed, the best known answer, the bound, and the regret."""
        return _frame([row for run in self.runs for row in run.regret_rows()])

    def fragmentation(self) -> DataFrame:
        """Return one row per seed and look: the parts of what was left that were of no use, by cause."""
        return _frame(
            [row for run in self.runs for row in run.fragmentation_rows()]
        )

    def allocation(self) -> DataFrame:
        """Return one row per seed and time of a change: devices held, and wanted by who waits or runs."""
        return _frame(
            [row for run in self.runs for row in run.allocation_rows()]
        )

    def figures(self) -> DataFrame:
        """Return one row per seed, with all figures; times in seconds."""
        return _frame([run.figure_row() for run in self.runs])

    def arrivals(self) -> DataFrame:
        """Return one row per seed and arrival: when it came, started and ended, where, and what state it is in."""
        return _frame([row for run in self.runs for row in run.arrival_rows()])

    def instants(self) -> DataFrame:
        """Return one row per seed and time at which something happened: how many waited and ran afterwards."""
        return _frame([row for run in self.runs for row in run.instant_rows()])


def _seconds(time: int | None) -> float | None:
    return None if time is None else time / MILLISECONDS


def _quantiles(name: str, times: Quantiles) -> Row:
    return {
        f"{name}_mean": times.mean,
        f"{name}_p50": times.p50,
        f"{name}_p99": times.p99,
    }


def _time(seconds: float | None) -> str:
    """Seconds as whole hours, minutes and seconds, or with milliseconds below a minute."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, whole_seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole_seconds:02}"


def _times(times: Quantiles) -> str:
    return " / ".join(
        _time(seconds) or "-" for seconds in (times.mean, times.p50, times.p99)
    )


def _number_in(state: ArrivalState, run: RunFigures) -> str:
    return str(run.states[state])


_FIGURES: Final[dict[str, Callable[[RunFigures], str]]] = {
    "arrivals": lambda run: str(run.arrivals),
    **{state.value: partial(_number_in, state) for state in ArrivalState},
    "acceptance": lambda run: percent(run.acceptance),
    "waiting time, mean / p50 / p99": lambda run: _times(run.waiting),
    "completion time, mean / p50 / p99": lambda run: _times(run.completion),
    "makespan": lambda run: _time(run.makespan),
    "device hours": lambda run: f"{run.device_hours:.1f}",
    "max-min share": lambda run: percent(run.fairness),
    "fragmentation": lambda run: percent(run.fragmentation),
    "decisions": lambda run: str(run.decisions),
    "moves, and restarts among them": lambda run: (
        f"{run.moves}, {run.restarts}"
    ),
}


def _frame(rows: list[Row]) -> DataFrame:
    frame: DataFrame = _pandas().DataFrame(rows)
    return frame


def _pandas() -> ModuleType:
    try:
        import pandas as pd  # noqa: PLC0415 - an optional dependency
    except ModuleNotFoundError:
        raise DrallocError(
            "data frames need pandas: pip install 'dralloc[study]'"
        ) from None
    return pd
