"""What a simulation found, as figures, tables and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from dralloc.lab.simulate.figures import Quantiles, RunFigures
from dralloc.lab.simulate.intervals import MeanInterval
from dralloc.lab.simulate.regret import DecisionRegret
from dralloc.lab.simulate.simulation import ArrivalState, History
from dralloc.lab.simulate.trace import MILLISECONDS, Arrival
from dralloc.objects.answer import Answer
from dralloc.objects.errors import DrallocError
from dralloc.objects.report import Line, Part, Table, counted, percent

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["RunRegret", "Simulated", "SimulatedRun"]

Row = dict[str, Any]
_HOUR: Final = 3600 * MILLISECONDS


@dataclass(frozen=True)
class RunRegret:
    """How far a run is from what could have been.

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
            "decision_regret": sum(one.regret for one in self.decisions),
            "decision_regret_known": sum(
                one.best - one.placed for one in self.decisions
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
    history
        What became of them.
    figures
        What that comes to.
    regret
        How far it is from what could have been; None if nobody asked.
    """

    seed: int
    arrivals: tuple[Arrival, ...]
    history: History
    figures: RunFigures
    regret: RunRegret | None = None

    def arrival_rows(self) -> Iterator[Row]:
        """A row for each arrival that has come, times in seconds."""
        for number, stay in sorted(self.history.stays.items()):
            arrival = self.arrivals[number]
            yield {
                "seed": self.seed,
                "arrival": number,
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
        """A row for each time at which something happened."""
        for instant in self.history.instants:
            seconds = instant.time / MILLISECONDS
            yield {
                "seed": self.seed,
                "time": seconds,
                "pending": instant.pending,
                "running": instant.running,
            }

    def regret_rows(self) -> Iterator[Row]:
        """A row for each decision that was held against the optimum, in devices."""
        pairs = zip(
            self.history.decided,
            self.regret.decisions if self.regret else (),
            strict=False,
        )
        for time, one in pairs:
            seconds = time / MILLISECONDS
            amounts = {
                "placed": one.placed,
                "best": one.best,
                "bound": one.bound,
                "regret": one.regret,
            }
            yield {"seed": self.seed, "time": seconds, **amounts}

    def figure_row(self) -> Row:
        """All figures by name; times in seconds."""
        found = self.figures
        states = {state.value: found.states[state] for state in ArrivalState}
        loads = {
            f"{sort}.{load.resource}": value
            for load in found.loads
            for sort, value in (
                ("offered", load.offered),
                ("allocated", load.allocated),
            )
        }
        return {
            "seed": self.seed,
            "arrivals": found.arrivals,
            **states,
            "acceptance": found.acceptance,
            **_quantiles("waiting", found.waiting),
            **_quantiles("completion", found.completion),
            "makespan": found.makespan,
            "device_hours": found.device_hours,
            "max_min_share": found.fairness,
            "fragmentation": found.fragmentation,
            "decisions": found.decisions,
            **(self.regret.figures() if self.regret else {}),
            **loads,
        }


@dataclass(frozen=True, repr=False)
class Simulated(Answer):
    """What a policy made of arrivals, for some seeds.

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
        """How many of the arrivals got a place."""
        arrivals = sum(run.figures.arrivals for run in self.runs)
        placed = sum(
            round((run.figures.acceptance or 0) * run.figures.arrivals)
            for run in self.runs
        )
        seeds = f" over {len(self.runs)} seeds" if len(self.runs) > 1 else ""
        return f"{self.policy}: {placed} of {counted(arrivals, 'arrival')} got a place{seeds}"

    def parts(self) -> list[Part]:
        """What all runs came to, and how full the cluster was."""
        figures = [run.figures for run in self.runs]
        rows = [
            (title, *(show(one) for one in figures)) for title, show in _FIGURES.items()
        ]
        several = len(figures) > 1
        titles = [f"seed {run.seed}" if several else self.policy for run in self.runs]
        columns = ("", *(f">{title}" for title in titles))
        return [
            Line(self.headline, "bold"),
            Table("Figures", columns, rows),
            *self._means(),
            *self._loads(),
            *self._regrets(),
        ]

    def _means(self) -> Iterator[Part]:
        """The means over the seeds, if there are several."""
        if len(self.runs) < 2:
            return
        rows = [
            (one.name, f"{one.mean:.6g}", f"{one.half_width:.3g}")
            for one in self.intervals()
        ]
        columns = ("figure", ">mean", ">± 95%")
        yield Table(f"Means over {len(self.runs)} seeds", columns, rows)

    def intervals(self) -> list[MeanInterval]:
        """The mean of each figure over the seeds, with how far it may be off; of figures that every seed has."""
        rows = [run.figure_row() for run in self.runs]
        found: list[MeanInterval] = []
        for name in rows[0] if rows else ():
            values = [row[name] for row in rows if row.get(name) is not None]
            if name != "seed" and len(values) == len(rows):
                found.append(MeanInterval.of(name, values))
        return found

    def _loads(self) -> Iterator[Part]:
        """For each resource what was asked for, and what was allocated."""
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
        """How far each run is from what could have been."""
        rows = [
            (
                str(run.seed),
                str(sum(one.best - one.placed for one in found.decisions)),
                str(sum(one.regret for one in found.decisions)),
                f"{found.reached / _HOUR:.1f}",
                f"{found.bound / _HOUR:.1f}",
                percent(1 - found.reached / found.bound if found.bound else 0.0),
            )
            for run in self.runs
            if (found := run.regret) is not None
        ]
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
        """One row per seed and decision: what was placed, the best known answer, the bound, and the regret."""
        return _frame([row for run in self.runs for row in run.regret_rows()])

    def figures(self) -> DataFrame:
        """One row per seed, with all figures; times in seconds."""
        return _frame([run.figure_row() for run in self.runs])

    def arrivals(self) -> DataFrame:
        """One row per seed and arrival: when it came, started and ended, where, and what state it is in."""
        return _frame([row for run in self.runs for row in run.arrival_rows()])

    def instants(self) -> DataFrame:
        """One row per seed and time at which something happened: how many waited and ran afterwards."""
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
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


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
