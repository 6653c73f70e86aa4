"""What relaxations prove of a component of the problem, on its way through the tiers.

It does not matter by what the component is solved: what is proven of a priority, and of all of them together, depends
on the demands, and on what the answer in hand has of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

from dralloc.objects.choices import Options
from dralloc.problem import DemandIndex, Problem
from dralloc.problem.solution import Appraisal, LevelPrices
from dralloc.solve.optimum.answered import Answered, raise_bounds
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.relax.bounds import Bound
from dralloc.solve.optimum.relax.ladder import RelaxationLadder
from dralloc.solve.optimum.relax.levels import LexicographicLevel
from dralloc.solve.optimum.relax.node_model import (
    NodeAssignment,
    NodeModel,
)
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = [
    "ComponentRelaxation",
    "Relaxable",
    "count_bound",
    "known_of",
    "recall",
    "take_over",
]

_LOOKING_CLOSER: Final = 0.15
"""The part of the time that closer bounds of lower priorities may take, or one of the ranks of alternatives."""

_ENDING_SECONDS: Final = 0.1
"""Seconds that a search takes to end."""


class Relaxable(Answered, Protocol):
    """Demands with an answer, and what relaxations prove of them."""

    relaxation: ComponentRelaxation


def count_bound(component: Relaxable) -> None:
    """Raise bounds to what relaxations prove, now that there is another answer or another relaxation."""
    bound = component.relaxation.bound
    if bound:
        raise_bounds(component, bound.costs)


def recall(
    component: Relaxable, prices: Sequence[LevelPrices], stop: Stop
) -> None:
    """Prove what the prices of an earlier answer prove."""
    component.relaxation.recall(prices, stop)
    count_bound(component)


def take_over(component: Relaxable, bound: Bound) -> None:
    """Count a bound, if it is no worse than what is known."""
    if component.relaxation.keep(bound):
        count_bound(component)


class ComponentRelaxation:
    """The ladder of relaxations for some demands, what it has proven so far, and what these demands are worth then.

    Attributes
    ----------
    bound
        The best so far; None if there is none.
    appraisal
        What demands and nodes are worth at the last prices; None without prices.
    """

    def __init__(
        self, subset: DemandSubset, tiers: Sequence[Objective]
    ) -> None:
        self._subset = subset
        self._tiers = tiers
        self._ladder: RelaxationLadder | None = None
        self.bound: Bound | None = None
        self.appraisal: Appraisal | None = None

    @property
    def why(self) -> str:
        """What was left out for the bound; empty if there is none."""
        return self.bound.why if self.bound else ""

    @property
    def prices(self) -> Sequence[LevelPrices]:
        """What proved the bound."""
        return self.bound.prices if self.bound else ()

    @property
    def is_at_the_top(self) -> bool:
        """Whether there is no better relaxation."""
        return self._ladder is not None and self._ladder.is_at_the_top

    # What is proven.

    def climb(
        self,
        stop: Stop,
        least_gain: float = 0.0,
        begun_for: Stop | None = None,
    ) -> Iterator[Bound]:
        """Climb on, from where it was left, and give out what is proven: `keep` is for who counts it.

        Parameters
        ----------
        least_gain, begun_for
            As `RelaxationLadder.bounds` takes them.
        """
        yield from self._ladder_until(stop).bounds(least_gain, begun_for)

    def climb_and_look(
        self, answer: Answered, stop: Stop, least_gain: float
    ) -> Iterator[Bound]:
        """Climb on as `climb`, and look closer before and after that, if it does not take long.

        Answers may be found in the meantime: what they say is looked at as it is then.
        """
        bound = self.bound
        if bound is not None and self.can_look_closer(answer, stop):
            bound = self.closer(bound, answer, _part_of(stop))
            yield bound
        has_climbed = False
        for bound in self.climb(stop, least_gain):
            has_climbed = True
            yield bound
        if (
            bound is not None
            and has_climbed
            and self.can_look_closer(answer, stop)
        ):
            yield self.closer(bound, answer, _part_of(stop))

    def recall(self, prices: Sequence[LevelPrices], stop: Stop) -> None:
        """Keep what the prices of an earlier answer prove here, and appraise demands by these prices."""
        ladder = self._new_ladder(stop)
        bound = ladder.bound_by(prices)
        if bound is not None:
            self.bound = bound
            self._appraise(ladder)

    def keep(self, bound: Bound) -> bool:
        """Keep a bound, if it is no worse than what is known; whether it is kept."""
        is_kept = self.bound is None or bound.costs >= self.bound.costs
        if is_kept:
            self.bound = bound
        return is_kept

    def appraise(self, stop: Stop) -> None:
        """Find out what demands and nodes are worth at the last prices, if there are any."""
        if self._ladder is not None:
            self._ladder.allow(stop)
            self._appraise(self._ladder)

    # A closer look, with an answer in hand.

    def closer(self, bound: Bound, answer: Answered, stop: Stop) -> Bound:
        """Return the same with what the answer says of levels that may have more than it, as far as there is time."""
        if self._ladder is None:
            return bound
        self._ladder.allow(stop)
        reached, best = known_of(answer, bound.levels)
        return self._ladder.look_closer(bound, reached, best)

    def can_look_closer(self, answer: Answered, stop: Stop) -> bool:
        """Whether it may prove anything to look closer, and takes a small part of the time that is left."""
        if self._ladder is None:
            return False
        reached, _ = known_of(answer, self._ladder.levels)
        # Where all levels before the last have all that they can have, the relaxation has said all.
        may_help = reached[:-1] != self._ladder.limits[:-1]
        seconds = self._ladder.least_seconds_to_look_closer + _ENDING_SECONDS
        return may_help and seconds <= _part_of(stop).seconds()

    def before_looking_closer(self, answer: Answered, stop: Stop) -> Stop:
        """Return when a search has to end for that; without a limit, or if it is not worth it, the same stop."""
        if self._ladder is None or not self.can_look_closer(answer, stop):
            return stop
        seconds = self._ladder.seconds_to_look_closer + _ENDING_SECONDS
        looking_closer = min(seconds, _part_of(stop).seconds())
        return stop.within(stop.seconds() - looking_closer)

    def least_cost(self, answer: Answered, level: int, stop: Stop) -> int:
        """Return what the optimum costs at least in a tier behind the weight; 0 if that is not known.

        It places of each weight no less than the answer, as far as the answer has all that is possible of those before.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        if self._ladder is None or self.bound is None:
            return 0
        levels = self._ladder.levels
        # Where a level has several weights, as much of it can be other demands, and those below may be other ones, too.
        if any(weights.lowest < weights.highest for weights in levels):
            return 0
        self._ladder.allow(_part_of(stop))
        ranges = self.bound.ranges(*known_of(answer, levels))
        surely_placed = [level_range.least for level_range in ranges]
        return self._ladder.least_cost(answer.tiers[level].name, surely_placed)

    # Whole demands.

    def assign_nodes(
        self,
        answer: Answered,
        level: int,
        options: Options,
        stop: Stop,
    ) -> NodeAssignment | None:
        """Have whole demands on nodes, as the rows of the relaxation allow, beginning with what an answer has.

        Parameters
        ----------
        level
            The tier, which is one of the weight.

        Returns
        -------
        With the demands as the whole problem numbers them; None if the tier is none of the weight, or if there was no
        time for an answer.

        Raises
        ------
        Stopped
            It is time to stop before there is an integer program.
        """
        weights = self._tiers[level].weights
        if weights is None:
            return None
        ladder = self._ladder_until(stop)
        model = NodeModel(ladder.market, stop)
        levels = ladder.levels
        for weight_level, reached, best in zip(
            levels, *known_of(answer, levels), strict=True
        ):
            if reached < best:
                break
            # There is no more of it; and so the optimum has as much.
            model.require(weight_level, reached)
        own_index = {
            demand: DemandIndex(index)
            for index, demand in enumerate(self._subset.demands)
        }
        present = {
            own_index[placement.demand]: placement.node
            for placement in answer.placements
        }
        assignment = model.solve(weights, present, options, stop)
        if assignment is None:
            return None
        nodes = {
            self._subset.demands[member]: node
            for member, node in assignment.nodes.items()
        }
        return assignment._replace(nodes=nodes)

    # What it says of the optimum.

    def limits(self, answer: Answered) -> Mapping[int, int]:
        """Return how many demands the optimum places at most, by weight, of weights that are a level alone."""
        if not self.bound:
            return {}
        levels = self.bound.levels
        level_limits = self.bound.most_of_optimum(*known_of(answer, levels))
        return {
            level.unit: units
            for level, units in zip(levels, level_limits, strict=True)
            if level.lowest == level.highest
        }

    def most_with_weight(self, answer: Answered) -> int:
        """Return how many demands with a weight the optimum places at most, if each level has one weight."""
        if not self.bound:
            return len(self._subset.demands)
        return self.bound.most_together(*known_of(answer, self.bound.levels))

    # How it is done.

    def _ladder_until(self, stop: Stop) -> RelaxationLadder:
        """Return the ladder, as far up as it was climbed."""
        if self._ladder is None:
            self._ladder = self._new_ladder(stop)
        self._ladder.allow(stop)
        return self._ladder

    def _new_ladder(self, stop: Stop) -> RelaxationLadder:
        return RelaxationLadder(
            self._own_problem(), self._tiers, stop, self._subset.most_of_gang
        )

    def _appraise(self, ladder: RelaxationLadder) -> None:
        with suppress(Stopped):
            appraisal = ladder.appraisal()
            if appraisal is not None:
                self.appraisal = appraisal.renumbered(self._subset.demands)

    def _own_problem(self) -> Problem:
        """Return the problem with these demands alone."""
        problem = self._subset.problem
        if len(self._subset.demands) == len(problem.demands):
            return problem
        demands = [problem.demands[demand] for demand in self._subset.demands]
        return replace(problem, demands=tuple(demands))


