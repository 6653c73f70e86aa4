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
from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    Demand,
    DemandIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    indices,
    numbered,
)
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
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.first_fit.search import SearchLedger
from dralloc.solve.policies.fragmentation import (
    Census,
    ComponentOffers,
    ComponentStates,
    ExpectedFragmentation,
    typical,
)
from dralloc.solve.policies.protocol import (
    AskingRun,
    Policy,
    order_of,
    policy_name,
)
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
# Sizes: how large a demand is beside what there is.

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
            self._sizes[claim_class] = max(
                1, self._share(self._taken(demand.claims))
            )
        return self._sizes[claim_class]

    def taken(self, demand: Demand) -> Amounts:
        """The least amounts that a demand takes, by resource."""
        return self._taken(demand.claims)

    def least(self, demand: Demand) -> Amounts:
        """Return what the demand takes at least of each resource, whatever devices it gets; nothing of `All`."""
        least: Tally[Hashable] = Tally()
        for claim in demand.claims:
            for request in claim.requests:
                choices: list[Amounts] = []
                for alternative in request.alternatives:
                    choices += self._choices(alternative)
                if not choices:
                    continue
                # What some choice does without is not taken for certain.
                for name in set(choices[0]).intersection(*choices):
                    least[name] += min(amounts[name] for amounts in choices)
        return least

    def _choices(self, alternative: Alternative) -> Sequence[Amounts]:
        """Return the amounts that an alternative takes, for each class of devices that can serve it."""
        key = (
            self._problem.eligibility.request_key(alternative.index),
            alternative.count,
            alternative.admin,
        )
        if key not in self._choices_of:
            count = 0 if alternative.admin else alternative.count or 0
            choices: list[Amounts] = []
            for device in self._examples:
                # One that serves and takes nothing is a choice, too.
                if self._serves(alternative, device):
                    amounts = self._sum(alternative, (device,))
                    choices.append(_times(count, amounts))
            self._choices_of[key] = choices
        return self._choices_of[key]

    def _taken(self, claims: Sequence[Claim]) -> Amounts:
        """The least amounts that claims take."""
        total: Tally[Hashable] = Tally()
        for claim in claims:
            for request in claim.requests:
                costs = map(self._cost, request.alternatives)
                total.update(min(costs, key=self._share, default={}))
        return total

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
        """Return the alternative's amounts on the cheapest devices; nothing without devices or with admin access."""
        if alternative.admin:
            return {}
        choices: Iterable[Iterable[DeviceIndex]]
        if alternative.count is None:
            count = 1
            choices = (node.devices() for node in self._problem.nodes)
        else:
            count = alternative.count
            choices = ((device,) for device in self._examples)
        costs = (self._sum(alternative, devices) for devices in choices)
        cheapest = min(filter(None, costs), key=self._share, default={})
        return _times(count, cheapest)

    def _sum(
        self, alternative: Alternative, devices: Iterable[DeviceIndex]
    ) -> Amounts:
        """Return the amounts that the alternative takes on all of these devices that can serve it."""
        eligibility, index = self._problem.eligibility, alternative.index
        total: Tally[Hashable] = Tally()
        for device in devices:
            charge = eligibility.charge(index, device)
            if charge is not None and self._serves(alternative, device):
                total.update(dict(_takes(self._problem, device, charge)))
        return total

    def _serves(self, alternative: Alternative, device: DeviceIndex) -> bool:
        """Return whether a device that nobody uses can serve an alternative."""
        eligibility, index = self._problem.eligibility, alternative.index
        return (
            eligibility.charge(index, device) is not None
            and eligibility.selects(index, device) is True
            and eligibility.admits(index, device)
        )

    def _share(self, amounts: Amounts) -> int:
        """The largest part that the amounts are of all there is."""
        shares = (
            -(-amount * PARTS // max(self.totals[name], 1))
            for name, amount in amounts.items()
        )
        return max(shares, default=0)

    @cached_property
    def _examples(self) -> Sequence[DeviceIndex]:
        """Return one device of each class: of equal keys, and with equal amounts of counters that have equal names."""
        device_key = self._problem.eligibility.device_key
        names = [counter.id.counter for counter in self._problem.counters]
        examples: dict[Hashable, DeviceIndex] = {}
        # Of millions of devices, each is looked at: so no amounts are added up.
        for index, device in numbered(self._problem.devices):
            consumed = tuple(
                [(names[at], amount) for at, amount in device.consumes]
            )
            kind = (
                device_key(index),
                device.id.driver,
                device.shareable,
                consumed,
            )
            if kind not in examples:
                examples[kind] = index
        return tuple(examples.values())


def _times(count: int, amounts: Amounts) -> Amounts:
    return {name: count * amount for name, amount in amounts.items()}


def _takes(
    problem: Problem, index: DeviceIndex, charge: Charge
) -> Iterator[tuple[Hashable, int]]:
    """Yield the amounts that an allocation takes; opening a shareable device is not for one claim to pay."""
    device = problem.devices[index]
    driver = device.id.driver
    consumes = [*charge.counters]
    if not device.shareable:
        consumes += device.consumes
    consumed: Tally[str] = Tally()
    for counter, amount in consumes:
        consumed[problem.counters[counter].id.counter] += amount
    for name, amount in consumed.items():
        yield ("counter", driver, name), amount
    for name, amount in charge.capacity:
        yield ("capacity", driver, name), amount
    if not device.shareable and not device.consumes:
        yield ("device", driver), 1


def amounts_of(problem: Problem, placement: Placement) -> Amounts:
    """Return the amount of each resource that a placement takes."""
    total: Tally[Hashable] = Tally()
    for _, device, charge in charged_grants(problem, (placement,)):
        total.update(dict(_takes(problem, device, charge)))
    return total


def _totals(problem: Problem) -> Amounts:
    """Return the total amount of each resource, in use or not."""
    totals: Tally[Hashable] = Tally()
    for counter in problem.counters:
        totals["counter", counter.id.driver, counter.id.counter] += (
            counter.total
        )
    for device in problem.devices:
        if device.shareable:
            for capacity in device.capacity.values():
                totals["capacity", device.id.driver, capacity.name] += (
                    capacity.total
                )
        elif not device.consumes:
            totals["device", device.id.driver] += 1
    return totals


def free_totals(problem: Problem, ledger: Ledger) -> Amounts:
    """Return the free amount of each resource."""
    totals: Tally[Hashable] = Tally()
    for counter, free in zip(problem.counters, ledger.free, strict=True):
        totals["counter", counter.id.driver, counter.id.counter] += max(0, free)
    for device in problem.devices:
        driver = device.id.driver
        if device.shareable:
            if not ledger.is_free(device):
                continue
            for name in device.capacity:
                free_capacity = ledger.capacity_left(device, name)
                totals["capacity", driver, name] += max(0, free_capacity)
        elif not device.consumes:
            totals["device", driver] += ledger.is_free(device)
    return totals


# ----------------------------------------------------------------------------
# Scores: a demand goes to the node with the lowest, and to the first of those in search
# order.

Score = Callable[[Sequence[Claim], NodeIndex], int | None]
"""How little a node suits claims: the same for nodes in the same state. None if the claims do not fit there."""


@dataclass(frozen=True)
class ScoringContext:
    """A run as scores see it. ``attempt`` takes what claims need on a node, if it can."""

    problem: Problem
    ledger: SearchLedger
    states: ComponentStates
    offers: ComponentOffers
    attempt: Callable[[Sequence[Claim], NodeIndex], GrantsOfClaims | None]

    @contextmanager
    def trying(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> Iterator[frozenset[DeviceIndex] | None]:
        """Take what the claims need on a node, and give it back: the devices; None if they do not fit."""
        grants = self.attempt(claims, node)
        if grants is None:
            yield None
            return
        self.ledger.settle()
        yield frozenset(_devices(grants))
        for _, alternative, grant in served_by(claims, grants):
            self.ledger.release(grant.device, alternative)


Scoring = Callable[[ScoringContext], Score]
"""Sets up a score for a run."""


def least_left(context: ScoringContext) -> Score:
    """Best fit: the node with the least left, as the sum over its components (see `ComponentStates`).

    What the claims take is not subtracted: it is the same wherever they go.
    """
    states = context.states

    def free_part(claims: Sequence[Claim], node: NodeIndex) -> int | None:
        if not context.offers.could_serve(claims, node):
            return None
        return sum(states.left[state] for state, _ in states.ordered(node))

    return free_part


def least_fragmentation(context: ScoringContext) -> Score:
    """Fragmentation gradient descent: the node on which placing the claims adds the least expected fragmentation.

    Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
    Descent", USENIX ATC'23, section 4. How it is measured here: `ExpectedFragmentation`.
    """
    fragmentation = ExpectedFragmentation(
        context.offers, context.states, typical(context.problem)
    )

    def added(claims: Sequence[Claim], node: NodeIndex) -> int | None:
        if not context.offers.could_serve(claims, node):
            return None
        before = fragmentation.of(node)
        with context.trying(claims, node) as devices:
            if devices is None:
                return None
            return fragmentation.of(node, devices) - before

    return added


# ----------------------------------------------------------------------------
# The run: one pass over the demands, each to the node with the lowest score. A score
# belongs to a class of demands and a state of nodes, so it is worked out once for all
# of them. What happens on a node changes the state of that node alone: for the next
# demand only the states that have come up since the last one of its class are looked
# at.


@dataclass(slots=True)
class ScoreQueue:
    """The states of nodes for one class of demands, best first.

    Parameters
    ----------
    seen
        How many arrivals have been looked at.
    rated
        States that are in the queue, or that do not fit.
    scores
        A heap of the scores that there are.
    states
        By score.
    """

    seen: int = 0
    rated: set[int] = field(default_factory=set)
    scores: list[int] = field(default_factory=list)
    states: dict[int, set[int]] = field(default_factory=dict)

    def enter(self, state: int, score: int) -> None:
        """Add a state."""
        if score not in self.states:
            heappush(self.scores, score)
        self.states.setdefault(score, set()).add(state)

    def best(
        self, first: Callable[[int], NodeIndex | None]
    ) -> tuple[NodeIndex, int] | None:
        """The first node, and its state, of all with the best score; states without nodes are dropped."""
        while self.scores:
            states = self.states[self.scores[0]]
            first_nodes: dict[int, NodeIndex] = {}
            for state in states:
                node = first(state)
                if node is not None:
                    first_nodes[state] = node
            # A state that no node is in may come up again, and is rated then.
            self.rated -= states - first_nodes.keys()
            if first_nodes:
                self.states[self.scores[0]] = set(first_nodes)
                best_state = min(first_nodes, key=first_nodes.__getitem__)
                return first_nodes[best_state], best_state
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
        context = ScoringContext(
            problem, ledger, states, self._offers, self._try
        )
        self._score = self._scoring(context)
        self._queues: dict[Hashable, ScoreQueue] = {}

    def place(self, demand_index: DemandIndex) -> None:
        """Place a demand on the best node that can hold it, or note the last error met."""
        demand = self._demand(demand_index)
        claims = self._open_claims(demand)
        claim_class = self._claim_classes.of(claims)
        if claim_class is None:
            super().place(demand_index)
            return
        nodes = self._nodes(demand)
        if self._has_footprints:
            self._place_by_score(demand_index, claims, claim_class, nodes)
            return
        allowed = None if nodes is self._problem.all_nodes else frozenset(nodes)
        queue = ScoreQueue()
        # Who may go where others of the class may not needs a queue of its own.
        if len(claims) == len(demand.claims) and not demand.roles:
            queue = self._queues.setdefault((claim_class, demand.nodes), queue)
        self._place_by(queue, demand_index, claims, claim_class, allowed)

    def _place_by_score(
        self,
        demand: DemandIndex,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
        nodes: Iterable[NodeIndex],
    ) -> None:
        """Try one node after the other, the best first, where devices take something of nodes (KEP-5517).

        How much they take, and of what, is no part of the state of a node.
        """
        scored_nodes: list[tuple[int, NodeIndex]] = []
        for node in nodes:
            score = self._score(claims, node)
            if score is not None:
                scored_nodes.append((score, node))
        for _, node in sorted(scored_nodes):
            candidates = self._offers.candidates(claims, node)
            try:
                attempt = self._attempt_at(candidates, claims, claim_class)
                grants = self._checked(claims, attempt)
            except AllocationError as error:
                self.errors[demand] = error
                continue
            if grants is not None:
                self._settle(demand, node, claims, grants)
                return

    def _place_by(
        self,
        queue: ScoreQueue,
        demand: DemandIndex,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
        allowed: Container[int] | None,
    ) -> None:

        def first_in(state: int) -> NodeIndex | None:
            return self._census.first(state, allowed)

        self._update(queue, claims, allowed)
        failing: list[tuple[int, int]] = []
        while (best := queue.best(first_in)) is not None:
            node, state = best
            candidates = self._offers.candidates(claims, node)
            try:
                grants = self._attempt_at(candidates, claims, claim_class)
            except AllocationError as error:
                # The message is about these claims: the next ones get their own.
                self.errors[demand] = error
                failing.append((state, queue.scores[0]))
                grants = None
            if grants is not None:
                self._settle(demand, node, claims, grants)
                break
            queue.drop(state)
        for state, score in failing:
            queue.enter(state, score)

    def _update(
        self,
        queue: ScoreQueue,
        claims: Sequence[Claim],
        allowed: Container[int] | None,
    ) -> None:
        """Rate the states that have come up."""
        for state in self._census.arrivals[queue.seen :]:
            if state in queue.rated:
                continue
            node = self._census.first(state, allowed)
            if node is None:
                continue
            queue.rated.add(state)
            score = self._score(claims, node)
            if score is not None:
                queue.enter(state, score)
        queue.seen = len(self._census.arrivals)

    def _try(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> GrantsOfClaims | None:
        claim_class = self._claim_classes.of(claims)
        assert claim_class is not None
        candidates = self._offers.candidates(claims, node)
        try:
            return self._attempt_at(candidates, claims, claim_class)
        except AllocationError:
            return None

    def _settle(
        self,
        demand_index: DemandIndex,
        node: NodeIndex,
        claims: Sequence[Claim],
        grants: GrantsOfClaims,
    ) -> None:
        super()._settle(demand_index, node, claims, grants)
        self._census.changed(_devices(grants))

    def _release(self, placement: Placement) -> None:
        super()._release(placement)
        self._census.changed(_devices(placement.grants))


def _devices(grants: Sequence[Sequence[Grant]]) -> list[DeviceIndex]:
    return [grant.device for claim_grants in grants for grant in claim_grants]


# ----------------------------------------------------------------------------
# The table: the policies by name, and in which order they take demands.

Order = Callable[[Problem], Sequence[DemandIndex]]
"""Puts the demands of a problem, by index, in order."""


def as_given(problem: Problem) -> Sequence[DemandIndex]:
    """Return the demands in the scheduler's order: by priority, then by age."""
    return indices(problem.demands)


def _largest_first(problem: Problem) -> Sequence[DemandIndex]:
    """By priority; of equal priority the largest first, of equal size those that may go to fewer nodes."""
    sizes = Sizes(problem)

    def key(demand_index: DemandIndex) -> tuple[int, int, int]:
        demand = problem.demands[demand_index]
        return (
            -demand.priority,
            -sizes.of(demand),
            len(problem.candidate_nodes(demand)),
        )

    return sorted(as_given(problem), key=key)


def _densest_first(problem: Problem) -> Sequence[DemandIndex]:
    """The most weight per size first: the greedy order for the knapsack problem (Dantzig 1957)."""
    sizes = Sizes(problem)

    def density(demand_index: DemandIndex) -> Fraction:
        demand = problem.demands[demand_index]
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
            order=_largest_first,
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
            order=_densest_first,
            scoring=least_left,
        ),
    )
}


def way_of(choice: str | Policy) -> Mode | str | Policy:
    """Return the mode, or else the policy that a word names, or that the user gave.

    Raises
    ------
    ChoiceError
        The word stands for neither.
    """
    if not isinstance(choice, str):
        return choice
    if choice in tuple(Mode):
        return Mode(choice)
    if choice not in POLICIES:
        raise ChoiceError("mode", choice, dict.fromkeys((*Mode, *POLICIES)))
    return choice


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
            asking = AskingRun(problem, policy)
            order = order_of(problem, policy)
            return place_all(asking, problem, order, timings)
    chosen = POLICIES.get(policy)
    if chosen is None:
        raise ChoiceError("policy", policy, POLICIES)
    with phase(timings, policy):
        run = QuickRun(problem)
        if chosen.scoring is not None:
            run = ScoredRun(problem, chosen.scoring)
        return place_all(run, problem, chosen.order(problem), timings)
