"""What placing a demand is worth: strictly by priority, and within a priority by what is to be maximised.

A weight is worth more than all weights of lower priorities together, so that the largest sum is the lexicographic
optimum: what is placed at a higher priority is never given up for lower ones. Within a priority the objective counts,
and of equal answers the number of pods. As digits of one number, these can be read off the sum again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import gcd
from typing import Final, NamedTuple

from dralloc.compile.compiler.asked import asked_amounts
from dralloc.objects.api.disclosure import VALUE_ANNOTATION
from dralloc.objects.choices import ObjectiveWord, Priorities
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.problem import Demand, Problem
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
    kept
        The unit of those that are kept whatever it costs; 0 if there are none.
    """

    weights: tuple[int, ...]
    levels: tuple[WeightLevel, ...] = ()
    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    kept: int = 0

    def applied(self, problem: Problem) -> Problem:
        """The problem with these weights."""
        pairs = zip(problem.demands, self.weights, strict=True)
        return replace(
            problem,
            demands=tuple(
                one if one.weight == weight else replace(one, weight=weight)
                for one, weight in pairs
            ),
        )

    def keeping(self, demands: frozenset[int]) -> Worth:
        """Some demands, by index, are worth more than all others together."""
        unit = 1 + sum(self.weights)
        weights = (
            weight * unit if number in demands else weight
            for number, weight in enumerate(self.weights)
        )
        return replace(self, weights=tuple(weights), kept=unit)

    @property
    def weights_are_shown(self) -> bool:
        """Whether the sum of weights is what tiers are to say."""
        return not (self.levels or self.kept)

    def bound(self, tiers: Sequence[Tier]) -> int:
        """What no sum of weights can exceed, given the tiers of an answer."""
        pairs = zip(self.levels, tiers, strict=False)
        return (
            sum(level.unit * tier.bound // level.factor for level, tier in pairs)
            if self.levels
            else tiers[0].bound
        )

    def tiers(self, found: Sequence[Tier]) -> tuple[Tier, ...]:
        """The tiers of an answer with the weight in its levels."""
        if self.weights_are_shown or not found or found[0].name != WEIGHT:
            return tuple(found)
        return (*self._read(found[0]), *found[1:])

    def _read(self, weight: Tier) -> Iterator[Tier]:
        """What is proven of the sum, level by level: no answer has more of one if it has as much of those before.

        Where a level before is not proven and there is more of this one than its bound would be, the sum says nothing.
        """
        limits = {} if self.kept else dict(weight.limits)
        kept, value = (
            divmod(weight.value, self.kept) if self.kept else (0, weight.value)
        )
        most, bound = (
            divmod(weight.bound, self.kept) if self.kept else (0, weight.bound)
        )
        proven = kept == most
        for level in self.levels or (WeightLevel(WEIGHT, 1, self.kept - 1),):
            mine, kept = divmod(kept, level.unit)
            more, value = divmod(value, level.unit)
            digit, bound = divmod(bound, level.unit)
            limit = digit if proven or digit > more else level.total - mine
            limit = min(limit, max(more, limits.get(level.unit, limit)))
            proven = proven and limit == more
            why = "" if limit == more else weight.why
            yield Tier(
                level.name,
                (mine + more) * level.factor,
                (mine + limit) * level.factor,
                why=why,
            )


def worth_of(
    problem: Problem,
    priorities: Priorities,
    objective: str,
    annotated: Mapping[int, int] | None = None,
) -> Worth:
    """What the demands of a problem are worth.

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
        ObjectiveWord.DEVICES: tuple(demand.asked_devices for demand in demands),
    }
    if annotated or objective == ObjectiveWord.VALUE:
        values[ObjectiveWord.VALUE] = tuple(
            annotated.get(number, 1) for number in range(len(demands))
        )
    if objective not in values:
        values[objective] = asked_amounts(problem, objective)
        if not any(values[objective]) and not _is_known(problem, objective):
            raise DrallocError(
                f'--objective: no counter and no capacity of a device is named "{objective}"'
            )
    make = _strict if priorities is Priorities.STRICT else _ranked
    weights, levels = make(demands, objective, values[objective])
    return Worth(weights, levels if len(levels) > 1 else (), values)


def annotated_values(cluster: Cluster, demands: Sequence[Demand]) -> dict[int, int]:
    """The values that pods, and claims that no pod uses, have by annotation, by demand.

    Raises
    ------
    DrallocError
        A value is no integer from 0.
    """
    if not any(
        VALUE_ANNOTATION in one.metadata.annotations
        for one in (*cluster.pods, *cluster.claims)
    ):
        return {}
    found = {}
    for number, demand in enumerate(demands):
        lone = cluster.is_lone(demand.key, (claim.key for claim in demand.claims))
        about = (
            cluster.claim(demand.key) if lone else cluster.pods_by_key.get(demand.key)
        )
        text = about.metadata.annotations.get(VALUE_ANNOTATION) if about else None
        if about and text is not None:
            if not (text.isascii() and text.isdigit()):
                raise DrallocError(
                    f'{about.title}: metadata.annotations["{VALUE_ANNOTATION}"]: "{text}" is no integer from 0'
                )
            found[number] = int(text)
    return found


def _is_known(problem: Problem, resource: str) -> bool:
    return any(counter.id.counter == resource for counter in problem.counters) or any(
        resource in device.capacity for device in problem.devices
    )


def _strict(
    demands: Sequence[Demand], objective: str, values: Sequence[int]
) -> _Weights:
    weights, levels, scale = [0] * len(demands), [], 1
    order = sorted(range(len(demands)), key=lambda number: demands[number].priority)
    groups = [
        (key, list(each))
        for key, each in groupby(order, key=lambda number: demands[number].priority)
    ]
    for priority, members in groups:
        suffix = f"@{priority}" if len(groups) > 1 else ""
        own = {number: values[number] for number in members}
        digits, found = _digits(own, objective)
        for number, digit in digits.items():
            weights[number] = digit * scale
        levels += [
            each._replace(name=each.name + suffix, unit=each.unit * scale)
            for each in reversed(found)
        ]
        scale *= 1 + sum(digits.values())
    return tuple(weights), tuple(reversed(levels))


def _ranked(
    demands: Sequence[Demand], objective: str, values: Sequence[int]
) -> _Weights:
    """One more for each distinct priority below."""
    ranks = {
        priority: rank
        for rank, priority in enumerate(
            sorted({demand.priority for demand in demands}), 1
        )
    }
    own = {
        number: ranks[demand.priority] * values[number]
        for number, demand in enumerate(demands)
    }
    if objective == ObjectiveWord.PODS:
        return tuple(own.values()), ()
    digits, levels = _digits(own, objective)
    return tuple(digits.values()), (levels[0]._replace(name=WEIGHT), *levels[1:])


def _digits(
    values: Mapping[int, int], objective: str
) -> tuple[dict[int, int], list[WeightLevel]]:
    """What demands of one priority are worth: the objective first, then that they are placed at all."""
    number = len(values)
    if objective == ObjectiveWord.PODS:
        return dict(values), [WeightLevel(objective, 1, number)]
    factor = gcd(*values.values()) or 1
    total = sum(values.values()) // factor
    name = objective if objective in tuple(ObjectiveWord) else f"amount of {objective}"
    digits = {
        each: value // factor * (number + 1) + 1 for each, value in values.items()
    }
    return digits, [
        WeightLevel(name, number + 1, total, factor),
        WeightLevel(ObjectiveWord.PODS, 1, number),
    ]
