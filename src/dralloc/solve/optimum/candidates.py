"""Candidates: the devices that can serve each request on each node, before anything is decided."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    Charge,
    Claim,
    Demand,
    DeviceIndex,
    NodeIndex,
    PoolState,
    Problem,
    indices,
    quorum_of,
)
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.ledger import Ledger
from dralloc.solve.optimum.stopping import Stop, TooLarge

__all__ = [
    "Candidate",
    "CandidateSite",
    "CandidateSurvey",
    "ServingChoice",
    "may_need_others",
    "survey",
]


class Candidate(NamedTuple):
    """A device that can serve an alternative, and what that takes of it."""

    device: DeviceIndex
    charge: Charge


@dataclass(frozen=True, slots=True)
class ServingChoice:
    """An alternative that a node can serve with ``count`` of the candidates, which are in search order.

    Parameters
    ----------
    claim, request, alternative
        The indices inside demand, claim and request.
    spec
        What it asks of each device, and how many.
    count
        How many devices it takes; with allocation mode ``All`` the most that it can.
    candidates
        The devices that it can take.
    loose
        The candidates that ``All`` leaves out when others leave too little capacity on them.
    blocked
        What it cannot take although it matches: ``All`` is possible only if others fill all of it.
    """

    claim: int
    request: int
    alternative: int
    spec: Alternative
    count: int
    candidates: tuple[Candidate, ...]
    loose: tuple[Candidate, ...] = ()
    blocked: tuple[Candidate, ...] = ()

    @property
    def least(self) -> int:
        """The fewest devices that it takes."""
        if self.spec.count is None:
            return max(1, self.count - len(self.loose))
        return self.count

    @property
    def fixed(self) -> bool:
        """Whether it takes all of its candidates, so that nothing is left to decide about them."""
        return self.count == len(self.candidates) and not self.loose


@dataclass(frozen=True, slots=True)
class CandidateSite:
    """A node that a demand can go to, with the possible choices for each request, of all claims in a row.

    ``shared``: the claims, by index, that other demands list too. They have no requests here if the node cannot serve
    them: then another demand has to be granted the claim.
    """

    node: NodeIndex
    requests: tuple[tuple[ServingChoice, ...], ...]
    shared: tuple[int, ...] = ()

    def choices(self) -> Iterator[ServingChoice]:
        """Every choice, in order."""
        for request in self.requests:
            yield from request


def may_need_others(
    problem: Problem, demand: Demand, sites: Iterable[CandidateSite]
) -> bool:
    """Whether a demand may find room just because of the devices that others have.

    That is, if there is a device that it has to take, or cannot take, unless others have filled it (``All``, KEP-5075);
    or one that it may share with those who have opened it by another version, so that it draws on no counters.
    """
    choices = [choice for site in sites for choice in site.choices()]
    if demand.asks_for_all and any(
        choice.loose or choice.blocked for choice in choices
    ):
        return True
    return any(
        problem.devices[device].shareable
        and problem.devices[device].slot in problem.several_versions
        for choice in choices
        for device, _ in choice.candidates
    )


@dataclass(frozen=True, slots=True)
class CandidateSurvey:
    """The sites of each demand that has any, by the demand's index in order, and the selectors that failed."""

    sites: dict[DemandIndex, tuple[CandidateSite, ...]]
    failures: tuple[AllocationError, ...]


def survey(
    problem: Problem,
    demands: Iterable[DemandIndex] | None = None,
    *,
    strict_cel: bool = False,
    stop: Stop | None = None,
    most_candidates: float = inf,
) -> CandidateSurvey:
    """Work out every candidate of some demands; of all if None.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device is left out with a warning.
    Stopped
        It is time to stop; `TooLarge` if there are more than ``most_candidates``.
    """
    surveyor = _Surveyor(problem, strict_cel, stop or Stop(), most_candidates)
    chosen = indices(problem.demands) if demands is None else demands
    sites = {index: surveyor.sites(problem.demands[index]) for index in chosen}
    halted = _halted(problem, sites)
    placeable = {
        index: demand_sites
        for index, demand_sites in sites.items()
        if demand_sites and problem.demands[index].gang not in halted
    }
    return CandidateSurvey(placeable, tuple(surveyor.failures.values()))


