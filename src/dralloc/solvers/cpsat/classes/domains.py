"""Parts: the bins of a component by the topology domains that their nodes are in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dralloc.problem import Problem
from dralloc.problem.inter_pod import Domains
from dralloc.solvers.cpsat.classes.bins import Bin
from dralloc.solvers.cpsat.classes.state_space import StateSpace

__all__ = ["DomainBins", "bins_by_domain"]


@dataclass(frozen=True, slots=True)
class DomainBins:
    """Bins in the same domain of each topology.

    Parameters
    ----------
    domains
        By topology, the domain; None for none.
    bins
        By the place of their class.
    """

    domains: tuple[str | None, ...]
    bins: dict[int, list[Bin]] = field(default_factory=lambda: defaultdict(list))


def bins_by_domain(
    problem: Problem, topologies: Sequence[Domains], spaces: Iterable[StateSpace]
) -> list[DomainBins] | None:
    """The parts; None if the nodes of some bin are in different domains."""
    parts: dict[tuple[str | None, ...], DomainBins] = {}
    for place, space in enumerate(spaces):
        for bin_ in space.bin_class.bins:
            names = [problem.nodes[node].name for node in bin_.nodes]
            [domains, *others] = {tuple(each.get(name) for each in topologies) for name in names}
            if others:
                return None
            parts.setdefault(domains, DomainBins(domains)).bins[place].append(bin_)
    return list(parts.values())
