"""Who stays and who moves: allocated claims as demands of their own, each either where it is or placed anew.

The problem holds for every allocated claim that may move a demand that can only be placed where the claim is (it
*stays*), and for every option to move it the demands of that option. Beyond the rules of the problem::

    placed[stay of c] + sum_(options w that move c) placed[w] = 1
    sum_(options w of a group) placed[w] <= 1
    sum_w cost[w] * placed[w] <= most
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ortools.sat.python import cp_model

from dralloc.objects.choices import Goal, Options
from dralloc.problem import Problem
from dralloc.problem.solution import Placement, Solution, Status
from dralloc.solve.optimum.assemble import build_for
from dralloc.solve.optimum.candidates import survey
from dralloc.solve.optimum.component import Component, TimeSharing
from dralloc.solve.optimum.constraints import add_capacity
from dralloc.solve.optimum.failures import summed_up
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
    after_weight,
    placed_weight,
    summed_weight,
)
from dralloc.solve.optimum.rows import Literal, SignedTerm, Term, add_at_most
from dralloc.solve.optimum.search import minimise
from dralloc.solve.optimum.stopping import Stop, Stopped
from dralloc.solve.optimum.variables import Take

__all__ = ["Exchange", "Relocation"]


@dataclass(frozen=True)
class Exchange:
    """Which demands stand for each other. A option is named by the first of its demands, which are a gang.

    Parameters
    ----------
    stays
        For each allocated claim the demand that stands for staying (None if it holds what it holds in any case), and
        the options that move it.
    groups
        Ways of which at most one is taken.
    costs
        How many claims each option moves.
    most
        How many claims may move; None for any number.
    """

    stay_options: tuple[tuple[int | None, tuple[int, ...]], ...]
    groups: tuple[tuple[int, ...], ...]
    costs: Mapping[int, int]
    most: int | None = None

    def add_to(self, model: Model) -> None:
        """Add the rules to a model."""
        miss = model.variables.miss
        for stay, move_options in self.stay_options:
            placed = [~miss[option] for option in move_options if option in miss]
            if stay is None:
                model.cp.add_at_most_one(placed)
            else:
                model.cp.add_exactly_one([~miss[stay], *placed])
        for move_options in self.groups:
            model.cp.add_at_most_one(
                [~miss[option] for option in move_options if option in miss]
            )
        if self.most is not None:
            terms: list[SignedTerm] = [
                (~literal, cost) for literal, cost in self._move_options(model)
            ]
            add_at_most(model.cp, terms, self.most, "moves")
        self._admin_access(model)

    def _admin_access(self, model: Model) -> None:
        """What has admin access finds the capacity taken by all that is allocated, wherever that is in the end."""
        demands = model.problem.demands
        allocated = {
            demands[number].gang
            for entry in self.stay_options
            for number in (entry[0], *entry[1])
            if number is not None
        }
        shares: dict[int, list[tuple[str, int, Take]]] = defaultdict(list)
        for serving in model.variables.every_serving():
            for take in serving.takes:
                if take.view.shareable:
                    shares[take.view.slot].append(
                        (demands[serving.demand].gang, serving.demand, take)
                    )
        for slot, found in shares.items():
            for demand in {number for _, number, take in found if take.admin}:
                beside = [
                    take
                    for gang, number, take in found
                    if number == demand
                    or (
                        gang in allocated
                        and gang != demands[demand].gang
                        and not take.admin
                    )
                ]
                for name in dict.fromkeys(
                    name for take in beside for name, _ in take.charge.capacity
                ):
                    add_capacity(model, slot, name, beside)

    def _move_options(self, model: Model) -> Iterator[Term]:
        miss = model.variables.miss
        return (
            (miss[option], cost)
            for option, cost in self.costs.items()
            if option in miss
        )

    def moves(self) -> Objective:
        """The number of moved claims as a tier."""
        return Objective("moves", self._moved, self._terms)

    def _moved(self, _: DemandSubset, placements: Sequence[Placement]) -> int:
        return sum(self.costs.get(placement.demand, 0) for placement in placements)

    def _terms(self, model: Model) -> list[Term]:
        found: list[Term] = []
        for number, (literal, cost) in enumerate(self._move_options(model)):
            moved = model.cp.new_bool_var(f"moved[{number}]")
            model.cp.add(moved == ~literal)
            found.append((moved, cost))
        return found


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
        found = survey(problem, strict_cel=options.strict_cel)
        self.warnings = summed_up(found.failures)
        self.weight = placed_weight(problem)
        self.tiers = (*self.weight, exchange.moves(), *after_weight(Goal.NONE))
        subset = DemandSubset(problem, tuple(found.sites), found.sites)
        self.component = Component(subset, self.tiers, start, exchange.add_to)
        self.exhausted = False

    def solve(self) -> Solution:
        """The best exchange, tier by tier, as far as the time limit allows."""
        TimeSharing(self.options, self.stop).improve(
            range(len(self.tiers)), [self.component]
        )
        tiers = []
        for level, tier in enumerate(self.tiers):
            weight = (
                self.component.subset.weight(tier.weights) if tier.weights else None
            )
            tiers.append(
                tier.shown(
                    self.component.cost(level), self.component.bounds[level], weight
                )
            )
        number = len(self.weight)
        tiers[:number] = [summed_weight(tiers[:number], self.weight)]
        status = (
            Status.OPTIMAL if all(tier.proven for tier in tiers) else Status.FEASIBLE
        )
        return Solution(
            _sorted(self.component.placements),
            status,
            tuple(tiers),
            warnings=self.warnings,
        )

    def another(self, than: Solution) -> Solution | None:
        """Another best exchange: somebody moves elsewhere than in any answer given here before.

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
    def _others(self) -> tuple[Model, Literal]:
        """A model of the best answers, in which it is decided who gets which device; and that there is no other."""
        model = build_for(
            self.problem, self.component.subset.sites, self.stop, named=True
        )
        self.exchange.add_to(model)
        for level, tier in enumerate(self.tiers):
            add_at_most(
                model.cp, tier.terms(model), self.component.cost(level), tier.name
            )
        return model, model.cp.new_bool_var("no other")

    def _exclude(
        self, model: Model, placements: Sequence[Placement], give_up: Literal
    ) -> None:
        """Not all that moves in this answer moves to the same devices."""
        demands = self.problem.demands
        move_options = {demands[option].gang for option in self.exchange.costs}
        moving = {
            one.demand: one
            for one in placements
            if demands[one.demand].gang in move_options
        }
        same: list[cp_model.LiteralT] = [give_up]
        for serving in model.variables.every_serving():
            here = moving.get(serving.demand)
            if here is not None and here.node == serving.node:
                choice = serving.choice
                grants = {
                    grant.device
                    for grant in here.grants[choice.claim]
                    if grant[:2] == (choice.request, choice.alternative)
                }
                same += [
                    ~take.literal for take in serving.takes if take.device in grants
                ]
        same += [
            ~model.variables.on[demand, here.node] for demand, here in moving.items()
        ]
        model.cp.add_bool_or(same)


def _sorted(placements: Iterable[Placement]) -> tuple[Placement, ...]:
    return tuple(sorted(placements, key=lambda placement: placement.demand))