def _part_of(stop: Stop) -> Stop:
    """Return when to stop with a closer look at bounds."""
    return stop.within(_LOOKING_CLOSER * stop.seconds())


def known_of(
    answer: Answered, levels: Sequence[LexicographicLevel]
) -> tuple[list[int], list[int]]:
    """Return what the answer has of each level, and what the bounds of the tiers leave for it, in units.

    The most that is possible of a tier says of each of its levels how much of it there can be where those before have
    all that they can have. Of levels that no tier counts nothing is known.
    """
    costs = [answer.cost(tier) for tier in range(len(answer.tiers))]
    reached = list(_digits(answer, levels, costs))
    best = list(_digits(answer, levels, answer.bounds))
    unknown = levels[len(reached) :]
    return (
        [*reached, *(0 for _ in unknown)],
        [*best, *(level.total for level in unknown)],
    )


def _digits(
    answer: Answered,
    levels: Sequence[LexicographicLevel],
    costs: Sequence[int],
) -> Iterator[int]:
    """Yield what is placed of each level, in units, where tiers cost so much, up to a level that no tier counts.

    All that is below a level is worth less than its unit, so that what is placed of it is a digit of the weight.
    """
    placed = {
        tier.weights: answer.subset.weight(tier.weights) - cost
        for tier, cost in zip(answer.tiers, costs, strict=True)
        if tier.weights
    }
    for level in levels:
        tiers = [
            tier
            for tier in placed
            if tier.of(level.lowest) and tier.of(level.highest)
        ]
        if not tiers:
            break
        [tier] = tiers
        digit, placed[tier] = divmod(placed[tier], level.unit // tier.unit)
        yield min(level.total, digit)
