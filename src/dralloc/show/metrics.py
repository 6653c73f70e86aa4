"""Metrics: an answer's use of devices, nodes, counters and capacities, and the ranks of its alternatives."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import add

from dralloc.objects.answer import Nanos
from dralloc.objects.notebook import Brief
from dralloc.objects.quantity import NANOS
from dralloc.problem import Problem
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import (
    Placement,
    Solution,
    charged_grants,
    grants_of,
    spent,
)
from dralloc.problem.supply import NODE_DRIVER

__all__ = ["Metrics", "Spending", "Utilisation", "measure"]


@dataclass(frozen=True, slots=True)
class Spending:
    """The use of a namespace of something that is capped or to be shared fairly; amounts in nanos.

    ``most`` is the cap, None if there is none; ``before`` is what claims held before anything was placed.
    """

    namespace: str
    resource: str
    total: Nanos
    before: Nanos
    used: Nanos
    most: Nanos | None = None

    @property
    def exceeded(self) -> bool:
        """Whether it is more than the cap allows."""
        return self.most is not None and self.used > self.most


@dataclass(frozen=True, slots=True)
class Utilisation:
    """The use of whole devices, of counters, or of capacities of one name that a driver publishes.

    Amounts are in nanos, those of devices, too; ``before`` is what claims held before anything was placed.
    """

    kind: str
    driver: str
    name: str
    total: int
    before: int
    used: int

    @property
    def title(self) -> str:
        """The name that tables show: of a product, a counter or a capacity, with the driver."""
        if self.kind == "devices":
            return f"{self.name or self.kind} ({self.driver})"
        return f"{self.kind} {self.name} ({self.driver})"

    @property
    def share_before(self) -> float:
        """The part that was in use before."""
        return self.before / self.total if self.total else 0.0

    @property
    def share(self) -> float:
        """The part that is in use, 0 to 1; 0 if there is nothing of it."""
        return self.used / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Metrics(Brief):
    """Figures of one answer.

    Parameters
    ----------
    placed
        Placed demands.
    utilisation
        Whole devices by driver and product, then counters, then capacities of shareable devices, by driver and name.
    spending
        What namespaces use, where there are caps or fairness.
    """

    placed: int
    weight: int
    """Sum of the weights of what is placed."""
    devices: int
    """Devices that at least one new allocation uses."""
    nodes: int
    """Nodes with at least one placement."""
    ranks: tuple[int, ...]
    """How many requests got their first alternative, their second, and so on."""
    utilisation: tuple[Utilisation, ...]
    spending: tuple[Spending, ...] = ()


def measure(
    problem: Problem, solution: Solution, products: Sequence[str] = ()
) -> Metrics:
    """Measure an answer of a problem.

    Parameters
    ----------
    products
        What each device is called; without them, all whole devices of a driver are counted together.
    """
    placements, ledger = solution.placements, Ledger(problem)
    rank_of = {
        (claim.key, grant.request): served.rank
        for claim, served, grant in grants_of(problem, placements)
    }
    ranks, opened = Tally(rank_of.values()), set[int]()
    # While a pool is being updated, a device has an index for each generation, but one slot.
    for _, device_index, charge in charged_grants(problem, placements):
        device = problem.devices[device_index]
        ledger.enter(device, charge, share=device.shareable)
        opened.add(device.slot)
    return Metrics(
        placed=len(placements),
        weight=sum(
            problem.demands[placement.demand].weight for placement in placements
        ),
        devices=len(opened),
        nodes=len({placement.node for placement in placements}),
        ranks=tuple(ranks[rank] for rank in range(max(ranks, default=-1) + 1)),
        utilisation=(
            *_summed("devices", _devices(ledger, products)),
            *_summed("counter", _counters(ledger)),
            *_summed("capacity", _capacities(ledger)),
        ),
        spending=tuple(_spending(problem, placements)),
    )


def _spending(
    problem: Problem, placements: Sequence[Placement]
) -> Iterator[Spending]:
    """Yield the use of each budget's resource by its namespace, before and after."""
    for budget in problem.budgets:
        by_namespace = spent(problem, placements, budget.resource)
        yield Spending(
            budget.namespace,
            budget.resource,
            budget.total,
            budget.used,
            budget.used + by_namespace.get(budget.namespace, 0),
            budget.most,
        )


_Amounts = Iterator[tuple[str, str, tuple[int, int, int]]]
"""Driver and name of something, how much there is of it, and what is in use before and after."""


def _summed(kind: str, amounts: _Amounts) -> Iterator[Utilisation]:
    sums: dict[tuple[str, str], Sequence[int]] = {}
    for driver, name, row_amounts in amounts:
        sums[driver, name] = tuple(
            map(add, sums.get((driver, name), (0, 0, 0)), row_amounts)
        )
    for (driver, name), (total, before, after) in sorted(sums.items()):
        yield Utilisation(kind, driver, name, total, before, after)


def _devices(ledger: Ledger, products: Sequence[str]) -> _Amounts:
    """Yield the devices of which an allocation takes the whole, as one unit each.

    The others are counted by their counters and capacities. The synthetic device that stands for the CPU and memory
    of a node is no device that anybody bought.
    """
    problem, before = ledger.problem, Ledger(ledger.problem)
    for versions in problem.versions.values():
        # What is published last counts: that of the newest generation of the pool.
        device_index = versions[-1]
        device = problem.devices[device_index]
        if device.consumes or device.id.driver == NODE_DRIVER:
            continue
        capacities = device.capacity.values()
        if device.shareable and any(
            capacity.consumable for capacity in capacities
        ):
            continue
        product = products[device_index] if products else ""
        # One that can be shared without end is free as long as it is published, and in use all the same.
        used_before = NANOS * before.is_in_use(device)
        used = NANOS * ledger.is_in_use(device)
        yield device.id.driver, product, (NANOS, used_before, used)


def _counters(ledger: Ledger) -> _Amounts:
    for counter, free in zip(ledger.problem.counters, ledger.free, strict=True):
        yield (
            counter.id.driver,
            counter.id.counter,
            (counter.total, counter.total - counter.free, counter.total - free),
        )


def _capacities(ledger: Ledger) -> _Amounts:
    problem = ledger.problem
    usage = problem.usage
    for slot, versions in problem.versions.items():
        device = problem.devices[versions[-1]]
        # Somebody may have a shareable device as a whole; nobody else gets a share of it. Where its pool is being
        # updated, somebody may get it so.
        was_held, is_held = slot in usage.held, slot in ledger.held
        before = usage.consumed.get(slot, {})
        after = ledger.consumed.get(slot, {})
        for name, capacity in (
            device.capacity.items() if device.shareable else ()
        ):
            if capacity.consumable:
                total = capacity.total
                used_before = total if was_held else before.get(name, 0)
                used = total if is_held else after.get(name, 0)
                yield device.id.driver, name, (total, used_before, used)
