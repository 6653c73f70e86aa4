"""The search without what cannot help.

It finds the same first solution as the plain one, or none, or the same error. From top to bottom: what a search still
has to find, what that costs at least in counters, the necessary conditions that follow, and the search that asks them.
Each condition says why no solution is lost by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Final, TypeVar, assert_never

from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    CounterIndex,
    DeviceIndex,
    Problem,
    Scalar,
)
from dralloc.problem.equivalence import device_traits
from dralloc.problem.ledger import Ledger
from dralloc.solve.first_fit.candidates import (
    NodeCandidates,
    constrains_all,
    failure,
)
from dralloc.solve.first_fit.search import (
    ClaimConstraints,
    DepthFirstSearch,
    Propagator,
    SearchLedger,
)

__all__ = ["DEAD_ENDS", "PrunedSearch"]

# ----------------------------------------------------------------------------
# Residual requests: what a search still has to find, without the order and the
# combinations. More than it needs can be on offer.

Costs = Mapping[CounterIndex, int]
"""Amounts by counter."""


@dataclass(frozen=True, slots=True)
class ResidualRequest:
    """A request that is still to be served, as a whole or in part.

    Parameters
    ----------
    claim
        Index of its claim in the demand.
    need
        How many devices it needs at least, whichever alternative serves it.
    offers
        For each device that can still be had, what some alternative would take of it.
    alternatives
        Those that can still serve it.
    """

    claim: int
    need: int
    offers: Mapping[DeviceIndex, Sequence[Charge]]
    alternatives: Sequence[Alternative]

    @property
    def admin(self) -> bool:
        """Whether it asks for admin access, which no other allocation can prevent."""
        return any(alternative.admin for alternative in self.alternatives)

    def covered_by(self, constraint: Constraint) -> bool:
        """Whether the constraint covers it, whichever alternative serves it."""
        return all(
            constraint.covers(alternative.name)
            for alternative in self.alternatives
        )

    def capacity_of(self, device: DeviceIndex, name: str) -> int:
        """Return the least amount of a capacity of the device that it takes."""
        return min(
            dict(charge.capacity).get(name, 0) for charge in self.offers[device]
        )

    def counters_of(
        self, problem: Problem, device: DeviceIndex, *, opening: bool
    ) -> Costs:
        """Return the least amount of each counter that it takes, with or without the device's own consumption."""
        costs = dict(problem.devices[device].consumes) if opening else {}
        by_request = [dict(charge.counters) for charge in self.offers[device]]
        for index in by_request[0]:
            costs[index] = costs.get(index, 0) + min(
                amounts.get(index, 0) for amounts in by_request
            )
        return costs


Residual = Sequence[ResidualRequest]
"""Everything that is still to be served."""


def fitting(amounts: Iterable[int], free: int) -> int:
    """Return how many of the smallest amounts fit into the free amount."""
    count = total = 0
    for amount in sorted(amounts):
        total += amount
        # What costs nothing fits even where more is in use than there is.
        if total > free and amount:
            break
        count += 1
    return count


# ----------------------------------------------------------------------------
# Counter bounds: what is on offer must not cost more than there is (KEP-4815,
# KEP-5941).

Prices = Mapping[DeviceIndex, Costs]
"""What each device on offer costs at least."""

Name = tuple[str, str, str]
"""What counters of a pool's sets are called: driver, pool, counter."""


def _counters_suffice(
    problem: Problem, ledger: Ledger, residual: Residual
) -> bool:
    """Whether the counters could cover the residual requests, each alone and all together."""
    alone = len(residual) == 1
    prices: list[Prices] = []
    names: dict[Name, set[CounterIndex]] = defaultdict(set)
    for request in residual:
        of_request: dict[DeviceIndex, Costs] = {}
        for device in request.offers:
            costs = _costs(problem, ledger, request, device, alone=alone)
            of_request[device] = costs
            for index in costs:
                id_ = problem.counters[index].id
                names[id_.driver, id_.pool, id_.counter].add(index)
        prices.append(of_request)
    return all(
        _sums_suffice(ledger, residual, prices, counters)
        and _enough_fit(problem, ledger, residual, prices, counters)
        for counters in names.values()
    )


def _costs(
    problem: Problem,
    ledger: Ledger,
    request: ResidualRequest,
    device: DeviceIndex,
    *,
    alone: bool,
) -> Costs:
    """Return the cost of a device. What opens a shareable device counts only where no share can have opened it."""
    offered = problem.devices[device]
    opening = not offered.shareable or (alone and not ledger.is_open(offered))
    return request.counters_of(problem, device, opening=opening)


