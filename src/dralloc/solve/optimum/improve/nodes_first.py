"""First who goes to which node, then with which devices.

The integer program over the rows of the relaxation (`dralloc.solve.optimum.relax.node_model`) has far fewer variables
than the exact model of all devices: what it proves comes sooner, and its answer is often better than one that grew by
small steps. It says nothing about devices, though, and leaves rules out. So the exact model follows, in which each
demand may go to the node that it was given, or stay where it is: nothing is lost, and most of what is new has devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

from dralloc.objects.choices import Options
from dralloc.problem import DemandIndex, NodeIndex
from dralloc.problem.indices import grouped
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.candidates import CandidateSite
from dralloc.solve.optimum.component import Component, Part
from dralloc.solve.optimum.objective import DemandSubset
from dralloc.solve.optimum.stopping import Stop, Stopped

__all__ = ["NodesFirst", "may_go_by_nodes", "nodes_first"]

_FEW_SITES: Final = 3_000
"""With up to so many sites, it takes seconds to put whole demands on nodes."""

_MOST_SITES: Final = 10_000
"""With up to so many it is worth a processor beside the search: what it proves is often more than prices do."""

_NODES: Final = 0.4
_DEVICES: Final = 0.5
"""The parts of the time that is left which whole demands on nodes may take, and then their devices."""

_NODES_EFFORT: Final = 10.0
_DEVICES_EFFORT: Final = 2.0
"""What they may take, however much time there is (see `Stop.effort`): the exact model of all demands is to come."""


class NodesFirst(NamedTuple):
    """What any answer costs at least in a tier, and an answer to all demands, which need not be better than before."""

    bound: int
    placements: Sequence[Placement]


def may_go_by_nodes(subset: DemandSubset, *, beside_search: bool) -> bool:
    """Whether it is known where demands can go, and whether these sites are few enough.

    Parameters
    ----------
    beside_search
        Whether another processor searches meanwhile, until the time is over; else the search has to wait.
    """
    most = _MOST_SITES if beside_search else _FEW_SITES
    return 0 < sum(map(len, subset.sites.values())) <= most


def nodes_first(
    component: Part, level: int, options: Options, stop: Stop
) -> NodesFirst | None:
    """Solve a tier by nodes, and by devices where that may be better; None where it takes too long.

    Parameters
    ----------
    component
        Demands with sites and a relaxation. Nothing of what is known of them changes here.
    level
        The tier, with those before it proven.
    """
    assignment = None
    with suppress(Stopped):
        until = stop.within(_NODES * stop.seconds()).limited(_NODES_EFFORT)
        assignment = component.relaxation.assign_nodes(
            component, level, options, until
        )
    if assignment is None:
        return None
    placements = component.placements
    if assignment.missing < component.cost(level):
        sites = dict(_sites(component.subset, assignment.nodes, placements))
        subset = replace(component.subset, sites=sites)
        by_device = Component(subset, component.tiers, placements)
        until = stop.within(_DEVICES * stop.seconds()).limited(_DEVICES_EFFORT)
        by_device.improve(level, options, until, None)
        placements = by_device.placements
    return NodesFirst(assignment.bound, placements)


def _sites(
    subset: DemandSubset,
    assigned: Mapping[DemandIndex, NodeIndex],
    present: Sequence[Placement],
) -> Iterator[tuple[DemandIndex, tuple[CandidateSite, ...]]]:
    """Give out the sites of each demand on the node that it was given, and where it is now."""
    now = ((placement.demand, placement.node) for placement in present)
    nodes_of = grouped(chain(assigned.items(), now))
    for demand, sites in subset.sites.items():
        nodes = nodes_of.get(demand, ())
        kept = tuple([site for site in sites if site.node in nodes])
        if kept:
            yield demand, kept
