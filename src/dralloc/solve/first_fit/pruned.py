"""The search without what cannot help.

It finds the same first solution as the plain one, or none, or the same error. What it still has to find is in
`dralloc.solve.first_fit.residual_requests`, what that costs at least in counters in
`dralloc.solve.first_fit.counter_bounds`, and the necessary conditions that follow, which it asks, in
`dralloc.solve.first_fit.necessary_conditions`.

Why it answers as the plain one: a search that cannot end with an error finds the first full solution in its order, if
there is one. Leaving out parts that hold no solution does not change which one that is. Two kinds of parts are left
out:

- what some necessary condition excludes (`is_infeasible`);
- a device that equals one that was tried in the same place without success. Two devices are equal if they are on the
  same lists at the same charge, have the same values in all constraints of the demand, equal traits
  (`dralloc.problem.equivalence.device_traits`) and are in the same state. Exchanging them maps every solution onto a
  solution; as the place looks for further devices only behind the chosen one, what the later of the two could lead to,
  the earlier could, too.

Selectors are evaluated before the search reaches a device, which has no effect: failures are kept, and raised where the
plain search would. Leaving something out could hide such a failure, or the other error of a search, a device that
violates a constraint of a request for all devices. So nothing is left out where one of these can occur: where a
selector fails on any device that is not in use, or a constraint covers a request for all devices
(`PrunedSearch._is_safe`). The early end at more than 32 devices leaves out only what has no solution, in both searches.

As most searches go straight to their solution, all this starts with the first few dead ends, and pauses for longer and
longer where it has nothing to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from typing import Final

from dralloc.problem import Alternative, Charge, Claim, DeviceIndex, Problem
from dralloc.problem.equivalence import device_traits
from dralloc.solve.first_fit.candidates import (
    NodeCandidates,
    constrains_all,
    failure,
)
from dralloc.solve.first_fit.necessary_conditions import is_infeasible
from dralloc.solve.first_fit.residual_requests import ResidualRequest
from dralloc.solve.first_fit.search import DepthFirstSearch
from dralloc.solve.first_fit.search_ledger import SearchLedger

__all__ = ["DEAD_ENDS", "PrunedSearch"]

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
        # The bounds, and what makes devices equal, know of one state alone.
        if self._ledger.is_about_two_states:
            return False
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
        # A request for all devices has no list: what it stands for was found before the search.
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
        if residual is None or is_infeasible(
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
        # For a request for all, positions count in its own devices.
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
