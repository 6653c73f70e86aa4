"""Gangs in one topology domain each, whatever their members take: counted by domain.

A *part* is what one domain of each topology has in common. With ``p[c, m, l]``
demands of class *c* placed in mode *m* in part *l*, and ``a[g, t]`` gangs of class
*g* admitted in domain *t*, gangs are whole in their domain::

    sum_t a[g, t] <= gangs[g]
    sum_{l in t, m} p[c, m, l] = members[c] * a[g, t]

(with a quorum as in `dralloc.solve.optimum.classes.admitted_gangs`), and in every part
patterns serve what is placed, and ``free[k, l]`` times requirement *k* for demands
outside of such gangs::

    sum_{(c, m) with requirement k} p[c, m, l] + free[k, l] <= sum_{j, i} count[i, k] * y[j, i, l]

Exact, as long as no bin reaches into two parts: an answer is one choice of patterns
for the bins of each part, and which gangs are in a domain together. Of equal gangs
the first are in the first domain, the next in the second; within a domain members are
dealt out to its gangs in turn, which gives each of them its quorum for the same
reason as there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex
from dralloc.problem.inter_pod import Domains
from dralloc.solve.optimum.classes.admitted_gangs import (
    GangMember,
    admit,
    dealt_out,
    gangs_of,
)
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    ServingMode,
)
from dralloc.solve.optimum.classes.patterns import Pattern
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.supplies import (
    DomainSupply,
    PatternSupply,
    Served,
)
from dralloc.solve.optimum.rows import Term, sum_of
from dralloc.solve.optimum.search import most_of
from dralloc.solve.optimum.solvers import cp_model

__all__ = ["BinsByDomain", "DomainCounts", "bins_by_domain"]

BinsByDomain = Mapping[tuple[str | None, ...], Mapping[int, list[Bin]]]
"""By part (of each topology the domain, None for none), the bins by the index of their class."""

_At = tuple[int, int]
"""A part and a requirement."""


def bins_by_domain(
    problem: Problem,
    topologies: Sequence[Domains],
    spaces: Iterable[StateSpace],
) -> BinsByDomain | None:
    """The parts; None if the nodes of some bin are in different domains."""
    parts: dict[tuple[str | None, ...], dict[int, list[Bin]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for space_index, space in enumerate(spaces):
        for bin_ in space.bin_class.bins:
            domains_of_nodes = set()
            for node in bin_.nodes:
                name = problem.nodes[node].name
                domains = tuple([topology.get(name) for topology in topologies])
                domains_of_nodes.add(domains)
            if len(domains_of_nodes) > 1:
                return None
            parts[domains][space_index].append(bin_)
    return parts


class DomainCounts(DomainSupply):
    """All parts of a component, by some topologies (their numbers), each with patterns for its bins."""

    def __init__(
        self,
        topologies: Sequence[int],
        parts: BinsByDomain,
        spaces: Sequence[StateSpace],
        patterns: Sequence[Sequence[Pattern]],
    ) -> None:
        self.supplies: list[list[PatternSupply]] = []
        for bins_by_class in parts.values():
            supplies = [
                PatternSupply(spaces[space_index], patterns[space_index], bins)
                for space_index, bins in bins_by_class.items()
            ]
            self.supplies.append(supplies)
        self.domains: dict[int, dict[str, list[int]]] = {
            topology: defaultdict(list) for topology in topologies
        }
        for part, domains in enumerate(parts):
            for topology, domain in zip(topologies, domains, strict=True):
                if domain is not None:
                    self.domains[topology][domain].append(part)
        self._supplied: dict[_At, list[Term]] = defaultdict(list)
        self._free: dict[_At, cp_model.IntVar] = {}
        self._inside: dict[tuple[int, int, int], cp_model.IntVar] = {}
        self._admitted: dict[tuple[int, str], cp_model.IntVar] = {}

    def build(self, cp: cp_model.CpModel) -> Mapping[int, list[Term]]:
        """Add patterns, and one variable per part and requirement for what is left to others."""
        for part, supplies in enumerate(self.supplies):
            for supply in supplies:
                for requirement, terms in supply.build(cp).items():
                    self._supplied[part, requirement] += terms
        supplied: dict[int, list[Term]] = defaultdict(list)
        for (part, requirement), terms in self._supplied.items():
            name = f"free {part} {requirement}"
            free = cp.new_int_var(0, most_of(terms), name)
            self._free[part, requirement] = free
            supplied[requirement].append((free, 1))
        return supplied

    def tie(
        self,
        cp: cp_model.CpModel,
        classes: Sequence[DemandClass],
        placed: Sequence[Sequence[cp_model.IntVar]],
    ) -> None:
        """Add gangs by domain."""
        used: dict[_At, list[cp_model.IntVar]] = defaultdict(list)
        for cls, demand_class in enumerate(classes):
            if not demand_class.topology:
                continue
            domains = self.domains[demand_class.topology]
            for mode, serving in enumerate(demand_class.modes):
                # A part outside of all domains is none of these: no gang is placed there.
                in_parts = []
                for part in chain.from_iterable(domains.values()):
                    if (part, serving.requirement) not in self._supplied:
                        continue
                    name = f"inside {cls} {mode} {part}"
                    inside = cp.new_int_var(0, demand_class.size, name)
                    self._inside[cls, mode, part] = inside
                    used[part, serving.requirement].append(inside)
                    in_parts.append(inside)
                cp.add(cp_model.LinearExpr.sum(in_parts) == placed[cls][mode])
        # Gangs and all other demands share what a part supplies.
        for at, terms in self._supplied.items():
            total = cp_model.LinearExpr.sum([self._free[at], *used[at]])
            cp.add(total <= sum_of(terms))
        for gang, members in gangs_of(classes, in_domains=True).items():
            self._admit(cp, gang, members)

    def _admit(
        self, cp: cp_model.CpModel, gang: int, members: Sequence[GangMember]
    ) -> None:
        """Limit the gangs in each domain to those that have all members there which they need."""
        _, first, share = members[0]
        gangs = first.size // share.number
        in_domains = []
        for domain in self.domains[first.topology]:
            admitted = cp.new_int_var(0, gangs, f"admitted {gang} {domain}")
            self._admitted[gang, domain] = admitted
            in_domains.append(admitted)
            placed_inside = []
            for cls, demand_class, _ in members:
                inside = [
                    variable
                    for _, _, variable in self._in(cls, demand_class, domain)
                ]
                placed_inside.append(cp_model.LinearExpr.sum(inside))
            admit(cp, members, placed_inside, admitted)
        cp.add(cp_model.LinearExpr.sum(in_domains) <= gangs)

    def _in(
        self, cls: int, demand_class: DemandClass, domain: str
    ) -> Iterator[tuple[int, ServingMode, cp_model.IntVar]]:
        """Yield the variables of a class in a domain, by part and mode."""
        for part in self.domains[demand_class.topology][domain]:
            for mode, serving in enumerate(demand_class.modes):
                if (cls, mode, part) in self._inside:
                    yield part, serving, self._inside[cls, mode, part]

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """Yield what gangs leave of their first servings."""
        free = {
            at: values[variable.index] for at, variable in self._free.items()
        }
        for (part, requirement), served in self._served(values).items():
            start = len(served) - free[part, requirement]
            for serving in served[start:]:
                yield requirement, serving

    def realise_gangs(
        self, classes: Sequence[DemandClass], values: Sequence[int]
    ) -> Iterator[tuple[tuple[DemandIndex, ...], ServingMode, Served]]:
        """The first gangs of a class are in the first domain, the next in the second."""
        queues = {
            at: iter(served) for at, served in self._served(values).items()
        }
        for gang, members in gangs_of(classes, in_domains=True).items():
            before = 0
            for domain in self.domains[members[0][1].topology]:
                admitted, turn = values[self._admitted[gang, domain].index], 0
                for cls, demand_class, _ in members:
                    inside = list(self._in(cls, demand_class, domain))
                    count = sum(
                        values[variable.index] for _, _, variable in inside
                    )
                    # Dealing goes on from class to class where it ended: so each gang of the domain gets its quorum.
                    named = dealt_out(
                        demand_class, count, admitted, turn, before
                    )
                    turn += count
                    for part, mode, variable in inside:
                        for _ in range(values[variable.index]):
                            served = next(queues[part, mode.requirement])
                            yield next(named), mode, served
                before += admitted

    def _served(self, values: Sequence[int]) -> Mapping[_At, list[Served]]:
        """By part and requirement, all that is served there."""
        servings: dict[_At, list[Served]] = defaultdict(list)
        for part, supplies in enumerate(self.supplies):
            for supply in supplies:
                for requirement, served in supply.realise(values):
                    servings[part, requirement].append(served)
        return servings
