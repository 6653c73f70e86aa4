"""Rules that strand capacity, and what there is to be had without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from dralloc.ask.context.lift import Lift
from dralloc.ask.context.offers import Offers
from dralloc.ask.scenario import Scenario
from dralloc.ask.stranded.quantities import Quantities
from dralloc.compile.compiler import CompiledCluster
from dralloc.problem import Problem
from dralloc.problem.ledger import Scarcity
from dralloc.problem.limits import Limit, limits_of

__all__ = ["LIFTED_IN_ORDER", "Cause", "LiftedOffers", "lift_of"]


class Cause(StrEnum):
    """Why free capacity is of no use to the claims of a mix.

    ``NODE``: its node is cordoned. ``POD``: its node is not for the pods of the claims: by taints or selectors, for
    want of CPU, memory and the like, or by rules between pods. ``TAINT``: a taint of its device is not tolerated
    (KEP-5055). ``ALIGNMENT``: constraints of the claims over attributes (KEP-4381). ``GROUPS``: devices exclude each
    other (KEP-5963). ``POLICY``: amounts are rounded by request policies, or refused (KEP-5075). ``GEOMETRY``: the
    places that a device needs are not all free (numbered counters, KEP-4815). ``COUNTER``: another of its counters or
    capacities is short. ``SIZE``: the amounts that are asked for do not add up to it, or no device is left to take it
    with. ``UNWANTED``: no claim of the mix selects a device that takes of it.
    """

    NODE = "cordoned node"
    POD = "rules of pods"
    TAINT = "taint"
    ALIGNMENT = "attribute alignment"
    GROUPS = Scarcity.GROUPS.value
    POLICY = "share policy"
    GEOMETRY = "slice geometry"
    COUNTER = "counter"
    SIZE = "size"
    UNWANTED = "not asked for"


LIFTED_IN_ORDER: Final[Sequence[Cause]] = tuple(
    one for one in Cause if one not in (Cause.SIZE, Cause.UNWANTED)
)
"""Rules that are lifted one after the other: each is charged with what can be used only since it does not count."""


_CAUSES: Final[Mapping[Scarcity, Cause]] = {
    Scarcity.COUNTER: Cause.COUNTER,
    Scarcity.CAPACITY: Cause.COUNTER,
    Scarcity.GROUPS: Cause.GROUPS,
}


def lift_of(problem: Problem, quantities: Quantities, lifted: frozenset[Cause]) -> Lift:
    """What does not count in a context any more."""
    ids = (
        problem.counters[key[1]].id
        for key, one in quantities.by_key.items()
        if one.positional
    )
    places = (
        {Limit(Scarcity.COUNTER, one.driver, one.counter) for one in ids}
        if Cause.GEOMETRY in lifted
        else set()
    )
    limits = (
        one
        for one in limits_of(problem)
        if one in places or _CAUSES[one.scarcity] in lifted
    )
    return Lift(frozenset(limits), lenient=True)


class LiftedOffers:
    """What devices offer without some rules about devices: those of a scenario in which these are lifted.

    Parameters
    ----------
    compiled
        The cluster with all its rules. Its devices and alternatives have the same numbers in the scenarios, in which
        no device comes or goes and nothing else is asked for.
    """

    def __init__(self, compiled: CompiledCluster) -> None:
        self.compiled = compiled
        self._known = {frozenset[Cause](): Offers(compiled.table)}

    def without(self, lifted: frozenset[Cause]) -> Offers:
        """The offers where taints of devices, or request policies, do not count if they are among these causes."""
        about_devices = lifted & {Cause.TAINT, Cause.POLICY}
        if about_devices not in self._known:
            scenario = Scenario(self.compiled.cluster)
            if Cause.TAINT in about_devices:
                scenario = scenario.without_device_taints()
            if Cause.POLICY in about_devices:
                scenario = scenario.with_exact_amounts()
            table = self.compiled.again(scenario.cluster).table
            self._known[about_devices] = Offers(table)
        return self._known[about_devices]
