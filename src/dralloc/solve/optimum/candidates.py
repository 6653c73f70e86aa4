"""Which devices can serve which request on which node, before anything is decided."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from dralloc.objects.errors import AllocationError
from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    Charge,
    Claim,
    Demand,
    PoolState,
    Problem,
    quorum_of,
)
from dralloc.problem.grouping import grouped
from dralloc.problem.ledger import Ledger
from dralloc.solve.optimum.stopping import Stop, TooLarge

__all__ = ["Candidate", "CandidateSite", "CandidateSurvey", "ServingChoice", "survey"]


class Candidate(NamedTuple):
    """A device that can serve an alternative, and what that takes of it."""

    device: int
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
        return (
            max(1, self.count - len(self.loose))
            if self.spec.count is None
            else self.count
        )

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

    node: int
    requests: tuple[tuple[ServingChoice, ...], ...]
    shared: tuple[int, ...] = ()

    def choices(self) -> Iterator[ServingChoice]:
        """Every choice, in order."""
        for request in self.requests:
            yield from request


@dataclass(frozen=True, slots=True)
class CandidateSurvey:
    """The sites of each demand that has any, by the demand's index in order, and the selectors that failed."""

    sites: dict[int, tuple[CandidateSite, ...]]
    failures: tuple[AllocationError, ...]


def survey(
    problem: Problem,
    demands: Iterable[int] | None = None,
    *,
    strict_cel: bool = False,
    stop: Stop | None = None,
    most: float = inf,
) -> CandidateSurvey:
    """Work out every candidate of some demands; of all if None.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device is left out with a warning.
    Stopped
        It is time to stop; `TooLarge` if there are more than ``most`` candidates.
    """
    surveyor = _Surveyor(problem, strict_cel, stop or Stop(), most)
    chosen = range(len(problem.demands)) if demands is None else demands
    sites = {index: surveyor.sites(problem.demands[index]) for index in chosen}
    halted = _halted(problem, sites)
    kept = {
        index: found
        for index, found in sites.items()
        if found and problem.demands[index].gang not in halted
    }
    return CandidateSurvey(kept, tuple(surveyor.failures.values()))


def _halted(problem: Problem, sites: Mapping[int, Sequence[CandidateSite]]) -> set[str]:
    """The gangs of which fewer demands can be placed than they need."""
    demands = problem.demands
    missing = Tally(demands[index].gang for index, found in sites.items() if not found)
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
        self, problem: Problem, strict_cel: bool, stop: Stop, most: float
    ) -> None:
        self.problem = problem
        self.strict_cel = strict_cel
        self.stop = stop
        self.left = most
        self.failures: dict[str, AllocationError] = {}
        self.devices: dict[int, list[int]] = {}
        listed = Tally(
            claim.key
            for demand in problem.demands
            for claim in demand.claims
            if claim.requests
        )
        self.shared = {key for key, times in listed.items() if times > 1}
        self.ledger = Ledger(problem)

    def sites(self, demand: Demand) -> tuple[CandidateSite, ...]:
        """The nodes that can serve every request, looked at alone. A defect anywhere is fatal for the demand."""
        if demand.is_defective:
            return ()
        found = []
        for node in self.stop.each(self.problem.candidate_nodes(demand)):
            site = self._site(demand, node)
            if site:
                found.append(site)
                self.left -= sum(len(choice.candidates) for choice in site.choices())
                if self.left < 0:
                    raise TooLarge
        return tuple(found)

    def _site(self, demand: Demand, node: int) -> CandidateSite | None:
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
        self, index: int, claim: Claim, node: int
    ) -> list[tuple[ServingChoice, ...]] | None:
        """The choices for each request of a claim; None if a request has none, or all of them are too many results."""
        found: list[tuple[ServingChoice, ...]] = []
        for position, request in enumerate(claim.requests):
            choices = []
            for rank, spec in enumerate(request.alternatives):
                choice = self._choice(claim, spec, node, (index, position, rank))
                if choice and choice.least <= MAX_RESULTS:
                    choices.append(choice)
            if not choices:
                return None
            found.append(tuple(choices))
        fewest = sum(min(choice.least for choice in choices) for choices in found)
        return found if fewest <= MAX_RESULTS else None

    def _choice(
        self, claim: Claim, spec: Alternative, node: int, place: tuple[int, int, int]
    ) -> ServingChoice | None:
        attributes = [
            one.compared(spec.name)
            for one in claim.constraints
            if one.covers(spec.name)
        ]
        if spec.count is None:
            return self._every(spec, node, place, attributes)
        found = []
        for device in self._devices(node):
            if (
                self._is_free(spec, device)
                and (charge := self._offer(spec, device)) is not None
            ):
                candidate = Candidate(device, charge)
                if self._is_usable(spec, candidate, attributes):
                    found.append(candidate)
        return (
            ServingChoice(*place, spec, spec.count, tuple(found))
            if len(found) >= spec.count
            else None
        )

    def _every(
        self,
        spec: Alternative,
        node: int,
        place: tuple[int, int, int],
        attributes: Sequence[str],
    ) -> ServingChoice | None:
        """All or nothing (KEP-4381, allocation mode All); without a full device it can do (KEP-5075)."""
        if any(
            pool.state is not PoolState.USABLE
            for pool in self.problem.nodes[node].pools
        ):
            return None
        offers = ((device, self._offer(spec, device)) for device in self._devices(node))
        wanted = [
            Candidate(device, charge) for device, charge in offers if charge is not None
        ]
        usable = [
            each
            for each in wanted
            if self._is_free(spec, each.device)
            and self._is_usable(spec, each, attributes)
        ]
        blocked = [each for each in wanted if each not in usable]
        if not usable or not all(each.charge.capacity for each in blocked):
            return None
        loose = tuple(each for each in usable if each.charge.capacity)
        return ServingChoice(
            *place, spec, len(usable), tuple(usable), loose, tuple(blocked)
        )

    def _devices(self, node: int) -> list[int]:
        """The devices of usable pools that reach the node, in search order."""
        if node not in self.devices:
            offered = self.problem.nodes[node].devices()
            self.devices[node] = [
                device for device in offered if self.problem.on_node(device, node)
            ]
        return self.devices[node]

    def _offer(self, spec: Alternative, device: int) -> Charge | None:
        """What the device takes to serve the alternative; None if it does not match or lacks the capacity."""
        eligibility = self.problem.eligibility
        selected = eligibility.selects(spec.index, device)
        if isinstance(selected, AllocationError):
            if self.strict_cel:
                raise selected
            self.failures[str(selected)] = selected
            return None
        charge = eligibility.charge(spec.index, device) if selected else None
        return (
            charge
            if charge is not None
            and self.ledger.has_capacity(self.problem.devices[device], charge)
            else None
        )

    def _is_free(self, spec: Alternative, device: int) -> bool:
        return spec.admin or self.ledger.is_free(self.problem.devices[device])

    def _is_usable(
        self, spec: Alternative, candidate: Candidate, attributes: Sequence[str]
    ) -> bool:
        view = self.problem.devices[candidate.device]
        return (
            self.problem.eligibility.admits(spec.index, candidate.device)
            and all(attribute in view.attributes for attribute in attributes)
            and self.ledger.may_fit(view, candidate.charge, admin=spec.admin)
        )
