"""Weights and priorities: the weight of each demand.

Strictly by priority, and within a priority by what is to be maximised. A weight is worth more than all weights of lower
priorities together, so that the largest sum is the lexicographic optimum: what is placed at a higher priority is never
given up for lower ones. Within a priority the objective counts, and of equal answers the number of pods. As digits of
one number, these can be read off the sum again.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import gcd
from typing import Final, NamedTuple

from dralloc.compile.compiler.asked_amounts import asked_amounts
from dralloc.objects.api.disclosure import VALUE_ANNOTATION
from dralloc.objects.choices import ObjectiveWord, Priorities
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.problem import Demand, Problem, indices
from dralloc.problem.indices import DemandIndex, Numbered, grouped, numbered
from dralloc.problem.solution import Tier

__all__ = ["WeightLevel", "Worth", "annotated_values", "worth_of"]

WEIGHT: Final = "weight"


class WeightLevel(NamedTuple):
    """A digit of the weights: its unit, what all demands have of it, and what one of it stands for."""

    name: str
    unit: int
    total: int
    factor: int = 1


_Weights = tuple[tuple[int, ...], tuple[WeightLevel, ...]]
"""By demand; and the digits."""


@dataclass(frozen=True)
class Worth:
    """How weights are made.

    Parameters
    ----------
    weights
        By demand.
    levels
        The digits, most important first; none if the weights are shown as they are.
    values
        By name of an objective, what placing each demand counts.
    kept_unit
        The unit of those that are kept whatever it costs; 0 if there are none.
    """

    weights: tuple[int, ...]
    levels: tuple[WeightLevel, ...] = ()
    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    kept_unit: int = 0

    def applied(self, problem: Problem) -> Problem:
        """The problem with these weights."""
        pairs = zip(problem.demands, self.weights, strict=True)
        return replace(
            problem,
            demands=tuple(
                demand
                if demand.weight == weight
                else replace(demand, weight=weight)
                for demand, weight in pairs
            ),
        )

    def keeping(self, demands: frozenset[int]) -> Worth:
        """Some demands, by index, are worth more than all others together."""
        unit = 1 + sum(self.weights)
        weights = (
            weight * unit if demand in demands else weight
            for demand, weight in enumerate(self.weights)
        )
        return replace(self, weights=tuple(weights), kept_unit=unit)

    @property
    def weights_are_shown(self) -> bool:
        """Whether the sum of weights is what tiers are to say."""
        return not (self.levels or self.kept_unit)

    def bound(self, tiers: Sequence[Tier]) -> int:
        """Return the upper bound of the sum of weights, given the tiers of an answer."""
        pairs = zip(self.levels, tiers, strict=False)
        return (
            sum(
                level.unit * tier.bound // level.factor for level, tier in pairs
            )
            if self.levels
            else tiers[0].bound
        )

    def tiers(self, tiers: Sequence[Tier]) -> tuple[Tier, ...]:
        """The tiers of an answer with the weight in its levels."""
        if self.weights_are_shown or not tiers or tiers[0].name != WEIGHT:
            return tuple(tiers)
        return (*self._read(tiers[0]), *tiers[1:])

    def _read(self, weight: Tier) -> Iterator[Tier]:
        """Return what is proven of the sum, by level: how much of each the optimum has at most.

        Where a level before is not proven, the sum says nothing: an answer with less there than its bound may have any
        number of this one.
        """
        limits: Sequence[int] = ()
        if weight.limits and not self.kept_unit:
            limits = self._most_of_levels(weight.limits)
        # Who is kept is in the digit above all others; what is below it is what others are worth.
        kept_weight, value = 0, weight.value
        kept_bound, bound = 0, weight.bound
        if self.kept_unit:
            kept_weight, value = divmod(weight.value, self.kept_unit)
            kept_bound, bound = divmod(weight.bound, self.kept_unit)
        proven = kept_weight == kept_bound
        levels = self.levels or (WeightLevel(WEIGHT, 1, self.kept_unit - 1),)
        for level, most in zip_longest(levels, limits):
            kept_digit, kept_weight = divmod(kept_weight, level.unit)
            value_digit, value = divmod(value, level.unit)
            bound_digit, bound = divmod(bound, level.unit)
            not_kept = level.total - kept_digit
            limit = min(bound_digit, not_kept) if proven else not_kept
            if most is not None:
                limit = min(limit, max(value_digit, most))
            if limit < bound_digit:
                # Who is not placed here leaves the sum room for all below.
                bound = level.unit - 1
            proven = proven and limit == value_digit
            why = "" if limit == value_digit else weight.why
            yield Tier(
                level.name,
                (kept_digit + value_digit) * level.factor,
                (kept_digit + limit) * level.factor,
                why=why,
            )

    def _most_of_levels(
        self, limits: Sequence[tuple[int, int]]
    ) -> Sequence[int]:
        """Return how much of each level is placed at most, given that number of demands by weight.

        A weight counts in several levels: a pod without devices is a pod, as those are that have some.
        """
        most_of_levels = [0] * len(self.levels)
        most_by_weight = {**Tally(self.weights), **dict(limits)}
        for weight, most in most_by_weight.items():
            remainder = weight
            for level_index, level in enumerate(self.levels):
                digit, remainder = divmod(remainder, level.unit)
                most_of_levels[level_index] += digit * most
        return most_of_levels


def worth_of(
    problem: Problem,
    priorities: Priorities,
    objective: str,
    annotated: Mapping[DemandIndex, int] | None = None,
) -> Worth:
    """Return the weights of the demands of a problem.

    Parameters
    ----------
    objective
        As in `dralloc.Choices`.
    annotated
        The values of pods and claims, by demand; 1 for all others.

    Raises
    ------
    DrallocError
        No counter and no capacity has the name of the objective.
    """
    demands, annotated = problem.demands, annotated or {}
    values: dict[str, tuple[int, ...]] = {
        ObjectiveWord.PODS: (1,) * len(demands),
        ObjectiveWord.DEVICES: tuple(
            demand.asked_devices for demand in demands
        ),
    }
    if annotated or objective == ObjectiveWord.VALUE:
        values[ObjectiveWord.VALUE] = tuple(
            annotated.get(demand_index, 1) for demand_index in indices(demands)
        )
    if objective not in values:
        values[objective] = asked_amounts(problem, objective)
        # There may be something that nobody asks for: only a name that nothing has is an error.
        if not any(values[objective]) and not _is_known(problem, objective):
            raise DrallocError(
                f'--objective: no counter and no capacity of a device is named "{objective}"'
            )
    make = _strict if priorities is Priorities.STRICT else _ranked
    weights, levels = make(demands, objective, values[objective])
    return Worth(weights, levels if len(levels) > 1 else (), values)


def annotated_values(
    cluster: Cluster, demands: Numbered[DemandIndex, Demand]
) -> dict[DemandIndex, int]:
    """The values that pods, and claims that no pod uses, have by annotation, by demand.

    Raises
    ------
    DrallocError
        A value is no integer from 0.
    """
    if not any(
        VALUE_ANNOTATION in annotated_object.metadata.annotations
        for annotated_object in (*cluster.pods, *cluster.claims)
    ):
        return {}
    values = {}
    for demand_index, demand in numbered(demands):
        # A claim that no pod uses may have the name of a pod, so the name does not say which of them it is.
        lone = cluster.is_lone(
            demand.key, (claim.key for claim in demand.claims)
        )
        about = (
            cluster.claim(demand.key)
            if lone
            else cluster.pods_by_key.get(demand.key)
        )
        text = (
            about.metadata.annotations.get(VALUE_ANNOTATION) if about else None
        )
        if about and text is not None:
            if not (text.isascii() and text.isdigit()):
                raise DrallocError(
                    f'{about.title}: metadata.annotations["{VALUE_ANNOTATION}"]: "{text}" is no integer from 0'
                )
            values[demand_index] = int(text)
    return values


def _is_known(problem: Problem, resource: str) -> bool:
    return any(
        counter.id.counter == resource for counter in problem.counters
    ) or any(resource in device.capacity for device in problem.devices)


def _strict(
    demands: Numbered[DemandIndex, Demand],
    objective: str,
    values: Sequence[int],
) -> _Weights:
    """From the lowest priority up: one of a priority weighs more than all that are below it together."""
    weights, levels, scale = [0] * len(demands), [], 1
    by_priority = grouped(
        (demand.priority, demand_index)
        for demand_index, demand in numbered(demands)
    )
    for priority in sorted(by_priority):
        suffix = f"@{priority}" if len(by_priority) > 1 else ""
        members = {
            demand_index: values[demand_index]
            for demand_index in by_priority[priority]
        }
        digits, digit_levels = _digits(members, objective)
        for demand_index, digit in digits.items():
            weights[demand_index] = digit * scale
        levels += [
            level._replace(name=level.name + suffix, unit=level.unit * scale)
            for level in reversed(digit_levels)
        ]
        scale *= 1 + sum(digits.values())
    return tuple(weights), tuple(reversed(levels))


def _ranked(
    demands: Numbered[DemandIndex, Demand],
    objective: str,
    values: Sequence[int],
) -> _Weights:
    """Give each demand the rank of its priority as weight: 1 for the lowest, one more for each distinct priority."""
    priorities = sorted({demand.priority for demand in demands})
    ranks = {priority: rank for rank, priority in enumerate(priorities, 1)}
    ranked = {
        demand_index: ranks[demand.priority] * values[demand_index]
        for demand_index, demand in numbered(demands)
    }
    if objective == ObjectiveWord.PODS:
        return tuple(ranked.values()), ()
    digits, levels = _digits(ranked, objective)
    return tuple(digits.values()), (
        levels[0]._replace(name=WEIGHT),
        *levels[1:],
    )


def _digits(
    values: Mapping[DemandIndex, int], objective: str
) -> tuple[dict[DemandIndex, int], list[WeightLevel]]:
    """Return the weights of demands of one priority: the objective first, then that they are placed at all."""
    demand_count = len(values)
    if objective == ObjectiveWord.PODS:
        return dict(values), [WeightLevel(objective, 1, demand_count)]
    factor = gcd(*values.values()) or 1
    total = sum(values.values()) // factor
    name = (
        objective
        if objective in tuple(ObjectiveWord)
        else f"amount of {objective}"
    )
    # The lower digit counts demands, at most all of them: so one of the upper is worth one more than that.
    digits = {
        demand: value // factor * (demand_count + 1) + 1
        for demand, value in values.items()
    }
    return digits, [
        WeightLevel(name, demand_count + 1, total, factor),
        WeightLevel(ObjectiveWord.PODS, 1, demand_count),
    ]
