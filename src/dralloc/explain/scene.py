"""A problem as one demand finds it, and small parts of it that answer what the whole would.

A demand goes to one node, and on that node only the devices matter that its requests could get. `Scene.part` cuts these
out, with what is left of them, so that a large cluster is asked node by node, and equal parts only once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dralloc.budget import Budget
from dralloc.errors import AllocationError
from dralloc.explain.offers import Offers
from dralloc.problem import Capacity, Charge, Demand, Device, Node, PoolAccess, Problem, Scalar, Usage
from dralloc.problem.holdings import ClaimLedger
from dralloc.problem.ledger import Scarcity, Shortage

__all__ = ["NO_LIFT", "Lift", "Part", "Scene", "alternatives_in"]


@dataclass(frozen=True, slots=True)
class Lift:
    """What does not count: counters and capacities, by driver and name, and compatibility groups, by driver.

    ``lenient``: whether a selector that fails on a device leaves it out, as in the optimal mode, instead of ending the
    attempt.
    """

    counters: frozenset[tuple[str, str]] = frozenset()
    capacities: frozenset[tuple[str, str]] = frozenset()
    groups: frozenset[str] = frozenset()
    lenient: bool = False

    @property
    def lifts_any(self) -> bool:
        """Whether anything does not count."""
        return bool(self.counters or self.capacities or self.groups)

    def covers(self, problem: Problem, device: Device, shortage: Shortage) -> bool:
        """Whether a shortage of a device does not count."""
        match shortage.scarcity, shortage.what:
            case Scarcity.COUNTER, int(counter):
                id_ = problem.counters[counter].id
                return (id_.driver, id_.counter) in self.counters
            case Scarcity.CAPACITY, str(name):
                return (device.id.driver, name) in self.capacities
            case Scarcity.COMPATIBILITY, _:
                return device.id.driver in self.groups
            case _:
                return False


NO_LIFT = Lift()

_MUCH = 10**30
"""More than there is of anything, in nanos."""


@dataclass(frozen=True)
class Part:
    """Some nodes of a scene as a problem of their own.

    ``devices``, ``nodes`` and ``counters`` are the indices in the whole problem.
    """

    problem: Problem
    devices: tuple[int, ...]
    nodes: tuple[int, ...]
    counters: tuple[int, ...]

    def signature(self) -> Hashable:
        """Parts with equal signatures give equal answers. Of attributes it only matters which values are equal."""
        problem, offers = self.problem, self.problem.eligibility
        in_use = problem.usage.compatibility
        values: dict[tuple[str, Scalar], int] = {}
        sets: dict[int, int] = {}
        slots: dict[int, int] = {}
        groups: dict[int, int] = {}
        devices = tuple(
            (
                offers.look(number),
                slots.setdefault(device.slot, len(slots)),
                groups.setdefault(device.group, len(groups)),
                device.shareable,
                device.consumes,
                device.nodes,
                device.binds_to_node,
                tuple(
                    (sets.setdefault(number, len(sets)), shared, in_use.get(number))
                    for number, shared in device.compatibility
                ),
                tuple(
                    (name, tuple(values.setdefault((name, value), len(values)) for value in sorted(carried, key=str)))
                    for name, carried in sorted(device.attributes.items())
                ),
                tuple((name, each.total, each.consumable) for name, each in device.capacity.items())
                if device.shareable
                else (),
            )
            for number, device in enumerate(problem.devices)
        )
        usage = problem.usage
        used = tuple(
            (slot in usage.held, usage.shares.get(slot, 0), tuple(sorted(usage.consumed.get(slot, {}).items())))
            for slot in slots
        )
        counters = tuple((counter.free, groups.get(counter.group, -1)) for counter in problem.counters)
        pools = tuple(tuple((pool.state, pool.devices) for pool in node.pools) for node in problem.nodes)
        return devices, used, counters, pools


@dataclass(frozen=True)
class Scene:
    """A problem with who holds what at the moment that is explained.

    Parameters
    ----------
    problem
        The whole problem; its usage and demands are not looked at.
    offers
        Who may serve which alternative.
    ledger
        What is held.
    budgets
        Caps, and what is used of what they are about.
    """

    problem: Problem
    offers: Offers
    ledger: ClaimLedger
    budgets: tuple[Budget, ...] = ()

    def relevant(self, node: int, alternatives: Sequence[int]) -> list[int]:
        """The devices offered to a node that some of the alternatives select, or fail on."""
        verdicts: dict[object, bool] = {}
        found = []
        for pool in self.problem.nodes[node].pools:
            for device, look in zip(pool.devices, self.offers.looks(pool.devices), strict=True):
                wanted = verdicts.get(look)
                if wanted is None:
                    selected = (self.offers.selects(each, device) is not False for each in alternatives)
                    wanted = verdicts[look] = any(selected)
                if wanted:
                    found.append(device)
        return found

    def part(self, nodes: Sequence[int], demands: Sequence[Demand], lift: Lift = NO_LIFT) -> Part:
        """The nodes with what the demands could get there. The demands' own nodes count within the part."""
        alternatives = alternatives_in(demands)
        return self.cut({node: self.relevant(node, alternatives) for node in nodes}, demands, lift)

    def cut(self, offered: Mapping[int, Sequence[int]], demands: Sequence[Demand], lift: Lift = NO_LIFT) -> Part:
        """The nodes with some of their devices, as `part` does it."""
        return _Cut(self, offered, lift).part(demands)


def alternatives_in(demands: Iterable[Demand]) -> list[int]:
    """The indices of all alternatives that demands ask for."""
    return [
        alternative.index
        for demand in demands
        for claim in demand.claims
        for request in claim.requests
        for alternative in request.alternatives
    ]


