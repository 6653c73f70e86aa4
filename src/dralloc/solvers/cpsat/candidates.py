"""Which devices can serve which request on which node, before anything is decided."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dralloc.errors import AllocationError
from dralloc.problem import MAX_RESULTS, Alternative, Charge, Claim, Demand, Node, PoolState, Problem

__all__ = ["Candidate", "Choice", "Site", "Survey", "survey"]


class Candidate(NamedTuple):
    """A device that can serve an alternative, and what that takes of it."""

    device: int
    charge: Charge


@dataclass(frozen=True, slots=True)
class Choice:
    """An alternative that a node can serve: ``count`` of the candidates, which are in search order.

    ``claim``, ``request`` and ``alternative`` are the indices inside demand, claim and request.
    """

    claim: int
    request: int
    alternative: int
    spec: Alternative
    count: int
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """A node that a demand can go to, with the possible choices for each request, of all claims in a row."""

    node: int
    requests: tuple[tuple[Choice, ...], ...]

    def choices(self) -> Iterator[Choice]:
        """Every choice, in order."""
        for request in self.requests:
            yield from request


@dataclass(frozen=True, slots=True)
class Survey:
    """The sites of each demand that has any, by the demand's index in order, and the warnings met on the way."""

    sites: dict[int, tuple[Site, ...]]
    warnings: tuple[str, ...]


def survey(problem: Problem, *, strict_cel: bool = False) -> Survey:
    """Work out every candidate.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device is left out with a warning.
    """
    surveyor = _Surveyor(problem, strict_cel)
    sites = {index: surveyor.sites(demand) for index, demand in enumerate(problem.demands)}
    halted = {problem.demands[index].gang for index, found in sites.items() if not found} - {""}
    kept = {index: found for index, found in sites.items() if found and problem.demands[index].gang not in halted}
    return Survey(kept, tuple(surveyor.warnings))


class _Surveyor:
    def __init__(self, problem: Problem, strict_cel: bool) -> None:
        self.problem = problem
        self.strict_cel = strict_cel
        self.warnings: dict[str, None] = {}
        self.devices: dict[int, list[int]] = {}
        self.may_open: dict[int, bool] = {}
        self.overdrawn = {counter.group for counter in problem.counters if counter.free < 0}

    def sites(self, demand: Demand) -> tuple[Site, ...]:
        """The nodes that can serve every request, looked at alone. A defect anywhere is fatal for the demand."""
        if any(claim.defect or _defects(claim) for claim in demand.claims):
            return ()
        found = (self._site(demand, node) for node in self.problem.candidate_nodes(demand))
        return tuple(site for site in found if site)

    def _site(self, demand: Demand, node: int) -> Site | None:
        requests: list[tuple[Choice, ...]] = []
        for index, claim in enumerate(demand.claims):
            choices = self._claim(index, claim, node)
            if choices is None:
                return None
            requests.extend(choices)
        return Site(node, tuple(requests))

    def _claim(self, index: int, claim: Claim, node: int) -> list[tuple[Choice, ...]] | None:
        """The choices for each request of a claim; None if a request has none, or all of them are too many results."""
        found: list[tuple[Choice, ...]] = []
        for position, request in enumerate(claim.requests):
            choices = []
            for rank, spec in enumerate(request.alternatives):
                candidates = self._candidates(claim, spec, node)
                count = len(candidates) if spec.count is None else spec.count
                if len(candidates) >= count and count <= MAX_RESULTS and (candidates or spec.count is not None):
                    choices.append(Choice(index, position, rank, spec, count, candidates))
            if not choices:
                return None
            found.append(tuple(choices))
        fewest = sum(min(choice.count for choice in choices) for choices in found)
        return found if fewest <= MAX_RESULTS else None

    def _candidates(self, claim: Claim, spec: Alternative, node: int) -> tuple[Candidate, ...]:
        attributes = [constraint.attribute for constraint in claim.constraints if constraint.covers(spec.name)]
        view = self.problem.nodes[node]
        devices = self._devices(node)
        if spec.count is None:
            return self._every(spec, view, devices, attributes)
        found = []
        for device in devices:
            if self._is_free(spec, device) and (charge := self._offer(spec, device)) is not None:
                candidate = Candidate(device, charge)
                if self._is_usable(spec, candidate, attributes):
                    found.append(candidate)
        return tuple(found)

    def _devices(self, node: int) -> list[int]:
        """The devices of usable pools that reach the node, in search order."""
        if node not in self.devices:
            offered = self.problem.nodes[node].devices()
            self.devices[node] = [device for device in offered if self.problem.on_node(device, node)]
        return self.devices[node]

    def _every(
        self, spec: Alternative, node: Node, devices: Sequence[int], attributes: Sequence[str]
    ) -> tuple[Candidate, ...]:
        """All or nothing (KEP-4381, allocation mode All): nothing as soon as one matching device cannot be used."""
        if any(pool.state is not PoolState.USABLE for pool in node.pools):
            return ()
        offers = ((device, self._offer(spec, device)) for device in devices)
        found = tuple(Candidate(device, charge) for device, charge in offers if charge is not None)
        usable = (self._is_free(spec, each.device) and self._is_usable(spec, each, attributes) for each in found)
        return found if all(usable) else ()

    def _offer(self, spec: Alternative, device: int) -> Charge | None:
        """What the device takes to serve the alternative; None if it does not match or lacks the capacity."""
        eligibility = self.problem.eligibility
        selected = eligibility.selects(spec.index, device)
        if isinstance(selected, AllocationError):
            if self.strict_cel:
                raise selected
            self.warnings[str(selected)] = None
            return None
        charge = eligibility.charge(spec.index, device) if selected else None
        return charge if charge is not None and self._has_room(device, charge) else None

    def _has_room(self, device: int, charge: Charge) -> bool:
        view = self.problem.devices[device]
        consumed = self.problem.usage.consumed.get(view.slot, {})
        return all(consumed.get(name, 0) + amount <= view.capacity[name].total for name, amount in charge.capacity)

    def _is_free(self, spec: Alternative, device: int) -> bool:
        view, usage = self.problem.devices[device], self.problem.usage
        return spec.admin or (view.slot not in usage.held and (view.shareable or view.slot not in usage.shares))

    def _is_usable(self, spec: Alternative, candidate: Candidate, attributes: Sequence[str]) -> bool:
        view = self.problem.devices[candidate.device]
        return (
            self.problem.eligibility.admits(spec.index, candidate.device)
            and all(attribute in view.attributes for attribute in attributes)
            and (spec.admin or self._has_counters(candidate))
        )

    def _has_counters(self, candidate: Candidate) -> bool:
        """Whether the device, alone, leaves its counters within what is free."""
        device, charged = candidate.device, candidate.charge.counters
        if charged:
            return self._may_draw(device, charged)
        if device not in self.may_open:
            self.may_open[device] = self._may_draw(device, ())
        return self.may_open[device]

    def _may_draw(self, device: int, charged: tuple[tuple[int, int], ...]) -> bool:
        """Nothing of a group with an overdrawn counter is opened; what is shared already is charged already."""
        view, counters = self.problem.devices[device], self.problem.counters
        opens = view.slot not in self.problem.usage.shares
        if opens and view.consumes and view.group in self.overdrawn:
            return False
        needed: Tally[int] = Tally()
        for counter, amount in (*view.consumes, *charged) if opens else charged:
            needed[counter] += amount
        return all(amount <= counters[counter].free for counter, amount in needed.items())


def _defects(claim: Claim) -> bool:
    return any(spec.defect for request in claim.requests for spec in request.alternatives)
