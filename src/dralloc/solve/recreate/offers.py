"""What a node has for demands of a class: the devices that may serve each request, with what they take.

Amounts stand in the rows of a node's cell (`dralloc.solve.recreate.cells`), so that devices can be compared by integers
alone.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from dralloc.problem import (
    Charge,
    Claim,
    Constraint,
    CounterIndex,
    Device,
    DeviceIndex,
    NodeIndex,
    Problem,
    Scalar,
    numbered,
)
from dralloc.problem.indices import grouped
from dralloc.problem.ledger import Ledger
from dralloc.problem.requests import Alternative, Request
from dralloc.problem.solution import Grant
from dralloc.solve.first_fit.candidates import Place
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.recreate.cells import (
    NodeCells,
    PackedRow,
    mask_of,
    packed,
)
from dralloc.solve.recreate.common_supply import CommonSupply
from dralloc.solve.recreate.device_search import DeviceSearch

__all__ = [
    "DeviceAmounts",
    "DeviceOffer",
    "OfferBook",
    "RequestOffer",
    "RowAmounts",
    "WishOffers",
]

# ----------------------------------------------------------------------------
# What a device takes.

RowAmounts = list[tuple[PackedRow, int]]
"""Rows of a node's cell with amounts."""

_NO_CHARGE: Final = Charge()
"""Of devices that are granted whole, and have no counters that requests charge."""


class DeviceAmounts:
    """Knows what devices take, in rows of the cells of nodes.

    Parameters
    ----------
    base
        What is in use with those whom nobody can move.
    cells
        Gets the rows that are asked for.
    common
        What several nodes can use.
    """

    def __init__(
        self,
        problem: Problem,
        base: Ledger,
        cells: NodeCells,
        common: CommonSupply,
    ) -> None:
        self._problem = problem
        self._base = base
        self._cells = cells
        self._common = common

    def charge(self, alternative: Alternative, device: DeviceIndex) -> Charge:
        """Return what an alternative charges to a device that matches it."""
        charge = self._problem.eligibility.charge(alternative.index, device)
        return charge or _NO_CHARGE

    def taken(
        self, device_index: DeviceIndex, node: NodeIndex, charge: Charge
    ) -> tuple[RowAmounts, RowAmounts]:
        """Return what a device takes with a charge, and what its first user takes beside that."""
        base, device = self._base, self._problem.devices[device_index]
        cell = self._cells.cell(
            node, is_common=device.slot in self._common.slots
        )
        amounts = [
            (self.counter_row(node, counter), amount)
            for counter, amount in charge.counters
        ]
        fixed = [
            (self.counter_row(node, counter), amount)
            for counter, amount in device.consumes
        ]
        if not device.shareable:
            is_free = int(base.is_free(device))
            amounts.append((cell.row(("device", device.slot), is_free), 1))
            return [*amounts, *fixed], []
        for name, amount in charge.capacity:
            free_amount = max(0, base.capacity_left(device, name))
            row = cell.row(("capacity", device.slot, name), free_amount)
            amounts.append((row, amount))
        if not base.is_free(device):
            amounts.append((cell.row(("device", device.slot), 0), 1))
        if fixed and not base.is_open(device):
            # Whether it is open is part of the state of the cell.
            fixed.append((cell.row(("opened", device.slot), 1), 1))
            return amounts, fixed
        return amounts, []

    def counter_row(self, node: NodeIndex, counter: CounterIndex) -> PackedRow:
        """Return where it stands what a node has left of a counter."""
        cell = self._cells.cell(
            node, is_common=counter in self._common.counters
        )
        return cell.row(("counter", counter), max(0, self._base.free[counter]))


# ----------------------------------------------------------------------------
# What a node has for some claims.


class DeviceOffer(NamedTuple):
    """A device that may serve an alternative.

    Parameters
    ----------
    need, opening
        What it takes, packed, and what its first user takes beside that.
    mask
        The bits of all that the choice looks at.
    slot
        The physical device.
    rows
        What it draws on, and what is beside that: of a GPU with partitions all counters of the GPU.
    rivals
        How many devices draw on the same counters.
    values
        Those of the attribute that a constraint is about.
    """

    device: DeviceIndex
    need: int
    opening: int
    mask: int
    slot: int
    rows: tuple[PackedRow, ...]
    rivals: int
    values: frozenset[Scalar]


