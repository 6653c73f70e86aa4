"""Nodes that are equal to a few demands: what fits on one of them fits on every other.

Two nodes are equivalent if their devices that could serve the demands are equal one by one, in search order: they serve
the same requests at the same charge, as much is left of them, and counters and compared attribute values recur in the
same pattern (see `dralloc.problem.equivalence`). The names of devices, counters and values do not matter, so the n-th
device of the one stands for the n-th of the other in any answer.

That is only true of *isolated* nodes, none of whose devices, and none of whose counters, another node reaches. Devices
that choose their own nodes are on no isolated node.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from dralloc.objects.errors import AllocationError
from dralloc.problem.equivalence import part_key
from dralloc.problem.ledger import Ledger
from dralloc.problem.problem import Problem
from dralloc.problem.requests import Charge, Demand
from dralloc.problem.subproblem import places
from dralloc.problem.supply import PoolState

__all__ = ["NodeClasses", "equivalent_nodes"]

_NOTHING = Charge()


@dataclass(frozen=True, slots=True)
class NodeClasses:
    """Classes of equivalent nodes.

    Parameters
    ----------
    groups
        The nodes of each class, in search order: the first stands for the others. Nodes where nothing can happen to the
        demands are in none.
    offers
        For each class a key of what its nodes have, whoever may go there.
    """

    groups: tuple[tuple[int, ...], ...]
    offers: tuple[Hashable, ...]


def equivalent_nodes(problem: Problem, demands: Sequence[Demand]) -> NodeClasses | None:
    """Group the nodes by what the demands see of them; None if they are not isolated: rules between pods tie them."""
    if any(demand.roles for demand in demands):
        return None
    survey = _Survey(problem, demands)
    groups: dict[tuple[Hashable, Hashable], list[int]] = {}
    for node in problem.all_nodes:
        allowed = survey.allowed(node)
        if any(allowed):
            found = (
                (device, survey.answers(device))
                for device in problem.nodes[node].devices()
            )
            devices = [
                (device, answers)
                for device, answers in found
                if answers.uses or answers.failing
            ]
            if not survey.is_isolated(devices):
                return None
            offer = survey.offer(node, devices)
            if offer is not None:
                groups.setdefault((allowed, offer), []).append(node)
    return NodeClasses(
        tuple(map(tuple, groups.values())), tuple(offer for _, offer in groups)
    )


@dataclass(frozen=True, slots=True)
class _Answers:
    """What the alternatives make of the devices with one key: by position whether it is admitted and what it takes."""

    uses: tuple[tuple[int, bool, Charge], ...]
    failing: bool
    counters: tuple[int, ...]
    """What is charged by request."""


class _Survey:
    def __init__(self, problem: Problem, demands: Sequence[Demand]) -> None:
        self.problem = problem
        self.nodes = [
            None if demand.nodes is None else frozenset(demand.nodes)
            for demand in demands
        ]
        self.alternatives = [one for demand in demands for one in demand.alternatives()]
        self.asks_for_all = any(
            alternative.count is None for alternative in self.alternatives
        )
        self.considers_all = self.asks_for_all or any(
            alternative.admin for alternative in self.alternatives
        )
        self.ledger = Ledger(problem)
        self.device_key = problem.eligibility.device_key
        self.known: dict[Hashable, _Answers] = {}
        self.numbers: dict[Hashable, int] = {}
        self.profiles: dict[tuple[int, ...], int] = {}
        self.seen: set[Hashable] = set()

    def allowed(self, node: int) -> tuple[bool, ...]:
        """Which demands may go to the node."""
        return tuple(nodes is None or node in nodes for nodes in self.nodes)

    def is_isolated(self, devices: Sequence[tuple[int, _Answers]]) -> bool:
        """Whether no node before reaches the same devices, counters or sets, and no device has several versions."""
        here: set[Hashable] = set()
        for number, answers in devices:
            device = self.problem.devices[number]
            if device.nodes is not None or device.slot in self.problem.several_versions:
                return False
            here.update(device.resources)
            here.update([("counter", counter) for counter in answers.counters])
        isolated = self.seen.isdisjoint(here)
        self.seen |= here
        return isolated

    def offer(
        self, node: int, devices: Sequence[tuple[int, _Answers]]
    ) -> Hashable | None:
        """A key of what the node has for the demands; None if nothing can happen there."""
        pools = self.problem.nodes[node].pools
        # Where a pool cannot be used, a request for all devices is an error, whatever there is.
        closed = self.asks_for_all and any(
            pool.state is not PoolState.USABLE for pool in pools
        )
        usable = [
            (device, answers)
            for device, answers in devices
            if self._is_usable(device, answers)
        ]
        if not usable and not closed:
            return None
        counters = dict.fromkeys(
            counter
            for device, answers in usable
            for counter in (
                *[each for each, _ in self.problem.devices[device].consumes],
                *answers.counters,
            )
        )
        numbers = [device for device, _ in usable]
        place_of = places(counters)
        return closed, part_key(
            self.problem,
            [node],
            numbers,
            counters,
            lambda device: self.profile(device, place_of),
        )

    def _is_usable(self, number: int, answers: _Answers) -> bool:
        if self.considers_all or answers.failing:
            return True
        device = self.problem.devices[number]
        return self.ledger.is_free(device) and self.ledger.has_counters(
            device, _NOTHING
        )

    def answers(self, device: int) -> _Answers:
        """What the alternatives make of a device."""
        key = self.device_key(device)
        if key not in self.known:
            self.known[key] = self._ask(device)
        return self.known[key]

    def _ask(self, device: int) -> _Answers:
        offers, uses, failing = self.problem.eligibility, [], False
        for position, alternative in enumerate(self.alternatives):
            selected = offers.selects(alternative.index, device)
            failing |= isinstance(selected, AllocationError)
            charge = (
                offers.charge(alternative.index, device) if selected is True else None
            )
            if charge is not None:
                uses.append(
                    (position, offers.admits(alternative.index, device), charge)
                )
        counters = dict.fromkeys(
            counter for _, _, charge in uses for counter, _ in charge.counters
        )
        return _Answers(tuple(uses), failing, tuple(counters))

    def profile(self, device: int, counters: dict[int, int]) -> Hashable:
        """Equal for devices of which the alternatives make the same; counters by their number in the part."""
        answers = self.answers(device)
        key = id(answers), *[counters[counter] for counter in answers.counters]
        if key not in self.profiles:
            uses = tuple(
                (
                    position,
                    admits,
                    charge.capacity,
                    tuple((counters[each], amount) for each, amount in charge.counters),
                )
                for position, admits, charge in answers.uses
            )
            self.profiles[key] = self.numbers.setdefault(
                (uses, answers.failing), len(self.numbers)
            )
        return self.profiles[key]
