"""How much of a measure is stranded, and by what: rules are lifted one after the other until more can be used."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dralloc.solvers.cpsat import Options
from dralloc.stranded.cause import LIFTED_IN_ORDER, Cause
from dralloc.stranded.domains import Domain, find_domains
from dralloc.stranded.filling import Filling
from dralloc.stranded.ground import Ground
from dralloc.stranded.measures import Measure

__all__ = ["Split", "Splitter"]

_EVERYTHING = frozenset(LIFTED_IN_ORDER)


@dataclass(frozen=True)
class Split:
    """What is stranded of a measure, in nanos by cause, and whether it is proven that it is not less."""

    causes: Mapping[Cause, int] = field(default_factory=dict)
    proven: bool = True


class Splitter:
    """Splits measures of a ground."""

    def __init__(self, ground: Ground, options: Options) -> None:
        self._ground = ground
        self._filling = Filling(ground, options)
        self._known: dict[Hashable, Split] = {}

    def split(self, measure: Measure) -> Split:
        """What is stranded of a measure."""
        causes: Tally[Cause] = Tally()
        proven = True
        free = sum(unit.free for unit in self._ground.measures.units[measure])
        for domain in self._domains_of(measure):
            free -= domain.free(measure)
            found = self._in_domain(domain, measure)
            causes.update(found.causes)
            proven &= found.proven
        causes[Cause.UNWANTED] += free
        return Split({cause: causes[cause] for cause in Cause if causes[cause]}, proven)

    def _in_domain(self, domain: Domain, measure: Measure) -> Split:
        state = domain.state(measure)
        if state not in self._known:
            self._known[state] = self._work_out(domain, measure)
        return self._known[state]

    def _work_out(self, domain: Domain, measure: Measure) -> Split:
        free = domain.free(measure)
        usable, proven = self._filling.most(domain, measure, frozenset())
        causes: dict[Cause, int] = {}
        if usable < free and self._filling.most(domain, measure, _EVERYTHING).amount > usable:
            lifted: frozenset[Cause] = frozenset()
            for cause in LIFTED_IN_ORDER:
                lifted |= {cause}
                more = self._filling.most(domain, measure, lifted).amount
                # `All` may ask for more devices once a rule does not leave them out.
                causes[cause] = max(0, more - usable)
                usable += causes[cause]
        causes[Cause.GEOMETRY if measure.positional else Cause.SIZE] = free - usable
        return Split(causes, proven)

    def _domains_of(self, measure: Measure) -> list[Domain]:
        """The domains that have some of the measure."""
        units = self._ground.measures.units[measure]
        keys = [*self._ground.measures.counters(measure), *(("slot", unit.slot) for unit in units)]
        places = {self._place[key] for key in keys if key in self._place}
        return [self._domains[place] for place in sorted(places)]

    @cached_property
    def _domains(self) -> list[Domain]:
        return find_domains(self._ground)

    @cached_property
    def _place(self) -> Mapping[object, int]:
        """The place of the domain of each counter, by its index, and of each device, by its slot."""
        found: dict[object, int] = {}
        for place, domain in enumerate(self._domains):
            found.update(dict.fromkeys(domain.counters, place))
            found.update({("slot", slot): place for slot in domain.slots})
        return found
