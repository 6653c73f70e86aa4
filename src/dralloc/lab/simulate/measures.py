"""How good a run is, beside its figures: what nobody could exceed, what each decision missed, and fragmentation."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from dralloc.check import violations
from dralloc.lab.simulate.arrivals import Incoming
from dralloc.lab.simulate.kept_answers import KeptAnswers
from dralloc.lab.simulate.placing import Placer
from dralloc.lab.simulate.waiting_queue import WaitingQueue
from dralloc.objects.choices import Choices, Goal
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Alternative,
    Charge,
    Demand,
    DemandIndex,
    NodeIndex,
    Problem,
)
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, Solution
from dralloc.problem.supply import Usage
from dralloc.solve.first_fit import first_fit
from dralloc.solve.first_fit.candidates import CandidateIndex
from dralloc.solve.first_fit.search import SearchLedger
from dralloc.solve.optimum import solve
from dralloc.solve.policies.component_offers import ComponentOffers
from dralloc.solve.policies.component_states import ComponentStates
from dralloc.solve.policies.fragmentation import (
    ExpectedFragmentation,
    Mix,
    NodeParts,
    typical,
)
from dralloc.solve.policies.sizes import Amounts, Sizes, free_totals

__all__ = [
    "DecisionRegret",
    "FragmentationCause",
    "FragmentationLook",
    "FragmentationMeter",
    "WatchedPlacer",
    "clairvoyant_bound",
    "values_of",
]

# ----------------------------------------------------------------------------
# What nobody could exceed who had known all arrivals beforehand: an upper bound of
# the value that runs.
#
# The value of a run is, over all arrivals, what each is worth times how long it has a
# place until the horizon. Time is cut into epochs. In the relaxation an arrival may
# run in parts, in any epochs after it has come, in none for longer than the epoch
# lasts, and in all together no longer than its duration; nodes are not told apart,
# and of each resource no more may be in use during an epoch than there is. Whatever a
# policy does keeps these rules: at each moment what runs takes at least its least
# amounts, and no more is in use than there is.
#
# The bound is Lagrangian. With a price for each resource in each epoch, every arrival
# takes the epochs that pay most, by itself; what all of them gain, and what all
# resources cost, is a bound for any prices from 0. Prices are found by a subgradient
# method with Polyak's step ("Introduction to Optimization", 1987, section 5.3). They
# come from floats, but what is added up are integers, so that rounding never makes
# the bound too low.

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
    incoming: Incoming, horizon: int, reached: int = 0, epochs: int = _EPOCHS
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
    """
    values = values_of(incoming)
    coming = [
        arrival_index
        for arrival_index, arrival in enumerate(incoming.arrivals)
        if values[arrival_index] and arrival.time < horizon
    ]
    if not coming:
        return ClairvoyantBound(0, horizon)
    relaxation = _Relaxation(incoming, coming, values, horizon, epochs)
    return ClairvoyantBound(relaxation.bound(reached), horizon)


