"""The claims of a mix in every way in which they can take of a measure, some of the rules lifted.

How much a claim takes can depend on the devices that it gets. A way fixes that: one alternative for each request, and
devices of which each gives a certain amount. So a way has a weight, and filling up means placing the most weight.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations_with_replacement, product

from dralloc.api import CapacityRequestPolicy
from dralloc.errors import AllocationError
from dralloc.explain.offers import Offers
from dralloc.inventory.charges import charge_for
from dralloc.match import MatchTable
from dralloc.problem import Alternative, Charge, Claim, Demand, Problem, Request
from dralloc.quantity import NANOS
from dralloc.stranded.cause import Cause
from dralloc.stranded.essential import Choice
from dralloc.stranded.measures import Measure, MeasureKind, Measures

__all__ = ["Way", "Wishes", "ways"]


@dataclass(frozen=True)
class Way:
    """A demand that takes a fixed amount of the measure, in nanos."""

    demand: Demand
    amount: int


class Wishes(Offers):
    """What devices offer to alternatives of which each takes a fixed amount of a measure.

    Parameters
    ----------
    table
        What devices offer to the claims as they are.
    problem
        The whole problem.
    measures, measure
        What is measured.
    lifted
        The rules that do not count.
    """

    def __init__(
        self,
        table: MatchTable,
        problem: Problem,
        measures: Measures,
        measure: Measure,
        lifted: frozenset[Cause],
    ) -> None:
        super().__init__(table)
        self._table = table
        self._problem = problem
        self._measures = measures
        self._measure = measure
        self._counters = measures.counters(measure)
        self._lifted = lifted
        self._fixed: list[tuple[int, int | None]] = []
        self._numbers: dict[tuple[int, int | None], int] = {}
        self._charges: dict[tuple[int, Hashable], Charge | None] = {}

    def fix(self, alternative: int, amount: int | None) -> int:
        """The index of an alternative that gets only devices of which it takes that amount; None for any devices."""
        key = alternative, amount
        if key not in self._numbers:
            self._numbers[key] = len(self._fixed)
            self._fixed.append(key)
        return self._numbers[key]

    def amount(self, alternative: int, device: int) -> int:
        """How much an alternative (of the mix, not a fixed one) takes of the measure with a device."""
        known = self._problem.devices[device]
        charge = self._charge(alternative, device)
        if charge is None:
            return 0
        if self._measure.kind is MeasureKind.COUNTER:
            draws = chain(known.consumes, charge.counters)
            return sum(amount for counter, amount in draws if counter in self._counters)
        if known.id.pool_id != self._measure.pool:
            return 0
        if self._measure.kind is not self._measures.kind_of(device):
            return 0
        return NANOS if self._measure.kind is MeasureKind.DEVICES else dict(charge.capacity).get(self._measure.name, 0)

    def accepts(self, alternative: int, device: int) -> bool:
        """Whether an alternative (of the mix, not a fixed one) could ever get a device."""
        return (
            self._table.selects(alternative, device) is True
            and self._admits(alternative, device)
            and self._charge(alternative, device) is not None
        )

    def is_shareable(self, device: int) -> bool:
        """Whether a device allows multiple allocations."""
        return self._problem.devices[device].shareable

    # As in `Eligibility`, for fixed alternatives.

    def look(self, device: int) -> Hashable:
        """Devices of one look get the same answers."""
        known = self._problem.devices[device]
        fixed = tuple(amount for counter, amount in known.consumes if counter in self._counters)
        return self._table.look(device), fixed, known.id.pool_id == self._measure.pool, bool(known.consumes)

    def selects(self, alternative: int, device: int) -> bool | AllocationError:
        """As in `Eligibility`; a selector that fails leaves the device out."""
        given, amount = self._fixed[alternative]
        if self._table.selects(given, device) is not True:
            return False
        return amount is None or self.amount(given, device) == amount

    def admits(self, alternative: int, device: int) -> bool:
        """As in `Eligibility`."""
        return self._admits(self._fixed[alternative][0], device)

    def _admits(self, alternative: int, device: int) -> bool:
        if Cause.TAINT not in self._lifted:
            return self._table.admits(alternative, device)
        return self._table.features.PartitionableDevices or not self._problem.devices[device].consumes

    def charge(self, alternative: int, device: int) -> Charge | None:
        """As in `Eligibility`."""
        return self._charge(self._fixed[alternative][0], device)

    def _charge(self, alternative: int, device: int) -> Charge | None:
        if Cause.POLICY not in self._lifted:
            return self._table.charge(alternative, device)
        key = alternative, self._table.look(device)
        if key not in self._charges:
            self._charges[key] = self._exact_charge(alternative, device)
        return self._charges[key]

    def _exact_charge(self, alternative: int, device: int) -> Charge | None:
        """What an allocation takes if amounts that are asked for are taken as they are."""
        inventory = self._table.inventory
        source = inventory.sources[device]
        capacity = {
            name: replace(one, request_policy=_default(one.request_policy))
            for name, one in source.device.capacity.items()
        }
        free = replace(source, device=replace(source.device, capacity=capacity))
        counters = {
            index: replace(
                inventory.published[index], request_policy=_default(inventory.published[index].request_policy)
            )
            for index, _ in source.requested_counters
        }
        asked = dict(self._table.criteria[alternative].amounts)
        return charge_for(asked, free, counters, shareable=inventory.devices[device].shareable)

    def kind(self, alternative: int) -> Hashable:
        """Alternatives of one kind get the same answers."""
        given, amount = self._fixed[alternative]
        return self._table.kind(given), amount


def _default(policy: CapacityRequestPolicy | None) -> CapacityRequestPolicy | None:
    return None if policy is None else CapacityRequestPolicy(default=policy.default)


def ways(choice: Choice, nodes: Mapping[int, Sequence[int]], wishes: Wishes, *, aligned: bool) -> Iterator[Way]:
    """Every way in which a claim can take of the measure on devices that some nodes reach.

    Parameters
    ----------
    nodes
        The devices of a domain that each node reaches; ways refer to nodes by their place in it.
    aligned
        Whether the claim's constraints hold.
    """
    claim = choice.claim if aligned else replace(choice.claim, constraints=())
    return _Ways(claim, choice.alternatives, nodes, wishes).all()


class _Ways:
    def __init__(
        self, claim: Claim, chosen: Sequence[Alternative], nodes: Mapping[int, Sequence[int]], wishes: Wishes
    ) -> None:
        self.claim = claim
        self.chosen = chosen
        self.nodes = nodes
        self.wishes = wishes

    def all(self) -> Iterator[Way]:
        """The ways, with all that a request can be made up of."""
        if any(each.count is None for each in self.chosen):
            # How much `All` takes depends on the node alone.
            for place, devices in enumerate(self.nodes.values()):
                yield from self._with(devices, (place,))
        else:
            yield from self._with(dict.fromkeys(chain(*self.nodes.values())), None)

    def _with(self, devices: Collection[int], places: tuple[int, ...] | None) -> Iterator[Way]:
        for parts in product(*(list(self._parts(each, devices)) for each in self.chosen)):
            amount = sum(amount for part in parts for _, amount in part)
            if amount:
                requests = tuple(
                    Request(f"{each.name.request}-{number}", (alternative,))
                    for each, part in zip(self.chosen, parts, strict=True)
                    for number, (alternative, _) in enumerate(part)
                )
                claim = replace(self.claim, requests=requests)
                yield Way(Demand(claim.key, (claim,), nodes=places), amount)

    def _parts(self, alternative: Alternative, devices: Collection[int]) -> Iterator[list[tuple[Alternative, int]]]:
        """How the devices of a request can be made up: alternatives with a fixed amount per device, and sums."""
        fixed = replace(alternative, rank=0)
        if alternative.admin:
            yield [(replace(fixed, index=self.wishes.fix(alternative.index, None)), 0)]
            return
        accepted = {device for device in devices if self.wishes.accepts(alternative.index, device)}
        amounts = {device: self.wishes.amount(alternative.index, device) for device in accepted}
        if alternative.count is None:
            # Of shared devices, it takes what others leave.
            if any(self.wishes.is_shareable(device) for device in accepted):
                return
            yield [(replace(fixed, index=self.wishes.fix(alternative.index, None)), sum(amounts.values()))]
            return
        for drawn in combinations_with_replacement(sorted(set(amounts.values())), alternative.count):
            yield [
                (
                    replace(fixed, index=self.wishes.fix(alternative.index, each), count=drawn.count(each)),
                    each * drawn.count(each),
                )
                for each in sorted(set(drawn))
            ]
