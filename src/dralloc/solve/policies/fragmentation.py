"""Expected fragmentation: how much of what is left the next demand is expected to be unable to use.

A node falls into components, devices that share counters or one device by itself. Equal components in the same state
offer the same, so that what an alternative could get is worked out once per state, and the expectation is a sum over
states.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import (
    Callable,
    Collection,
    Container,
    Hashable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass
from math import gcd
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.problem import (
    Alternative,
    AlternativeIndex,
    Charge,
    Claim,
    CounterIndex,
    Device,
    DeviceIndex,
    Node,
    NodeIndex,
    PoolState,
    Problem,
    indices,
    numbered,
)
from dralloc.problem.equivalence import device_traits
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    CandidateList,
    ClaimClass,
    ClaimClasses,
    NodeCandidates,
    Place,
    places,
)
from dralloc.solve.first_fit.search import SearchLedger

__all__ = [
    "Census",
    "ComponentOffers",
    "ComponentStates",
    "ExpectedFragmentation",
    "Mix",
    "NodeParts",
    "typical",
]

# ----------------------------------------------------------------------------
# Components, up to names: devices connected by common counters, or one device by
# itself.


@dataclass(frozen=True, slots=True)
class NodeComponent:
    """A part of a node: a GPU with its partitions, a network adapter, a host.

    Parameters
    ----------
    key
        Equal for components that can be exchanged as long as they are in the same state, as their devices are equal one
        by one (see `dralloc.problem.equivalence.device_traits`).
    devices
        Those that the node reaches, in search order.
    counters
        All that its devices can consume.
    groups
        The groups whose overdrawn counters close some of its devices.
    """

    key: int
    devices: tuple[DeviceIndex, ...]
    counters: tuple[CounterIndex, ...]
    groups: tuple[int, ...]


class NodeComponents:
    """Takes nodes apart."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._keys: dict[Hashable, int] = {}
        self._sets: dict[Hashable, int] = {}
        self._set_of = [
            self._sets.setdefault(counter.id[:3], len(self._sets))
            for counter in problem.counters
        ]
        # One alternative for each key: the others are charged the same.
        self._representatives: dict[Hashable, AlternativeIndex] = {}
        for demand in problem.demands:
            for alternative in demand.alternatives():
                key = problem.eligibility.request_key(alternative.index)
                self._representatives[key] = alternative.index
        self._by_request: dict[Hashable, tuple[CounterIndex, ...]] = {}

    def on(self, node: NodeIndex) -> tuple[NodeComponent, ...]:
        """The components of a node."""
        owners: dict[Hashable, list[DeviceIndex]] = {}
        for device in self._problem.nodes[node].devices():
            if not self._problem.on_node(device, node):
                continue
            first_tie, *more_ties = dict.fromkeys(self._ties(device))
            component = owners.setdefault(first_tie, [])
            for tie in more_ties:
                _join(owners, tie, component)
            component.append(device)
        listed = {id(members): sorted(members) for members in owners.values()}
        return tuple(
            self._component(members) for members in sorted(listed.values())
        )

    def _ties(self, device: DeviceIndex) -> Iterator[Hashable]:
        """Yield the resources that tie a device to others: counter sets, or nothing but itself."""
        charged = self._charged_by_request(device)
        by_request = [("counter", counter) for counter in charged]
        for sort, index in (
            *by_request,
            *self._problem.devices[device].resources,
        ):
            if sort == "counter":
                yield "published set", self._set_of[index]
            else:
                yield sort, index

    def _counters(self, device: DeviceIndex) -> list[CounterIndex]:
        fixed = [
            counter for counter, _ in self._problem.devices[device].consumes
        ]
        return [*fixed, *self._charged_by_request(device)]

    def _charged_by_request(
        self, device: DeviceIndex
    ) -> tuple[CounterIndex, ...]:
        """The counters that some request makes the device consume (KEP-5941)."""
        device_key = self._problem.eligibility.device_key(device)
        if device_key not in self._by_request:
            counters: dict[CounterIndex, None] = {}
            for alternative in self._representatives.values():
                charge = self._problem.eligibility.charge(alternative, device)
                if charge is not None:
                    counters.update(
                        (counter, None) for counter, _ in charge.counters
                    )
            self._by_request[device_key] = tuple(counters)
        return self._by_request[device_key]

    def _component(self, members: Sequence[DeviceIndex]) -> NodeComponent:
        devices = self._problem.devices
        counters: dict[CounterIndex, None] = {}
        for device in members:
            counters.update(dict.fromkeys(self._counters(device)))
        # Counters by their order in the component, so that names do not matter.
        local_numbers: dict[tuple[str, int], int] = {
            ("counter", counter): position
            for position, counter in enumerate(counters)
        }

        def local_number(sort: str, index: int) -> int:
            return local_numbers.setdefault((sort, index), len(local_numbers))

        key = (
            tuple([self._traits(device, local_number) for device in members]),
            tuple(
                [self._problem.counters[counter].total for counter in counters]
            ),
        )
        groups = dict.fromkeys(
            devices[device].group
            for device in members
            if devices[device].consumes
        )
        key_number = self._keys.setdefault(key, len(self._keys))
        return NodeComponent(
            key_number, tuple(members), tuple(counters), tuple(groups)
        )

    def _traits(
        self, index: DeviceIndex, number_of: Callable[[str, int], int]
    ) -> Hashable:
        """All that matters about a device and does not change."""
        device = self._problem.devices[index]
        return (
            self._problem.eligibility.device_key(index),
            device_traits(device, number_of),
            tuple(sorted(device.attributes.items()))
            if device.attributes
            else (),
            device.slot
            if device.slot in self._problem.several_versions
            else None,
        )


