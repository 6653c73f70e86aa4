"""Gangs over counts: so many of equal gangs are admitted, and each of these has the members that it needs.

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

from dralloc.problem.indices import DemandIndex
from dralloc.solve.optimum.classes.demand_classes import DemandClass, GangShare
from dralloc.solve.optimum.solvers import cp_model

__all__ = ["AdmittedGangs", "GangMember", "admit", "dealt_out", "gangs_of"]

GangMember = tuple[int, DemandClass, GangShare]
"""A demand class, with its number and its share of a gang."""


def gangs_of(
    classes: Sequence[DemandClass], *, in_domains: bool
) -> Mapping[int, list[GangMember]]:
    """The classes of members, by class of gangs: of those that need a domain, or of the others."""
    gangs: dict[int, list[GangMember]] = defaultdict(list)
    for cls, demand_class in enumerate(classes):
        gang = demand_class.gang
        if gang and bool(demand_class.topology) == in_domains:
            gangs[gang.gangs].append((cls, demand_class, gang))
    return gangs


def admit(
    cp: cp_model.CpModel,
    members: Sequence[GangMember],
    placed: Sequence[cp_model.LinearExprT],
    admitted: cp_model.IntVar,
) -> None:
    """Add the rows above: of each class so many are placed, and so many gangs are admitted."""
    quorum = None
    for (_, _, share), placed_members in zip(members, placed, strict=True):
        quorum = share.quorum
        admitted_members = share.number * admitted
        if quorum is None:
            cp.add(placed_members == admitted_members)
        else:
            cp.add(placed_members <= admitted_members)
    if quorum is not None:
        cp.add(cp_model.LinearExpr.sum(placed) >= quorum * admitted)


class AdmittedGangs:
    """The number of admitted gangs of each class, but for those that must be in one domain.

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
            gang_count = first.size // share.number
            admitted = cp.new_int_var(0, gang_count, f"admitted {gang}")
            self._admitted[gang] = admitted
            placed = [member.size - missed[cls] for cls, member, _ in members]
            admit(cp, members, placed, admitted)

    def placed_members(
        self,
        classes: Sequence[DemandClass],
        missed: Sequence[cp_model.IntVar],
        values: Sequence[int],
    ) -> Iterator[Iterator[tuple[DemandIndex, ...]]]:
        """For each class the joint demands that are placed: the first; in gangs with a quorum the first of each."""
        dealt: dict[int, int] = defaultdict(int)
        for demand_class, missing in zip(classes, missed, strict=True):
            count = demand_class.size - values[missing.index]
            gang = demand_class.gang
            if gang is None or gang.quorum is None or demand_class.topology:
                yield iter(demand_class.joint_demands[:count])
                continue
            admitted = values[self._admitted[gang.gangs].index]
            turn = dealt[gang.gangs]
            dealt[gang.gangs] += count
            yield dealt_out(demand_class, count, admitted, turn)


def dealt_out(
    demand_class: DemandClass,
    count: int,
    admitted: int,
    turn: int,
    before: int = 0,
) -> Iterator[tuple[DemandIndex, ...]]:
    """Yield so many joint demands of a class, from the turn on to one admitted gang after the other.

    ``before``: how many gangs come before these.
    """
    assert demand_class.gang
    gang_size = demand_class.gang.number
    for position in range(count):
        gang = before + (turn + position) % admitted
        yield demand_class.joint_demands[
            gang * gang_size + position // admitted
        ]
