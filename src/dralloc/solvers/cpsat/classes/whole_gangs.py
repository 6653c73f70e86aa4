"""Gangs over classes: so many of equal gangs are admitted, and each of these has the members that it needs.

For a class *g* of equal gangs, with ``members[c]`` demands of class *c* in each of them, all of which are needed::

    sum_m placed[c, m] = members[c] * admitted[g]

If a quorum of them will do (KEP-4671)::

    sum_m placed[c, m] <= members[c] * admitted[g]
    sum_{c, m} placed[c, m] >= quorum * admitted[g]

That is exact: dealing out the demands that are placed to the admitted gangs in turn, class after class, gives each of
them no more than its members, and all of them the same number but for one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ortools.sat.python import cp_model

from dralloc.solvers.cpsat.classes.demand_classes import DemandClass

__all__ = ["AdmittedGangs", "dealt_out"]


class AdmittedGangs:
    """How many gangs of each class are admitted, but for those that must be in one domain.

    Parameters
    ----------
    missed
        For each class, how many of its joint demands are not placed.
    """

    def __init__(self, cp: cp_model.CpModel, classes: Sequence[DemandClass], missed: Sequence[cp_model.IntVar]) -> None:
        self._admitted: dict[int, cp_model.IntVar] = {}
        placed: dict[int, list[cp_model.LinearExpr]] = defaultdict(list)
        quorums: dict[int, int] = {}
        for each, missing in zip(classes, missed, strict=True):
            if each.gang and not each.topology:
                (gang, number, quorum), size = each.gang, each.size
                if gang not in self._admitted:
                    self._admitted[gang] = cp.new_int_var(0, size // number, f"admitted {gang}")
                if quorum is None:
                    cp.add(missing + number * self._admitted[gang] == size)
                else:
                    cp.add(missing + number * self._admitted[gang] >= size)
                    placed[gang].append(size - missing)
                    quorums[gang] = quorum
        for gang, quorum in quorums.items():
            cp.add(cp_model.LinearExpr.sum(placed[gang]) >= quorum * self._admitted[gang])

    def placed_members(
        self, classes: Sequence[DemandClass], missed: Sequence[cp_model.IntVar], values: Sequence[int]
    ) -> Iterator[Iterator[tuple[int, ...]]]:
        """For each class the joint demands that are placed: the first; in gangs with a quorum the first of each."""
        dealt: dict[int, int] = defaultdict(int)
        for each, missing in zip(classes, missed, strict=True):
            number = each.size - values[missing.index]
            if each.gang is None or each.gang.quorum is None or each.topology:
                yield iter(each.joint_demands[:number])
                continue
            admitted, turn = values[self._admitted[each.gang.gangs].index], dealt[each.gang.gangs]
            dealt[each.gang.gangs] += number
            yield dealt_out(each, number, admitted, turn)


def dealt_out(each: DemandClass, number: int, admitted: int, turn: int, before: int = 0) -> Iterator[tuple[int, ...]]:
    """So many joint demands of a class, from the turn on to one admitted gang after the other.

    ``before``: how many gangs come before these.
    """
    assert each.gang
    for place in range(number):
        gang = before + (turn + place) % admitted
        yield each.joint_demands[gang * each.gang.number + place // admitted]