def _sums_suffice(
    ledger: Ledger,
    residual: Residual,
    prices: Sequence[Prices],
    counters: set[CounterIndex],
) -> bool:
    """Whether each of these counters, and all together, cover the cheapest devices that each request can have."""
    least: dict[CounterIndex, int] = defaultdict(int)
    total = 0
    for request, device_prices in zip(residual, prices, strict=True):
        by_counter: dict[CounterIndex, list[int]] = defaultdict(list)
        sums = []
        for costs in device_prices.values():
            device_sum = 0
            for index, amount in costs.items():
                if index in counters:
                    device_sum += amount
                    by_counter[index].append(amount)
            sums.append(device_sum)
        total += sum(sorted(sums)[: request.need])
        for index, amounts in by_counter.items():
            # The other devices cost nothing of it.
            paid = request.need - (len(device_prices) - len(amounts))
            least[index] += sum(sorted(amounts)[: max(paid, 0)])
    free = {index: max(ledger.free[index], 0) for index in counters}
    if total > sum(free.values()):
        return False
    return all(amount <= free[index] for index, amount in least.items())


def _enough_fit(
    problem: Problem,
    ledger: Ledger,
    residual: Residual,
    prices: Sequence[Prices],
    counters: set[CounterIndex],
) -> bool:
    """Whether as many devices as are needed fit into these counters, counting the first of each device."""
    cheapest: dict[DeviceIndex, Costs] = {}
    for request, device_prices in zip(residual, prices, strict=True):
        if _fitting(ledger, device_prices.values(), counters) < request.need:
            return False
        for device, costs in device_prices.items():
            if device in cheapest:
                # Nobody knows which of the requests gets it: the least of both.
                before = cheapest[device]
                costs = {  # noqa: PLW2901
                    index: min(amount, before.get(index, 0))
                    for index, amount in costs.items()
                }
            cheapest[device] = costs
    # A shared device may serve several requests, so devices are not to be counted.
    if any(problem.devices[device].shareable for device in cheapest):
        return True
    need = sum(request.need for request in residual)
    return _fitting(ledger, cheapest.values(), counters) >= need


def _fitting(
    ledger: Ledger, prices: Iterable[Costs], counters: set[CounterIndex]
) -> int:
    """Return the largest number of devices that fit at these prices."""
    users: dict[int | None, list[int]] = defaultdict(list)
    for costs in prices:
        index = next((index for index in costs if index in counters), None)
        users[index].append(0 if index is None else costs[index])
    return sum(
        fitting(amounts, 0 if index is None else ledger.free[index])
        for index, amounts in users.items()
    )


# ----------------------------------------------------------------------------
# Necessary conditions: if one of them fails, the rest of a search has no solution. Each
# looks at one thing only and takes the best case for all others. None of them looks at
# order, so whatever fails here fails in every order, and leaving it out of the search
# cannot change which solution is found first.

T = TypeVar("T", bound=Hashable)

_NO_VALUE: Scalar = ("", "")
"""Stands for what cannot be compared: of the devices of a `distinctAttribute` at most one has no value."""


def _infeasible(
    problem: Problem,
    ledger: Ledger,
    residual: Residual,
    constraints: Sequence[ClaimConstraints],
) -> bool:
    """Whether it is certain that not all residual requests can be served together.

    Parameters
    ----------
    residual
        What is still to be found. Everything on offer can be had by itself.
    constraints
        Those of each claim, with what the devices taken so far mean for them.
    """
    if any(len(request.offers) < request.need for request in residual):
        return True
    shared = [
        request for request in residual if not request.admin and request.need
    ]
    shares = dict(_multiplicities(problem, ledger, shared))
    if not _can_serve(
        [request.need for request in shared],
        [list(request.offers) for request in shared],
        shares,
    ):
        return True
    of_claims: dict[int, list[ResidualRequest]] = defaultdict(list)
    for request in residual:
        if request.need:
            of_claims[request.claim].append(request)
    for claim in {request.claim for request in residual}:
        for constraint, state in constraints[claim].states:
            if not _can_hold(
                problem, of_claims[claim], shares, constraint, state
            ):
                return True
    if not _counters_suffice(problem, ledger, shared):
        return True
    return not _capacities_suffice(problem, ledger, shared)


