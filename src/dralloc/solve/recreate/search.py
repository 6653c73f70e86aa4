"""Many searches side by side, each on a part of the nodes; then on other parts."""

from __future__ import annotations

import time
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from math import inf
from typing import Final, NamedTuple

import numpy as np

from dralloc.objects.choices import MAX_SEED, Backend, Options
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.user_rules import Budget
from dralloc.problem import NodeIndex, Problem
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import (
    Appraisal,
    AskAppraisal,
    Placement,
    charged_grants,
    spent,
)
from dralloc.problem.subproblem import PartInUse
from dralloc.solve.backends import Parcel, is_elsewhere
from dralloc.solve.excerpt import Cutting
from dralloc.solve.recreate.change import ChangeSearch
from dralloc.solve.recreate.parts import PartDealer
from dralloc.solve.recreate.units import MovableUnit, movable_units
from dralloc.solve.work import jobs_in, run_all

__all__ = ["recreated"]


class _Effort(NamedTuple):
    """How many changes are tried on a part of the nodes, before nodes are parted anew: by node, and at least."""

    by_node: int
    least: int


_EVERYWHERE: Final = _Effort(by_node=40, least=2000)
"""The least takes about a second."""

_AROUND_CHANGED: Final = _Effort(by_node=10, least=0)
"""Where only a few nodes were changed: whether it helped is known soon."""

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
    appraisal: AskAppraisal = lambda: None,
    around: Collection[NodeIndex] = (),
) -> Iterator[tuple[Placement, ...]]:
    """Give out better and better answers, until there are no more for a while.

    Parameters
    ----------
    placements
        The answer to begin with.
    appraisal
        Tells before each round what demands and nodes are worth, as
        `dralloc.solve.recreate.change.ChangeSearch` takes it.
    options
        The seed, the jobs and where they are done, and how many parts are searched at most (``steps``). With the same
        seed and number of steps the answers are the same, however many jobs there are.
    seconds
        Tells how many seconds are left.
    around
        Nodes to search first, as long as that helps; then all of them.
    """
    movable = movable_units(problem, placements)
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


