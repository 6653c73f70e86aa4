"""Many searches side by side, each on a part of the nodes, and the answers that they start from.

The first answers are those of first fit with the demands in other orders. The best is changed in parts of the nodes,
then in other parts. `Starts` is all that is cheap to have before a model is built.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Final, NamedTuple

import numpy as np
from networkx.utils import UnionFind

from dralloc.objects.choices import MAX_SEED, Backend, Options
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import PoolID
from dralloc.problem import (
    NodeIndex,
    Problem,
    SlotIndex,
    indices,
    numbered,
)
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.ledger import Ledger
from dralloc.problem.node_claims import resource_of
from dralloc.problem.solution import Appraisal, Placement, charged_grants
from dralloc.problem.subproblem import PartInUse
from dralloc.solve.backends import Parcel, is_elsewhere
from dralloc.solve.excerpt import Cutting
from dralloc.solve.first_fit.batch import QuickRun, place_all
from dralloc.solve.policies.table import PARTS, Sizes
from dralloc.solve.recreate.answer import (
    MovableUnit,
    movable_units,
    serving_nodes,
)
from dralloc.solve.recreate.change import ChangeSearch
from dralloc.solve.work import jobs_in, run_all

__all__ = ["Starts", "recreated", "starts"]

# ----------------------------------------------------------------------------
# Answers to start a search from: first fit, with the demands in orders that favour
# the small.
#
# What runs short first differs from node to node. Where prices say how scarce what is,
# orders by what demands pay come first: most often they are the best. Then there is an
# order for each resource that nodes themselves have, which every pod takes something
# of, and one for all resources together.


def starts(
    problem: Problem,
    appraisal: Appraisal | None = None,
    seconds: Callable[[], float] = lambda: inf,
) -> Iterator[tuple[Placement, ...]]:
    """Give out answers that keep every rule but budgets, one after the other, as they are asked for.

    Inside a priority, demands come first that pay less; then those that ask for fewer devices, and of these, those that
    take less. Where prices are not known, demands pay what they take, as parts of all there is.

    Parameters
    ----------
    seconds
        Tells how many seconds are left; when there are none, the last answer ends where it is.
    """
    if appraisal is not None:
        for order in _orders_by_price(problem, appraisal.sizes):
            yield _placed_in(problem, order, seconds)
    sizes = Sizes(problem)
    amounts_by_demand = [sizes.taken(demand) for demand in problem.demands]
    if appraisal is None:
        parts = {
            demand: _amount(sizes, amounts_by_demand[demand], None)
            for demand in indices(problem.demands)
        }
        for order in _orders_by_price(problem, parts):
            yield _placed_in(problem, order, seconds)
    resources = sorted(
        {
            resource
            for amounts in amounts_by_demand
            for resource in amounts
            if _is_of_node(resource)
        },
        key=str,
    )
    for resource in (*resources, None):

        def key(
            demand: DemandIndex, resource: Hashable = resource
        ) -> tuple[int, int, int]:
            candidate = problem.demands[demand]
            return (
                -candidate.priority,
                candidate.asked_devices,
                _amount(sizes, amounts_by_demand[demand], resource),
            )

        order = sorted(indices(problem.demands), key=key)
        yield _placed_in(problem, order, seconds)


def _placed_in(
    problem: Problem,
    order: Sequence[DemandIndex],
    seconds: Callable[[], float],
) -> tuple[Placement, ...]:
    return place_all(QuickRun(problem), problem, order, {}, seconds).placements


def _orders_by_price(
    problem: Problem, prices: Mapping[DemandIndex, int]
) -> Iterator[list[DemandIndex]]:
    """Give out orders in which demands come first that pay less.

    In the first one this holds for the last priority alone, and of the others all are placed that first fit places.
    Where nearly all have room, large ones must not come last: nobody makes room for them afterwards.
    """
    demands = problem.demands
    priorities = {demand.priority for demand in demands} or {0}
    # With one priority alone both orders are the same.
    for highest_by_price in sorted({min(priorities), max(priorities)}):

        def key(
            demand: DemandIndex, highest_by_price: int = highest_by_price
        ) -> tuple[int, int]:
            priority = demands[demand].priority
            paid = prices.get(demand, 0)
            return -priority, paid if priority <= highest_by_price else 0

        yield sorted(indices(demands), key=key)


def _is_of_node(resource: Hashable) -> bool:
    return isinstance(resource, tuple) and bool(resource_of(resource[-1]))


def _amount(
    sizes: Sizes, amounts: Mapping[Hashable, int], resource: Hashable | None
) -> int:
    """What is taken of a resource, or, if that is None, the parts of all resources added up."""
    if resource is not None:
        return amounts.get(resource, 0)
    return sum(
        amount * PARTS // max(1, sizes.totals[name])
        for name, amount in amounts.items()
    )


# ----------------------------------------------------------------------------
# Many searches side by side, each on a part of the nodes; then on other parts.


class _Effort(NamedTuple):
    """How many changes are tried on a part of the nodes, before nodes are parted anew: by node, and at least."""

    by_node: int
    least: int


_EVERYWHERE: Final = _Effort(by_node=40, least=2000)
"""The least takes about a second."""

_AROUND_CHANGED: Final = _Effort(by_node=10, least=0)
"""Where only a few nodes were changed: whether it helped is known soon."""

_FEW_NODES: Final = 50
"""Fewer nodes than this are never parted for the sake of those who work side by side."""

_MANY_NODES: Final = 125
"""A part has about so many nodes at most."""

_SIDE_BY_SIDE: Final = 8
"""Into so many parts at most nodes are parted for the sake of those who work side by side."""

_SEARCHES_OF_ALL: Final = 2
"""All nodes together, where they are too few to be parted, are searched so often at the same time with other seeds. The
best outcome counts: where one search is stuck, another one seldom is. Where time is limited and another processor has
other work, one search is enough: two would follow each other."""

_PATIENCE: Final = 1
"""After so many rounds in a row with little gain the search is over: models do better then."""

_LITTLE: Final = 700
"""Less than one demand more for so many that are placed is little gain."""

_LEAST_SECONDS: Final = 0.5
"""A part is searched for so long at least: to begin takes half of that. What there is no time for stays as it is."""

_CLOCK: Final = 16
"""After so many changes it is asked what time it is."""


def recreated(  # noqa: PLR0913 - what to search, how, and where first
    problem: Problem,
    placements: Sequence[Placement],
    options: Options,
    seconds: Callable[[], float],
    appraisal: Appraisal | None = None,
    around: Collection[NodeIndex] = (),
) -> Iterator[tuple[Placement, ...]]:
    """Give out better and better answers, until there are no more for a while.

    Parameters
    ----------
    placements
        The answer to begin with.
    appraisal
        What demands and nodes are worth, as `dralloc.solve.recreate.change.ChangeSearch` takes it.
    options
        The seed, the jobs and where they are done, and how many parts are searched at most (``steps``). With the same
        seed and number of steps the answers are the same, however many jobs there are.
    seconds
        Tells how many seconds are left.
    around
        Nodes to search first, as long as that helps; then all of them.
    """
    movable = movable_units(problem)
    steps = options.steps
    rounds = _Rounds(problem, movable, options, appraisal)
    for nodes in (around, None) if around else (None,):
        in_vain = 0
        while movable and in_vain < _PATIENCE and seconds() > 0 and steps != 0:
            before = len(placements)
            searched, placements = rounds.improve(
                placements, seconds, steps, nodes
            )
            steps = None if steps is None else steps - searched
            gained = len(placements) - before
            in_vain = in_vain + 1 if gained * _LITTLE <= before else 0
            yield tuple(placements)


@dataclass(frozen=True, slots=True)
class _PartTask:
    """A search on a part of the nodes, which can be sent to another process.

    Parameters
    ----------
    part
        Some nodes with who stands there and who may come, as a problem of its own.
    present
        Where the part's demands are now.
    seed, changes
        How to search, and how often.
    appraisal
        Of the part.
    seconds
        How long to search at most.
    end
        When not to begin any more, as `time.time` says it.
    """

    part: Cutting
    present: Sequence[Placement]
    seed: int
    changes: int
    seconds: float
    end: float
    appraisal: Appraisal | None

    @without_garbage_collection()
    def run(
        self, is_over: Callable[[], bool] = lambda: False
    ) -> list[Placement]:
        """Search until all changes are tried, or the time is over, and return where the part's demands are then.

        Parameters
        ----------
        is_over
            Asked now and then whether to end before that; in this process alone.
        """
        if time.time() >= self.end:
            return list(self.present)
        end = time.perf_counter() + self.seconds
        excerpt = self.part.excerpt()
        search = ChangeSearch(
            excerpt.problem,
            excerpt.inward(self.present),
            self.seed,
            self.appraisal,
        )
        for number in range(self.changes):
            if number % _CLOCK == 0 and (
                time.perf_counter() >= end or is_over()
            ):
                break
            search.step()
        return excerpt.outward(search.answer.placements())


class _Rounds:
    """Parts the nodes in another way each time, and searches all parts."""

    def __init__(
        self,
        problem: Problem,
        movable: Sequence[MovableUnit],
        options: Options,
        appraisal: Appraisal | None,
    ) -> None:
        self._problem = problem
        self._movable = movable
        self._appraisal = appraisal
        self._options = options
        self._random = np.random.default_rng(options.seed)
        self._whole = Parcel(problem, Backend(options.backend))
        wide_pools = _wide_pools(problem)
        self._common = _common_supplies(problem, wide_pools)
        self._groups = _groups(problem, movable, wide_pools)
        self._effort = _EVERYWHERE

    def improve(
        self,
        placements: Sequence[Placement],
        seconds_left: Callable[[], float],
        part_limit: int | None,
        nodes: Collection[NodeIndex] | None = None,
    ) -> tuple[int, list[Placement]]:
        """Search each part once.

        Parameters
        ----------
        seconds_left
            Tells how many seconds are left: searches in this process end when there are none.
        part_limit
            So many parts at most; None for all.
        nodes
            Only these, and those that have to do with them; None for all.

        Returns
        -------
        tuple
            How many parts were searched, and the answer.
        """
        options, seconds = self._options, seconds_left()
        jobs = jobs_in(seconds, self._problem, options.jobs)
        self._effort = _EVERYWHERE if nodes is None else _AROUND_CHANGED
        all_parts = self._parts(nodes)
        if not all_parts:
            return 0, list(placements)
        is_undivided = nodes is None and len(all_parts) == 1
        repeats = self._searches_of_all(seconds, jobs) if is_undivided else 1
        parts = all_parts[:part_limit]
        search_count = repeats * len(parts)
        waves = -(-search_count // max(1, jobs))
        seconds_of_part = max(seconds / waves, _LEAST_SECONDS)
        end = time.time() + seconds
        tasks = self._tasks(placements, parts, seconds_of_part, end)
        searches = [
            replace(task, seed=(task.seed + turn) % MAX_SEED)
            for turn in range(repeats)
            for task in tasks
        ]
        backend, processes = Backend(options.backend), min(jobs, search_count)
        if is_elsewhere(backend, processes):
            self._whole.pack()
            outcomes = dict(run_all(searches, backend, processes))
        else:
            outcomes = {
                number: search.run(lambda: seconds_left() <= 0)
                for number, search in enumerate(searches)
            }
        present = {placement.demand: placement for placement in placements}
        for number, task in enumerate(tasks):
            # Of outcomes that are worth as much, the first one.
            turns = range(number, search_count, len(tasks))
            best = max((outcomes[turn] for turn in turns), key=self._weight)
            for placement in task.present:
                del present[placement.demand]
            present.update((placement.demand, placement) for placement in best)
        return len(parts), [present[demand] for demand in sorted(present)]

    def _searches_of_all(self, seconds: float, jobs: int) -> int:
        """Return how often all nodes together are searched, with so many seconds left."""
        if seconds == inf or self._options.steps is not None:
            # Here the answer must not depend on how many jobs there are.
            return _SEARCHES_OF_ALL
        return min(_SEARCHES_OF_ALL, jobs)

    def _weight(self, placements: Iterable[Placement]) -> int:
        """Return the weight of demands that are placed."""
        demands = self._problem.demands
        return sum(demands[placement.demand].weight for placement in placements)

    def _parts(
        self, chosen: Collection[NodeIndex] | None
    ) -> list[list[NodeIndex]]:
        """Deal the nodes out to parts that have about as many each."""
        groups, side_by_side = self._groups, _SIDE_BY_SIDE
        if chosen is not None:
            groups = [
                group for group in groups if not set(chosen).isdisjoint(group)
            ]
            side_by_side = 1
        nodes = sum(map(len, groups))
        part_count = max(
            min(nodes // _FEW_NODES, side_by_side), nodes // _MANY_NODES, 1
        )
        parts: list[list[NodeIndex]] = [[] for _ in range(part_count)]
        for turn, number in enumerate(
            self._random.permutation(len(groups)).tolist()
        ):
            parts[turn % part_count] += groups[number]
        return [sorted(part) for part in parts if part]

    def _tasks(
        self,
        placements: Sequence[Placement],
        parts: Sequence[Sequence[NodeIndex]],
        seconds: float,
        end: float,
    ) -> list[_PartTask]:
        """Cut the parts out, with who may come and go there."""
        homes = {placement.demand: placement for placement in placements}
        owners: dict[Hashable, int] = {}
        members = self._members(homes, parts, owners)
        for supply in dict.fromkeys(self._common.values()):
            if supply not in owners:
                owners[supply] = int(self._random.integers(len(parts)))
        moving = {demand for dealt in members for demand in dealt}
        staying = [
            placement
            for placement in placements
            if placement.demand not in moving
        ]
        ledger = _with(self._problem, staying)
        appraisal = self._beside(staying)
        tasks = []
        for part, (nodes, dealt) in enumerate(zip(parts, members, strict=True)):
            others = {
                slot
                for slot, supply in self._common.items()
                if owners[supply] != part
            }
            # Nobody in this part may have what another part was given.
            kept_away = others - ledger.held
            ledger.held |= kept_away
            tasks.append(
                self._task(nodes, dealt, homes, ledger, seconds, end, appraisal)
            )
            ledger.held -= kept_away
        return tasks

    def _beside(self, staying: Sequence[Placement]) -> Appraisal | None:
        """Return what demands are worth, and what nodes are beyond what those pay that stay."""
        if self._appraisal is None:
            return None
        on_node = grouped(
            (placement.node, placement.demand) for placement in staying
        )
        unpaid = [
            self._appraisal.unpaid(node, on_node.get(node, ()))
            for node in self._problem.all_nodes
        ]
        return replace(self._appraisal, nodes=unpaid)

    def _members(
        self,
        homes: Mapping[DemandIndex, Placement],
        parts: Sequence[Sequence[NodeIndex]],
        owners: dict[Hashable, int],
    ) -> list[list[DemandIndex]]:
        """Return by part who stands there, and some of those who wait: each of them is in one part.

        Gangs that stand on nodes of several parts are in none: they stay where they are. So does whoever has something
        of a common supply that came to another part.

        Parameters
        ----------
        owners
            By common supply, the part that it comes to, which is noted here: that of the first who has any of it.
        """
        part_of = {
            node: part for part, nodes in enumerate(parts) for node in nodes
        }
        draws = self._random.integers(
            len(parts), size=len(self._movable)
        ).tolist()
        members: list[list[DemandIndex]] = [[] for _ in parts]
        for unit, draw in zip(self._movable, draws, strict=True):
            placements = [
                homes[member] for member in unit.members if member in homes
            ]
            standing = {part_of.get(placement.node) for placement in placements}
            part = standing.pop() if standing else draw
            if standing or part is None:
                continue
            supplies = self._common_supplies_of(placements)
            if all(
                owners.setdefault(supply, part) == part for supply in supplies
            ):
                members[part] += unit.members
        return members

    def _common_supplies_of(
        self, placements: Iterable[Placement]
    ) -> list[Hashable]:
        """Return of which common supplies some demands have something."""
        if not self._common:
            return []
        slots = [
            self._problem.devices[grant.device].slot
            for placement in placements
            for claim_grants in placement.grants
            for grant in claim_grants
        ]
        return [self._common[slot] for slot in slots if slot in self._common]

    def _task(  # noqa: PLR0913 - a part, and what is known of the whole
        self,
        nodes: Sequence[NodeIndex],
        members: Sequence[DemandIndex],
        homes: Mapping[DemandIndex, Placement],
        ledger: Ledger,
        seconds: float,
        end: float,
        appraisal: Appraisal | None,
    ) -> _PartTask:
        part = Cutting(
            self._whole,
            members,
            nodes,
            PartInUse.of(self._problem, nodes, ledger),
            allowed={},
            standing_by={},
        )
        return _PartTask(
            part,
            [homes[demand] for demand in members if demand in homes],
            int(self._random.integers(MAX_SEED)),
            max(self._effort.least, self._effort.by_node * len(nodes)),
            seconds,
            end,
            appraisal and appraisal.of_part(members, nodes),
        )


def _wide_pools(problem: Problem) -> set[PoolID]:
    """Return the pools that many nodes can use.

    Those of which several generations are published are none: what is in use of one generation counts in the others.
    """
    nodes_of = Tally(
        pool.id for node in problem.nodes for pool in node.pools if pool.devices
    )
    wide = {pool for pool, nodes in nodes_of.items() if nodes >= _FEW_NODES}
    if problem.several_versions:
        wide -= {
            PoolID(*problem.devices[version].id[:2])
            for slot in problem.several_versions
            for version in problem.versions[slot]
        }
    return wide


def _common_supplies(
    problem: Problem, wide_pools: Collection[PoolID]
) -> dict[SlotIndex, Hashable]:
    """Return by device of a wide pool the supply to which it belongs.

    Devices that could draw on the same counters are one supply.
    """
    devices = {
        device
        for node in problem.nodes
        for pool in node.pools
        if pool.id in wide_pools
        for device in pool.devices
    }
    supplies: dict[SlotIndex, Hashable] = {}
    for index in sorted(devices):
        device = problem.devices[index]
        has_counters = device.group in problem.counters_of
        supplies[device.slot] = (
            ("group", device.group) if has_counters else ("slot", device.slot)
        )
    return supplies


def _groups(
    problem: Problem,
    units: Collection[MovableUnit],
    wide_pools: Collection[PoolID],
) -> list[list[NodeIndex]]:
    """Return the nodes in groups that have no pool in common, nor a small domain that a gang has to be in.

    Pools that many nodes can use tie no nodes together: their devices are dealt out as nodes are.

    Groups of which no node could serve any of the units are left out: dealt out with the others they would leave fewer
    nodes in each part between which demands can be exchanged. Most nodes of many clusters have no devices.
    """
    views = Tally(pool.id for node in problem.nodes for pool in node.pools)
    topologies = {
        id(unit.rule.domains): unit.rule.domains for unit in units if unit.rule
    }
    forest: UnionFind[Hashable] = UnionFind()
    for number, node in numbered(problem.nodes):
        common = [
            ("pool", pool.id)
            for pool in node.pools
            if views[pool.id] > 1 and pool.devices and pool.id not in wide_pools
        ]
        forest.union(("node", number), *common)
    for topology, domains in topologies.items():
        sizes = Tally(domains.values())
        for number, node in numbered(problem.nodes):
            domain = domains.get(node.name)
            if domain is not None and sizes[domain] < _FEW_NODES:
                forest.union(("node", number), ("domain", topology, domain))
    groups = grouped(
        (forest["node", number], number) for number in indices(problem.nodes)
    )
    serving = serving_nodes(problem, units)
    return [nodes for nodes in groups.values() if not serving.isdisjoint(nodes)]


def _with(problem: Problem, placements: Collection[Placement]) -> Ledger:
    """Return what is in use with these placements."""
    ledger = Ledger(problem)
    for _, device, charge in charged_grants(problem, placements):
        ledger.enter(
            problem.devices[device],
            charge,
            share=problem.devices[device].shareable,
        )
    return ledger


# ----------------------------------------------------------------------------
# Answers for the optimum to start from: first fit in other orders, then the best of
# these changed again and again.

_ORDERS: Final = 0.05
"""The part of the time in which other orders are tried; one that is begun then is tried to its end."""


_MOST_FOR_ONE: Final = 100
"""Nobody stands in the way of more than so many."""

_LEAST_VALUE: Final = 2**20
"""What a demand of the smallest weight counts, so that parts of it can be told."""


class Starts:
    """Makes answers to start from; see the module.

    Parameters
    ----------
    problem
        What is to be placed. Answers keep all of its rules but budgets.
    options
        As `recreated` takes them.
    around
        Where an answer was changed that was good before: nodes to search first. Then other orders are no use.
    """

    def __init__(
        self,
        problem: Problem,
        options: Options,
        around: Collection[NodeIndex] = (),
    ) -> None:
        self._problem = problem
        self._options = options
        self._around = around

    def __call__(
        self,
        present: Sequence[Placement],
        appraisal: Appraisal | None,
        seconds: Callable[[], float],
        jobs: int = 1,
    ) -> Iterator[Sequence[Placement]]:
        """Give out answers, the later ones better and better.

        Parameters
        ----------
        present
            An answer that is known.
        appraisal
            What demands and nodes are worth; None if that is not known.
        seconds
            Tells how many seconds are left.
        jobs
            How many searches of small changes are done at a time.
        """
        best = present
        later = (1 - _ORDERS) * seconds()
        orders = starts(self._problem, appraisal, seconds)
        for placements in () if self._around else orders:
            yield placements
            best = max(best, placements, key=self._promise)
            if seconds() < later:
                break
        yield from recreated(
            self._problem,
            best,
            replace(self._options, jobs=jobs),
            seconds,
            appraisal,
            self._around,
        )

    def _promise(self, placements: Sequence[Placement]) -> int:
        """Return how good an answer is to start from."""
        demands = self._problem.demands
        return sum(
            self._values[demands[placement.demand].weight]
            for placement in placements
        )

    @cached_property
    def _values(self) -> Mapping[int, int]:
        """By weight, what such a demand counts beside others in an answer to start from.

        As its weight says, but for no more than `_MOST_FOR_ONE` of the next smaller weight. Small changes soon make
        room for the few that are worth more than all below them; hundreds that are missing below take them long.
        """
        weights = {demand.weight for demand in self._problem.demands}
        values = {0: 0}
        before, value = 0, _LEAST_VALUE
        for weight in sorted(weights - {0}):
            if before:
                value = value * min(weight, _MOST_FOR_ONE * before) // before
            values[weight] = value
            before = weight
        return values
