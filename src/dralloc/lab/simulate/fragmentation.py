"""Expected fragmentation over time: how much of what is left the next pod is expected to be unable to use.

As Weng et al. measure it (ATC'23, section 3), for the mix of all arrivals; see
`dralloc.solve.policies.expected_fragmentation` for what takes the place of GPUs here. It is looked at a number of times
in a run, evenly spread, as each look goes over all devices.
"""

from __future__ import annotations

from dralloc.lab.simulate.incoming import Incoming
from dralloc.lab.simulate.placing import Placer
from dralloc.solve.first_fit.candidates import CandidateIndex
from dralloc.solve.policies.component_offers import ComponentOffers
from dralloc.solve.policies.component_states import ComponentStates
from dralloc.solve.policies.expected_fragmentation import ExpectedFragmentation, typical

__all__ = ["FragmentationMeter"]


class FragmentationMeter:
    """Measures a run.

    Attributes
    ----------
    measured
        Of each look its time in milliseconds, and the part of all that was left which was fragmented.
    """

    def __init__(
        self, incoming: Incoming, placer: Placer, warm_up: int, looks: int
    ) -> None:
        problem = incoming.compiled.problem
        last = max((arrival.time for arrival in incoming.arrivals), default=0)
        span = max(0, last - warm_up)
        # Times are looked for in the end first.
        self._times = (
            [warm_up + span * look // looks for look in range(looks, 0, -1)]
            if span
            else []
        )
        self._nodes = problem.all_nodes
        index = CandidateIndex(problem)
        self._states = ComponentStates(problem, placer.ledger)
        offers = ComponentOffers(problem, placer.ledger, self._states, index)
        self._mix = typical(problem)
        self._expected = ExpectedFragmentation(offers, self._states, self._mix)
        self.measured: list[tuple[int, float]] = []

    def look(self, now: int) -> None:
        """Measure, if it is time to."""
        if not (self._times and now >= self._times[-1]):
            return
        while self._times and now >= self._times[-1]:
            self._times.pop()
        share = self._share()
        if share is not None:
            self.measured.append((now, share))

    @property
    def mean(self) -> float | None:
        """The mean of all looks; None if there was nothing to be seen."""
        shares = [share for _, share in self.measured]
        return sum(shares) / len(shares) if shares else None

    def _share(self) -> float | None:
        """The part of what is left that is fragmented; None if nothing is left."""
        fragmented = left = 0
        for node in self._nodes:
            self._states.of_node(node)
            fragmented += self._expected.of(node)
            left += sum(
                self._states.left[state] for state, _ in self._states.ordered(node)
            )
        demands = sum(count for _, count in self._mix)
        return fragmented / (demands * left) if demands and left else None