def _can_hold(
    problem: Problem,
    residual: Residual,
    shares: dict[int, int],
    constraint: Constraint,
    state: Propagator,
) -> bool:
    covered = [
        request for request in residual if request.covered_by(constraint)
    ]
    # A device alone is equal to itself and differs from nobody.
    if state.taken + sum(request.need for request in covered) < 2:
        return True
    values = [_values(problem, constraint, request) for request in covered]
    match constraint.kind:
        case ConstraintKind.DISTINCT:
            # Each device brings a value that no other has.
            offers = [
                list(frozenset[Scalar]().union(*of_request.values()))
                for of_request in values
            ]
            return _can_serve([request.need for request in covered], offers, {})
        case ConstraintKind.MATCH:
            if not covered:
                return True
            common = state.common
            if common is None:
                fewest = min(values, key=len)
                common = frozenset[Scalar]().union(*fewest.values()) - {
                    _NO_VALUE
                }
            return any(
                _can_share(value, covered, values, shares) for value in common
            )
        case _:
            assert_never(constraint.kind)


def _values(
    problem: Problem, constraint: Constraint, request: ResidualRequest
) -> dict[int, frozenset[Scalar]]:
    """By device on offer to a request, the values that count there, whichever alternative serves it."""
    names = {
        constraint.compared(alternative.name)
        for alternative in request.alternatives
    }
    values: dict[int, frozenset[Scalar]] = {}
    for device in request.offers:
        attributes = problem.devices[device].attributes
        by_name = [attributes.get(name) or (_NO_VALUE,) for name in names]
        values[device] = frozenset[Scalar]().union(*by_name)
    return values


def _can_share(
    value: Scalar,
    residual: Residual,
    values: Sequence[dict[int, frozenset[Scalar]]],
    shares: dict[int, int],
) -> bool:
    """`matchAttribute`: the devices that have this value are enough."""
    needs: list[int] = []
    offers: list[list[int]] = []
    for request, values_of in zip(residual, values, strict=True):
        offer = [
            device
            for device, own_values in values_of.items()
            if value in own_values
        ]
        if len(offer) < request.need:
            return False
        if not request.admin:
            needs.append(request.need)
            offers.append(offer)
    return _can_serve(needs, offers, shares)


def _capacities_suffice(
    problem: Problem, ledger: Ledger, residual: Residual
) -> bool:
    """Check, where only shareable devices are on offer, that their capacities of one name cover the least amounts."""
    device_indices = {
        device for request in residual for device in request.offers
    }
    offered = [problem.devices[device_index] for device_index in device_indices]
    if not offered or not all(device.shareable for device in offered):
        return True
    for name in set.intersection(*(set(device.capacity) for device in offered)):
        need = 0
        for request in residual:
            amounts = (
                request.capacity_of(device, name) for device in request.offers
            )
            need += request.need * min(amounts)
        if need > sum(ledger.capacity_left(device, name) for device in offered):
            return False
    return True


def _multiplicities(
    problem: Problem, ledger: Ledger, residual: Residual
) -> Iterator[tuple[int, int]]:
    """For each shareable device how many of the requests its capacities could serve together, at the very most."""
    users: dict[DeviceIndex, list[ResidualRequest]] = {}
    for request in residual:
        for device in request.offers:
            if problem.devices[device].shareable:
                users.setdefault(device, []).append(request)
    for device_index, requests in users.items():
        shared = problem.devices[device_index]
        multiplicity = len(requests)
        for name in shared.capacity:
            amounts = [
                request.capacity_of(device_index, name) for request in requests
            ]
            served = fitting(amounts, ledger.capacity_left(shared, name))
            multiplicity = min(multiplicity, served)
        yield device_index, multiplicity


def _can_serve(
    needs: Sequence[int],
    offers: Sequence[Sequence[T]],
    multiplicity: Mapping[T, int],
) -> bool:
    """Whether every party gets as many different items of its offer as it needs: a bipartite matching.

    Parameters
    ----------
    needs
        How many items each party needs.
    offers
        The items that each party can use.
    multiplicity
        How many parties can have an item together; one if it is not listed.
    """
    users: dict[T, set[int]] = {}

    def augment(party: int, seen: set[T]) -> bool:
        """Give the party one more item, if need be by having its users change theirs (an augmenting path)."""
        for item in offers[party]:
            users_now = users.setdefault(item, set())
            if party not in users_now and len(users_now) < multiplicity.get(
                item, 1
            ):
                users_now.add(party)
                return True
        for item in offers[party]:
            users_now = users[item]
            if item in seen or party in users_now:
                continue
            seen.add(item)
            for user in tuple(users_now):
                if augment(user, seen):
                    users_now.discard(user)
                    users_now.add(party)
                    return True
        return False

    for party, need in enumerate(needs):
        for _ in range(need):
            if not augment(party, set()):
                return False
    return True