class _Relaxation:
    """The arrivals as columns of numbers: by arrival, by resource and by epoch."""

    def __init__(
        self,
        incoming: Incoming,
        coming: Sequence[int],
        values: Sequence[int],
        horizon: int,
        epochs: int,
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
        self.taken = _taken_parts(incoming, coming)

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


def _taken_parts(incoming: Incoming, coming: Sequence[int]) -> Integers:
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
    free = free_totals(problem, Ledger(problem))
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


# ----------------------------------------------------------------------------
# How much more each decision could have placed, with a proof.
#
# At each decision the problem is that of everybody who waits, with what is in use at
# that moment. What the policy places is one of its answers. The optimum is searched
# for from there, so that it is never worse; how far it can be at most is proven. Of
# answers of this moment nothing says that they are good later on: that is what the
# clairvoyant bound is about (see `dralloc.lab.simulate.measures`).


@dataclass(frozen=True, slots=True)
class DecisionRegret:
    """The devices that a decision placed, beside the optimum.

    Parameters
    ----------
    placed
        What the policy placed.
    best
        What the best known answer places.
    bound
        What no answer can exceed.
    """

    placed: int
    best: int
    bound: int

    @property
    def regret(self) -> int:
        """The most that can have been missed, proven; never negative."""
        return self.bound - self.placed


_REGRETS: Final = TypeAdapter(DecisionRegret)


class WatchedPlacer(Placer):
    """A placer whose decisions are held against the optimum.

    Attributes
    ----------
    regrets
        One for each decision.
    """

    def __init__(
        self,
        watched: Placer,
        choices: Choices,
        kept: KeptAnswers | None = None,
    ) -> None:
        super().__init__(watched.incoming)
        self._kept = kept or KeptAnswers()
        self.regrets: list[DecisionRegret] = []
        self._watched = watched
        self._choices = replace(choices, goal=Goal.NONE)
        self._values = values_of(watched.incoming)

    def equal_jobs(self, job: int) -> Hashable:
        """Ask the watched placer."""
        return self._watched.equal_jobs(job)

    def decide(self, queue: WaitingQueue) -> Iterator[int]:
        """Let the watched placer decide, then look for something better."""
        waiting = [
            arrival
            for job in queue.in_order()
            for arrival in self.incoming.jobs[job]
            if self.incoming.demands[arrival] is not None
        ]
        before = self._problem_of(waiting)
        placed: set[int] = set()
        for job in self._watched.decide(queue):
            placed.update(self.incoming.jobs[job])
            yield job
        judged = self._kept.once(
            _REGRETS, lambda: self._judged(before, waiting, placed)
        )
        self.regrets.append(judged)

    def _problem_of(self, waiting: Sequence[int]) -> Problem:
        """Return the problem of those who wait, where each is worth the devices that it asks for."""
        demand_indices = [
            demand_index
            for arrival in waiting
            if (demand_index := self.incoming.demands[arrival]) is not None
        ]
        problem = self._watched.waiting_problem(demand_indices)
        pairs = zip(waiting, problem.demands, strict=True)
        demands = tuple(
            replace(demand, weight=self._values[arrival])
            for arrival, demand in pairs
        )
        return replace(problem, demands=demands)

    def _judged(
        self, problem: Problem, waiting: Sequence[int], placed: set[int]
    ) -> DecisionRegret:
        value = sum(
            self._values[arrival] for arrival in waiting if arrival in placed
        )
        if value == sum(self._values[arrival] for arrival in waiting):
            return DecisionRegret(value, value, value)
        held = self._watched.whole_placements()
        answer = Solution(
            tuple(
                replace(held[arrival], demand=DemandIndex(demand_index))
                for demand_index, arrival in enumerate(waiting)
                if arrival in placed and arrival in held
            )
        )
        start = first_fit(problem) if violations(problem, answer) else answer
        best = solve(problem, self._choices, start)
        tier = best.tiers[0]
        return DecisionRegret(
            value, max(value, tier.value), max(value, tier.bound)
        )

    def release(self, arrival: int) -> None:
        """Let the watched placer do it."""
        self._watched.release(arrival)

    def exchange(
        self, leaving: Sequence[int], entering: Sequence[Placement]
    ) -> bool:
        """Let the watched placer do it."""
        return self._watched.exchange(leaving, entering)

    @property
    def problem(self) -> Problem:
        """The same as that of the watched placer."""
        return self._watched.problem

    def as_running(self, demand: Demand) -> Demand:
        """Ask the watched placer."""
        return self._watched.as_running(demand)

    @property
    def placements(self) -> Mapping[int, Placement]:
        """The placements of the watched placer."""
        return self._watched.placements

    @property
    def ledger(self) -> SearchLedger:
        """The same as that of the watched placer."""
        return self._watched.ledger

    def node_of(self, arrival: int) -> str:
        """Ask the watched placer."""
        return self._watched.node_of(arrival)

    def placement_of(self, arrival: int) -> Placement | None:
        """Ask the watched placer."""
        return self._watched.placement_of(arrival)


# ----------------------------------------------------------------------------
# Expected fragmentation over time: how much of what is left the next pod is expected
# to be unable to use.
#
# As Weng et al. measure it (ATC'23, section 3), for the mix of all arrivals; see
# `dralloc.solve.policies.fragmentation` for what takes the place of GPUs
# here. It is looked at a number of times in a run, evenly spread, as each look goes
# over all devices.
#
# What is left is fragmented for a demand for one of four causes, theirs in the terms of
# devices: the node would not serve it if it were empty ("no access"); too few devices
# are left for it there ("lack GPU"); devices are left, but not CPU, memory or whatever
# else nodes give ("lack CPU"); or the node can serve it, but not with this part of what
# is left.


class FragmentationCause(StrEnum):
    """The reason why something that is left is of no use for a demand.

    ``OTHER_HARDWARE``: the node could not serve it if it were empty. ``DEVICES``: the node could, but too few devices
    are left. ``NODE``: devices are left, but not enough CPU, memory, pods or other resources of nodes.
    ``SMALL_PARTS``: the node can serve it, but not with that which is left of some of its components.
    """

    OTHER_HARDWARE = "other hardware"
    DEVICES = "devices"
    NODE = "node resources"
    SMALL_PARTS = "small parts"


@dataclass(frozen=True, slots=True)
class FragmentationLook:
    """A look at what is left.

    Parameters
    ----------
    time
        Milliseconds.
    shares
        By cause, the part of all that is left that the next demand is expected to be unable to use.
    """

    time: int
    shares: Mapping[FragmentationCause, float]

    @property
    def share(self) -> float:
        """The part that it cannot use for whatever cause."""
        return sum(self.shares.values())


class FragmentationMeter:
    """Measures a run.

    Attributes
    ----------
    looks
        In order of time; without those at which nothing was left.
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
        self._popularity = np.array([count for _, count in self._mix], np.int64)
        self._placer = placer
        self._node_requests = _node_requests(incoming.problem, self._mix)
        self._able_if_empty = _fits_by_node(problem, index, self._mix)
        self.looks: list[FragmentationLook] = []

    def look(self, time: int) -> None:
        """Measure, if it is time to."""
        if not (self._times and time >= self._times[-1]):
            return
        while self._times and time >= self._times[-1]:
            self._times.pop()
        amounts = dict.fromkeys(FragmentationCause, 0)
        free = 0
        ledger = self._placer.whole_ledger()
        for node in self._nodes:
            self._states.of_node(node)
            parts = self._expected.parts(node)
            if parts is None:
                continue
            free += parts.left
            for cause, amount in self._by_cause(node, parts, ledger):
                amounts[cause] += amount
        whole = int(self._popularity.sum()) * free
        if whole:
            shares = {
                cause: amount / whole for cause, amount in amounts.items()
            }
            self.looks.append(FragmentationLook(time, shares))

    @property
    def mean(self) -> float | None:
        """The mean of all looks; None if there was nothing to be seen."""
        shares = [look.share for look in self.looks]
        return sum(shares) / len(shares) if shares else None

    def _by_cause(
        self, node: NodeIndex, parts: NodeParts, ledger: Ledger
    ) -> Iterator[tuple[FragmentationCause, int]]:
        """Yield what is left of a node and of no use, summed up over the mix."""
        able = self._able_if_empty[node]
        roomy = np.array(
            [
                alternative is None or _has_room(ledger, node, alternative)
                for alternative in self._node_requests
            ]
        )
        served = parts.fits & roomy
        for cause, mask, amount in (
            (FragmentationCause.OTHER_HARDWARE, ~able, parts.left),
            (FragmentationCause.DEVICES, able & ~parts.fits, parts.left),
            (FragmentationCause.NODE, able & parts.fits & ~roomy, parts.left),
            (
                FragmentationCause.SMALL_PARTS,
                able & served,
                parts.left - parts.usable,
            ),
        ):
            yield cause, int((self._popularity * mask * amount).sum())


def _node_requests(problem: Problem, mix: Mix) -> list[Alternative | None]:
    """Return for each class of demands what the first of them asks for of its node beside devices."""
    requests: dict[ClaimKey, Alternative] = {}
    for demand in problem.demands:
        of_node = [claim for claim in demand.claims if claim.is_synthetic]
        if of_node:
            [alternative] = of_node[0].alternatives()
            requests.update((claim.key, alternative) for claim in demand.claims)
    return [requests.get(claims[0].key) for claims, _ in mix]


def _has_room(
    ledger: Ledger, node: NodeIndex, alternative: Alternative
) -> bool:
    """Return whether a node has what a pod asks for of it beside devices."""
    problem = ledger.problem
    # What stands for the node is the only device of its last pool.
    device_index = problem.nodes[node].pools[-1].devices[0]
    charge = (
        problem.eligibility.charge(alternative.index, device_index) or Charge()
    )
    device = problem.devices[device_index]
    return all(
        ledger.capacity_left(device, name) >= amount
        for name, amount in charge.capacity
    )


def _emptied(problem: Problem) -> Problem:
    """Return a problem in which nothing is in use."""
    counters = tuple(
        replace(counter, free=counter.total) for counter in problem.counters
    )
    usage = Usage(frozenset(), {}, {})
    return replace(problem, counters=counters, usage=usage)


def _fits_by_node(
    problem: Problem, index: CandidateIndex, mix: Mix
) -> list[NDArray[np.bool_]]:
    """Return for each node whether it could serve each class of demands if it were empty."""
    empty = SearchLedger(_emptied(problem))
    states = ComponentStates(problem, empty)
    offers = ComponentOffers(problem, empty, states, index)
    expected = ExpectedFragmentation(offers, states, mix)
    by_node: list[NDArray[np.bool_]] = []
    for node in problem.all_nodes:
        states.of_node(node)
        parts = expected.parts(node)
        nobody = np.zeros(len(mix), np.bool_)
        by_node.append(nobody if parts is None else parts.fits)
    return by_node
