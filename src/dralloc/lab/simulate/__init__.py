"""Time: pods arrive, run and leave, and a policy decides who gets which devices when.

- `dralloc.lab.simulate.run`: the question;
- `dralloc.lab.simulate.arrivals`: who arrives, from a file or by chance, and the cluster with all of them;
- `dralloc.lab.simulate.placing`: who waits, and who finds places for them;
- `dralloc.lab.simulate.simulation`: what happens, in order;
- `dralloc.lab.simulate.answer`: what it comes to;
- `dralloc.lab.simulate.measures`: what it could have come to.
"""

from __future__ import annotations

from dralloc.lab.simulate.answer import Simulated, SimulatedRun
from dralloc.lab.simulate.arrivals import (
    Arrival,
    PoissonArrivals,
    read_trace,
    trace_text,
)
from dralloc.lab.simulate.run import Arrivals, simulate
from dralloc.lab.simulate.simulation import ArrivalState

__all__ = [
    "Arrival",
    "ArrivalState",
    "Arrivals",
    "PoissonArrivals",
    "Simulated",
    "SimulatedRun",
    "read_trace",
    "simulate",
    "trace_text",
]