# ----------------------------------------------------------------------------
# The search. Why it answers as the plain one: a search that cannot end with an error
# finds the first full solution in its order, if there is one. Leaving out parts that
# hold no solution does not change which one that is. Two kinds of parts are left out:
#
# - what some necessary condition excludes (`_infeasible`);
# - a device that equals one that was tried in the same place without success. Two
#   devices are equal if they are on the same lists at the same charge, have the same
#   values in all constraints of the demand, equal traits
#   (`dralloc.problem.equivalence.device_traits`) and are in the same state. Exchanging
#   them maps every solution onto a solution; as the place looks for further devices
#   only behind the chosen one, what the later of the two could lead to, the earlier
#   could, too.
#
# Selectors are evaluated before the search reaches a device, which has no effect:
# failures are kept, and raised where the plain search would. Leaving something out
# could hide such a failure, or the other error of a search, a device that violates a
# constraint of a request for all devices. So nothing is left out where one of these can
# occur: where a selector fails on any device that is not in use, or a constraint covers
# a request for all devices (`PrunedSearch._is_safe`). The early end at more than 32
# devices leaves out only what has no solution, in both searches.
#
# As most searches go straight to their solution, all this starts with the first few
# dead ends, and pauses for longer and longer where it has nothing to say.

DEAD_ENDS: Final = 16
"""Dead ends before the bounds are asked first."""

_LONGEST: Final = 256
"""Dead ends at most between two times at which the bounds had no effect."""


