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
from collections.abc import Iterator, Mapping, Sequence

from ortools.sat.python import cp_model

from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.classes.demand_classes import DemandClass, GangShare

__all__ = ["AdmittedGangs", "GangMember", "admit", "dealt_out", "gangs_of"]

GangMember = tuple[int, DemandClass, GangShare]
"""A demand class, with its number and its share of a gang."""


def gangs_of(
    classes: Sequence[DemandClass], *, in_domains: bool
) -> Mapping[int, list[GangMember]]:
    """The classes of members, by class of gangs: of those that need a domain, or of the others."""
    return grouped(
        (each.gang.gangs, (cls, each, each.gang))
        for cls, each in enumerate(classes)
        if each.gang and bool(each.topology) == in_domains
    )


def admit(
    cp: cp_model.CpModel,
    members: Sequence[GangMember],
    placed: Sequence[cp_model.LinearExprT],
    admitted: cp_model.IntVar,
) -> None:
    """Add the rows above: of each class so many are placed, and so many gangs are admitted."""
    quorum = None
    for (_, _, (_, number, quorum)), here in zip(members, placed, strict=True):
        cp.add(
            here == number * admitted if quorum is None else here <= number * admitted
        )
    if quorum is not None:
        cp.add(cp_model.LinearExpr.sum(placed) >= quorum * admitted)


class AdmittedGangs:
    """How many gangs of each class are admitted, but for those that must be in one domain.

    ``missed``: for each class, how many of its joint demands are not placed.
    """

    def __init__(
        self,
        cp: cp_model.CpModel,
        classes: Sequence[DemandClass],
        missed: Sequence[cp_model.IntVar],
    ) -> None:
        self._admitted: dict[int, cp_model.IntVar] = {}
        for gang, members in gangs_of(classes, in_domains=False).items():
            _, first, share = members[0]
            self._admitted[gang] = cp.new_int_var(
                0, first.size // share.number, f"admitted {gang}"
            )
            admit(
                cp,
                members,
                [each.size - missed[cls] for cls, each, _ in members],
                self._admitted[gang],
            )

    def placed_members(
        self,
        classes: Sequence[DemandClass],
        missed: Sequence[cp_model.IntVar],
        values: Sequence[int],
    ) -> Iterator[Iterator[tuple[int, ...]]]:
        """For each class the joint demands that are placed: the first; in gangs with a quorum the first of each."""
        dealt: dict[int, int] = defaultdict(int)
        for each, missing in zip(classes, missed, strict=True):
            number = each.size - values[missing.index]
            if each.gang is None or each.gang.quorum is None or each.topology:
                yield iter(each.joint_demands[:number])
                continue
            admitted, turn = (
                values[self._admitted[each.gang.gangs].index],
                dealt[each.gang.gangs],
            )
            dealt[each.gang.gangs] += number
            yield dealt_out(each, number, admitted, turn)


def dealt_out(
    each: DemandClass, number: int, admitted: int, turn: int, before: int = 0
) -> Iterator[tuple[int, ...]]:
    """So many joint demands of a class, from the turn on to one admitted gang after the other.

    ``before``: how many gangs come before these.
    """
    assert each.gang
    for place in range(number):
        gang = before + (turn + place) % admitted
        yield each.joint_demands[gang * each.gang.number + place // admitted]
