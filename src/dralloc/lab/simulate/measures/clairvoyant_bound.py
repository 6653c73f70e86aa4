"""What nobody could exceed who had known all arrivals beforehand: an upper bound of the value that runs.

The value of a run is, over all arrivals, what each is worth times how long it has a place until the horizon. Time is
cut into epochs. In the relaxation an arrival may run in parts, in any epochs after it has come, in none for longer than
the epoch lasts, and in all together no longer than its duration; nodes are not told apart, and of each resource no more
may be in use during an epoch than there is. Whatever a policy does keeps these rules: at each moment what runs takes at
least its least amounts, and no more is in use than there is.

The bound is Lagrangian. With a price for each resource in each epoch, every arrival takes the epochs that pay most, by
itself; what all of them gain, and what all resources cost, is a bound for any prices from 0. Prices are found by a
subgradient method with Polyak's step ("Introduction to Optimization", 1987, section 5.3). They come from floats, but
what is added up are integers, so that rounding never makes the bound too low.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.lab.simulate.arrivals.incoming import Incoming
from dralloc.lab.simulate.measures.fragmentation_meter import emptied
from dralloc.problem.ledger import Ledger
from dralloc.solve.policies.sizes import Amounts, Sizes, free_totals

__all__ = ["clairvoyant_bound", "values_of"]

_PARTS: Final = 10**6
"""Amounts are in such parts of what there is, rounded down."""

_EPOCHS: Final = 48
_ROUNDS: Final = 150
_LARGEST: Final = 2**62
"""No number of a column is larger."""


Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClairvoyantBound:
    """A proven limit of what a run can come to.

    Parameters
    ----------
    value
        Worth times milliseconds.
    horizon
        Milliseconds after which nothing counts.
    """

    value: int
    horizon: int


def values_of(incoming: Incoming) -> Sequence[int]:
    """Return what each arrival is worth while it runs: how many devices it asks for at least."""
    return [
        incoming.asked_devices(arrival)
        for arrival in range(len(incoming.arrivals))
    ]


def clairvoyant_bound(
    incoming: Incoming,
    horizon: int,
    reached: int = 0,
    epochs: int = _EPOCHS,
    *,
    evicts: bool = False,
) -> ClairvoyantBound:
    """Bound the value of all runs of these arrivals.

    Parameters
    ----------
    horizon
        Milliseconds after which nothing counts.
    reached
        The value of some run, which the search for prices aims at.
    epochs
        Into how many equal parts time is cut.
    evicts
        Whether pods that ran before anybody arrived may be evicted, so that nothing can be counted on to stay in use.
    """
    values = values_of(incoming)
    coming = [
        arrival_index
        for arrival_index, arrival in enumerate(incoming.arrivals)
        if values[arrival_index] and arrival.time < horizon
    ]
    if not coming:
        return ClairvoyantBound(0, horizon)
    taken = _taken_parts(incoming, coming, evicts=evicts)
    relaxation = _Relaxation(incoming, coming, values, horizon, epochs, taken)
    return ClairvoyantBound(relaxation.bound(reached), horizon)


class _Relaxation:
    """The arrivals as columns of numbers: by arrival, by resource and by epoch."""

    def __init__(  # noqa: PLR0913 - who comes, what it takes, and time
        self,
        incoming: Incoming,
        coming: Sequence[int],
        values: Sequence[int],
        horizon: int,
        epochs: int,
        taken: Integers,
    ) -> None:
        cuts = np.array(
            [horizon * cut // epochs for cut in range(epochs + 1)], np.int64
        )
        arrived = np.array(
            [incoming.arrivals[arrival].time for arrival in coming], np.int64
        )
        lengths = [incoming.arrivals[arrival].duration for arrival in coming]
        # Who never leaves runs until the horizon.
        durations = np.array(
            [horizon if length is None else length for length in lengths],
            np.int64,
        )
        self.worth = np.array([values[arrival] for arrival in coming], np.int64)
        # Prices and gains are in such parts of one, so that what somebody gains at most fits 64 bits.
        self.scale = max(
            1, min(10**6, _LARGEST // (int(self.worth.max()) * horizon))
        )
        self.dearest = self.scale * int(self.worth.max())
        self.epoch_lengths: Integers = np.diff(cuts)
        # By arrival and epoch, for how long it is there at most.
        begin = np.maximum(arrived[:, None], cuts[None, :-1])
        self.there: Integers = np.maximum(0, cuts[None, 1:] - begin)
        self.wanted: Integers = np.minimum(durations, horizon - arrived)
        self.taken = taken

    def bound(self, reached: int) -> int:
        """Return the best bound of some rounds."""
        prices = np.zeros(
            (self.taken.shape[1], len(self.epoch_lengths)), np.int64
        )
        best, patience = self._value(prices)[0], 1.0
        exact_prices = prices.astype(np.float64)
        for _ in range(_ROUNDS if prices.size else 0):
            value, running = self._value(prices)
            if value < best:
                best = value
            else:
                patience *= 0.95
            # What is left of each resource in each epoch, in parts times milliseconds.
            unused = (
                _PARTS * self.epoch_lengths
                - self.taken.T.astype(np.float64) @ running
            )
            steepness = float((unused * unused).sum())
            if best <= reached or not steepness:
                break
            step = patience * self.scale * (value - reached) / steepness
            exact_prices = np.maximum(0.0, exact_prices - step * unused)
            prices = np.minimum(exact_prices, self.dearest).astype(np.int64)
        return best

    def _value(self, prices: Integers) -> tuple[int, Integers]:
        """Return the bound for some prices, and for how long each arrival runs in each epoch."""
        # Rounded down by more than floats can be wrong, so that no gain is too small.
        costs = np.floor(self.taken.astype(np.float64) @ prices * (1 - 1e-9))
        costs = np.minimum(costs, float(self.dearest))
        gains = self.worth[:, None] * self.scale - costs.astype(np.int64)
        gains = np.maximum(0, gains)
        order = np.argsort(-gains, axis=1, kind="stable")
        present = np.take_along_axis(self.there, order, axis=1)
        before = np.cumsum(present, axis=1) - present
        taken_in_order = np.clip(self.wanted[:, None] - before, 0, present)
        running = np.zeros_like(present)
        np.put_along_axis(running, order, taken_in_order, axis=1)
        # Nobody runs where it gains nothing.
        running[gains == 0] = 0
        gained = sum((gains * running).sum(axis=1).tolist())
        paid = sum(
            int(price) * _PARTS * int(length)
            for row in prices.tolist()
            for price, length in zip(
                row, self.epoch_lengths.tolist(), strict=True
            )
        )
        return (gained + paid) // self.scale, running


def _taken_parts(
    incoming: Incoming, coming: Sequence[int], *, evicts: bool
) -> Integers:
    """Return what arrivals take at least of each resource, in parts of what is free of it in the beginning."""
    problem = incoming.compiled.problem
    sizes = Sizes(problem)
    by_template: dict[Hashable, Amounts] = {}
    rows: list[Amounts] = []
    for arrival in coming:
        template = incoming.arrivals[arrival].template
        if template not in by_template:
            demand = incoming.demands[arrival]
            by_template[template] = (
                {} if demand is None else sizes.least(problem.demands[demand])
            )
        rows.append(by_template[template])
    before = emptied(problem) if evicts else problem
    free = free_totals(problem, Ledger(before))
    names = sorted(
        {
            name
            for amounts in by_template.values()
            for name in amounts
            if free.get(name, 0) > 0
        },
        key=str,
    )

    def parts_of(amounts: Amounts) -> list[int]:
        # Rounded down: the relaxation may take less than an arrival does, never more.
        return [
            min(_PARTS, amounts.get(name, 0) * _PARTS // free[name])
            for name in names
        ]

    parts = list(map(parts_of, rows))
    return np.array(parts, np.int64).reshape(len(coming), len(names))
