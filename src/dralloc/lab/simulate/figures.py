"""What a run comes to, by the names of the field.

Resources are counters, capacities of shared devices, and devices that are neither partitioned nor shared. What arrivals
ask for of each is what they take at least, whatever devices they get: of a slice of a GPU that they can avoid, nothing.
What is allocated is what they take in fact.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dralloc.lab.simulate.arrivals.incoming import Incoming
from dralloc.lab.simulate.arrivals.trace import MILLISECONDS
from dralloc.lab.simulate.measures.clairvoyant_bound import values_of
from dralloc.lab.simulate.simulation import ArrivalState, History, Moved, Stay
from dralloc.problem.solution import Placement
from dralloc.solve.policies.sizes import Sizes, amounts_of

__all__ = ["HOUR", "Quantiles", "RunFigures", "figures_of", "reached_value"]

HOUR: Final = 3600 * MILLISECONDS

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
    until: int | None = None,
) -> RunFigures:
    """Return the figures of a run.

    Parameters
    ----------
    warm_up
        Milliseconds; who comes before does not count, nor what is allocated before.
    until
        Milliseconds after which the run was ended; None if it was not.
    """
    counted = {
        arrival: stay
        for arrival, stay in history.stays.items()
        if stay.arrived >= warm_up
    }
    stays = list(counted.values())
    # Also those who were evicted later got a place.
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
        loads=tuple(_loads(incoming, history, warm_up, until)),
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
            / HOUR
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
    incoming: Incoming, history: History, warm_up: int, until: int | None
) -> Iterator[Load]:
    """Yield what was offered and allocated between the warm-up and the last arrival, or the end if that was earlier."""
    last = max((arrival.time for arrival in incoming.arrivals), default=0)
    end = last if until is None else min(last, until)
    span = end - warm_up
    if span <= 0:
        return
    least_amounts, moves_of = _AskedAmounts(incoming), history.moves_of
    offered: dict[Hashable, int] = defaultdict(int)
    allocated: dict[Hashable, int] = defaultdict(int)
    for arrival_index, stay in history.stays.items():
        # Who never leaves is taken to ask for the whole span.
        duration = incoming.arrivals[arrival_index].duration
        running_time = span if duration is None else duration
        # Who came during the warm-up offers nothing, but what it holds afterwards is allocated.
        for resource, amount in (
            least_amounts.of(arrival_index).items()
            if stay.arrived >= warm_up
            else ()
        ):
            offered[resource] += amount * running_time
        held_times = _held_times(
            stay, moves_of.get(arrival_index, ()), warm_up, end
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