class _Cut:
    """Renumbers nodes, devices and counters for a part.

    What does not count is left out. Only where a cap is about it, or whoever draws on it must not come into use anyway,
    there is much of it instead.
    """

    def __init__(self, scene: Scene, offered: Mapping[int, Sequence[int]], lift: Lift) -> None:
        self.scene = scene
        self.lift = lift
        self.capped = {budget.resource for budget in scene.budgets}
        self.nodes = tuple(offered)
        self.offered = offered
        seen = dict.fromkeys(device for devices in offered.values() for device in devices)
        slots = dict.fromkeys(scene.problem.devices[device].slot for device in seen)
        others = (version for slot in slots for version in scene.problem.versions[slot])
        self.devices = tuple(dict.fromkeys((*seen, *others)))
        self.place = {device: number for number, device in enumerate(self.devices)}
        self.counters: dict[int, int] = {}

    def part(self, demands: Sequence[Demand]) -> Part:
        whole, ledger = self.scene.problem, self.scene.ledger
        devices = tuple(self._device(whole.devices[device]) for device in self.devices)
        eligibility = _Renumbered(self.scene.offers, self)
        slots = {device.slot for device in devices}
        problem = Problem(
            demands=tuple(demands),
            nodes=tuple(self._node(node) for node in self.nodes),
            devices=devices,
            counters=(),
            usage=Usage(
                held=frozenset(slots & ledger.held),
                shares={slot: ledger.shares[slot] for slot in slots if slot in ledger.shares},
                consumed={slot: ledger.consumed[slot] for slot in slots if slot in ledger.consumed},
                compatibility=ledger.common_groups(),
            ),
            eligibility=eligibility,
            features=whole.features,
            budgets=self.scene.budgets,
        )
        for alternative in alternatives_in(demands):
            for device in range(len(devices)):
                eligibility.charge(alternative, device)
        for group in {device.group for device in devices if device.consumes}:
            for number in self._closing(group):
                self.counter(number)
        counters = tuple(
            replace(whole.counters[number], free=_MUCH if self._is_lifted(number) else ledger.free[number])
            for number in self.counters
        )
        return Part(replace(problem, counters=counters), self.devices, self.nodes, tuple(self.counters))

    def _device(self, device: Device) -> Device:
        reach, nodes = device.nodes, None
        if reach is not None:
            nodes = frozenset(place for place, node in enumerate(self.nodes) if node in reach)
        return replace(
            device,
            consumes=self.counted(device.consumes),
            capacity=self._capacity(device),
            nodes=nodes,
            compatibility=() if device.id.driver in self.lift.groups else device.compatibility,
        )

    def _node(self, node: int) -> Node:
        whole = self.scene.problem.nodes[node]
        kept = set(self.offered[node])
        pools = tuple(
            PoolAccess(pool.id, pool.state, tuple(self.place[one] for one in pool.devices if one in kept), pool.reason)
            for pool in whole.pools
        )
        return Node(whole.name, pools)

    def counted(self, draws: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """What is drawn from counters of the part."""
        return tuple((self.counter(number), amount) for number, amount in draws if self._counts(number))

    def _counts(self, number: int) -> bool:
        counter = self.scene.problem.counters[number]
        return counter.id.counter in self.capped or bool(self._closing(counter.group)) or not self._is_lifted(number)

    def _closing(self, group: int) -> list[int]:
        """The overdrawn counters that keep what consumes counters of a group from coming into use."""
        return [number for number in self.scene.ledger.overdrawn(group) if not self._is_lifted(number)]

    def counts(self, driver: str, capacity: str) -> bool:
        """Whether what is taken of a capacity matters."""
        return capacity in self.capped or (driver, capacity) not in self.lift.capacities

    def _capacity(self, device: Device) -> Mapping[str, Capacity]:
        lifted = {name for driver, name in self.lift.capacities if driver == device.id.driver and name in self.capped}
        if not device.shareable or not lifted:
            return device.capacity
        return {
            name: replace(known, total=_MUCH) if name in lifted else known for name, known in device.capacity.items()
        }

    def _is_lifted(self, number: int) -> bool:
        id_ = self.scene.problem.counters[number].id
        return (id_.driver, id_.counter) in self.lift.counters

    def counter(self, number: int) -> int:
        """The number of a counter in the part."""
        return self.counters.setdefault(number, len(self.counters))


class _Renumbered:
    """The eligibility of a part."""

    def __init__(self, offers: Offers, cut: _Cut) -> None:
        self._offers = offers
        self._devices = cut.devices
        self._cut = cut
        self._lift = cut.lift
        self._charges: dict[tuple[int, int], Charge | None] = {}

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        verdict = self._offers.selects(alternative, self._devices[device])
        return verdict if isinstance(verdict, bool) or not self._lift.lenient else False

    def admits(self, alternative: int, device: int) -> bool:
        return self._offers.admits(alternative, self._devices[device])

    def charge(self, alternative: int, device: int) -> Charge | None:
        key = alternative, device
        if key not in self._charges:
            charge = self._offers.charge(alternative, self._devices[device])
            self._charges[key] = None if charge is None else self._here(charge, self._devices[device])
        return self._charges[key]

    def _here(self, charge: Charge, device: int) -> Charge:
        if not charge.capacity and not charge.counters:
            return charge
        driver = self._cut.scene.problem.devices[device].id.driver
        return Charge(
            tuple((name, amount) for name, amount in charge.capacity if self._cut.counts(driver, name)),
            self._cut.counted(charge.counters),
            charge.recorded,
        )

    def kind(self, alternative: int) -> Hashable:
        return alternative

    def look(self, device: int) -> Hashable:
        return self._offers.look(self._devices[device])
