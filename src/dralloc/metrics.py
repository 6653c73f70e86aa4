"""What an answer uses of what there is: devices, nodes, counters, capacities, ranks of alternatives."""

from __future__ import annotations

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from dralloc.brief import Brief
from dralloc.problem import Alternative, Problem
from dralloc.solution import Grant, Solution
from dralloc.spending import spent

__all__ = ["Metrics", "Spending", "Utilisation", "measure"]


@dataclass(frozen=True, slots=True)
class Spending:
    """What a namespace uses of something that is capped or to be shared fairly; amounts in nanos.

    ``most`` is the cap, None if there is none; ``before`` is what claims held before anything was placed.
    """

    namespace: str
    resource: str
    total: int
    before: int
    used: int
    most: int | None = None

    @property
    def exceeded(self) -> bool:
        """Whether it is more than the cap allows."""
        return self.most is not None and self.used > self.most


@dataclass(frozen=True, slots=True)
class Utilisation:
    """How much is in use of all counters, or of all capacities, of one name that a driver publishes.

    Amounts are in nanos; ``before`` is what claims held before anything was placed.
    """

    kind: str
    driver: str
    name: str
    total: int
    before: int
    used: int

    @property
    def title(self) -> str:
        """What it is, as tables show it."""
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
    placed, weight
        Placed demands, and the sum of their weights.
    devices
        Devices that at least one new allocation uses, without admin access.
    nodes
        Nodes with at least one placed demand.
    ranks
        How many requests got their alternative of rank 0, 1, ...
    utilisation
        Counters, then capacities of shareable devices, by driver and name.
    spending
        What namespaces use, where there are caps or fairness.
    """

    placed: int
    weight: int
    devices: int
    nodes: int
    ranks: tuple[int, ...]
    utilisation: tuple[Utilisation, ...]
    spending: tuple[Spending, ...] = ()


def measure(problem: Problem, solution: Solution) -> Metrics:
    """Measure an answer of a problem."""
    served = list(_served(problem, solution))
    ranks = Tally(alternative.rank for _, alternative, first in served if first)
    opened = {problem.devices[grant.device].slot for grant, alternative, _ in served if not alternative.admin}
    return Metrics(
        placed=len(solution.placements),
        weight=sum(problem.demands[placement.demand].weight for placement in solution.placements),
        devices=len(opened),
        nodes=len({placement.node for placement in solution.placements}),
        ranks=tuple(ranks[rank] for rank in range(max(ranks, default=-1) + 1)),
        utilisation=(*_counters(problem, served, opened), *_capacities(problem, served)),
        spending=tuple(_spending(problem, solution)),
    )


def _spending(problem: Problem, solution: Solution) -> Iterator[Spending]:
    for one in problem.budgets:
        taken = spent(problem, solution.placements, one.resource).get(one.namespace, 0)
        yield Spending(one.namespace, one.resource, one.total, one.used, one.used + taken, one.most)


_Served = tuple[Grant, Alternative, bool]


def _served(problem: Problem, solution: Solution) -> Iterator[_Served]:
    """Every grant with its alternative, and whether it is the first of its request."""
    for placement in solution.placements:
        for claim, grants in zip(problem.demands[placement.demand].claims, placement.grants, strict=True):
            seen: set[int] = set()
            for grant in grants:
                alternative = claim.requests[grant.request].alternatives[grant.alternative]
                yield grant, alternative, grant.request not in seen
                seen.add(grant.request)


def _counters(problem: Problem, served: list[_Served], opened: set[int]) -> Iterator[Utilisation]:
    used: dict[int, int] = defaultdict(int)
    for slot in opened - set(problem.usage.shares):
        for version in problem.versions[slot]:
            for index, amount in problem.devices[version].consumes:
                used[index] += amount
    for grant, alternative, _ in served:
        charge = problem.eligibility.charge(alternative.index, grant.device)
        if charge is not None and not alternative.admin:
            for index, amount in charge.counters:
                used[index] += amount
    sums: dict[tuple[str, str], list[int]] = {}
    for index, counter in enumerate(problem.counters):
        entry = sums.setdefault((counter.id.driver, counter.id.counter), [0, 0, 0])
        before = counter.total - counter.free
        for position, amount in enumerate((counter.total, before, before + used[index])):
            entry[position] += amount
    for (driver, name), (total, before, after) in sorted(sums.items()):
        yield Utilisation("counter", driver, name, total, before, after)


def _capacities(problem: Problem, served: list[_Served]) -> Iterator[Utilisation]:
    sums: dict[tuple[str, str], list[int]] = {}
    for versions in problem.versions.values():
        device = problem.devices[versions[0]]
        if device.shareable:
            consumed = problem.usage.consumed.get(device.slot, {})
            for capacity in device.capacity.values():
                if capacity.consumable:
                    entry = sums.setdefault((device.id.driver, capacity.name), [0, 0, 0])
                    entry[0] += capacity.total
                    entry[1] += consumed.get(capacity.name, 0)
    for grant, alternative, _ in served:
        charge = problem.eligibility.charge(alternative.index, grant.device)
        for name, amount in charge.capacity if charge is not None and not alternative.admin else ():
            sums[problem.devices[grant.device].id.driver, name][2] += amount
    for (driver, name), (total, before, added) in sorted(sums.items()):
        yield Utilisation("capacity", driver, name, total, before, before + added)