class RequestOffer(NamedTuple):
    """An alternative of a request, by its place among claims, with the devices of a node that may serve it."""

    claim: int
    request: int
    choice: int
    devices_asked: int
    is_constrained: bool
    devices: Sequence[DeviceOffer]


class WishOffers(NamedTuple):
    """What a node has for the requests of a class.

    Parameters
    ----------
    before
        By claim, what it gets without a choice: what stands for the node.
    requests
        By request its alternatives.
    values
        What the devices under a constraint may have in common.
    mask
        The bits of all that decides which devices are picked.
    """

    before: GrantsOfClaims
    requests: Sequence[Sequence[RequestOffer]]
    values: Sequence[Scalar | None]
    mask: int


_CounterSet = tuple[str, str, str]
"""Driver, pool and name."""


class OfferBook:
    """Works out what nodes have for claims, and remembers what devices take."""

    def __init__(
        self, problem: Problem, search: DeviceSearch, amounts: DeviceAmounts
    ) -> None:
        self._problem = problem
        self._search = search
        self._amounts = amounts
        self._users: Tally[CounterIndex] = Tally(
            counter
            for device in problem.devices
            for counter, _ in device.consumes
        )
        self._counters_of = grouped(
            (counter.id[:-1], counter_index)
            for counter_index, counter in numbered(problem.counters)
        )
        # By device and what is charged to it, without the values that a constraint asks for.
        self._known_offers: dict[
            tuple[DeviceIndex, Hashable, Hashable], DeviceOffer | None
        ] = {}
        self._known_rows: dict[_CounterSet, Sequence[PackedRow]] = {}

    def for_claims(
        self, claims: Sequence[Claim], node: NodeIndex
    ) -> WishOffers:
        """Return what a node has for some claims, of which at most one has a constraint, one `matchAttribute`."""
        requests: list[list[RequestOffer]] = []
        for alternatives in _requests(claims):
            request_offers = [
                self._request_offer(claims, node, location, alternative)
                for location, alternative in alternatives
            ]
            requests.append(request_offers)
        offers = list(chain.from_iterable(requests))
        return WishOffers(
            tuple([self._before(claim, node) for claim in claims]),
            requests,
            _values_to_agree_on(offers),
            _mask(offers),
        )

    def _before(self, claim: Claim, node: NodeIndex) -> tuple[Grant, ...]:
        """Return what a claim gets without a choice."""
        if not claim.is_synthetic:
            return ()
        node_device = self._search.node_device(node)
        return () if node_device is None else (Grant(0, 0, node_device),)

    def _request_offer(
        self,
        claims: Sequence[Claim],
        node: NodeIndex,
        location: Place,
        alternative: Alternative,
    ) -> RequestOffer:
        claim = claims[location[0]]
        constraint = next(
            (
                constraint
                for constraint in claim.constraints
                if constraint.covers(alternative.name)
            ),
            None,
        )
        devices = list(
            self._device_offers(alternative, claims, node, constraint)
        )
        is_constrained = constraint is not None
        if constraint and _is_about_one(constraint, claim, alternative):
            devices = self._with_attribute(constraint, alternative, devices)
            is_constrained = False
        return RequestOffer(
            *location, alternative.count or 0, is_constrained, devices
        )

    def _device_offers(
        self,
        alternative: Alternative,
        claims: Sequence[Claim],
        node: NodeIndex,
        constraint: Constraint | None,
    ) -> Iterator[DeviceOffer]:
        """Give out what each device of a node that may serve an alternative takes."""
        for device in self._search.devices_for(alternative, claims, node):
            offer = self._offer(alternative, device, node, constraint)
            if offer is not None:
                yield offer

    def _with_attribute(
        self,
        constraint: Constraint,
        alternative: Alternative,
        offers: Iterable[DeviceOffer],
    ) -> list[DeviceOffer]:
        """Return the devices that have the attribute of a constraint, be it an empty list."""
        attribute = constraint.compared(alternative.name)
        return [
            offer
            for offer in offers
            if attribute in self._problem.devices[offer.device].attributes
        ]

    def _offer(
        self,
        alternative: Alternative,
        device: DeviceIndex,
        node: NodeIndex,
        constraint: Constraint | None,
    ) -> DeviceOffer | None:
        """Return what a device takes for an alternative; None if there is never enough for it."""
        charge = self._amounts.charge(alternative, device)
        # Most devices are asked for by many classes that charge the same.
        key = device, charge.capacity, charge.counters
        if key not in self._known_offers:
            self._known_offers[key] = self._new_offer(device, node, charge)
        offer = self._known_offers[key]
        if offer is None or constraint is None:
            return offer
        attributes = self._problem.devices[device].attributes
        compared = constraint.compared(alternative.name)
        return offer._replace(values=attributes.get(compared, frozenset()))

    def _new_offer(
        self, device_index: DeviceIndex, node: NodeIndex, charge: Charge
    ) -> DeviceOffer | None:
        device = self._problem.devices[device_index]
        amounts, opening = self._amounts.taken(device_index, node, charge)
        need, once = packed(amounts), packed(opening)
        if need is None or once is None:
            return None
        rows = [row for row, _ in amounts if device.shareable]
        for counter_set in self._sets_of(device):
            rows += self._rows_of(counter_set, node)
        taken = [row for row, _ in (*amounts, *opening)]
        return DeviceOffer(
            device_index,
            need,
            once,
            mask_of((*taken, *rows)),
            device.slot,
            tuple(dict.fromkeys([row for row in rows if row.total])),
            sum([self._users[counter] for counter, _ in device.consumes]),
            frozenset(),
        )

    def _rows_of(
        self, counter_set: _CounterSet, node: NodeIndex
    ) -> Sequence[PackedRow]:
        """Return where the counters of a set stand."""
        if counter_set not in self._known_rows:
            self._known_rows[counter_set] = [
                self._amounts.counter_row(node, counter)
                for counter in self._counters_of[counter_set]
            ]
        return self._known_rows[counter_set]

    def _sets_of(self, device: Device) -> Iterable[_CounterSet]:
        """Return the counter sets that a device draws on."""
        return dict.fromkeys(
            [
                self._problem.counters[counter].id[:-1]
                for counter, _ in device.consumes
            ]
        )