def _join(
    owners: dict[Hashable, list[DeviceIndex]],
    tie: Hashable,
    component: list[DeviceIndex],
) -> None:
    """Make the component the owner of the tie, with all that its owner had."""
    absorbed = owners.get(tie, component)
    if absorbed is not component:
        component += absorbed
        for owned_tie, members in owners.items():
            if members is absorbed:
                owners[owned_tie] = component
    owners[tie] = component


# ----------------------------------------------------------------------------
# States of components and of nodes, as numbers, and which nodes are in which. What is
# in the same state behaves the same, wherever it is. A node's state says nothing about
# the order of its components. That is enough for a scan of the components in the order
# of their states (`ComponentStates.ordered`): on two nodes in one state it meets the
# same things in one order.


def _unusable_pools(node: Node) -> tuple[PoolState, ...]:
    return tuple(
        pool.state for pool in node.pools if pool.state is not PoolState.USABLE
    )


_WHOLE: Final = 10**6
"""What is left of a component that is not in use. Shares are in such parts, rounded down."""


class ComponentStates:
    """Reads from the ledger in which state components and nodes are.

    Parameters
    ----------
    problem, ledger
        What there is, and what is left of it.
    """

    def __init__(self, problem: Problem, ledger: SearchLedger) -> None:
        self._problem = problem
        self._ledger = ledger
        take_apart = NodeComponents(problem).on
        self.components = [take_apart(node) for node in indices(problem.nodes)]
        self._pools = [_unusable_pools(node) for node in problem.nodes]
        self._numbers: dict[Hashable, int] = {}
        self._ordered: dict[int, list[tuple[int, NodeComponent]]] = {}
        self._keys: list[tuple[Any, ...]] = []
        self.left: list[int] = []
        """By the number of a component's state: the part of the component that is left."""
        self._nodes: dict[Hashable, int] = {}

    def of_node(self, node: NodeIndex) -> int:
        """The number of the state in which a node is."""
        self._ordered.pop(node, None)
        components = sorted(state for state, _ in self.ordered(node))
        return self._nodes.setdefault(
            (self._pools[node], *components), len(self._nodes)
        )

    def ordered(self, node: NodeIndex) -> Sequence[tuple[int, NodeComponent]]:
        """The components of a node with their states when `of_node` was asked last; those with the least left first."""
        if node not in self._ordered:
            self._ordered[node] = [
                (self.of_component(component), component)
                for component in self.components[node]
            ]
            self._ordered[node].sort(key=self._rank)
        return self._ordered[node]

    def _rank(
        self, entry: tuple[int, NodeComponent]
    ) -> tuple[int, tuple[Any, ...]]:
        state, _ = entry
        return self.left[state], self._keys[state]

    def after(
        self, node: NodeIndex, devices: Collection[DeviceIndex]
    ) -> Sequence[tuple[int, NodeComponent]]:
        """The components of a node with their states, with some devices taken since it was ordered."""
        if self._problem.several_versions:
            return [
                (self.of_component(component), component)
                for component in self.components[node]
            ]
        components: list[tuple[int, NodeComponent]] = []
        for state, component in self.ordered(node):
            if any(device in devices for device in component.devices):
                state = self.of_component(component)  # noqa: PLW2901
            components.append((state, component))
        return components

    def of_component(self, component: NodeComponent) -> int:
        """The number of the state in which a component is now."""
        ledger, devices = self._ledger, self._problem.devices
        uses: list[Hashable] = []
        for index in component.devices:
            device = devices[index]
            if device.shareable:
                uses.append(
                    (not ledger.is_free(device), ledger.is_open(device))
                )
                uses += (
                    ledger.capacity_left(device, name)
                    for name in device.capacity
                )
            else:
                uses.append(not ledger.is_free(device))
        counters = [ledger.free[index] for index in component.counters]
        closed = [ledger.is_overdrawn(group) for group in component.groups]
        key = component.key, *uses, *counters, *closed
        state = self._numbers.get(key)
        if state is None:
            state = self._numbers[key] = len(self.left)
            self._keys.append(key)
            self.left.append(self._left(component))
        return state

    def _left(self, component: NodeComponent) -> int:
        """The part of a component that is left: of its counters, or of its device's capacities, on average."""
        if component.counters:
            counters = self._problem.counters
            parts = [
                (self._ledger.free[index], counters[index].total)
                for index in component.counters
            ]
            return _average(parts)
        device = self._problem.devices[component.devices[0]]
        if not self._ledger.is_free(device):
            return 0
        if not device.shareable:
            return _WHOLE
        parts = [
            (self._ledger.capacity_left(device, capacity.name), capacity.total)
            for capacity in device.capacity.values()
            if capacity.consumable
        ]
        return _average(parts)


