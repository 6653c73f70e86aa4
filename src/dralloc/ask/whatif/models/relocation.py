"""Relocation: allocated claims as demands of their own, each of which stays where it is or is placed anew.

The problem holds for every allocated claim that may move a demand that can only be placed where the claim is (it
*stays*), and for every option to move it the demands of that option. Beyond the rules of the problem::

    placed[stay of c] + sum_(options w that move c) placed[w] = 1
    sum_(options w of a group) placed[w] <= 1
    sum_w cost[w] * placed[w] <= most
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from dralloc.objects.choices import Goal, Options
from dralloc.objects.errors import AllocationError
from dralloc.problem import Problem, SlotIndex
from dralloc.problem.indices import DemandIndex, grouped, indices, numbered
from dralloc.problem.solution import Placement, Solution, Status
from dralloc.solve.optimum.answered import raise_bounds
from dralloc.solve.optimum.candidates import CandidateSurvey, survey
from dralloc.solve.optimum.component import Component, TimeSharing, build_for
from dralloc.solve.optimum.constraints import add_capacity
from dralloc.solve.optimum.improve import NeighbourhoodSearch
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.node_capabilities import NodeCapabilities
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
    after_weight,
    placed_weight,
    summed_weight,
)
from dralloc.solve.optimum.relax import relaxed_bounds
from dralloc.solve.optimum.rows import (
    SignedLiteral,
    SignedTerm,
    Term,
    add_at_most,
)
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.selector_failures import summed_up
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop, Stopped
from dralloc.solve.optimum.variables import Take

__all__ = ["Exchange", "Relocation"]

_RELAXING: Final = 0.25
"""The part of the time that a bound by relaxation may take."""


@dataclass(frozen=True)
class Exchange:
    """The demands that stand for each other; each is named like its gang: one stays or one of its options moves.

    Parameters
    ----------
    stay_options
        For each allocated claim the demand that stands for staying (None if it holds what it holds in any case), and
        the options that move it.
    groups
        Ways of which at most one is taken.
    costs
        How many claims each option moves.
    max_moves
        How many claims may move; None for any number.
    """

    stay_options: tuple[tuple[str | None, tuple[str, ...]], ...]
    groups: tuple[tuple[str, ...], ...]
    costs: Mapping[str, int]
    max_moves: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether not as many may move as want to."""
        return self.max_moves is not None

    def together(self, problem: Problem) -> Iterator[list[DemandIndex]]:
        """The demands that have to be decided together, by index."""
        members = grouped(
            (demand.gang, index) for index, demand in numbered(problem.demands)
        )
        for stay, options in self.stay_options:
            names = options if stay is None else (stay, *options)
            yield [index for name in names for index in members[name]]
        for options in self.groups:
            yield [index for name in options for index in members[name]]

    def beside(
        self, problem: Problem, placements: Iterable[Placement]
    ) -> Exchange:
        """Return what is left to others once these placements are made."""
        if self.max_moves is None:
            return self
        moved = self._moved_by(problem, placements)
        return replace(self, max_moves=self.max_moves - moved)

    def add_to(self, model: Model) -> None:
        """Add the rules to a model, as far as they are about its demands."""
        placed = _placed(model)
        for stay, options in self.stay_options:
            moved = [placed[option] for option in options if option in placed]
            if stay is None:
                model.cp.add_at_most_one(moved)
                continue
            # A claim goes nowhere but to another place: it stays or moves. In a part of
            # the nodes without its own it cannot stay.
            stays = [placed[stay]] if stay in placed else []
            if stays or moved:
                model.cp.add_exactly_one([*stays, *moved])
        for options in self.groups:
            model.cp.add_at_most_one(
                [placed[option] for option in options if option in placed]
            )
        if self.max_moves is not None:
            terms: list[SignedTerm] = [*self._move_options(placed)]
            add_at_most(model.cp, terms, self.max_moves, "moves")
        self._admin_access(model)

    def _admin_access(self, model: Model) -> None:
        """Let admin access find taken what all allocations take, wherever they are in the end."""
        demands = model.problem.demands
        allocated = {
            name
            for stay, options in self.stay_options
            for name in (stay, *options)
        }
        # Other models have everybody come at once, and then admin access takes no notice
        # of shares. But allocated claims have theirs before (KEP-5075).
        shares: dict[SlotIndex, list[tuple[str, DemandIndex, Take]]] = (
            defaultdict(list)
        )
        for serving in model.variables.every_serving():
            for take in serving.takes:
                if take.view.shareable:
                    shares[take.view.slot].append(
                        (demands[serving.demand].gang, serving.demand, take)
                    )
        for slot, takes in shares.items():
            for demand in {taker for _, taker, take in takes if take.admin}:
                beside = [
                    take
                    for gang, taker, take in takes
                    if taker == demand
                    or (
                        gang in allocated
                        and gang != demands[demand].gang
                        and not take.admin
                    )
                ]
                names: dict[str, None] = {}
                for take in beside:
                    names.update(
                        dict.fromkeys(name for name, _ in take.charge.capacity)
                    )
                for name in names:
                    add_capacity(model, slot, name, beside)

    def _move_options(
        self, placed: Mapping[str, SignedLiteral]
    ) -> Iterator[SignedTerm]:
        return (
            (placed[option], cost)
            for option, cost in self.costs.items()
            if option in placed
        )

    def moves(self) -> Objective:
        """The number of moved claims as a tier."""
        return Objective("moves", self._moved, self._terms, adds_up=True)

    def _moved(
        self, subset: DemandSubset, placements: Sequence[Placement]
    ) -> int:
        return self._moved_by(subset.problem, placements)

    def _moved_by(
        self, problem: Problem, placements: Iterable[Placement]
    ) -> int:
        placed = {
            problem.demands[placement.demand].gang for placement in placements
        }
        return sum(self.costs[name] for name in placed if name in self.costs)

    def _terms(self, model: Model) -> list[Term]:
        terms: list[Term] = []
        for index, (literal, cost) in enumerate(
            self._move_options(_placed(model))
        ):
            moved = model.cp.new_bool_var(f"moved[{index}]")
            model.cp.add(moved == literal)
            terms.append((moved, cost))
        return terms


