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
from itertools import accumulate
from math import inf
from typing import Final, TypeVar, assert_never

from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    Constraint,
    ConstraintKind,
    Problem,
    Scalar,
)
from dralloc.problem.equivalence import device_traits
from dralloc.problem.ledger import Ledger
from dralloc.solve.first_fit.candidates import NodeCandidates, constrains_all, failure
from dralloc.solve.first_fit.search import (
    ClaimConstraints,
    DepthFirstSearch,
    Propagator,
    SearchLedger,
)

__all__ = ["DEAD_ENDS", "PrunedSearch"]

# ----------------------------------------------------------------------------
# What a search still has to find, without the order and the combinations: more than
# it needs can be on offer.

Costs = Mapping[int, int]
"""Amounts by counter."""


@dataclass(frozen=True, slots=True)
class ResidualRequest:
    """One request that is still to be served, as a whole or in part.

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
    offers: Mapping[int, Sequence[Charge]]
    alternatives: Sequence[Alternative]

    @property
    def admin(self) -> bool:
        """Whether it asks for admin access, which nobody else stands in the way of."""
        return any(alternative.admin for alternative in self.alternatives)

    def covered_by(self, constraint: Constraint) -> bool:
        """Whether the constraint covers it, whichever alternative serves it."""
        return all(
            constraint.covers(alternative.name) for alternative in self.alternatives
        )

    def capacity_of(self, device: int, name: str) -> int:
        """How much of a capacity of the device it takes at least."""
        return min(dict(charge.capacity).get(name, 0) for charge in self.offers[device])

    def counters_of(self, problem: Problem, device: int, *, opening: bool) -> Costs:
        """How much it takes of each counter at least, with or without what the device consumes by itself."""
        costs = dict(problem.devices[device].consumes) if opening else {}
        by_request = [dict(charge.counters) for charge in self.offers[device]]
        for index in by_request[0]:
            costs[index] = costs.get(index, 0) + min(
                amounts.get(index, 0) for amounts in by_request
            )
        return costs


Residual = Sequence[ResidualRequest]
"""Everything that is still to be served."""


def fitting(amounts: Iterable[int], left: int) -> int:
    """How many of the smallest of some amounts fit into what is left."""
    smallest = sorted(amounts)
    return sum(
        total <= left or not last
        for last, total in zip(smallest, accumulate(smallest), strict=True)
    )


# ----------------------------------------------------------------------------
# Necessary conditions about counters: what is on offer must not cost more than there
# is (KEP-4815, KEP-5941).

Prices = Mapping[int, Costs]
"""What each device on offer costs at least."""

Name = tuple[str, str, str]
"""What counters of a pool's sets are called: driver, pool, counter."""


def counters_suffice(problem: Problem, ledger: Ledger, residual: Residual) -> bool:
    """Whether the counters could cover the residual requests, each alone and all together."""
    prices = [
        {
            device: _costs(problem, ledger, request, device, alone=len(residual) == 1)
            for device in request.offers
        }
        for request in residual
    ]
    names: dict[Name, set[int]] = defaultdict(set)
    for each in prices:
        for costs in each.values():
            for index in costs:
                id_ = problem.counters[index].id
                names[id_.driver, id_.pool, id_.counter].add(index)
    return all(
        _sums_suffice(ledger, residual, prices, counters)
        and _enough_fit(problem, ledger, residual, prices, counters)
        for counters in names.values()
    )


def _costs(
    problem: Problem,
    ledger: Ledger,
    request: ResidualRequest,
    device: int,
    *,
    alone: bool,
) -> Costs:
    """What a device on offer costs. What opens a shareable device counts only where nobody else can have done so."""
    known = problem.devices[device]
    opening = not known.shareable or (alone and not ledger.is_open(known))
    return request.counters_of(problem, device, opening=opening)


def _sums_suffice(
    ledger: Ledger, residual: Residual, prices: Sequence[Prices], counters: set[int]
) -> bool:
    """Whether each of these counters, and all together, cover the cheapest devices that each request can have."""
    least: dict[int, int] = defaultdict(int)
    total = 0
    for request, each in zip(residual, prices, strict=True):
        by_counter: dict[int, list[int]] = defaultdict(list)
        sums = []
        for costs in each.values():
            mine = [(index, costs[index]) for index in costs if index in counters]
            sums.append(sum(amount for _, amount in mine))
            for index, amount in mine:
                by_counter[index].append(amount)
        total += sum(sorted(sums)[: request.need])
        for index, amounts in by_counter.items():
            # The other devices cost nothing of it.
            paid = request.need - (len(each) - len(amounts))
            least[index] += sum(sorted(amounts)[: max(paid, 0)])
    left = {index: max(ledger.free[index], 0) for index in counters}
    return total <= sum(left.values()) and all(
        amount <= left[index] for index, amount in least.items()
    )