def _requests(
    claims: Sequence[Claim],
) -> Iterator[Sequence[tuple[Place, Alternative]]]:
    """Give out the requests of claims in order, each as its alternatives with their places."""
    for claim_index, claim in enumerate(claims):
        if claim.is_synthetic:
            continue
        for request_index, request in enumerate(claim.requests):
            yield [
                ((claim_index, request_index, choice), alternative)
                for choice, alternative in enumerate(request.alternatives)
            ]


def _values_to_agree_on(
    offers: Iterable[RequestOffer],
) -> Sequence[Scalar | None]:
    """Return what the devices under a constraint may have in common, in order; None alone if there is no constraint."""
    values: dict[Scalar, None] = {}
    for offer in offers:
        if not offer.is_constrained:
            continue
        for device in offer.devices:
            values.update(dict.fromkeys(sorted(device.values, key=str)))
    return list(values) or [None]


def _mask(offers: Iterable[RequestOffer]) -> int:
    """Return the bits of all that decides which devices are picked."""
    mask = 0
    for offer in offers:
        for device in offer.devices:
            mask |= device.mask
    return mask


def _is_about_one(
    constraint: Constraint, claim: Claim, alternative: Alternative
) -> bool:
    """Whether a constraint of a claim that can be composed is about one device, which agrees with itself.

    So it does if its attribute is an empty list (upstream behaviour); beside another device it would agree with none.
    """

    def is_covered(request: Request) -> bool:
        return any(
            constraint.covers(candidate.name)
            for candidate in request.alternatives
        )

    covered = list(filter(is_covered, claim.requests))
    return len(covered) == 1 and alternative.count == 1