def _placed(model: Model) -> Mapping[str, SignedLiteral]:
    """Return, by gang, the variable for whether all of its members are placed, or none."""
    demands = model.problem.demands
    return {
        demands[demand].gang: ~miss
        for demand, miss in model.variables.miss.items()
    }


class Relocation:
    """Finds the best exchange: most weight, then fewest moved claims, then best alternatives.

    Parameters
    ----------
    problem
        With all demands, the weights of those that do not count being 0.
    start
        An answer to start from: everybody stays.

    Attributes
    ----------
    exhausted
        Whether `another` has found that there is no other best exchange.
    """

    def __init__(
        self,
        problem: Problem,
        exchange: Exchange,
        options: Options,
        start: Sequence[Placement],
    ) -> None:
        self.problem = problem
        self.exchange = exchange
        self.options = options
        self.stop = Stop.after(options.time_limit)
        self.weight = placed_weight(problem)
        self.tiers = (*self.weight, exchange.moves(), *after_weight(Goal.NONE))
        self.start = start
        self.exhausted = False

    @cached_property
    def is_large(self) -> bool:
        """Whether a model of everything is not likely to come to anything."""
        capabilities = NodeCapabilities(self.problem)
        counts = map(capabilities.all_candidates, indices(self.problem.demands))
        return sum(counts) > self.options.thresholds.surveyed

    @cached_property
    def _survey(self) -> CandidateSurvey:
        if self.is_large:
            return CandidateSurvey({}, ())
        return survey(self.problem, strict_cel=self.options.strict_cel)

    @cached_property
    def component(self) -> Component:
        """Return the component to solve, with its best answer; without sites if one model is too small for them."""
        sites = self._survey.sites
        demands = (
            indices(self.problem.demands) if self.is_large else tuple(sites)
        )
        subset = DemandSubset(self.problem, demands, sites)
        return Component(subset, self.tiers, self.start, self.exchange.add_to)

    def _search(self) -> tuple[AllocationError, ...]:
        """Bound it, and improve it by neighbourhoods; return what failed on the way."""
        relaxing = self.stop.within(_RELAXING * self.stop.seconds())
        relaxed = tuple(relaxed_bounds(self.problem, self.weight, relaxing))
        search = NeighbourhoodSearch(
            self.component.subset,
            self.tiers,
            self.start,
            self.options,
            extra=self.exchange,
        )
        with suppress(Stopped):
            for answer in search.run(self.stop):
                self.component.consider(answer)
        for bound in relaxed:
            raise_bounds(self.component, bound.costs)
        return tuple(search.failures.values())

    def solve(self) -> Solution:
        """The best exchange, tier by tier, as far as the time limit allows."""
        if self.is_large:
            failures = self._search()
        else:
            failures = self._survey.failures
            TimeSharing(self.options, self.stop).improve(
                range(len(self.tiers)), [self.component]
            )
        tiers = []
        for level, tier in enumerate(self.tiers):
            weight = (
                self.component.subset.weight(tier.weights)
                if tier.weights
                else None
            )
            tiers.append(
                tier.shown(
                    self.component.cost(level),
                    self.component.bounds[level],
                    weight,
                )
            )
        # The weight may be several tiers, so that no sum is too large for the solver.
        tier_count = len(self.weight)
        tiers[:tier_count] = [summed_weight(tiers[:tier_count], self.weight)]
        status = (
            Status.OPTIMAL
            if all(tier.proven for tier in tiers)
            else Status.FEASIBLE
        )
        return Solution(
            _sorted(self.component.placements),
            status,
            tuple(tiers),
            warnings=summed_up(failures),
        )

    def another(self, than: Solution) -> Solution | None:
        """Another best exchange: some claim moves elsewhere than in any answer given here before.

        None if there is no other, or no time left to find one.
        """
        try:
            self.stop.check()
            model, give_up = self._others
            self._exclude(model, than.placements, give_up)
        except Stopped:
            return None
        outcome = minimise(model.cp, [(give_up, 1)], self.options, self.stop)
        values = outcome.values
        # To give up is the last resort; if it cannot be avoided, all answers are known.
        self.exhausted = outcome.bound > 0
        if values is None or values[give_up.index]:
            return None
        return replace(
            than,
            placements=_sorted(
                model.placements(lambda variable: values[variable.index])
            ),
        )

    @cached_property
    def _others(self) -> tuple[Model, cp_model.IntVar]:
        """A model of the best answers that decides every device; and a variable for there being no other answer."""
        model = build_for(
            self.problem, self.component.subset.sites, self.stop, named=True
        )
        self.exchange.add_to(model)
        # No tier may be worse than in the best exchange.
        for level, tier in enumerate(self.tiers):
            add_at_most(
                model.cp,
                tier.terms(model),
                self.component.cost(level),
                tier.name,
            )
        return model, model.cp.new_bool_var("no other")

    def _exclude(
        self,
        model: Model,
        placements: Sequence[Placement],
        give_up: cp_model.IntVar,
    ) -> None:
        """Not all that moves in this answer moves to the same devices."""
        demands, move_options = self.problem.demands, self.exchange.costs
        moving = {
            placement.demand: placement
            for placement in placements
            if demands[placement.demand].gang in move_options
        }
        # Something of this answer is different, or it is given up to find another one.
        differs: list[cp_model.LiteralT] = [give_up]
        for serving in model.variables.every_serving():
            placement = moving.get(serving.demand)
            if placement is not None and placement.node == serving.node:
                choice = serving.choice
                granted = {
                    grant.device
                    for grant in placement.grants[choice.claim]
                    if grant[:2] == (choice.request, choice.alternative)
                }
                differs += [
                    ~take.literal
                    for take in serving.takes
                    if take.device in granted
                ]
        differs += [
            ~model.variables.on[demand, placement.node]
            for demand, placement in moving.items()
        ]
        model.cp.add_bool_or(differs)


def _sorted(placements: Iterable[Placement]) -> tuple[Placement, ...]:
    return tuple(sorted(placements, key=lambda placement: placement.demand))