def _average(parts: Sequence[tuple[int, int]]) -> int:
    shares = [max(free, 0) * _WHOLE // total for free, total in parts if total]
    if not shares:
        return _WHOLE
    return sum(shares) // len(shares)


class Census:
    """Counts nodes by state, and keeps up with what is taken.

    ``arrivals`` lists the states that nodes came into, in the order of events.
    """

    def __init__(self, problem: Problem, states: ComponentStates) -> None:
        self._problem = problem
        self._states = states
        self._of: list[int] = []
        self._members: dict[int, list[NodeIndex]] = defaultdict(list)
        self.arrivals: list[int] = []
        self._seeing: dict[int, list[NodeIndex]] = defaultdict(list)
        for node_index, node in numbered(problem.nodes):
            for group in {
                problem.devices[device].group for device in node.devices()
            }:
                self._seeing[group].append(node_index)
            self._of.append(self._enter(node_index))

    def first(
        self, state: int, allowed: Container[int] | None
    ) -> NodeIndex | None:
        """The first node in a state, of all or of those that are allowed."""
        members = self._members[state]
        if allowed is None:
            return members[0] if members else None
        return next((node for node in members if node in allowed), None)

    def changed(self, devices: list[DeviceIndex]) -> None:
        """Some devices were taken or given back: look again at every node that could tell."""
        problem = self._problem
        slots = {problem.devices[device].slot for device in devices}
        affected = list(devices)
        for slot in slots & problem.several_versions:
            affected += problem.versions[slot]
        nodes: set[NodeIndex] = set()
        for group in {problem.devices[device].group for device in affected}:
            nodes.update(self._seeing[group])
        for node in sorted(nodes):
            before = self._of[node]
            members = self._members[before]
            del members[bisect_left(members, node)]
            self._of[node] = self._enter(node)

    def _enter(self, node: NodeIndex) -> int:
        state = self._states.of_node(node)
        insort(self._members[state], node)
        self.arrivals.append(state)
        return state


# ----------------------------------------------------------------------------
# Offers: what the components of a node could give to each alternative, looked at alone.

Integers = NDArray[np.int64]


class ComponentOffers:
    """Answers from the ledger; what was found for a component in one state holds for all components in it."""

    def __init__(
        self,
        problem: Problem,
        ledger: SearchLedger,
        states: ComponentStates,
        index: CandidateIndex,
    ) -> None:
        self._problem = problem
        self._ledger = ledger
        self._states = states
        self._index = index
        self._counts: dict[Hashable, dict[int, int]] = defaultdict(dict)
        self._fits: dict[int, Callable[[Device], Integers]] = {}

    def column(self, alternative: Alternative) -> Hashable:
        """Equal for alternatives that are offered the same."""
        request_key = self._problem.eligibility.request_key(alternative.index)
        return request_key, alternative.admin

    def count(
        self, alternative: Alternative, state: int, component: NodeComponent
    ) -> int:
        """Return how many devices of a component, which is in that state now, the alternative could have."""
        counts = self._counts[self.column(alternative)]
        if state not in counts:
            counts[state] = self._count(alternative, component)
        return counts[state]

    def _count(self, alternative: Alternative, component: NodeComponent) -> int:
        return sum(
            [self._is_free(alternative, device) for device in component.devices]
        )

    def counts(
        self, alternatives: Sequence[Alternative], component: NodeComponent
    ) -> Integers:
        """Return how many devices of a component each of the alternatives, always the same ones, could have now."""
        device = self._problem.devices[component.devices[0]]
        dedicated = (
            len(component.devices) > 1
            or component.counters
            or not device.shareable
        )
        if dedicated or not self._ledger.is_free(device):
            counts = [
                self._count(alternative, component)
                for alternative in alternatives
            ]
            return np.array(counts, dtype=np.int64)
        if component.key not in self._fits:
            self._fits[component.key] = self._fit(
                alternatives, component.devices[0]
            )
        return self._fits[component.key](device)

    def _fit(
        self, alternatives: Sequence[Alternative], device_index: DeviceIndex
    ) -> Callable[[Device], Integers]:
        """Tells of devices that equal this one, which is shared and consumes no counters, who could have them now."""
        served = np.array(
            [
                self._accepts(alternative, device_index)
                for alternative in alternatives
            ]
        )
        charges = [
            self._problem.eligibility.charge(alternative.index, device_index)
            or Charge()
            for alternative in alternatives
        ]
        fits: list[tuple[str, int, NDArray[np.int64]]] = []
        for name in self._problem.devices[device_index].capacity:
            amounts = [dict(charge.capacity).get(name, 0) for charge in charges]
            step = gcd(*amounts) or 1
            # What does not fit 64 bits, numpy keeps as exact integers of Python.
            fits.append(
                (name, step, np.array([amount // step for amount in amounts]))
            )

        def counts_now(device: Device) -> Integers:
            fitting = served
            for name, step, amounts in fits:
                free_steps = self._ledger.capacity_left(device, name) // step
                fitting = fitting & (amounts <= free_steps)
            return fitting.astype(np.int64)

        return counts_now

    def could_serve(self, claims: Sequence[Claim], node: NodeIndex) -> bool:
        """Whether a node could serve each request by itself: if not, it cannot serve the claims."""
        components = self._states.ordered(node)

        def is_offered(alternative: Alternative) -> bool:
            counts = [
                self.count(alternative, state, component)
                for state, component in components
            ]
            return sum(counts) >= (alternative.count or 1)

        for claim in claims:
            for request in claim.requests:
                if not any(map(is_offered, request.alternatives)):
                    return False
        return True

    def candidates(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> NodeCandidates:
        """The node as the claims see it, without devices on which a selector fails: those with the least left first."""
        devices: list[DeviceIndex] = []
        for _, component in self._states.ordered(node):
            devices += component.devices
        lists: dict[Place, CandidateList] = {}
        for location, alternative in places(claims):
            if alternative.count is not None:
                accepted = [
                    device
                    for device in devices
                    if self._accepts(alternative, device)
                ]
                lists[location] = CandidateList(accepted, frozenset())
        return NodeCandidates(node, lists)

    def _accepts(self, alternative: Alternative, device: DeviceIndex) -> bool:
        return self._index.serves(alternative, device) is True

    def _is_free(
        self, alternative: Alternative, device_index: DeviceIndex
    ) -> bool:
        if not self._accepts(alternative, device_index):
            return False
        charge = self._problem.eligibility.charge(
            alternative.index, device_index
        )
        if charge is None:
            return False
        device = self._problem.devices[device_index]
        return self._ledger.fits(device, charge, admin=alternative.admin)


# ----------------------------------------------------------------------------
# Expected fragmentation. Weng et al. (ATC'23, section 3) measure it in GPUs: a task
# that does not fit on a node can use nothing of what is left there, one that does fit
# can use the GPUs with enough left for it; the rest is fragmented for the task, and the
# mean over the mix of tasks is the expected fragmentation of the node. Here components
# take the place of GPUs, each counts for the part of it that is left, a component can
# be used if it has a device for some request of the demand, and a demand is taken to
# fit if each of its requests does.

_MOST_CLASSES: Final = 256
"""Classes of demands that are enough to know the mix; the most frequent ones."""

Mix = Sequence[tuple[Sequence[Claim], int]]
"""Claims, and how often demands ask for such."""


def typical(problem: Problem) -> Mix:
    """The mix of all demands of a problem."""
    classes = ClaimClasses(problem)
    tally: Tally[ClaimClass] = Tally()
    examples: dict[ClaimClass, Sequence[Claim]] = {}
    for demand in problem.demands:
        claim_class = classes.of(demand.claims)
        if claim_class is not None and all(
            claim.requests for claim in demand.claims
        ):
            tally[claim_class] += 1
            examples.setdefault(claim_class, demand.claims)
    return [
        (examples[claim_class], count)
        for claim_class, count in tally.most_common(_MOST_CLASSES)
    ]


class NodeParts(NamedTuple):
    """The free part of a node, and how each class of demands of the mix could use it.

    Parameters
    ----------
    left
        All that is left, in millionths of a component.
    usable
        By class, what is left of components that have a device for some request of it.
    fits
        By class, whether each of its requests has devices enough.
    """

    left: int
    usable: Integers
    fits: NDArray[np.bool_]


class ExpectedFragmentation:
    """Measures nodes. What was found for a component or a node in one state is kept."""

    def __init__(
        self, offers: ComponentOffers, states: ComponentStates, mix: Mix
    ) -> None:
        self._offers = offers
        self._states = states
        self._columns: dict[Hashable, tuple[int, Alternative]] = {}
        column_of: list[int] = []
        need: list[int] = []
        requests: list[int] = []
        firsts: list[tuple[int, int]] = []
        for claims, _ in mix:
            firsts.append((len(need), len(requests)))
            for request in (
                request for claim in claims for request in claim.requests
            ):
                requests.append(len(need))
                for alternative in request.alternatives:
                    column, _ = self._columns.setdefault(
                        offers.column(alternative),
                        (len(self._columns), alternative),
                    )
                    column_of.append(column)
                    need.append(alternative.count or 1)
        # The alternatives of all classes stand in one row; requests and classes are
        # known by the position of their first one, as numpy's ``reduceat`` wants it.
        self._column_of = np.array(column_of, dtype=np.intp)
        self._need = np.array(need, dtype=np.int64)
        self._requests = np.array(requests, dtype=np.intp)
        self._first_of_class = np.array(firsts, dtype=np.intp).reshape(-1, 2)
        popularity = [count for _, count in mix]
        self._popularity: Integers = np.array(popularity, dtype=np.int64)
        self._offered: dict[int, tuple[Integers, Integers]] = {}
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, node: NodeIndex, devices: Collection[DeviceIndex] = ()) -> int:
        """The expected fragmentation of a node, after some devices were taken there.

        Returns
        -------
        int
            The sum over all demands of the mix, in millionths of a component.
        """
        components = self._states.after(node, devices)
        key = tuple(sorted([state for state, _ in components]))
        if key not in self._known:
            self._known[key] = self._measure(components)
        return self._known[key]

    def parts(self, node: NodeIndex) -> NodeParts | None:
        """Return the free part of a node for each class; None if it has no devices, or if no class asks for any."""
        return self._parts(self._states.after(node, ()))

    def _measure(self, components: Sequence[tuple[int, NodeComponent]]) -> int:
        """For each demand all that is left, less what the demand could use of it."""
        parts = self._parts(components)
        if parts is None:
            return 0
        used = int(self._popularity @ (parts.usable * parts.fits))
        return int(self._popularity.sum()) * parts.left - used

    def _parts(
        self, components: Sequence[tuple[int, NodeComponent]]
    ) -> NodeParts | None:
        free_parts = sum([self._states.left[state] for state, _ in components])
        if not components or not len(self._popularity):
            return None
        offers = [
            self._component(state, component) for state, component in components
        ]
        counts = sum(counts for counts, _ in offers)
        usable = np.add.reduce([usable for _, usable in offers])
        alternative_fits = np.take(counts, self._column_of) >= self._need
        request_fits = np.logical_or.reduceat(alternative_fits, self._requests)
        class_fits = np.logical_and.reduceat(
            request_fits, self._first_of_class[:, 1]
        )
        return NodeParts(free_parts, usable, class_fits)

    def _component(
        self, state: int, component: NodeComponent
    ) -> tuple[Integers, Integers]:
        """Return the number of devices that a component offers for each column, and how each class could use it."""
        if state not in self._offered:
            alternatives = [
                alternative for _, alternative in self._columns.values()
            ]
            counts = self._offers.counts(alternatives, component)
            usable = np.logical_or.reduceat(
                counts[self._column_of] > 0, self._first_of_class[:, 0]
            )
            self._offered[state] = counts, usable * self._states.left[state]
        return self._offered[state]
