"""Rules that strand capacity, and what there is to be had without them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from dralloc.ask.context.lift import Lift
from dralloc.ask.context.offers import Offers
from dralloc.ask.stranded.quantities import Quantities
from dralloc.compile.inventory.charges import charge_for
from dralloc.compile.match import MatchTable
from dralloc.objects.api import CapacityRequestPolicy
from dralloc.problem import Charge, Problem
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


class LiftedOffers(Offers):
    """Answers of a match table without taints or without the rounding of request policies."""

    def __init__(self, table: MatchTable, lifted: frozenset[Cause]) -> None:
        super().__init__(table)
        self._table = table
        self._lifted = lifted
        self._exact: dict[tuple[int, Hashable], Charge | None] = {}

    def admits(self, alternative: int, device: int) -> bool:
        """As in `Eligibility`."""
        if Cause.TAINT not in self._lifted:
            return self._table.admits(alternative, device)
        consumes = self._table.inventory.devices[device].consumes
        return self._table.features.PartitionableDevices or not consumes

    def charge(self, alternative: int, device: int) -> Charge | None:
        """As in `Eligibility`; with policies lifted, amounts that are asked for are taken as they are."""
        if Cause.POLICY not in self._lifted:
            return self._table.charge(alternative, device)
        key = alternative, self._table.device_key(device)
        if key not in self._exact:
            self._exact[key] = self._exact_charge(alternative, device)
        return self._exact[key]

    def _exact_charge(self, alternative: int, device: int) -> Charge | None:
        inventory = self._table.inventory
        source = inventory.sources[device]
        capacity = {
            name: replace(one, request_policy=_default(one.request_policy))
            for name, one in source.device.capacity.items()
        }
        counters = {
            index: replace(one, request_policy=_default(one.request_policy))
            for index, one in (
                (index, inventory.published[index])
                for index, _ in source.requested_counters
            )
        }
        asked = dict(self._table.criteria[alternative].amounts)
        free = replace(source, device=replace(source.device, capacity=capacity))
        return charge_for(
            asked, free, counters, shareable=inventory.devices[device].shareable
        )


def _default(policy: CapacityRequestPolicy | None) -> CapacityRequestPolicy | None:
    return None if policy is None else CapacityRequestPolicy(default=policy.default)
