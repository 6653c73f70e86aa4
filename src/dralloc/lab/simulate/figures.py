"""What a run comes to, by the names of the field.

Resources are counters, capacities of shared devices, and devices that are neither partitioned nor shared. What arrivals
ask for of each is what they take at least, whatever devices they get: of a slice of a GPU that they can avoid, nothing.
What is allocated is what they take in fact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dralloc.lab.simulate.clairvoyant import values_of
from dralloc.lab.simulate.incoming import Incoming
from dralloc.lab.simulate.simulation import ArrivalState, History, Stay
from dralloc.lab.simulate.trace import MILLISECONDS
from dralloc.solve.policies.sizes import Sizes, amounts_of

__all__ = ["Load", "Quantiles", "RunFigures", "figures_of", "reached_value"]

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
        """The mean and the nearest-rank quantiles of some times in milliseconds."""
        if not times:
            return cls(None, None, None)
        ordered = sorted(times)
        at = (ordered[-(-len(ordered) * percent // 100) - 1] for percent in (50, 99))
        return cls(
            sum(ordered) / len(ordered) / MILLISECONDS,
            *(time / MILLISECONDS for time in at),
        )


@dataclass(frozen=True, slots=True)
class Load:
    """How much of a resource was asked for and allocated, as parts of what there is, on average over time.

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


def reached_value(incoming: Incoming, history: History, horizon: int) -> int:
    """What all arrivals are worth, each for as long as it had a place until the horizon: devices times milliseconds."""
    values = values_of(incoming)
    return sum(
        values[number] * _overlap(stay, 0, horizon)
        for number, stay in history.stays.items()
    )


def figures_of(
    incoming: Incoming,
    history: History,
    warm_up: int = 0,
    fragmentation: float | None = None,
) -> RunFigures:
    """The figures of a run.

    Parameters
    ----------
    warm_up
        Milliseconds; who comes before does not count, nor what is allocated before.
    """
    counted = {
        number: stay
        for number, stay in history.stays.items()
        if stay.arrived >= warm_up
    }
    stays = list(counted.values())
    started = [stay for stay in stays if stay.started is not None]
    done = [stay for stay in stays if stay.state is ArrivalState.DONE]
    end = max((stay.ended for stay in done if stay.ended is not None), default=warm_up)
    first = min((stay.arrived for stay in stays), default=warm_up)
    held = _DeviceTime(incoming, history)
    return RunFigures(
        arrivals=len(stays),
        states={
            state: sum(stay.state is state for stay in stays) for state in ArrivalState
        },
        acceptance=len(started) / len(stays) if stays else None,
        waiting=Quantiles.of(
            [
                stay.started - stay.arrived
                for stay in started
                if stay.started is not None
            ]
        ),
        completion=Quantiles.of(
            [stay.ended - stay.arrived for stay in done if stay.ended is not None]
        ),
        makespan=max(0, end - first) / MILLISECONDS,
        device_hours=held.hours(counted),
        loads=tuple(_loads(incoming, history, warm_up)),
        fairness=held.fairness(counted),
        fragmentation=fragmentation,
        decisions=len(history.decided),
    )


class _DeviceTime:
    """Devices times the time for which they were held, and for which they were wanted."""

    def __init__(self, incoming: Incoming, history: History) -> None:
        self._incoming = incoming
        self._end = history.instants[-1].time if history.instants else 0

    def hours(self, stays: Mapping[int, Stay]) -> float:
        return sum(self._held(number, stay) for number, stay in stays.items()) / _HOUR

    def fairness(self, stays: Mapping[int, Stay]) -> float | None:
        wanted: dict[str, int] = defaultdict(int)
        held: dict[str, int] = defaultdict(int)
        for number, stay in stays.items():
            namespace = self._incoming.pods[number].namespace
            wanted[namespace] += self._wanted(number, stay)
            held[namespace] += self._held(number, stay)
        shares = [
            held[namespace] / amount for namespace, amount in wanted.items() if amount
        ]
        return min(shares, default=None)

    def _wanted(self, number: int, stay: Stay) -> int:
        duration = self._incoming.arrivals[number].duration
        return self._incoming.asked_devices(number) * (
            self._end - stay.arrived if duration is None else duration
        )

    def _held(self, number: int, stay: Stay) -> int:
        if stay.started is None:
            return 0
        return self._incoming.asked_devices(number) * (
            (self._end if stay.ended is None else stay.ended) - stay.started
        )


def _loads(incoming: Incoming, history: History, warm_up: int) -> Iterator[Load]:
    """What was offered and allocated between the warm-up and the last arrival."""
    last = max((arrival.time for arrival in incoming.arrivals), default=0)
    span = last - warm_up
    if span <= 0:
        return
    asked = _AskedAmounts(incoming)
    offered: dict[Hashable, int] = defaultdict(int)
    allocated: dict[Hashable, int] = defaultdict(int)
    for number, stay in history.stays.items():
        duration = incoming.arrivals[number].duration
        wanted = span if duration is None else duration
        for resource, amount in (
            asked.of(number).items() if stay.arrived >= warm_up else ()
        ):
            offered[resource] += amount * wanted
        held = _overlap(stay, warm_up, last)
        for resource, amount in asked.held(stay).items() if held else ():
            allocated[resource] += amount * held
    parts: dict[Hashable, tuple[float, float]] = {}
    for resource, amount in offered.items():
        there = asked.totals[resource] * span
        if amount and there:
            parts[resource] = amount / there, allocated[resource] / there
    for resource in sorted(parts, key=lambda each: (-parts[each][0], str(each))):
        yield Load(_title(resource), *parts[resource])


def _title(resource: Hashable) -> str:
    """The driver, and the name of what it publishes."""
    assert isinstance(resource, tuple)
    return "/".join(resource[1:])


class _AskedAmounts:
    """What arrivals ask for and hold, worked out once for each template, and for each set of devices."""

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming
        self._sizes = Sizes(incoming.compiled.problem)
        self._of: dict[Hashable, Amounts] = {}
        self.totals = self._sizes.totals

    def of(self, arrival: int) -> Amounts:
        """Of each resource what an arrival takes at least."""
        template = self._incoming.arrivals[arrival].template
        if template not in self._of:
            number = self._incoming.demands[arrival]
            demands = self._incoming.compiled.problem.demands
            self._of[template] = (
                {} if number is None else self._sizes.least(demands[number])
            )
        return self._of[template]

    def held(self, stay: Stay) -> Amounts:
        """What it took in fact."""
        return (
            {}
            if stay.placement is None
            else amounts_of(self._incoming.problem, stay.placement)
        )


def _overlap(stay: Stay, begin: int, end: int) -> int:
    """For how long somebody had a place between two times."""
    if stay.started is None:
        return 0
    return max(
        0,
        min(end, end if stay.ended is None else stay.ended) - max(begin, stay.started),
    )
