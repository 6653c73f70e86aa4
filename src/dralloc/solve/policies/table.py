"""The policies by name: in which order they take demands, and which node they take.

From top to bottom: how large a demand is beside what there is, which decides the order; the scores of nodes; one pass
over the demands, each to the node with the lowest score; and the table that names the combinations.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from typing import Final

from dralloc.objects.choices import Mode
from dralloc.objects.errors import AllocationError, ChoiceError
from dralloc.problem import Alternative, Charge, Claim, Demand, Problem
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import (
    Grant,
    Placement,
    Solution,
    charged_grants,
    served_by,
)
from dralloc.solve.first_fit.batch import QuickRun, place_all
from dralloc.solve.first_fit.candidates import ClaimClass, ClaimClasses
from dralloc.solve.first_fit.plain import Found
from dralloc.solve.first_fit.search import SearchLedger
from dralloc.solve.policies.fragmentation import (
    Census,
    ComponentOffers,
    ComponentStates,
    ExpectedFragmentation,
    typical,
)
from dralloc.solve.policies.protocol import AskingRun, Policy, order_of, policy_name
from dralloc.solve.work import phase

__all__ = [
    "PARTS",
    "POLICIES",
    "Amounts",
    "ScoredRun",
    "Scoring",
    "Sizes",
    "amounts_of",
    "as_given",
    "free_totals",
    "least_fragmentation",
    "least_left",
    "place",
    "way_of",
]

# ----------------------------------------------------------------------------
# How large a demand is beside what there is.

PARTS: Final = 10**12
"""Sizes are in such parts of everything there is, rounded up."""

Amounts = Mapping[Hashable, int]


class Sizes:
    """Works out sizes, once for equal demands.

    Attributes
    ----------
    totals
        How much there is of each resource, in use or not.

    The size of a demand is its dominant share (Ghodsi et al., "Dominant Resource Fairness", NSDI'11): of each resource
    the part that it takes of all there is in the problem, of these the largest. Resources are, by driver: each counter
    by name, each capacity of shareable devices by name, and the number of dedicated devices that consume no counters.
    A request counts with the device, and the alternative, that costs least by the same measure; one for all devices
    with all that a node has for it, on the node where that is least.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._claim_classes = ClaimClasses(problem)
        self._sizes: dict[Hashable, int] = {}
        self._costs: dict[Hashable, Amounts] = {}
        self._choices_of: dict[Hashable, Sequence[Amounts]] = {}
        self.totals = _totals(problem)

    def of(self, demand: Demand) -> int:
        """The size of a demand, at least 1; 1 for one that can never be allocated."""
        claim_class = self._claim_classes.of(demand.claims)
        if claim_class is None:
            return 1
        if claim_class not in self._sizes:
            self._sizes[claim_class] = max(1, self._share(self._taken(demand.claims)))
        return self._sizes[claim_class]

    def taken(self, demand: Demand) -> Amounts:
        """The least amounts that a demand takes, by resource."""
        return self._taken(demand.claims)

    def least(self, demand: Demand) -> Amounts:
        """Of each resource by itself what the demand takes at least, whatever devices it gets; nothing of `All`."""
        least: Tally[Hashable] = Tally()
        for claim in demand.claims:
            for request in claim.requests:
                choices = [
                    amounts
                    for one in request.alternatives
                    for amounts in self._choices(one)
                ]
                in_all = set(choices[0]).intersection(*choices) if choices else set()
                least.update(
                    {name: min(amounts[name] for amounts in choices) for name in in_all}
                )
        return least

    def _choices(self, alternative: Alternative) -> Sequence[Amounts]:
        """What an alternative takes, for each class of devices that can serve it."""
        key = (
            self._problem.eligibility.request_key(alternative.index),
            alternative.count,
            alternative.admin,
        )
        if key not in self._choices_of:
            count = 0 if alternative.admin else alternative.count or 0
            each = (self._sum(alternative, (device,)) for device in self._examples)
            multiplied = (
                {name: count * amount for name, amount in amounts.items()}
                for amounts in each
                if amounts
            )
            self._choices_of[key] = tuple(multiplied)
        return self._choices_of[key]

    def _taken(self, claims: Sequence[Claim]) -> Amounts:
        """The least amounts that claims take."""
        taken: Tally[Hashable] = Tally()
        for claim in claims:
            for request in claim.requests:
                taken.update(
                    min(
                        map(self._cost, request.alternatives),
                        key=self._share,
                        default={},
                    )
                )
        return taken

    def _cost(self, alternative: Alternative) -> Amounts:
        key = (
            self._problem.eligibility.request_key(alternative.index),
            alternative.count,
            alternative.admin,
        )
        if key not in self._costs:
            self._costs[key] = self._cost_of(alternative)
        return self._costs[key]

    def _cost_of(self, alternative: Alternative) -> Amounts:
        """What the alternative takes on the cheapest devices; nothing if there are none, or with admin access."""
        if alternative.admin:
            return {}
        per_node = (node.devices() for node in self._problem.nodes)
        choices = (
            per_node
            if alternative.count is None
            else ((device,) for device in self._examples)
        )
        each = (self._sum(alternative, devices) for devices in choices)
        cheapest = min(
            (amounts for amounts in each if amounts), key=self._share, default={}
        )
        times = 1 if alternative.count is None else alternative.count
        return {name: times * amount for name, amount in cheapest.items()}

    def _sum(self, alternative: Alternative, devices: Iterable[int]) -> Amounts:
        """What the alternative takes on all of these devices that can serve it."""
        eligibility, index = self._problem.eligibility, alternative.index
        taken: Tally[Hashable] = Tally()
        for device in devices:
            charge = eligibility.charge(index, device)
            if (
                charge is not None
                and eligibility.selects(index, device) is True
                and eligibility.admits(index, device)
            ):
                taken.update(dict(_takes(self._problem, device, charge)))
        return taken

    def _share(self, amounts: Amounts) -> int:
        """The largest part that the amounts are of all there is."""
        return max(
            (
                -(-amount * PARTS // max(self.totals[name], 1))
                for name, amount in amounts.items()
            ),
            default=0,
        )

    @cached_property
    def _examples(self) -> Sequence[int]:
        """One of each class of devices."""
        device_key = self._problem.eligibility.device_key
        found: dict[Hashable, int] = {}
        for index in range(len(self._problem.devices)):
            found.setdefault(
                (device_key(index), tuple(_takes(self._problem, index, Charge()))),
                index,
            )
        return tuple(found.values())


def _takes(
    problem: Problem, index: int, charge: Charge
) -> Iterator[tuple[Hashable, int]]:
    """What an allocation takes, by resource; what opening a shareable device takes is not for one claim to pay."""
    device = problem.devices[index]
    driver = device.id.driver
    consumed: Tally[str] = Tally()
    for counter, amount in (
        *charge.counters,
        *(() if device.shareable else device.consumes),
    ):
        consumed[problem.counters[counter].id.counter] += amount
    yield from (
        (("counter", driver, name), amount) for name, amount in consumed.items()
    )
    yield from (
        (("capacity", driver, name), amount) for name, amount in charge.capacity
    )
    if not device.shareable and not device.consumes:
        yield ("device", driver), 1


def amounts_of(problem: Problem, placement: Placement) -> Amounts:
    """What a placement takes of each resource."""
    taken: Tally[Hashable] = Tally()
    for _, device, charge in charged_grants(problem, (placement,)):
        taken.update(dict(_takes(problem, device, charge)))
    return taken


def _totals(problem: Problem) -> Amounts:
    """How much there is of each resource, in use or not."""
    totals: Tally[Hashable] = Tally()
    for counter in problem.counters:
        totals["counter", counter.id.driver, counter.id.counter] += counter.total
    for device in problem.devices:
        if device.shareable:
            for each in device.capacity.values():
                totals["capacity", device.id.driver, each.name] += each.total
        elif not device.consumes:
            totals["device", device.id.driver] += 1
    return totals


def free_totals(problem: Problem, ledger: Ledger) -> Amounts:
    """How much there is of each resource that is not in use."""
    totals: Tally[Hashable] = Tally()
    for counter, free in zip(problem.counters, ledger.free, strict=True):
        totals["counter", counter.id.driver, counter.id.counter] += max(0, free)
    for device in problem.devices:
        driver = device.id.driver
        if device.shareable:
            for name in device.capacity if ledger.is_free(device) else ():
                left = ledger.capacity_left(device, name)
                totals["capacity", driver, name] += max(0, left)
        elif not device.consumes:
            totals["device", driver] += ledger.is_free(device)
    return totals


# ----------------------------------------------------------------------------
# Which node to take: the one with the lowest score, and the first of those in search
# order.

Score = Callable[[Sequence[Claim], int], int | None]
"""How little a node suits claims: the same for nodes in the same state. None if the claims do not fit there."""


@dataclass(frozen=True)
class ScoringContext:
    """A run as scores see it. ``attempt`` takes what claims need on a node, if it can."""

    problem: Problem
    ledger: SearchLedger
    states: ComponentStates
    offers: ComponentOffers
    attempt: Callable[[Sequence[Claim], int], Found | None]

    @contextmanager
    def trying(
        self, claims: Sequence[Claim], node: int
    ) -> Iterator[frozenset[int] | None]:
        """Take what the claims need on a node, and give it back: the devices; None if they do not fit."""
        found = self.attempt(claims, node)
        if found is None:
            yield None
            return
        self.ledger.settle()
        yield frozenset(grant.device for grants in found for grant in grants)
        for _, alternative, grant in served_by(claims, found):
            self.ledger.release(grant.device, alternative)


Scoring = Callable[[ScoringContext], Score]
"""Sets up a score for a run."""


def least_left(context: ScoringContext) -> Score:
    """Best fit: the node with the least left, as the sum over its components (see `ComponentStates`).

    What the claims take is not subtracted: it is the same wherever they go.
    """
    states = context.states

    def left(claims: Sequence[Claim], node: int) -> int | None:
        if not context.offers.could_serve(claims, node):
            return None
        return sum(states.left[state] for state, _ in states.ordered(node))

    return left


def least_fragmentation(context: ScoringContext) -> Score:
    """Fragmentation gradient descent: the node on which placing the claims adds the least expected fragmentation.

    Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
    Descent", USENIX ATC'23, section 4. How it is measured here: `ExpectedFragmentation`.
    """
    fragmentation = ExpectedFragmentation(
        context.offers, context.states, typical(context.problem)
    )

    def added(claims: Sequence[Claim], node: int) -> int | None:
        if not context.offers.could_serve(claims, node):
            return None
        before = fragmentation.of(node)
        with context.trying(claims, node) as taken:
            if taken is None:
                return None
            return fragmentation.of(node, taken) - before

    return added


# ----------------------------------------------------------------------------
# One pass over the demands, each to the node with the lowest score.
#
# A score belongs to a class of demands and a state of nodes, so it is worked out once
# for all of them. What happens on a node changes the state of that node alone: for
# the next demand only the states that have come up since the last one of its
# claim_class are looked at.


@dataclass(slots=True)
class ScoreQueue:
    """The states of nodes for one class of demands, best first.

    Parameters
    ----------
    seen
        How many arrivals have been looked at.
    known
        States that are in the queue, or that do not fit.
    scores
        A heap of the scores that there are.
    states
        By score.
    """

    seen: int = 0
    known: set[int] = field(default_factory=set)
    scores: list[int] = field(default_factory=list)
    states: dict[int, set[int]] = field(default_factory=dict)

    def enter(self, state: int, score: int) -> None:
        """Add a state."""
        if score not in self.states:
            heappush(self.scores, score)
        self.states.setdefault(score, set()).add(state)

    def best(self, first: Callable[[int], int | None]) -> tuple[int, int] | None:
        """The first node, and its state, of all with the best score; states without nodes are dropped."""
        while self.scores:
            states = self.states[self.scores[0]]
            found = {
                state: node for state in states if (node := first(state)) is not None
            }
            self.known -= states - found.keys()
            if found:
                self.states[self.scores[0]] = set(found)
                state = min(found, key=lambda one: found[one])
                return found[state], state
            del self.states[heappop(self.scores)]
        return None

    def drop(self, state: int) -> None:
        """A state with the best score does not fit."""
        self.states[self.scores[0]].discard(state)


class ScoredRun(QuickRun):
    """A run with a score. What first fit does about gangs, shared claims and defects stays as it is."""

    def __init__(self, problem: Problem, scoring: Scoring) -> None:
        super().__init__(problem)
        self._scoring = scoring
        self._begin()

    def _begin(self) -> None:
        """Read the ledger as it is."""
        problem, ledger = self._problem, self._ledger
        states = ComponentStates(problem, ledger)
        self._census = Census(problem, states)
        self._offers = ComponentOffers(problem, ledger, states, self._index)
        self._score = self._scoring(
            ScoringContext(problem, ledger, states, self._offers, self._try)
        )
        self._queues: dict[Hashable, ScoreQueue] = {}

    def place(self, number: int) -> None:
        """Place a demand on the best node that can hold it, or note the last error met."""
        demand = self._demand(number)
        claims = self._open_claims(demand)
        claim_class = self._claim_classes.of(claims)
        if claim_class is None:
            super().place(number)
            return
        nodes = self._nodes(demand)
        anywhere = nodes is self._problem.all_nodes
        own = (
            ScoreQueue()
            if len(claims) < len(demand.claims) or demand.roles
            else self._queues.setdefault((claim_class, demand.nodes), ScoreQueue())
        )
        self._place_by(
            own, number, claims, claim_class, None if anywhere else frozenset(nodes)
        )

    def _place_by(
        self,
        queue: ScoreQueue,
        number: int,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
        allowed: Container[int] | None,
    ) -> None:
        self._update(queue, claims, allowed)
        failing: list[tuple[int, int]] = []
        while (
            best := queue.best(lambda state: self._census.first(state, allowed))
        ) is not None:
            node, state = best
            try:
                found = self._attempt_at(
                    self._offers.candidates(claims, node), claims, claim_class
                )
            except AllocationError as error:
                # The message is about these claims: the next ones get their own.
                self.errors[number] = error
                failing.append((state, queue.scores[0]))
                found = None
            if found is not None:
                self._settle(number, node, claims, found)
                break
            queue.drop(state)
        for state, score in failing:
            queue.enter(state, score)

    def _update(
        self, queue: ScoreQueue, claims: Sequence[Claim], allowed: Container[int] | None
    ) -> None:
        """Rate the states that have come up."""
        for state in self._census.arrivals[queue.seen :]:
            if (
                state not in queue.known
                and (node := self._census.first(state, allowed)) is not None
            ):
                queue.known.add(state)
                score = self._score(claims, node)
                if score is not None:
                    queue.enter(state, score)
        queue.seen = len(self._census.arrivals)

    def _try(self, claims: Sequence[Claim], node: int) -> Found | None:
        claim_class = self._claim_classes.of(claims)
        assert claim_class is not None
        try:
            return self._attempt_at(
                self._offers.candidates(claims, node), claims, claim_class
            )
        except AllocationError:
            return None

    def _settle(
        self, number: int, node: int, claims: Sequence[Claim], found: Found
    ) -> None:
        super()._settle(number, node, claims, found)
        self._census.changed(_devices(found))

    def _release(self, placement: Placement) -> None:
        super()._release(placement)
        self._census.changed(_devices(placement.grants))


def _devices(grants: Sequence[Sequence[Grant]]) -> list[int]:
    return [grant.device for each in grants for grant in each]


# ----------------------------------------------------------------------------
# The policies by name, and in which order they take demands.

Order = Callable[[Problem], Sequence[int]]
"""Puts the demands of a problem, by index, in order."""


def as_given(problem: Problem) -> Sequence[int]:
    """As the scheduler takes pods: by priority, then by age."""
    return range(len(problem.demands))


def largest_first(problem: Problem) -> Sequence[int]:
    """By priority; of equal priority the largest first, of equal size those that may go to fewer nodes.

    Sizes: `dralloc.solve.policies.table`.
    """
    sizes = Sizes(problem)

    def key(number: int) -> tuple[int, int, int]:
        demand = problem.demands[number]
        return -demand.priority, -sizes.of(demand), len(problem.candidate_nodes(demand))

    return sorted(as_given(problem), key=key)


def densest_first(problem: Problem) -> Sequence[int]:
    """The most weight per size first: the greedy order for the knapsack problem (Dantzig 1957)."""
    sizes = Sizes(problem)

    def density(number: int) -> Fraction:
        demand = problem.demands[number]
        return Fraction(demand.weight * PARTS, sizes.of(demand))

    return sorted(as_given(problem), key=density, reverse=True)


@dataclass(frozen=True, slots=True)
class KnownPolicy:
    """A way to place one demand after the other that dralloc knows by name.

    Parameters
    ----------
    name
        How users call it.
    summary
        What it does, in a line.
    order
        In which order demands are taken.
    scoring
        Which node gets a demand; None for the first that can hold it. With a score the components of the node with the
        least left are searched first.
    """

    name: str
    summary: str
    order: Order = as_given
    scoring: Scoring | None = None


POLICIES: Final[Mapping[str, KnownPolicy]] = {
    policy.name: policy
    for policy in (
        KnownPolicy(
            "first-fit",
            "as upstream: by priority and age, each on the first node that can hold it",
        ),
        KnownPolicy(
            "priority-ordered",
            "first fit, but the largest first inside a priority",
            order=largest_first,
        ),
        KnownPolicy(
            "best-fit",
            "each on the node, and the device, with the least left",
            scoring=least_left,
        ),
        KnownPolicy(
            "fgd",
            "each on the node where it adds the least expected fragmentation",
            scoring=least_fragmentation,
        ),
        KnownPolicy(
            "density",
            "the most weight per size first, each by best fit",
            order=densest_first,
            scoring=least_left,
        ),
    )
}


def way_of(given: str | Policy) -> Mode | str | Policy:
    """Return what answers: the mode or, if it is none of these, the policy that a word stands for, or that of the user.

    Raises
    ------
    ChoiceError
        The word stands for neither.
    """
    if not isinstance(given, str):
        return given
    if given in tuple(Mode):
        return Mode(given)
    if given not in POLICIES:
        raise ChoiceError("mode", given, dict.fromkeys((*Mode, *POLICIES)))
    return given


def place(problem: Problem, policy: str | Policy) -> Solution:
    """Place the demands of a problem by a policy: one of those known by name, or one of the user.

    A gang stands where the first of its members does, and has its quorum or nothing, as by first fit. With a score, a
    selector that fails on a device rules out the device alone, and a node that ends with an error is passed over; the
    last such error is kept for a demand that fits nowhere.

    Raises
    ------
    ChoiceError
        There is no such policy.
    DrallocError
        The policy of the user answers with something that it was not asked about.
    """
    timings: dict[str, float] = {}
    if not isinstance(policy, str):
        with phase(timings, policy_name(policy)):
            return place_all(
                AskingRun(problem, policy), problem, order_of(problem, policy), timings
            )
    chosen = POLICIES.get(policy)
    if chosen is None:
        raise ChoiceError("policy", policy, POLICIES)
    with phase(timings, policy):
        run = (
            QuickRun(problem)
            if chosen.scoring is None
            else ScoredRun(problem, chosen.scoring)
        )
        return place_all(run, problem, chosen.order(problem), timings)