class _Span(NamedTuple):
    """How many seconds a part is searched at most, and when not to begin any more, as `time.time` says it."""

    seconds: float
    end: float


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
    span
        Until when to search.
    appraisal
        Of the part.
    bystanders
        Demands that stay, anywhere, and have a role in rules of the part's, with the names of their nodes.
    """

    part: Cutting
    present: Sequence[Placement]
    seed: int
    changes: int
    span: _Span
    appraisal: Appraisal | None
    bystanders: Sequence[tuple[DemandIndex, str]]

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
        if time.time() >= self.span.end:
            return list(self.present)
        end = time.perf_counter() + self.span.seconds
        excerpt = self.part.excerpt()
        # Rules are compared by identity: bystanders are made out of the same problem as the part.
        demands = self.part.whole.content.demands
        search = ChangeSearch(
            excerpt.problem,
            excerpt.inward(self.present),
            self.seed,
            self.appraisal,
            [(demands[demand], node) for demand, node in self.bystanders],
        )
        for step in range(self.changes):
            if step % _CLOCK == 0 and (time.perf_counter() >= end or is_over()):
                break
            search.step()
        return excerpt.outward(search.answer.placements())


class _Rounds:
    """Parts the problem in another way each time, and searches all parts."""

    def __init__(
        self,
        problem: Problem,
        movable: Sequence[MovableUnit],
        options: Options,
        appraisal: AskAppraisal,
    ) -> None:
        self._problem = problem
        self._appraisal = appraisal
        self._options = options
        self._random = np.random.default_rng(options.seed)
        self._whole = Parcel(problem, Backend(options.backend))
        self._dealer = PartDealer(problem, movable, self._random)

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
        seconds = seconds_left()
        jobs = jobs_in(seconds, self._problem, self._options.jobs)
        nodes_of_parts = self._dealer.deal_nodes(nodes)
        if not nodes_of_parts:
            return 0, list(placements)
        is_undivided = nodes is None and len(nodes_of_parts) == 1
        repeats = self._searches_of_all(seconds, jobs) if is_undivided else 1
        nodes_of_parts = nodes_of_parts[:part_limit]
        search_count = repeats * len(nodes_of_parts)
        waves = -(-search_count // max(1, jobs))
        tasks = self._tasks(
            placements,
            nodes_of_parts,
            _EVERYWHERE if nodes is None else _AROUND_CHANGED,
            _Span(max(seconds / waves, _LEAST_SECONDS), time.time() + seconds),
        )
        searches = [
            replace(task, seed=(task.seed + turn) % MAX_SEED)
            for turn in range(repeats)
            for task in tasks
        ]
        outcomes = self._outcomes(searches, jobs, seconds_left)
        present = {placement.demand: placement for placement in placements}
        for task_index, task in enumerate(tasks):
            # Of outcomes that are worth as much, the first one.
            turns = range(task_index, search_count, len(tasks))
            best = max((outcomes[turn] for turn in turns), key=self._weight)
            for placement in task.present:
                del present[placement.demand]
            present.update((placement.demand, placement) for placement in best)
        answer = [present[demand] for demand in sorted(present)]
        return len(nodes_of_parts), answer

    def _searches_of_all(self, seconds: float, jobs: int) -> int:
        """Return how often all nodes together are searched, with so many seconds left."""
        if seconds == inf or self._options.steps is not None:
            # Here the answer must not depend on how many jobs there are.
            return _SEARCHES_OF_ALL
        return min(_SEARCHES_OF_ALL, jobs)

    def _outcomes(
        self,
        searches: Sequence[_PartTask],
        jobs: int,
        seconds_left: Callable[[], float],
    ) -> Mapping[int, Sequence[Placement]]:
        """Search, here or side by side in other processes, and return what comes of each search by its number."""
        backend = Backend(self._options.backend)
        processes = min(jobs, len(searches))
        if is_elsewhere(backend, processes):
            self._whole.pack()
            return dict(run_all(searches, backend, processes))
        return {
            search_index: search.run(lambda: seconds_left() <= 0)
            for search_index, search in enumerate(searches)
        }

    def _weight(self, placements: Iterable[Placement]) -> int:
        """Return the weight of demands that are placed."""
        demands = self._problem.demands
        return sum(demands[placement.demand].weight for placement in placements)

    def _tasks(
        self,
        placements: Sequence[Placement],
        nodes_of_parts: Sequence[Sequence[NodeIndex]],
        effort: _Effort,
        span: _Span,
    ) -> list[_PartTask]:
        """Cut the parts out, with who may come and go there."""
        homes = {placement.demand: placement for placement in placements}
        parts = self._dealer.deal_demands(homes, nodes_of_parts)
        budgets_of_parts = self._deal_budgets(
            homes, [part.members for part in parts]
        )
        # Whoever is in no part stays where it is: what it has is in use for all parts.
        moving = {demand for part in parts for demand in part.members}
        staying = [
            placement
            for placement in placements
            if placement.demand not in moving
        ]
        ledger = _with(self._problem, staying)
        appraisal = self._beside(staying)
        tasks = []
        node_name_of = {
            placement.demand: self._problem.nodes[placement.node].name
            for placement in placements
        }
        for (nodes, members, kept_away, bystanders), budgets in zip(
            parts, budgets_of_parts, strict=True
        ):
            in_use = PartInUse.of(self._problem, nodes, ledger, kept_away)
            tasks.append(
                _PartTask(
                    Cutting(
                        self._whole,
                        members,
                        nodes,
                        in_use,
                        allowed={},
                        standing_by={},
                        budgets=budgets,
                    ),
                    [homes[demand] for demand in members if demand in homes],
                    # Drawn here, part by part: so seeds do not depend on where parts are searched.
                    int(self._random.integers(MAX_SEED)),
                    max(effort.least, effort.by_node * len(nodes)),
                    span,
                    appraisal and appraisal.of_part(members, nodes),
                    [(demand, node_name_of[demand]) for demand in bystanders],
                )
            )
        return tasks

    def _deal_budgets(
        self,
        homes: Mapping[DemandIndex, Placement],
        members_of_parts: Sequence[Sequence[DemandIndex]],
    ) -> list[tuple[Budget, ...]]:
        """Deal caps out to parts: each may use what its members do, and one that is drawn what nobody does."""
        budgets_of_parts: list[list[Budget]] = [[] for _ in members_of_parts]
        for budget in self._problem.budgets:
            if budget.left is None:
                continue
            unused = budget.left - self._use(budget, homes.values())
            drawn_part = int(self._random.integers(len(members_of_parts)))
            for part, members in enumerate(members_of_parts):
                present = [
                    homes[member] for member in members if member in homes
                ]
                allowance = self._use(budget, present)
                if part == drawn_part:
                    allowance += unused
                used_elsewhere = budget.left - allowance
                budgets_of_parts[part].append(
                    replace(budget, used=budget.used + used_elsewhere)
                )
        return [tuple(budgets) for budgets in budgets_of_parts]

    def _use(self, budget: Budget, placements: Iterable[Placement]) -> int:
        """Return how much of a budget some placements use."""
        uses = spent(self._problem, placements, budget.resource)
        return uses.get(budget.namespace, 0)

    def _beside(self, staying: Sequence[Placement]) -> Appraisal | None:
        """Return what demands are worth, and what nodes are beyond what those pay that stay."""
        appraisal = self._appraisal()
        if appraisal is None:
            return None
        on_node = grouped(
            (placement.node, placement.demand) for placement in staying
        )
        unpaid = [
            appraisal.unpaid(node, on_node.get(node, ()))
            for node in self._problem.all_nodes
        ]
        return replace(appraisal, nodes=unpaid)


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
