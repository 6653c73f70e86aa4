"""More or less of what is to be placed: the same pods, fewer of them, or some of them twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import LIMITS
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, ParentGroup, Problem

__all__ = ["scaled"]

_Groups = dict[tuple[ParentGroup, int], ParentGroup]


def scaled(
    problem: Problem, demand: float, seed: int, most: int = LIMITS.pods
) -> Problem:
    """The problem with so many times as many demands.

    Below 1 some are left out, above 1 all are there and copies of some come after them: as many of each as of any
    other, up to one. Which ones is drawn by the seed; the order stays. A gang is left out or copied as a whole, so that
    the number is met up to the size of a gang. Copies have claims of their own; those that several demands use are
    copied once for all of them.

    Parameters
    ----------
    demand
        How many times as many, not below 0; rounded to whole demands.
    most
        How many demands may come out, if there are not that many already.

    Raises
    ------
    DrallocError
        More would come out.
    """
    wanted = demand * len(problem.demands)
    if wanted > max(most, len(problem.demands)):
        limit = f"more than {most}; --limit pods=AMOUNT allows more"
        raise DrallocError(
            f"demand: {demand} times {len(problem.demands)} pods and claims are {limit}"
        )
    whole, part = divmod(round(wanted), max(len(problem.demands), 1))
    rounds: list[Sequence[int]] = [range(len(problem.demands))] * whole
    if part:
        rounds.append(_drawn(problem.demands, part, Random(f"{seed}")))
    groups: _Groups = {}
    drawn = (
        (turn, problem.demands[number])
        for turn, numbers in enumerate(rounds)
        for number in numbers
    )
    return replace(
        problem, demands=tuple(_copy(demand, turn, groups) for turn, demand in drawn)
    )


def _drawn(demands: Sequence[Demand], most: int, random: Random) -> Sequence[int]:
    """As many of the demands as wanted, or fewer by less than a gang, in their order."""
    groups: dict[object, list[int]] = {}
    for number, demand in enumerate(demands):
        groups.setdefault(demand.placed_with or number, []).append(number)
    order = list(groups.values())
    random.shuffle(order)
    chosen: list[int] = []
    for members in order:
        if len(chosen) + len(members) <= most:
            chosen += members
    return sorted(chosen)


def _copy(demand: Demand, turn: int, groups: _Groups) -> Demand:
    """The demand itself at turn 0, afterwards one that asks for the same under other names."""
    if not turn:
        return demand
    return replace(
        demand,
        key=_renamed(demand.key, turn),
        claims=tuple(
            replace(claim, key=_renamed(claim.key, turn)) for claim in demand.claims
        ),
        gang=demand.gang and f"{demand.gang}+{turn}",
        parent=demand.parent and _renamed_group(demand.parent, turn, groups),
    )


def _renamed_group(group: ParentGroup, turn: int, groups: _Groups) -> ParentGroup:
    """One copy of the group for each turn."""
    if (group, turn) not in groups:
        groups[group, turn] = replace(
            group,
            name=f"{group.name}+{turn}",
            settled=frozenset(f"{name}+{turn}" for name in group.settled),
            parent=group.parent and _renamed_group(group.parent, turn, groups),
        )
    return groups[group, turn]


def _renamed(key: ClaimKey, turn: int) -> ClaimKey:
    return ClaimKey(key.namespace, f"{key.name}+{turn}")
