"""The part of a problem that a component uses, as an excerpt that can be sent to another process.

Everything gets new numbers, in the order of the old ones, so that the same models come out as from the whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from dralloc.problem import Charge, Node, Problem, Usage
from dralloc.problem.eligibility import EligibilityTable, renumbered
from dralloc.problem.grouping import grouped
from dralloc.problem.subproblem import Subproblem, cut, places, with_versions
from dralloc.solve.excerpt import Excerpt
from dralloc.solve.optimum.candidates import Candidate, CandidateSite, ServingChoice

__all__ = ["Excerpts"]


class Excerpts:
    """Makes excerpts of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def of_demands(self, demands: Sequence[int]) -> Excerpt:
        """Only demands, for a component that has all else in counts."""
        kept = tuple(self.problem.demands[demand] for demand in demands)
        usage = Usage(frozenset(), {}, {})
        return Excerpt(
            replace(
                self.problem,
                demands=kept,
                nodes=(),
                devices=(),
                counters=(),
                usage=usage,
            ),
            demands,
        )

    def of_sites(
        self, sites: Mapping[int, Sequence[CandidateSite]]
    ) -> tuple[Excerpt, dict[int, tuple[CandidateSite, ...]]]:
        """Demands with all that their sites touch; and the sites in its numbers, which say what allocations take."""
        whole = self.problem
        every = [site for each in sites.values() for site in each]
        choices = [choice for site in every for choice in site.choices()]
        candidates = [
            each for choice in choices for each in (*choice.candidates, *choice.blocked)
        ]
        devices = sorted(
            with_versions(whole, (candidate.device for candidate in candidates))
        )
        drawn = {
            counter
            for device in devices
            for counter, _ in whole.devices[device].consumes
        }
        drawn.update(
            counter
            for candidate in candidates
            for counter, _ in candidate.charge.counters
        )
        sets = {whole.counters[counter].id[:3] for counter in drawn}
        charges: dict[tuple[int, int], Charge] = {}
        part = cut(
            whole,
            sorted({site.node for site in every}),
            devices=devices,
            counters=sorted(counter for each in sets for counter in self._set_of[each]),
            demands=[replace(whole.demands[demand], nodes=None) for demand in sites],
            eligibility=EligibilityTable(charges),
        )
        problem, renumbering = part.problem, _Renumbering(part, charges)
        if not any(site.shared for site in every):
            # Only where claims are shared it matters from where an allocated device can be used.
            problem = replace(
                problem, nodes=tuple(Node(node.name, ()) for node in problem.nodes)
            )
        inside = {
            place: tuple(map(renumbering.site, each))
            for place, each in enumerate(sites.values())
        }
        return Excerpt(problem, list(sites), part.nodes, part.devices), inside

    @cached_property
    def _set_of(self) -> Mapping[Hashable, list[int]]:
        """The counters of each counter set: whether a set is in use depends on all of them."""
        return grouped(
            (counter.id[:3], number)
            for number, counter in enumerate(self.problem.counters)
        )


class _Renumbering:
    """Sites in the numbers of a part, and what is charged there."""

    def __init__(
        self, part: Subproblem, charges: dict[tuple[int, int], Charge]
    ) -> None:
        self.node_at, self.device_at, self.counter_at = map(
            places, (part.nodes, part.devices, part.counters)
        )
        self.charges = charges

    def site(self, site: CandidateSite) -> CandidateSite:
        requests = tuple(tuple(map(self._choice, choices)) for choices in site.requests)
        return CandidateSite(self.node_at[site.node], requests, site.shared)

    def _choice(self, choice: ServingChoice) -> ServingChoice:
        sorts = choice.candidates, choice.loose, choice.blocked
        candidates, loose, blocked = (
            tuple(self._candidate(choice, each) for each in sort) for sort in sorts
        )
        return replace(choice, candidates=candidates, loose=loose, blocked=blocked)

    def _candidate(self, choice: ServingChoice, candidate: Candidate) -> Candidate:
        device, charge = self.device_at[candidate.device], candidate.charge
        if charge.counters:
            charge = replace(
                charge, counters=renumbered(charge.counters, self.counter_at)
            )
        self.charges[choice.spec.index, device] = charge
        return Candidate(device, charge)
