"""What a claim could be granted next, beside everything that is in use, and with some rules lifted."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from dralloc.ask.context.context import Context
from dralloc.ask.context.node_bars import NodeBars
from dralloc.ask.context.node_rules import CORDONED, Exclusions
from dralloc.ask.context.screening import Screening
from dralloc.ask.stranded.lifting import Cause, LiftedOffers, lift_of
from dralloc.ask.stranded.quantities import Quantities
from dralloc.ask.whatif.partitions import read_single
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import Alternative, Charge, Claim, Demand, Eligibility, Request
from dralloc.problem.eligibility import Overlay
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.holdings import ClaimLedger
from dralloc.problem.solution import grants_of
from dralloc.problem.subproblem import Subproblem
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve

__all__ = ["Found", "Granter", "Granting"]

_WANTED: Final = -1
_OTHERS: Final = -2


class Granting(NamedTuple):
    """A device that an alternative could be granted, and what that takes."""

    device: int
    charge: Charge


class Found(NamedTuple):
    """What a demand finds on a node.

    ``granted``: what it could be granted. ``serving``: if it fits on the node, the devices that could serve one of its
    requests alone.
    """

    granted: tuple[Granting, ...] = ()
    serving: tuple[int, ...] = ()


class Granter:
    """Finds what demands could be granted. Nodes that are alike to a demand are looked at once.

    Parameters
    ----------
    offers
        What devices offer, whichever rules count.
    bars
        By demand what bars its pod from nodes beside devices, if anything may.
    lifted
        The rules that do not count.
    """

    def __init__(
        self,
        offers: LiftedOffers,
        ledger: ClaimLedger,
        quantities: Quantities,
        bars: Mapping[ClaimKey, NodeBars | None],
        lifted: frozenset[Cause],
    ) -> None:
        compiled = offers.compiled
        self._bars = bars
        self._problem = compiled.problem
        self._exclusions = Exclusions(compiled)
        self._context = Context(compiled.problem, offers.without(lifted), ledger)
        self._lift = lift_of(compiled.problem, quantities, lifted)
        self._lifted = lifted
        self._known: dict[Hashable, tuple[list[tuple[int, int]], list[int]]] = {}

    def nodes(self, demand: Demand) -> Sequence[int]:
        """The nodes that a demand may go to."""
        if Cause.NODE in self._lifted:
            nodes = [
                node
                for node in self._problem.all_nodes
                if set(self._exclusions.rules(demand, node)) <= {CORDONED}
            ]
        else:
            nodes = list(self._problem.candidate_nodes(demand))
        bars = self._bars[demand.key]
        return nodes if bars is None else [node for node in nodes if not bars.of(node)]

    def on(self, demand: Demand, node: int) -> Found:
        """What a demand finds on a node."""
        loose = demand
        if Cause.ALIGNMENT in self._lifted:
            loose = replace(
                demand,
                claims=tuple(replace(claim, constraints=()) for claim in demand.claims),
            )
        part = self._context.part([node], [loose], self._lift)
        key = demand.key, inventory_key(part.problem)
        if key not in self._known:
            self._known[key] = self._look(part, loose, node)
        granted, serving = self._known[key]
        devices, charge = part.devices, self._context.offers.charge
        return Found(
            tuple(
                Granting(devices[place], charge(one, devices[place]) or Charge())
                for one, place in granted
            ),
            tuple(devices[place] for place in serving),
        )

    def _look(
        self, part: Subproblem, demand: Demand, node: int
    ) -> tuple[list[tuple[int, int]], list[int]]:
        screening = Screening(self._context)
        offered = frozenset(part.problem.nodes[0].devices())
        candidates = [
            (each, place)
            for each in demand.alternatives()
            for place, device in enumerate(part.devices)
            if not each.admin
            and place in offered
            and screening.serves(each, device, node, self._lift)
        ]
        alone = [(each.index, place) for each, place in candidates]
        if _takes_one(demand):
            return alone, list(dict.fromkeys(place for _, place in alone))
        tried = _Tried(part, demand)
        if not tried.fits:
            return [], []
        for each, place in candidates:
            tried.force(each, place)
        return sorted(tried.granted), list(dict.fromkeys(place for _, place in alone))


def _takes_one(demand: Demand) -> bool:
    """Whether it takes one device, whatever its attributes."""
    constrained = any(claim.constraints for claim in demand.claims)
    return (
        read_single(demand) is not None and not demand.is_defective and not constrained
    )


class _Tried:
    """Answers for a demand on its own: what is granted in any of them."""

    def __init__(self, part: Subproblem, demand: Demand) -> None:
        self._problem = part.problem
        self._demand = demand.by_itself(nodes=None)
        self.granted: set[tuple[int, int]] = set()

    @cached_property
    def fits(self) -> bool:
        """Whether there is any answer."""
        return self._enter(self._demand, self._problem.eligibility, {})

    def force(self, alternative: Alternative, place: int) -> None:
        """Look for an answer in which the alternative is granted the device."""
        if (alternative.index, place) in self.granted:
            return
        if alternative.count is None:
            # Of all devices it gets all or none.
            self._enter(
                _with(self._demand, alternative, [alternative]),
                self._problem.eligibility,
                {},
            )
            return
        wanted = replace(alternative, index=_WANTED, count=1)
        others = (
            [replace(alternative, index=_OTHERS, count=alternative.count - 1)]
            if alternative.count > 1
            else []
        )
        forced = _Forced(self._problem.eligibility, alternative.index, place)
        names = dict.fromkeys((_WANTED, _OTHERS), alternative.index)
        self._enter(_with(self._demand, alternative, [wanted, *others]), forced, names)

    def _enter(
        self, demand: Demand, eligibility: Eligibility, names: dict[int, int]
    ) -> bool:
        problem = replace(self._problem, demands=(demand,), eligibility=eligibility)
        solution = first_fit(problem)
        if solution.errors:
            # What ends first fit's attempt may leave other answers.
            solution = solve(problem)
        for _, each, grant in grants_of(problem, solution.placements):
            if not each.admin:
                self.granted.add((names.get(each.index, each.index), grant.device))
        return bool(solution.placements)


def _with(
    demand: Demand, alternative: Alternative, parts: Sequence[Alternative]
) -> Demand:
    """The demand with an alternative in the place of its request, taken apart."""

    def requests(claim: Claim) -> Iterator[Request]:
        for request in claim.requests:
            if alternative in request.alternatives:
                yield from (
                    replace(request, alternatives=(replace(part, rank=0),))
                    for part in parts
                )
            else:
                yield request

    return replace(
        demand,
        claims=tuple(
            replace(claim, requests=tuple(requests(claim))) for claim in demand.claims
        ),
    )


@dataclass(eq=False)
class _Forced(Overlay):
    """An eligibility in which an alternative is taken apart: one device, and others than that."""

    alternative: int
    device: int

    def _real(self, alternative: int) -> int:
        return self.alternative if alternative < 0 else alternative

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        if alternative < 0 and (device == self.device) is not (alternative == _WANTED):
            return False
        return super().selects(self._real(alternative), device)

    def admits(self, alternative: int, device: int) -> bool:
        return super().admits(self._real(alternative), device)

    def charge(self, alternative: int, device: int) -> Charge | None:
        return super().charge(self._real(alternative), device)

    def request_key(self, alternative: int) -> Hashable:
        return (
            alternative
            if alternative < 0
            else (alternative, super().request_key(alternative))
        )

    def device_key(self, device: int) -> Hashable:
        return device
