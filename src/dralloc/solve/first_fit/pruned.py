"""The search without what cannot help. It finds the same first solution as the plain one, or none, or the same error.

Why that is so: a search that cannot end with an error finds the first full solution in its order, if there is one.
Leaving out parts that hold no solution does not change which one that is. Two kinds of parts are left out:

- what some necessary condition excludes (`dralloc.solve.first_fit.bounds`);
- a device that equals one that was tried in the same place without success. Two devices are equal if they are on the
  same lists at the same charge, have the same values in all constraints of the demand, equal traits
  (`dralloc.problem.equivalence.device_traits`) and are in the same state. Exchanging them maps every solution onto a
  solution; as the place looks for further devices only behind the chosen one, what the later of the two could lead
  to, the earlier could, too.

Selectors are evaluated before the search reaches a device, which has no effect: failures are kept, and raised where
the plain search would. Leaving something out could hide such a failure, or the other error of a search, a device that
violates a constraint of a request for all devices. So nothing is left out where one of these can occur: where a
selector fails on any device that is not in use, or a constraint covers a request for all devices
(`PrunedSearch._is_safe`).
The early end at more than 32 devices leaves out only what has no solution, in both searches.

As most searches go straight to their solution, all this starts with the first few dead ends, and pauses for longer and
longer where it has nothing to say.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from typing import Final

from dralloc.problem import Alternative, Charge, Claim, Problem
from dralloc.problem.equivalence import device_traits
from dralloc.solve.first_fit.bounds import infeasible
from dralloc.solve.first_fit.candidates import NodeCandidates, failure
from dralloc.solve.first_fit.claim_classes import constrains_all
from dralloc.solve.first_fit.ledger import SearchLedger
from dralloc.solve.first_fit.residual_requests import ResidualRequest
from dralloc.solve.first_fit.search import DepthFirstSearch

__all__ = ["DEAD_ENDS", "PrunedSearch"]

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
        return (
            None
            if None in residual
            else [request for request in residual if request is not None]
        )

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
        return ResidualRequest(claim, int(need), offers, possible) if possible else None

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