def _enough_fit(
    problem: Problem,
    ledger: Ledger,
    residual: Residual,
    prices: Sequence[Prices],
    counters: set[int],
) -> bool:
    """Whether as many devices as are needed fit into these counters, counting the first of each device."""
    together: dict[int, Costs] = {}
    for request, each in zip(residual, prices, strict=True):
        if _fitting(ledger, each.values(), counters) < request.need:
            return False
        for device, costs in each.items():
            known = together.get(device)
            together[device] = (
                costs
                if known is None
                else {
                    index: min(amount, known.get(index, 0))
                    for index, amount in costs.items()
                }
            )
    if any(problem.devices[device].shareable for device in together):
        return True
    return _fitting(ledger, together.values(), counters) >= sum(
        request.need for request in residual
    )


def _fitting(ledger: Ledger, prices: Iterable[Costs], counters: set[int]) -> int:
    """How many devices at these prices fit at most."""
    users: dict[int | None, list[int]] = defaultdict(list)
    for costs in prices:
        index = next((index for index in costs if index in counters), None)
        users[index].append(0 if index is None else costs[index])
    return sum(
        fitting(amounts, 0 if index is None else ledger.free[index])
        for index, amounts in users.items()
    )


# ----------------------------------------------------------------------------
# Necessary conditions: if one of them fails, the rest of a search has no solution.
#
# Each looks at one thing only and takes the best case for all others. None of them
# looks at order, so whatever fails here fails in every order, and leaving it out of
# the search cannot change which solution is found first.

T = TypeVar("T", bound=Hashable)

_NO_VALUE: Scalar = ("", "")
"""Stands for what cannot be compared: of the devices of a `distinctAttribute` at most one has no value."""


