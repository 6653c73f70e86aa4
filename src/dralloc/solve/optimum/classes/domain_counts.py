"""Gangs in one topology domain each, whatever their members take: counted by domain.

A *part* is what one domain of each topology has in common. With ``p[c, m, l]`` demands of class *c* placed in mode *m*
in part *l*, and ``a[g, t]`` gangs of class *g* admitted in domain *t*, gangs are whole in their domain::

    sum_t a[g, t] <= gangs[g]
    sum_{l in t, m} p[c, m, l] = members[c] * a[g, t]

(with a quorum as in `dralloc.solve.optimum.classes.whole_gangs`), and in every part patterns serve what is placed, and
``free[k, l]`` times requirement *k* for demands outside of such gangs::

    sum_{(c, m) with requirement k} p[c, m, l] + free[k, l] <= sum_{j, i} count[i, k] * y[j, i, l]

Exact, as long as no bin reaches into two parts: an answer is one choice of patterns for the bins of each part, and
which gangs are in a domain together. Of equal gangs the first are in the first domain, the next in the second; within a
domain members are dealt out to its gangs in turn, which gives each of them its quorum for the same reason as there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from ortools.sat.python import cp_model

from dralloc.problem import Problem
from dralloc.problem.grouping import grouped
from dralloc.problem.inter_pod import Domains
from dralloc.solve.optimum.classes.bins import Bin
from dralloc.solve.optimum.classes.demand_classes import DemandClass, ServingMode
from dralloc.solve.optimum.classes.state_space import Pattern, StateSpace
from dralloc.solve.optimum.classes.supply import DomainSupply, PatternSupply, Served
from dralloc.solve.optimum.classes.whole_gangs import (
    GangMember,
    admit,
    dealt_out,
    gangs_of,
)
from dralloc.solve.optimum.rows import Term, sum_of
from dralloc.solve.optimum.search import most_of

__all__ = ["BinsByDomain", "DomainCounts", "bins_by_domain"]

BinsByDomain = Mapping[tuple[str | None, ...], Mapping[int, list[Bin]]]
"""By part (of each topology the domain, None for none), the bins by the place of their class."""

_At = tuple[int, int]
"""A part and a requirement."""


def bins_by_domain(
    problem: Problem, topologies: Sequence[Domains], spaces: Iterable[StateSpace]
) -> BinsByDomain | None:
    """The parts; None if the nodes of some bin are in different domains."""
    parts: dict[tuple[str | None, ...], dict[int, list[Bin]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for place, space in enumerate(spaces):
        for bin_ in space.bin_class.bins:
            names = [problem.nodes[node].name for node in bin_.nodes]
            [domains, *others] = {
                tuple(each.get(name) for each in topologies) for name in names
            }
            if others:
                return None
            parts[domains][place].append(bin_)
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
        self.supplies = [
            [
                PatternSupply(spaces[place], patterns[place], here)
                for place, here in bins.items()
            ]
            for bins in parts.values()
        ]
        self.domains: dict[int, dict[str, list[int]]] = {
            topology: defaultdict(list) for topology in topologies
        }
        for number, domains in enumerate(parts):
            for topology, domain in zip(topologies, domains, strict=True):
                if domain is not None:
                    self.domains[topology][domain].append(number)
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
        found: dict[int, list[Term]] = defaultdict(list)
        for (part, requirement), terms in self._supplied.items():
            free = self._free[part, requirement] = cp.new_int_var(
                0, most_of(terms), f"free {part} {requirement}"
            )
            found[requirement].append((free, 1))
        return found

    def tie(
        self,
        cp: cp_model.CpModel,
        classes: Sequence[DemandClass],
        placed: Sequence[Sequence[cp_model.IntVar]],
    ) -> None:
        """Add gangs by domain."""
        taken: dict[_At, list[cp_model.IntVar]] = defaultdict(list)
        for cls, each in enumerate(classes):
            for mode, serving in enumerate(each.modes) if each.topology else ():
                mine = []
                for part in chain.from_iterable(self.domains[each.topology].values()):
                    if (part, serving.requirement) not in self._supplied:
                        continue
                    inside = cp.new_int_var(0, each.size, f"inside {cls} {mode} {part}")
                    self._inside[cls, mode, part] = inside
                    taken[part, serving.requirement].append(inside)
                    mine.append(inside)
                cp.add(cp_model.LinearExpr.sum(mine) == placed[cls][mode])
        for at, terms in self._supplied.items():
            cp.add(
                cp_model.LinearExpr.sum([self._free[at], *taken[at]]) <= sum_of(terms)
            )
        for gang, members in gangs_of(classes, in_domains=True).items():
            self._admit(cp, gang, members)

    def _admit(
        self, cp: cp_model.CpModel, gang: int, members: Sequence[GangMember]
    ) -> None:
        """As many gangs in each domain as have there all members that they need."""
        _, first, share = members[0]
        gangs, every = first.size // share.number, []
        for domain in self.domains[first.topology]:
            admitted = self._admitted[gang, domain] = cp.new_int_var(
                0, gangs, f"admitted {gang} {domain}"
            )
            every.append(admitted)
            inside = [
                [variable for _, _, variable in self._in(cls, each, domain)]
                for cls, each, _ in members
            ]
            admit(cp, members, list(map(cp_model.LinearExpr.sum, inside)), admitted)
        cp.add(cp_model.LinearExpr.sum(every) <= gangs)

    def _in(
        self, cls: int, each: DemandClass, domain: str
    ) -> Iterator[tuple[int, ServingMode, cp_model.IntVar]]:
        """What is placed of a class in a domain, by part and mode."""
        for part in self.domains[each.topology][domain]:
            for mode, serving in enumerate(each.modes):
                if (cls, mode, part) in self._inside:
                    yield part, serving, self._inside[cls, mode, part]

    def realise(self, values: Sequence[int]) -> Iterator[tuple[int, Served]]:
        """What gangs leave of their first servings."""
        free = {at: values[variable.index] for at, variable in self._free.items()}
        for (part, requirement), served in self._served(values).items():
            left = free[part, requirement]
            yield from ((requirement, each) for each in served[len(served) - left :])

    def realise_gangs(
        self, classes: Sequence[DemandClass], values: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], ServingMode, Served]]:
        """The first gangs of a class are in the first domain, the next in the second."""
        queues = {at: iter(served) for at, served in self._served(values).items()}
        for gang, members in gangs_of(classes, in_domains=True).items():
            before = 0
            for domain in self.domains[members[0][1].topology]:
                admitted, turn = values[self._admitted[gang, domain].index], 0
                for cls, each, _ in members:
                    here = list(self._in(cls, each, domain))
                    number = sum(values[inside.index] for _, _, inside in here)
                    named = dealt_out(each, number, admitted, turn, before)
                    turn += number
                    for part, mode, inside in here:
                        for _ in range(values[inside.index]):
                            yield (
                                next(named),
                                mode,
                                next(queues[part, mode.requirement]),
                            )
                before += admitted

    def _served(self, values: Sequence[int]) -> Mapping[_At, list[Served]]:
        """By part and requirement, all that is served there."""
        return grouped(
            ((part, requirement), served)
            for part, supplies in enumerate(self.supplies)
            for supply in supplies
            for requirement, served in supply.realise(values)
        )