class PrunedSearch(DepthFirstSearch):
    """An attempt to allocate claims together on a node with known candidates."""

    def __init__(
        self,
        problem: Problem,
        ledger: SearchLedger,
        claims: Sequence[Claim],
        candidates: NodeCandidates,
        dead_ends: int,
    ) -> None:
        super().__init__(problem, ledger, claims, candidates.node)
        self._node_candidates = candidates
        self._dead_ends = 0
        self._first = self._wait = dead_ends
        self._next_check: float = dead_ends

    def _candidates(
        self, claim: int, request: int, choice: int, *, taken: int, start: int
    ) -> Iterator[tuple[int, DeviceIndex]]:
        alternative = self._claims[claim].requests[request].alternatives[choice]
        if alternative.count is None:
            if not self._is_infeasible(claim, request, choice, taken, taken):
                yield taken, self._all[alternative.index][taken]
            return
        listed = self._node_candidates.lists[claim, request, choice]
        tried: set[Hashable] = set()
        for position in range(max(start, listed.start), len(listed.devices)):
            device_index = listed.devices[position]
            device = self._problem.devices[device_index]
            if self._ledger.in_use(device, alternative, claim):
                continue
            if device_index in listed.failing:
                raise failure(self._problem, alternative, device_index)
            if self._dead_ends < self._first or not self._is_safe:
                yield position, device_index
                continue
            if self._is_infeasible(claim, request, choice, taken, position):
                return
            equal = self._equality(device_index)
            if equal in tried:
                continue
            before = self._dead_ends
            yield position, device_index
            # Back here: the device led to nothing, if it could be taken at all.
            if self._dead_ends > before:
                tried.add(equal)

    def _give_back(self, claim: int) -> None:
        self._dead_ends += 1
        super()._give_back(claim)

    @cached_property
    def _is_safe(self) -> bool:
        """Whether the search cannot end with an error, so that nothing is lost by leaving out what cannot help."""
        devices = self._problem.devices
        for (
            claim,
            request,
            choice,
        ), listed in self._node_candidates.lists.items():
            admin = (
                self._claims[claim].requests[request].alternatives[choice].admin
            )
            for device in listed.failing:
                if admin or not self._ledger.is_in_use_before(devices[device]):
                    return False
        return not constrains_all(self._claims)

    # Equal devices.

    def _equality(self, device: DeviceIndex) -> Hashable:
        """Equal for devices that are interchangeable for the rest of the search."""
        return self._roles[device], self._ledger.state(
            self._problem.devices[device]
        )

    @cached_property
    def _roles(self) -> Mapping[int, Hashable]:
        """The role of each device to the demand."""
        eligibility = self._problem.eligibility
        uses: dict[DeviceIndex, list[Hashable]] = defaultdict(list)
        for (
            claim,
            request,
            choice,
        ), listed in self._node_candidates.lists.items():
            index = (
                self._claims[claim].requests[request].alternatives[choice].index
            )
            for device in listed.devices:
                charge = eligibility.charge(index, device)
                uses[device].append((claim, request, choice, charge))
        for all_index, devices in self._all.items():
            for device in devices:
                charge = eligibility.charge(all_index, device)
                uses[device].append((all_index, charge))
        names: list[str] = []
        for searched_claim in self._claims:
            for constraint in searched_claim.constraints:
                names += constraint.attributes
        return {
            device: (tuple(of_device), *self._traits(device, names))
            for device, of_device in uses.items()
        }

    def _traits(
        self, device_index: DeviceIndex, attributes: Sequence[str]
    ) -> Iterator[Hashable]:
        device = self._problem.devices[device_index]
        yield (
            device_index
            if device.slot in self._problem.several_versions
            else None
        )
        yield device_traits(device)
        yield tuple(device.attributes.get(name) for name in attributes)

    # Bounds.

    def _is_infeasible(
        self, claim: int, request: int, choice: int, taken: int, start: int
    ) -> bool:
        """Whether this alternative and everything behind it is certain not to be served from here on."""
        if self._dead_ends < self._next_check or not self._is_safe:
            return False
        residual = self._residual_requests(claim, request, choice, taken, start)
        if residual is None or _infeasible(
            self._problem, self._ledger, residual, self._constraints
        ):
            self._wait, self._next_check = 1, 0
            return True
        # The conditions say nothing here: ask them half as often from now on.
        self._wait = min(2 * self._wait, _LONGEST)
        self._next_check = self._dead_ends + self._wait
        return False

    def _residual_requests(
        self, claim: int, request: int, choice: int, taken: int, start: int
    ) -> list[ResidualRequest] | None:
        """Return the requests that are still to be served; None if one of them cannot be served at all."""
        current = self._residual_request(claim, request, [choice], taken, start)
        if current is None:
            return None
        residual = [current]
        for later_claim in range(claim, len(self._claims)):
            requests = self._claims[later_claim].requests
            first = request + 1 if later_claim == claim else 0
            for later in range(first, len(requests)):
                choices = range(len(requests[later].alternatives))
                residual_request = self._residual_request(
                    later_claim, later, choices, 0, 0
                )
                if residual_request is None:
                    return None
                residual.append(residual_request)
        return residual

    def _residual_request(
        self,
        claim: int,
        request: int,
        choices: Sequence[int],
        taken: int,
        start: int,
    ) -> ResidualRequest | None:
        offers: dict[DeviceIndex, list[Charge]] = {}
        possible: list[Alternative] = []
        need: float = inf
        for choice in choices:
            alternative = (
                self._claims[claim].requests[request].alternatives[choice]
            )
            count = self._count(alternative) - taken
            charges = dict(self._offers(claim, request, choice, start))
            # ``All`` needs at least one device, which a count of zero does not say.
            all_of_none = (
                alternative.count is None and not self._all[alternative.index]
            )
            if len(charges) < count or all_of_none:
                continue
            possible.append(alternative)
            need = min(need, count)
            for device, charge in charges.items():
                offers.setdefault(device, []).append(charge)
        if possible:
            return ResidualRequest(claim, int(need), offers, possible)
        return None

    def _offers(
        self, claim: int, request: int, choice: int, start: int
    ) -> Iterator[tuple[DeviceIndex, Charge]]:
        """The devices from this position on that can be had by themselves, and what they would be charged."""
        alternative = self._claims[claim].requests[request].alternatives[choice]
        devices: Sequence[DeviceIndex]
        if alternative.index in self._all:
            devices = self._all[alternative.index]
        else:
            devices = self._node_candidates.lists[
                claim, request, choice
            ].devices
        for position in range(start, len(devices)):
            device_index = devices[position]
            device = self._problem.devices[device_index]
            charge = self._problem.eligibility.charge(
                alternative.index, device_index
            )
            if (
                charge is not None
                and not self._ledger.in_use(device, alternative, claim)
                and self._ledger.has_capacity(device, charge)
                and self._ledger.covers(device, alternative, charge)
                and self._constraints[claim].accepts(alternative.name, device)
            ):
                yield device_index, charge
