"""The search: choose neighbourhoods, solve some at a time, keep what is better; again and again.

Source: Shaw 1998.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import (
    Generator,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from concurrent.futures import Executor, Future
from math import inf
from typing import Final, NamedTuple

from dralloc.objects.choices import MAX_SEED, Backend, Options
from dralloc.objects.errors import AllocationError
from dralloc.problem.inter_pod import (
    Arrival,
    InterPodRule,
    can_come_in_turn,
)
from dralloc.problem.solution import Appraisal, Placement
from dralloc.solve.backends import Parcel, executor, is_elsewhere
from dralloc.solve.optimum.improve.incumbent import Bonds, Incumbent
from dralloc.solve.optimum.improve.neighbourhood import (
    Neighbourhood,
    neighbourhood,
)
from dralloc.solve.optimum.improve.selection import (
    NeighbourhoodSelection,
    Proposal,
)
from dralloc.solve.optimum.improve.task import (
    ExtraRules,
    NeighbourhoodAnswer,
    NeighbourhoodTask,
)
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.stopping import Stop, Stopped
from dralloc.solve.work import jobs_in

__all__ = ["NeighbourhoodSearch"]


class _Reach(NamedTuple):
    """About so many demands are freed at once, and so much the solver may do about it (see `Stop.effort`)."""

    size: int
    effort: float


_REACHES: Final = (_Reach(24, 0.1), _Reach(40, 0.2))
"""Small neighbourhoods as long as they help: they are decided in a third of the time. Then large ones."""

_FARTHEST: Final = _Reach(100, 2.0)
"""At last neighbourhoods that hold all of a few nodes, or of the whole problem if it is small. Each takes seconds; none
takes more work of the solver, not for a gang either."""

_FEWEST_SIDE_BY_SIDE: Final = 6
_MOST_SIDE_BY_SIDE: Final = 32
_NODES_FOR_A_NEIGHBOURHOOD: Final = 20
"""Neighbourhoods that have nothing in common are solved at a time: one for every twenty nodes that could serve anybody,
within these limits, by however many processes. Their answers are taken over in the order in which they were chosen, so
that the answer after a number of steps does not depend on how many processes there are. With more neighbourhoods at a
time, each is chosen without what more others bring."""

_PART_UNDER_WAY: Final = 2
"""As soon as only this part of them is under way, others are chosen: so processes never wait. If another one was chosen
for each, it would have little else to choose from than the nodes of the one before."""

_DRAWS: Final = 3
"""So many are drawn at most for each neighbourhood that is solved: many have nothing to gain, or meet others."""

_PATIENCE: Final = 3
"""So often all could have had a turn in the largest neighbourhoods without any gain before the search gives up."""


class _UnderWay(NamedTuple):
    """A neighbourhood that is being solved."""

    proposal: Proposal
    area: Neighbourhood
    answer: Future[NeighbourhoodAnswer]


class NeighbourhoodSearch:
    """Improves an answer to some demands of a problem.

    Parameters
    ----------
    subset
        The demands. Others take nothing that these could take.
    tiers
        What counts, most important first.
    placements
        The answer to begin with.
    options
        The seed, the jobs and where they are done.
    aim
        An answer is better if one of so many tiers is, the first ones, without loss in those before it; None for all.
        Later tiers come with it.
    extra
        Rules beyond those of the problem, which the placements keep.
    appraisal
        What demands and nodes are worth; None if that is not known.
    thorough
        Whether to try neighbourhoods at last that take seconds each. Where an exact model of the whole follows, that
        does better with the time.

    Attributes
    ----------
    steps
        How many neighbourhoods were solved.
    failures
        Selectors that failed on a device, by what they say.
    """

    def __init__(  # noqa: PLR0913 - the answer, what may change, and how to choose
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        placements: Sequence[Placement],
        options: Options,
        *,
        aim: int | None = None,
        extra: ExtraRules | None = None,
        appraisal: Appraisal | None = None,
        thorough: bool = True,
    ) -> None:
        self.subset = subset
        self.problem = subset.problem
        self.tiers = tiers
        self.aim = len(tiers) if aim is None else aim
        self.options = options
        self._reaches = (*_REACHES, _FARTHEST) if thorough else _REACHES
        self.incumbent = Incumbent(self.problem, placements)
        self.extra = extra
        self.bonds = Bonds(
            self.problem, extra.together(self.problem) if extra else ()
        )
        self.selection = NeighbourhoodSelection(
            self.incumbent,
            self.bonds,
            subset.demands,
            options.seed,
            self._reaches[-1].size,
            appraisal,
            counts_weight_alone=all(
                tier.weights is not None for tier in tiers[: self.aim]
            ),
        )
        self._whole = Parcel(self.problem, Backend(options.backend))
        self.steps = 0
        self._chosen = 0
        self.failures: dict[str, AllocationError] = {}
        self._side_by_side = min(
            max(
                len(self.selection.nodes) // _NODES_FOR_A_NEIGHBOURHOOD,
                _FEWEST_SIDE_BY_SIDE,
            ),
            _MOST_SIDE_BY_SIDE,
        )

    def run(self, stop: Stop) -> Generator[tuple[Placement, ...], None, None]:
        """Search, and give out each better answer, until nothing helps any more.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        backend = Backend(self.options.backend)
        jobs = jobs_in(stop.seconds(), self.problem, self.options.jobs)
        if is_elsewhere(backend, jobs):
            self._whole.pack()
        under_way: deque[_UnderWay] = deque()
        with executor(backend, jobs) as workers:
            try:
                yield from self._search(under_way, workers, stop)
            except Stopped:
                yield from self._come_to_an_end(under_way, stop)
                raise
            finally:
                for chosen in under_way:
                    chosen.answer.cancel()

    def _search(
        self, under_way: deque[_UnderWay], workers: Executor, stop: Stop
    ) -> Iterator[tuple[Placement, ...]]:
        """Search with neighbourhoods that become larger, each time until they do not help any more."""
        refill_threshold = 0
        for reach in self._reaches:
            patience = _PATIENCE if reach is self._reaches[-1] else 1
            in_vain = 0
            while True:
                stop.check()
                # What is under way counts as in vain until it is settled, so that not too many are chosen in the end.
                tries = in_vain + len(under_way)
                is_tried = tries >= patience * self.selection.turns(reach.size)
                if not is_tried and len(under_way) <= refill_threshold:
                    self._fill(under_way, reach, workers, stop)
                    refill_threshold = len(under_way) // _PART_UNDER_WAY
                if under_way:
                    gain = self._settle(under_way.popleft())
                    in_vain = 0 if gain else in_vain + 1
                    if gain:
                        yield self.incumbent.in_order()
                elif is_tried or self.steps == self.options.steps:
                    break
                else:
                    # None was proposed: that is a try, too, or there would be no end.
                    in_vain += 1

    def _come_to_an_end(
        self, under_way: deque[_UnderWay], stop: Stop
    ) -> Iterator[tuple[Placement, ...]]:
        """Take over what is still under way: its time is over as well. Who cancels does not wait for any of it."""
        while under_way and not (
            stop.cancelled and not under_way[0].answer.done()
        ):
            if self._settle(under_way.popleft()):
                yield self.incumbent.in_order()

    def _are_steps_over(self, under_way: Sized) -> bool:
        """Whether so many neighbourhoods were chosen as there may be."""
        return self.steps + len(under_way) == self.options.steps

    def _fill(
        self,
        under_way: deque[_UnderWay],
        reach: _Reach,
        workers: Executor,
        stop: Stop,
    ) -> None:
        """Choose further neighbourhoods, which have nothing in common with those that are under way."""
        # What a namespace may still use is known to one neighbourhood at a time.
        is_limited = self.problem.budgets or (
            self.extra and self.extra.is_limited
        )
        # Where there are too few demands for so many at a time, most would have the remains of the first one.
        room = len(self.subset.demands) // reach.size
        limit = 1 if is_limited else max(1, min(room, self._side_by_side))
        for _ in range(_DRAWS * (limit - len(under_way))):
            if (
                len(under_way) == limit
                or self._are_steps_over(under_way)
                or stop.reached()
            ):
                break
            proposal = self.selection.propose(
                [other.proposal for other in under_way], reach.size
            )
            if proposal is not None:
                area = neighbourhood(
                    self._whole,
                    self.incumbent,
                    self.bonds,
                    proposal.blocks,
                    proposal.nodes,
                    proposal.withheld,
                )
                task = self._task(area, reach, proposal, stop)
                answer = workers.submit(task.run)
                under_way.append(_UnderWay(proposal, area, answer))
                self._chosen += 1

    def _task(
        self, area: Neighbourhood, reach: _Reach, proposal: Proposal, stop: Stop
    ) -> NeighbourhoodTask:
        # With a seed for each step, so that the solver does not go wrong in the same way again.
        seed = (self.options.seed + self._chosen) % MAX_SEED
        return NeighbourhoodTask(
            area.cutting,
            area.present,
            self.tiers,
            self.aim,
            self._extra(area),
            Options(seed=seed, strict_cel=self.options.strict_cel),
            min(_FARTHEST.effort, reach.effort * proposal.effort),
            inf if stop.seconds() == inf else time.time() + stop.seconds(),
        )

    def _settle(self, chosen: _UnderWay) -> bool:
        """Wait for the answer to a neighbourhood, and take over what is better; whether it was."""
        answer = chosen.answer.result()
        self.failures.update(
            (str(failure), failure) for failure in answer.failures
        )
        gain = self._take_over(chosen.area, answer.placements)
        self.selection.learn(chosen.proposal, better=gain)
        self.steps += 1
        return gain

    def _extra(self, area: Neighbourhood) -> ExtraRules | None:
        """The further rules as they are beside all that is not freed."""
        if self.extra is None:
            return None
        freed, placed = set(area.freed), self.incumbent.placements
        beside = (
            placement
            for demand, placement in placed.items()
            if demand not in freed
        )
        return self.extra.beside(self.problem, beside)

    def _take_over(
        self, area: Neighbourhood, answer: Sequence[Placement] | None
    ) -> bool:
        """Take over the answer to a neighbourhood, if it is not worse; whether it is better."""
        after = None if answer is None else area.after(answer)
        if after is None:
            return False
        costs = self._costs(area, area.before)
        self._exchange(area.before, after)
        new_costs = self._costs(area, after)
        if (
            new_costs > costs
            or not self.incumbent.keeps_all
            or not self._can_come(area)
        ):
            self._exchange(after, area.before)
            return False
        return new_costs < costs

    def _can_come(self, area: Neighbourhood) -> bool:
        """Whether all can come in one order where a neighbourhood knows some rules alone that have a say in it.

        Who stands by there keeps a role in rules of those who are freed, and in no others. Where it knows all rules of
        an order, it has found one.
        """
        demands = self.problem.demands
        known = {
            role.rule for demand in area.freed for role in demands[demand].roles
        }
        return all(
            known.isdisjoint(rules)
            or known.issuperset(rules)
            or can_come_in_turn(self._arrivals(rules))
            for rules in self.bonds.shared_orders
        )

    def _arrivals(self, rules: Iterable[InterPodRule]) -> Iterator[Arrival]:
        """Give out who is placed and has a role in any of some rules, with the name of the node."""
        concerned = {
            demand for rule in rules for demand in self.bonds.with_role[rule]
        }
        for demand in sorted(concerned):
            placement = self.incumbent.placements.get(demand)
            if placement is not None:
                node = self.problem.nodes[placement.node]
                yield self.problem.demands[demand], node.name

    def _exchange(
        self, withdrawn: Iterable[Placement], entered: Iterable[Placement]
    ) -> None:
        for placement in withdrawn:
            self.incumbent.withdraw(placement.demand)
        for placement in entered:
            self.incumbent.enter(placement)

    def _costs(
        self, area: Neighbourhood, placements: Sequence[Placement]
    ) -> list[int]:
        """What the answer costs by tier: of what adds up, the part of those who are freed."""
        freed = DemandSubset(self.problem, area.freed)
        answer = (
            ()
            if all(tier.adds_up for tier in self.tiers)
            else self.incumbent.in_order()
        )
        return [
            tier.cost(freed, placements)
            if tier.adds_up
            else tier.cost(self.subset, answer)
            for tier in self.tiers
        ]
