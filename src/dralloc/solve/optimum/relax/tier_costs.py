"""What tiers behind the weight count, in the words of a relaxation: ranks of alternatives, and packing goals.

A goal counts things that are touched, be it by one demand or by many: nodes, devices that were free, or units of which
nothing was taken. Of a thing that several demands can draw on the rows are known. They are an *opening*: it costs 1 as
soon as anybody draws on one of its rows. A device that one claim has for itself costs 1 each time it is had.

No answer costs less than what is counted here; what touches a thing without drawing on it costs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from typing import Final, NamedTuple, assert_never

from dralloc.objects.choices import Goal
from dralloc.problem import Problem
from dralloc.solve.optimum.relax.offers import NodeOffers
from dralloc.solve.optimum.sharing import touched_before, units

__all__ = ["FREE", "RANKS", "TierCosts", "goal_costs"]


class TierCosts(NamedTuple):
    """The costs of an answer in a tier behind the weight.

    Parameters
    ----------
    rank
        What it costs if an alternative has a rank more (KEP-4816).
    ways
        By way of the offers, what it costs to get a device so; empty if nothing.
    openings
        Rows of things that cost 1 each if anybody draws on any of their rows. No row is in two of them.
    """

    rank: int = 0
    ways: Sequence[int] = ()
    openings: Sequence[Sequence[int]] = ()


FREE: Final = TierCosts()
"""Nothing costs anything."""

RANKS: Final = TierCosts(rank=1)
"""Ranks of alternatives, added up."""


def goal_costs(problem: Problem, offers: NodeOffers, goal: Goal) -> TierCosts:
    """Return what a packing goal counts; nothing of one that is no sum over things."""
    match goal:
        case Goal.FEWEST_NODES:
            rows_of_node: dict[Hashable, list[int]] = defaultdict(list)
            for row_index, row in enumerate(offers.rows):
                if row.node is not None:
                    rows_of_node[row.node].append(row_index)
            return TierCosts(openings=list(rows_of_node.values()))
        case Goal.FEWEST_DEVICES | Goal.LEAST_FRAGMENTATION:
            return _costs_of_things(problem, offers, goal)
        case Goal.SPREAD | Goal.NONE:
            return FREE
        case _:
            assert_never(goal)


def _costs_of_things(
    problem: Problem, offers: NodeOffers, goal: Goal
) -> TierCosts:
    """Return what devices, or units, cost that nobody has drawn on yet."""
    before: Collection[Hashable] = problem.usage.shares.keys()
    if goal is Goal.LEAST_FRAGMENTATION:
        before = touched_before(problem)
    way_costs: list[int] = []
    # Rows are kept in the order in which they are first drawn on.
    rows_of_thing: dict[Hashable, dict[int, None]] = defaultdict(dict)
    # A device that takes something of its node for some claims alone is a unit for the others alone (KEP-5517).
    drawn_untouched: set[int] = set()
    for _, way in offers.ways():
        view = problem.devices[way.device]
        things: tuple[Hashable, ...] = (view.slot,)
        if goal is Goal.LEAST_FRAGMENTATION:
            things = units(problem, way.device, way.charge)
        untouched = [thing for thing in things if thing not in before]
        is_alone = untouched == [view.slot] and not view.shareable
        way_costs.append(int(is_alone))
        if is_alone:
            continue
        for row_index, _ in way.draws:
            owner = offers.rows[row_index].owner
            if owner in untouched:
                rows_of_thing[owner][row_index] = None
            else:
                drawn_untouched.add(row_index)
    openings = [
        [row for row in rows if row not in drawn_untouched]
        for rows in rows_of_thing.values()
    ]
    return TierCosts(ways=way_costs, openings=list(filter(None, openings)))
