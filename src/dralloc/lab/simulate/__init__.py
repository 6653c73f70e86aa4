"""Time: pods arrive, run and leave, and a policy decides who gets which devices when.

- `dralloc.lab.simulate.run`: the question;
- `dralloc.lab.simulate.trace`, `dralloc.lab.simulate.generator`: who arrives, from a file or by chance;
- `dralloc.lab.simulate.incoming`: the cluster with all of them, compiled once;
- `dralloc.lab.simulate.clock`, `dralloc.lab.simulate.queue`, `dralloc.lab.simulate.simulation`: what happens, in order;
- `dralloc.lab.simulate.placing`, `dralloc.lab.simulate.batches`: who finds places;
- `dralloc.lab.simulate.figures`, `dralloc.lab.simulate.fragmentation`, `dralloc.lab.simulate.intervals`,
  `dralloc.lab.simulate.answer`: what it comes to;
- `dralloc.lab.simulate.regret`, `dralloc.lab.simulate.clairvoyant`: what it could have come to.
"""

from __future__ import annotations

from dralloc.lab.simulate.answer import Simulated, SimulatedRun
from dralloc.lab.simulate.generator import PoissonArrivals
from dralloc.lab.simulate.run import Arrivals, simulate
from dralloc.lab.simulate.simulation import ArrivalState
from dralloc.lab.simulate.trace import Arrival, read_trace, trace_text

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