def _halted(
    problem: Problem, sites: Mapping[DemandIndex, Sequence[CandidateSite]]
) -> set[str]:
    """The gangs of which fewer demands can be placed than they need."""
    demands = problem.demands
    missing = Tally(
        demands[index].gang
        for index, of_demand in sites.items()
        if not of_demand
    )
    gangs = grouped(
        (demands[index].gang, demands[index])
        for index in sites
        if demands[index].gang in missing
    )
    return {
        gang
        for gang, members in gangs.items()
        if gang and len(members) - missing[gang] < quorum_of(members)
    }


class _Surveyor:
    def __init__(
        self,
        problem: Problem,
        strict_cel: bool,
        stop: Stop,
        most_candidates: float,
    ) -> None:
        self.problem = problem
        self.strict_cel = strict_cel
        self.stop = stop
        self.allowance = most_candidates
        self.failures: dict[str, AllocationError] = {}
        self.devices: dict[int, list[DeviceIndex]] = {}
        # By node, its devices by kind, with their positions in search order.
        self.kinds: dict[int, list[list[tuple[int, DeviceIndex]]]] = {}
        self.candidates: dict[Hashable, tuple[Candidate, ...]] = {}
        listed: Tally[ClaimKey] = Tally()
        for demand in problem.demands:
            listed.update(
                claim.key for claim in demand.claims if claim.requests
            )
        self.shared = {key for key, times in listed.items() if times > 1}
        self.ledger = Ledger(problem)

    def sites(self, demand: Demand) -> tuple[CandidateSite, ...]:
        """The nodes that can serve every request, looked at alone. A defect anywhere is fatal for the demand."""
        if demand.is_defective:
            return ()
        sites = []
        for node in self.stop.each(self.problem.candidate_nodes(demand)):
            site = self._site(demand, node)
            if site is None:
                continue
            sites.append(site)
            self.allowance -= sum(
                len(choice.candidates) for choice in site.choices()
            )
            if self.allowance < 0:
                raise TooLarge
        return tuple(sites)

    def _site(self, demand: Demand, node: NodeIndex) -> CandidateSite | None:
        requests: list[tuple[ServingChoice, ...]] = []
        shared = tuple(
            index
            for index, claim in enumerate(demand.claims)
            if claim.key in self.shared
        )
        for index, claim in enumerate(demand.claims):
            choices = self._claim(index, claim, node)
            if choices is None and index not in shared:
                return None
            requests.extend(choices or ())
        return CandidateSite(node, tuple(requests), shared)

    def _claim(
        self, index: int, claim: Claim, node: NodeIndex
    ) -> list[tuple[ServingChoice, ...]] | None:
        """The choices for each request of a claim; None if a request has none, or all of them are too many results."""
        requests: list[tuple[ServingChoice, ...]] = []
        for position, request in enumerate(claim.requests):
            choices = []
            for rank, spec in enumerate(request.alternatives):
                choice = self._choice(
                    claim, spec, node, (index, position, rank)
                )
                if choice and choice.least <= MAX_RESULTS:
                    choices.append(choice)
            if not choices:
                return None
            requests.append(tuple(choices))
        fewest_results = 0
        for of_request in requests:
            fewest_results += min(choice.least for choice in of_request)
        return requests if fewest_results <= MAX_RESULTS else None

    def _choice(
        self,
        claim: Claim,
        spec: Alternative,
        node: NodeIndex,
        position: tuple[int, int, int],
    ) -> ServingChoice | None:
        attributes = [
            constraint.compared(spec.name)
            for constraint in claim.constraints
            if constraint.covers(spec.name)
        ]
        if spec.count is None:
            return self._all(spec, node, position, attributes)
        # Equal alternatives have equal candidates.
        key = (
            self.problem.eligibility.request_key(spec.index),
            spec.admin,
            node,
            tuple(attributes),
        )
        candidates = self.candidates.get(key)
        if candidates is None:
            known_failures = len(self.failures)
            candidates = tuple(self._candidates(spec, node, attributes))
            # Where a selector fails, each claim is to be named.
            if len(self.failures) == known_failures:
                self.candidates[key] = candidates
        if len(candidates) >= spec.count:
            return ServingChoice(*position, spec, spec.count, candidates)
        return None

    def _candidates(
        self,
        spec: Alternative,
        node: NodeIndex,
        attributes: Sequence[str],
    ) -> Iterator[Candidate]:
        """Give out the devices that can serve an alternative, in search order."""
        for device in self._possible(spec, node):
            # What is in use is asked first: a selector may fail on it, for nothing.
            if not self._is_free(spec, device):
                continue
            charge = self._offer(spec, device)
            if charge is None:
                continue
            candidate = Candidate(device, charge)
            if self._is_usable(spec, candidate, attributes):
                yield candidate

    def _all(
        self,
        spec: Alternative,
        node: NodeIndex,
        position: tuple[int, int, int],
        attributes: Sequence[str],
    ) -> ServingChoice | None:
        """All or nothing (KEP-4381, allocation mode All); without a full device it can do (KEP-5075)."""
        # Every pool of the node has to be complete and valid (upstream behaviour).
        pools = self.problem.nodes[node].pools
        if any(pool.state is not PoolState.USABLE for pool in pools):
            return None
        usable: list[Candidate] = []
        blocked: list[Candidate] = []
        for device in self._devices(node):
            charge = self._offer(spec, device)
            if charge is None:
                continue
            candidate = Candidate(device, charge)
            if self._is_free(spec, device) and self._is_usable(
                spec, candidate, attributes
            ):
                usable.append(candidate)
            else:
                blocked.append(candidate)
        if not usable:
            return None
        # Only a device of which others can use up a capacity may be left out.
        if not all(candidate.charge.capacity for candidate in blocked):
            return None
        loose = tuple(
            candidate for candidate in usable if candidate.charge.capacity
        )
        return ServingChoice(
            *position, spec, len(usable), tuple(usable), loose, tuple(blocked)
        )

    def _devices(self, node: NodeIndex) -> list[DeviceIndex]:
        """The devices of usable pools that reach the node, in search order."""
        if node not in self.devices:
            offered = self.problem.nodes[node].devices()
            self.devices[node] = [
                device
                for device in offered
                if self.problem.on_node(device, node)
            ]
        return self.devices[node]

    def _possible(
        self, spec: Alternative, node: NodeIndex
    ) -> list[DeviceIndex]:
        """The devices that reach the node, without those of a kind that an alternative does not select."""
        if node not in self.kinds:
            key_of = self.problem.eligibility.device_key
            in_order = enumerate(self._devices(node))
            kinds = grouped(
                (key_of(device), (position, device))
                for position, device in in_order
            )
            self.kinds[node] = list(kinds.values())
        selects = self.problem.eligibility.selects
        possible: list[tuple[int, DeviceIndex]] = []
        for devices in self.kinds[node]:
            _, sample = devices[0]
            # A selector that fails on a device is asked about each of them.
            if selects(spec.index, sample) is not False:
                possible += devices
        return [device for _, device in sorted(possible)]

    def _offer(self, spec: Alternative, device: DeviceIndex) -> Charge | None:
        """Return the charge of the device for the alternative; None if it does not match or lacks the capacity."""
        eligibility = self.problem.eligibility
        selected = eligibility.selects(spec.index, device)
        if isinstance(selected, AllocationError):
            if self.strict_cel:
                raise selected
            self.failures[str(selected)] = selected
            return None
        if not selected:
            return None
        charge = eligibility.charge(spec.index, device)
        view = self.problem.devices[device]
        if charge is None or not self.ledger.has_capacity(view, charge):
            return None
        return charge

    def _is_free(self, spec: Alternative, device: DeviceIndex) -> bool:
        return spec.admin or self.ledger.is_free(self.problem.devices[device])

    def _is_usable(
        self, spec: Alternative, candidate: Candidate, attributes: Sequence[str]
    ) -> bool:
        view = self.problem.devices[candidate.device]
        if not self.problem.eligibility.admits(spec.index, candidate.device):
            return False
        if not all(attribute in view.attributes for attribute in attributes):
            return False
        return self.ledger.may_fit(view, candidate.charge, admin=spec.admin)