def infeasible(
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
    shared = [request for request in residual if not request.admin and request.need]
    shares = dict(_multiplicities(problem, ledger, shared))
    if not _can_serve(
        [request.need for request in shared],
        [list(request.offers) for request in shared],
        shares,
    ):
        return True
    for claim in {request.claim for request in residual}:
        mine = [
            request for request in residual if request.claim == claim and request.need
        ]
        if not all(
            _can_hold(problem, mine, shares, *state)
            for state in constraints[claim].states
        ):
            return True
    return not (
        counters_suffice(problem, ledger, shared)
        and _capacities_suffice(problem, ledger, shared)
    )


def _can_hold(
    problem: Problem,
    residual: Residual,
    shares: dict[int, int],
    constraint: Constraint,
    state: Propagator,
) -> bool:
    covered = [request for request in residual if request.covered_by(constraint)]
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
                common = frozenset[Scalar]().union(*fewest.values()) - {_NO_VALUE}
            return any(_can_share(value, covered, values, shares) for value in common)
        case _:
            assert_never(constraint.kind)


def _values(
    problem: Problem, constraint: Constraint, request: ResidualRequest
) -> dict[int, frozenset[Scalar]]:
    """By device on offer to a request, the values that count there, whichever alternative serves it."""
    names = {
        constraint.compared(alternative.name) for alternative in request.alternatives
    }
    known = ((device, problem.devices[device].attributes) for device in request.offers)
    return {
        device: frozenset().union(*(of.get(name) or (_NO_VALUE,) for name in names))
        for device, of in known
    }


def _can_share(
    value: Scalar,
    residual: Residual,
    values: Sequence[dict[int, frozenset[Scalar]]],
    shares: dict[int, int],
) -> bool:
    """`matchAttribute`: the devices that have this value are enough."""
    offers = [
        [device for device, own in each.items() if value in own] for each in values
    ]
    if any(
        len(offer) < request.need
        for offer, request in zip(offers, residual, strict=True)
    ):
        return False
    together = [
        (request.need, offer)
        for offer, request in zip(offers, residual, strict=True)
        if not request.admin
    ]
    return _can_serve(
        [need for need, _ in together], [offer for _, offer in together], shares
    )


def _capacities_suffice(problem: Problem, ledger: Ledger, residual: Residual) -> bool:
    """Where only shareable devices are on offer: their capacities of one name cover the least amounts."""
    offered = {device for request in residual for device in request.offers}
    if not offered or not all(problem.devices[device].shareable for device in offered):
        return True
    names = set.intersection(
        *(set(problem.devices[device].capacity) for device in offered)
    )
    return all(
        sum(
            request.need
            * min(request.capacity_of(device, name) for device in request.offers)
            for request in residual
        )
        <= sum(
            ledger.capacity_left(problem.devices[device], name) for device in offered
        )
        for name in names
    )


def _multiplicities(
    problem: Problem, ledger: Ledger, residual: Residual
) -> Iterator[tuple[int, int]]:
    """For each shareable device how many of the requests its capacities could serve together, at the very most."""
    users: dict[int, list[ResidualRequest]] = {}
    for request in residual:
        for device in request.offers:
            if problem.devices[device].shareable:
                users.setdefault(device, []).append(request)
    for number, mine in users.items():
        known = problem.devices[number]
        for_each = (
            fitting(
                [request.capacity_of(number, name) for request in mine],
                ledger.capacity_left(known, name),
            )
            for name in known.capacity
        )
        yield number, min(for_each, default=len(mine))


def _can_serve(
    needs: Sequence[int], offers: Sequence[Sequence[T]], multiplicity: Mapping[T, int]
) -> bool:
    """Whether every party gets as many different things of its offer as it needs: a bipartite matching.

    Parameters
    ----------
    needs
        How many things each party needs.
    offers
        The things that each party can use.
    multiplicity
        How many parties can have a thing together; one if it is not listed.
    """
    users: dict[T, set[int]] = {}

    def find(party: int, seen: set[T]) -> bool:
        """Give the party one more thing, if need be by having others change theirs."""
        for thing in offers[party]:
            mine = users.setdefault(thing, set())
            if party not in mine and len(mine) < multiplicity.get(thing, 1):
                mine.add(party)
                return True
        for thing in offers[party]:
            mine = users[thing]
            if thing in seen or party in mine:
                continue
            seen.add(thing)
            for other in tuple(mine):
                if find(other, seen):
                    mine.discard(other)
                    mine.add(party)
                    return True
        return False

    return all(
        find(party, set()) for party, need in enumerate(needs) for _ in range(need)
    )


# ----------------------------------------------------------------------------
# The search without what cannot help. It finds the same first solution as the plain
# one, or none, or the same error.
#
# Why that is so: a search that cannot end with an error finds the first full solution
# in its order, if there is one. Leaving out parts that hold no solution does not
# change which one that is. Two kinds of parts are left out:
#
# - what some necessary condition excludes (`dralloc.solve.first_fit.pruned`);
# - a device that equals one that was tried in the same place without success. Two devices are equal if they are on the
#   same lists at the same charge, have the same values in all constraints of the demand, equal traits
#   (`dralloc.problem.equivalence.device_traits`) and are in the same state. Exchanging them maps every solution onto a
#   solution; as the place looks for further devices only behind the chosen one, what the later of the two could lead
#   to, the earlier could, too.
#
# Selectors are evaluated before the search reaches a device, which has no effect:
# failures are kept, and raised where the plain search would. Leaving something out
# could hide such a failure, or the other error of a search, a device that violates a
# constraint of a request for all devices. So nothing is left out where one of these
# can occur: where a selector fails on any device that is not in use, or a constraint
# covers a request for all devices (`PrunedSearch._is_safe`). The early end at more
# than 32 devices leaves out only what has no solution, in both searches.
#
# As most searches go straight to their solution, all this starts with the first few
# dead ends, and pauses for longer and longer where it has nothing to say.

DEAD_ENDS: Final = 16
"""Dead ends before the bounds are asked first."""

_LONGEST: Final = 256
"""Dead ends at most between two times at which the bounds had no effect."""


class PrunedSearch(DepthFirstSearch):
    """One attempt to allocate claims together on a node with known candidates."""

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
    ) -> Iterator[tuple[int, int]]:
        alternative = self._claims[claim].requests[request].alternatives[choice]
        if alternative.count is None:
            if not self._is_infeasible(claim, request, choice, taken, taken):
                yield taken, self._all[alternative.index][taken]
            return
        listed = self._node_candidates.lists[claim, request, choice]
        tried: set[Hashable] = set()
        for position in range(max(start, listed.start), len(listed.devices)):
            number = listed.devices[position]
            device = self._problem.devices[number]
            if self._ledger.in_use(device, alternative, claim):
                continue
            if number in listed.failing:
                raise failure(self._problem, alternative, number)
            if self._dead_ends >= self._first and self._is_safe:
                if self._is_infeasible(claim, request, choice, taken, position):
                    return
                equal = self._equality(number)
                if equal in tried:
                    continue
                before = self._dead_ends
                yield position, number
                if self._dead_ends > before:
                    tried.add(equal)
            else:
                yield position, number

    def _give_back(self, claim: int) -> None:
        self._dead_ends += 1
        super()._give_back(claim)

    @cached_property
    def _is_safe(self) -> bool:
        """Whether the search cannot end with an error, so that nothing is lost by leaving out what cannot help."""
        devices = self._problem.devices
        for (claim, request, choice), listed in self._node_candidates.lists.items():
            admin = self._claims[claim].requests[request].alternatives[choice].admin
            if any(
                admin or not self._ledger.is_in_use_before(devices[device])
                for device in listed.failing
            ):
                return False
        return not constrains_all(self._claims)

    # Equal devices.

    def _equality(self, number: int) -> Hashable:
        """Equal for devices that are interchangeable for the rest of the search."""
        return self._roles[number], self._ledger.state(self._problem.devices[number])

    @cached_property
    def _roles(self) -> Mapping[int, Hashable]:
        """What each device is to the demand."""
        found: dict[int, list[Hashable]] = {}
        for (claim, request, choice), listed in self._node_candidates.lists.items():
            index = self._claims[claim].requests[request].alternatives[choice].index
            for device in listed.devices:
                charge = self._problem.eligibility.charge(index, device)
                found.setdefault(device, []).append((claim, request, choice, charge))
        for index, devices in self._all.items():
            for device in devices:
                found.setdefault(device, []).append(
                    (index, self._problem.eligibility.charge(index, device))
                )
        names = [
            name
            for claim in self._claims
            for constraint in claim.constraints
            for name in constraint.attributes
        ]
        return {
            device: (tuple(charges), *self._traits(device, names))
            for device, charges in found.items()
        }

    def _traits(self, number: int, attributes: Sequence[str]) -> Iterator[Hashable]:
        device = self._problem.devices[number]
        yield number if device.slot in self._problem.several_versions else None
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
        if residual is None or infeasible(
            self._problem, self._ledger, residual, self._constraints
        ):
            self._wait, self._next_check = 1, 0
            return True
        self._wait = min(2 * self._wait, _LONGEST)
        self._next_check = self._dead_ends + self._wait
        return False

    def _residual_requests(
        self, claim: int, request: int, choice: int, taken: int, start: int
    ) -> list[ResidualRequest] | None:
        """What is left to be found; None if one of the requests cannot be served at all."""
        residual = [self._residual_request(claim, request, [choice], taken, start)]
        for number in range(claim, len(self._claims)):
            requests = self._claims[number].requests
            behind = range(request + 1 if number == claim else 0, len(requests))
            residual += (
                self._residual_request(
                    number, one, range(len(requests[one].alternatives)), 0, 0
                )
                for one in behind
            )
        if None in residual:
            return None
        return [request for request in residual if request is not None]

    def _residual_request(
        self, claim: int, request: int, choices: Sequence[int], taken: int, start: int
    ) -> ResidualRequest | None:
        offers: dict[int, list[Charge]] = {}
        possible: list[Alternative] = []
        need: float = inf
        for choice in choices:
            alternative = self._claims[claim].requests[request].alternatives[choice]
            count = self._count(alternative) - taken
            mine = dict(self._offers(claim, request, choice, start))
            if len(mine) < count or (
                alternative.count is None and not self._all[alternative.index]
            ):
                continue
            possible.append(alternative)
            need = min(need, count)
            for device, charge in mine.items():
                offers.setdefault(device, []).append(charge)
        if possible:
            return ResidualRequest(claim, int(need), offers, possible)
        return None

    def _offers(
        self, claim: int, request: int, choice: int, start: int
    ) -> Iterator[tuple[int, Charge]]:
        """The devices from this position on that can be had by themselves, and what they would be charged."""
        alternative = self._claims[claim].requests[request].alternatives[choice]
        everything = self._all.get(alternative.index)
        devices = (
            self._node_candidates.lists[claim, request, choice].devices
            if everything is None
            else everything
        )
        for position in range(start, len(devices)):
            number = devices[position]
            device = self._problem.devices[number]
            charge = self._problem.eligibility.charge(alternative.index, number)
            if (
                charge is not None
                and not self._ledger.in_use(device, alternative, claim)
                and self._ledger.has_capacity(device, charge)
                and self._ledger.covers(device, alternative, charge)
                and self._constraints[claim].accepts(alternative.name, device)
            ):
                yield number, charge
