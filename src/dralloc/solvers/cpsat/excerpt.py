"""The part of a problem that a component uses, as a small problem of its own that can be sent to another process.

Everything gets new numbers, in the order of the old ones, so that the same models come out as from the whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dralloc.problem import Charge, Node, Problem, Usage
from dralloc.problem.eligibility import EligibilityTable, renumbered
from dralloc.problem.subproblem import cut, with_versions
from dralloc.solution import Grant, Placement
from dralloc.solvers.cpsat.candidates import Candidate, CandidateSite, ServingChoice

__all__ = ["Excerpt", "Excerpts"]


@dataclass(frozen=True)
class Excerpt:
    """Some demands, nodes, devices and counters of a problem.

    Parameters
    ----------
    problem
        They alone, with numbers of their own.
    demands, nodes, devices
        Their numbers in the whole problem, in order; None if they stay as they are.
    """

    problem: Problem
    demands: Sequence[int]
    nodes: Sequence[int] | None = None
    devices: Sequence[int] | None = None

    def inward(self, placements: Iterable[Placement]) -> list[Placement]:
        """Placements of the whole problem, in the numbers of the small one."""
        numbers = _places(self.demands), _places(self.nodes), _places(self.devices)
        return [_renumbered(placement, *numbers) for placement in placements]

    def places(self, demands: Iterable[int]) -> list[int]:
        """Demands of the whole problem, in the numbers of the small one."""
        return [self._place_of[demand] for demand in demands]

    @cached_property
    def _place_of(self) -> Mapping[int, int]:
        return _places(self.demands) or {}

    def outward(self, placements: Iterable[Placement]) -> list[Placement]:
        """Placements of the small problem, in the numbers of the whole one."""
        return [_renumbered(placement, self.demands, self.nodes, self.devices) for placement in placements]


_Numbers = Mapping[int, int] | Sequence[int]


def _places(numbers: Sequence[int] | None) -> dict[int, int] | None:
    return None if numbers is None else {number: place for place, number in enumerate(numbers)}


def _renumbered(
    placement: Placement, demands: _Numbers | None, nodes: _Numbers | None, devices: _Numbers | None
) -> Placement:
    def new(numbers: _Numbers | None, old: int) -> int:
        return old if numbers is None else numbers[old]

    grants = tuple(
        tuple(Grant(request, alternative, new(devices, device)) for request, alternative, device in claim)
        for claim in placement.grants
    )
    return Placement(new(demands, placement.demand), new(nodes, placement.node), grants)


class Excerpts:
    """Makes excerpts of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def of_demands(self, demands: Sequence[int]) -> Excerpt:
        """Only demands, for a component that has all else in counts."""
        kept = tuple(self.problem.demands[demand] for demand in demands)
        usage = Usage(frozenset(), {}, {})
        return Excerpt(replace(self.problem, demands=kept, nodes=(), devices=(), counters=(), usage=usage), demands)

    def of_sites(
        self, sites: Mapping[int, Sequence[CandidateSite]]
    ) -> tuple[Excerpt, dict[int, tuple[CandidateSite, ...]]]:
        """Demands with all that their sites touch; and the sites in its numbers."""
        cut = _Cut(self.problem, sites, self._set_of)
        inside = cut.sites()
        return cut.excerpt(), inside

    @cached_property
    def _set_of(self) -> Mapping[Hashable, list[int]]:
        """The counters of each counter set: whether a set is in use depends on all of them."""
        sets: dict[Hashable, list[int]] = {}
        for number, counter in enumerate(self.problem.counters):
            sets.setdefault(counter.id[:3], []).append(number)
        return sets


class _Cut:
    def __init__(
        self, problem: Problem, sites: Mapping[int, Sequence[CandidateSite]], set_of: Mapping[Hashable, list[int]]
    ) -> None:
        self.whole = problem
        self.old_sites = sites
        every = [site for each in sites.values() for site in each]
        candidates = [each for site in every for choice in site.choices() for each in _mentioned(choice)]
        self.demands = list(sites)
        self.nodes = sorted({site.node for site in every})
        self.devices = sorted(with_versions(problem, (candidate.device for candidate in candidates)))
        drawn = {counter for device in self.devices for counter, _ in problem.devices[device].consumes}
        drawn.update(counter for candidate in candidates for counter, _ in candidate.charge.counters)
        sets = {problem.counters[counter].id[:3] for counter in drawn}
        self.counters = sorted(counter for each in sets for counter in set_of[each])
        self.node_at, self.device_at, self.counter_at = (
            {number: place for place, number in enumerate(numbers)}
            for numbers in (self.nodes, self.devices, self.counters)
        )
        self.charges: dict[tuple[int, int], Charge] = {}
        self.shared = any(site.shared for site in every)

    def excerpt(self) -> Excerpt:
        demands = [replace(self.whole.demands[demand], nodes=None) for demand in self.demands]
        known = EligibilityTable(self.charges)
        part = cut(
            self.whole, self.nodes, devices=self.devices, counters=self.counters, demands=demands, eligibility=known
        ).problem
        if not self.shared:
            # Only where claims are shared it matters from where an allocated device can be used.
            part = replace(part, nodes=tuple(Node(node.name, ()) for node in part.nodes))
        return Excerpt(part, self.demands, self.nodes, self.devices)

    def sites(self) -> dict[int, tuple[CandidateSite, ...]]:
        """The sites, which also say what allocations take."""
        return {place: tuple(map(self._site, each)) for place, each in enumerate(self.old_sites.values())}

    def _site(self, site: CandidateSite) -> CandidateSite:
        requests = tuple(tuple(map(self._choice, choices)) for choices in site.requests)
        return CandidateSite(self.node_at[site.node], requests, site.shared)

    def _choice(self, choice: ServingChoice) -> ServingChoice:
        def moved(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
            return tuple(self._candidate(choice, candidate) for candidate in candidates)

        return replace(
            choice, candidates=moved(choice.candidates), loose=moved(choice.loose), blocked=moved(choice.blocked)
        )

    def _candidate(self, choice: ServingChoice, candidate: Candidate) -> Candidate:
        device, charge = self.device_at[candidate.device], candidate.charge
        if charge.counters:
            charge = replace(charge, counters=renumbered(charge.counters, self.counter_at))
        self.charges[choice.spec.index, device] = charge
        return Candidate(device, charge)


def _mentioned(choice: ServingChoice) -> Iterator[Candidate]:
    yield from choice.candidates
    yield from choice.blocked
