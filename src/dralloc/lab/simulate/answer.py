"""What a simulation found: each run, means over seeds, tables and data frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import mean
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from dralloc.lab.simulate.arrivals.trace import MILLISECONDS, Arrival
from dralloc.lab.simulate.figures import HOUR, Quantiles, RunFigures
from dralloc.lab.simulate.means import MeanInterval
from dralloc.lab.simulate.measures.decision_regret import DecisionRegret
from dralloc.lab.simulate.measures.fragmentation_meter import (
    FragmentationCause,
    FragmentationLook,
)
from dralloc.lab.simulate.simulation import ArrivalState, History
from dralloc.objects.answer import Answer
from dralloc.objects.errors import DrallocError
from dralloc.objects.report import Line, Part, Table, counted, percent

if TYPE_CHECKING:
    from pandas import DataFrame


__all__ = ["RunRegret", "Simulated", "SimulatedRun"]

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
            "reached_device_hours": self.reached / HOUR,
            "clairvoyant_device_hours": self.bound / HOUR,
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
        """Yield a row per time when somebody came, began or ended: devices held, and wanted by who waits or runs."""
        # By time, how many more devices are held, and how many more are wanted.
        changes: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for arrival, stay in self.history.stays.items():
            devices = self.devices[arrival]
            changes[stay.arrived][1] += devices
            if stay.started is not None:
                changes[stay.started][0] += devices
                if stay.ended is not None:
                    changes[stay.ended][0] -= devices
            # A refused arrival has ended without having held anything: it wants nothing any more.
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
        means: Row = {}
        for cause in FragmentationCause:
            shares = [look.shares[cause] for look in self.fragmentation]
            if shares:
                means[f"fragmentation.{cause.value}"] = mean(shares)
        return means


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
            # The best known answers show what was missed; the bounds say how much it can be at most.
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
                    f"{regret.reached / HOUR:.1f}",
                    f"{regret.bound / HOUR:.1f}",
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
