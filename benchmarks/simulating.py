"""How long a simulation takes: a MIG cluster of so many nodes, so many events, a policy."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from time import perf_counter, process_time
from typing import Any

from dralloc.lab.simulate import placer_of, room_making
from dralloc.lab.simulate.arrivals.incoming import incoming
from dralloc.lab.simulate.simulation import Decisions, Simulation
from dralloc.lab.traces import mig_month
from dralloc.objects.choices import Choices

__all__ = ["Simulating", "measure_simulation"]


@dataclass(frozen=True)
class Simulating:
    """Seconds and counts of a simulation.

    Parameters
    ----------
    events
        Arrivals and departures.
    decisions
        How often those who waited were looked at.
    done, waiting
        How many arrivals have had their time, and how many wait in the end.
    compile, simulate
        Seconds for the cluster with all arrivals, and for everything that happened.
    processor
        Seconds of a processor for everything that happened.
    """

    policy: str
    nodes: int
    events: int
    decisions: int
    done: int
    waiting: int
    compile: float
    simulate: float
    processor: float

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return asdict(self)


def measure_simulation(  # noqa: PLR0913 - all with usual values
    policy: str,
    nodes: int,
    events: int,
    batch: int | None = None,
    load: float = 0.9,
    choices: Choices | None = None,
) -> Simulating:
    """Let half as many MIG profiles as there are events arrive on nodes with eight H100s, and leave.

    Parameters
    ----------
    batch
        Decide whenever so many have come; None for at each event.
    load
        What is asked for on average, as a part of all memory slices.
    """
    chosen = choices or Choices()
    month = mig_month(nodes, 8, load=load)
    hours = 1.05 * events / 2 / month.arrivals.per_hour
    process = replace(month.arrivals, hours=hours, swing=0.0)
    arrivals = process.draw(chosen.seed)[: events // 2]
    started = perf_counter()
    waiting = incoming(month.cluster, arrivals, chosen)
    placer = placer_of(waiting, policy, chosen)
    compiled, processor = perf_counter(), process_time()
    simulation = Simulation(
        waiting,
        placer,
        Decisions(batch=batch),
        room=room_making(placer, chosen),
    )
    history = simulation.run()
    ended = perf_counter()
    states = [stay.state.value for stay in history.stays.values()]
    return Simulating(
        policy=policy,
        nodes=nodes,
        events=len(states) + states.count("done"),
        decisions=len(history.decided),
        done=states.count("done"),
        waiting=states.count("pending"),
        compile=compiled - started,
        simulate=ended - compiled,
        processor=process_time() - processor,
    )
