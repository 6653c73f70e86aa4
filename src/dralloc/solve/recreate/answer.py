"""An answer that demands and gangs leave and enter, thousands of times a second."""

from __future__ import annotations

from collections.abc import (
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import islice
from random import Random
from typing import Final

from dralloc.problem import NodeIndex, Problem
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.inter_pod import Arrival, OneDomain
from dralloc.problem.solution import Placement
from dralloc.solve.recreate.applicants import (
    Applicant,
    Applicants,
    SharedNodes,
)
from dralloc.solve.recreate.device_search import DeviceSearch
from dralloc.solve.recreate.devices import (
    DeviceWish,
    NodeDevices,
    Site,
)
from dralloc.solve.recreate.rooms import NodeRooms
from dralloc.solve.recreate.rules import RulesBetweenPods
from dralloc.solve.recreate.spending import CappedSpending
from dralloc.solve.recreate.units import MovableUnit, movable_units

__all__ = ["WorkingAnswer"]

_NODES_TRIED: Final = 4
"""So many of the nodes with enough of everything are tried for a demand: where the first ones fail, others most often
do, too."""

_DOMAINS_TRIED: Final = 4
"""So many domains at most are tried for a gang that has to be in one."""

_DRIFT: Final = 1e-6
"""Sums of floats drift by much less than this."""

_NOISE: Final = 0.2
"""The order of nodes is disturbed by this part of what they have left."""


class WorkingAnswer:
    """An answer that units leave and enter: demands by themselves, and gangs as a whole.

    Parameters
    ----------
    placements
        The answer to begin with. It keeps the rules of the problem, and its caps.
    random
        Draws which domains, nodes and devices are tried first.
    bystanders
        Those outside of the problem who have a role in rules between pods, and the names of the nodes that they are on.

    Attributes
    ----------
    unit_of
        By demand that may come and go, the unit with which it does.
    staying
        All others, which stay as they are.
    """

    def __init__(
        self,
        problem: Problem,
        placements: Iterable[Placement],
        random: Random,
        bystanders: Sequence[Arrival] = (),
    ) -> None:
        self._problem = problem
        self._random = random
        search = DeviceSearch(problem)
        self._devices = NodeDevices(problem, search, random)
        placements = tuple(placements)
        units = movable_units(problem, placements)
        self._applicants = Applicants(problem, self._devices, units)
        self.unit_of = self._applicants.unit_of
        self._gather_domains()
        moving: list[Placement] = []
        self.staying: list[Placement] = []
        for placement in placements:
            may_leave = placement.demand in self.unit_of
            (moving if may_leave else self.staying).append(placement)
        base = self._devices.begin(self.staying)
        node_devices = [search.node_device(node) for node in problem.all_nodes]
        # Where devices take something of nodes, too, first fit's search alone
        # knows what is left: rooms then ask for nothing.
        asking = () if search.charges_nodes else tuple(self.unit_of)
        self._rooms = NodeRooms(problem, base, asking, node_devices)
        self._rules = RulesBetweenPods(problem, bystanders)
        for placement in self.staying:
            self._rules.enter(placement.demand, placement.node)
        self._spending = CappedSpending(problem, self.staying)
        self._on_node: list[dict[DemandIndex, None]] = [
            {} for _ in problem.nodes
        ]
        for placement in moving:
            way = self._devices.way(
                self._applicants[placement.demand].wish,
                placement.node,
                placement.grants,
            )
            self.restore(placement.demand, Site(placement.node, way))
        self._rules.settle()

    def _gather_domains(self) -> None:
        """By rule and domain, note which nodes are in it."""
        name_of = [node.name for node in self._problem.nodes]
        by_topology: dict[int, dict[str, list[NodeIndex]]] = {}
        self._nodes_in: dict[OneDomain, Mapping[str, list[NodeIndex]]] = {}
        for unit in self.unit_of.values():
            if unit.domain_rule is None:
                continue
            domains = unit.domain_rule.domains
            if id(domains) not in by_topology:
                by_topology[id(domains)] = grouped(
                    (domains[name_of[node_index]], node_index)
                    for node_index in self._problem.all_nodes
                    if name_of[node_index] in domains
                )
            self._nodes_in[unit.domain_rule] = by_topology[id(domains)]

    # Questions.

    def __contains__(self, demand: DemandIndex) -> bool:
        """Whether a demand that may leave is placed."""
        return demand in self._devices.sites

    def node_of(self, demand: DemandIndex) -> NodeIndex:
        """Return where a demand is that may leave, and is placed."""
        return self._devices.sites[demand].node

    def on_node(self, node: NodeIndex) -> Sequence[DemandIndex]:
        """Return the demands on a node that may leave it."""
        return tuple(self._on_node[node])

    def placements(self) -> list[Placement]:
        """Return the answer, by demand."""
        devices = self._devices
        moving = [devices.placement(demand) for demand in devices.sites]
        return sorted(
            [*self.staying, *moving], key=lambda placement: placement.demand
        )

    def may_hold(
        self, demand: DemandIndex, nodes: Iterable[NodeIndex]
    ) -> Iterator[NodeIndex]:
        """Give out the nodes where a demand may fit, as far as that is known without a search."""
        return self._may_hold(self._applicants[demand], nodes)

    def _may_hold(
        self, applicant: Applicant, nodes: Iterable[NodeIndex]
    ) -> Iterator[NodeIndex]:
        demand = applicant.demand
        wish, allowed = applicant.wish, applicant.allowed
        hopeful, may_serve = wish.hopeful, self._devices.may_serve
        rooms, guards = self._rooms.room, self._rooms.guards
        asked_of = self._rooms.asked_of
        has_rules, allow = applicant.has_rules, self._rules.allow
        for node in nodes:
            if (
                hopeful[node]
                and ((rooms[node] | guards) - asked_of(node)[demand]) & guards
                == guards
                and (allowed is None or node in allowed)
                and may_serve(wish, node)
                and (not has_rules or allow(demand, node))
            ):
                yield node

    def nodes_for(self, unit: MovableUnit) -> list[NodeIndex]:
        """Return the nodes where a unit could stand if others made room: of one domain at random, if it needs one."""
        member = self._applicants[self._random.choice(unit.members)]
        hopeful, allowed = member.wish.hopeful, member.allowed
        areas: list[Iterable[NodeIndex]] = [self._problem.all_nodes]
        if unit.domain_rule is not None:
            areas = list(self._nodes_in[unit.domain_rule].values())
            self._random.shuffle(areas)
        for area in areas:
            nodes = [
                node
                for node in area
                if hopeful[node] and (allowed is None or node in allowed)
            ]
            if nodes:
                return nodes
        return []

    def fitting(
        self,
        units: Iterable[MovableUnit],
        nodes: Sequence[NodeIndex],
        most: int,
    ) -> list[MovableUnit]:
        """Return the first units whose first member may fit on any of the nodes, as `may_hold` says it."""
        rooms, guards = self._rooms, self._rooms.guards
        allow = self._rules.allow
        # By class, the nodes with devices for it: what is free there, and what demands take of it.
        serving: dict[DeviceWish, list[tuple[NodeIndex, int, list[int]]]] = {}
        fitting: list[MovableUnit] = []
        for unit in units:
            member = unit.members[0]
            applicant = self._applicants[member]
            wish, allowed = applicant.wish, applicant.allowed
            states = serving.get(wish)
            if states is None:
                states = serving[wish] = [
                    (node, rooms.room[node] | guards, rooms.asked_of(node))
                    for node in nodes
                    if wish.hopeful[node]
                    and self._devices.may_serve(wish, node)
                ]
            # This is asked for everybody who waits.
            for node, room, asked in states:
                if (
                    (room - asked[member]) & guards == guards
                    and (allowed is None or node in allowed)
                    and (not applicant.has_rules or allow(member, node))
                ):
                    fitting.append(unit)
                    break
            if len(fitting) == most:
                break
        return fitting

    # Changes.

    def enter(
        self, unit: MovableUnit, nodes: Sequence[NodeIndex], *, elsewhere: bool
    ) -> list[DemandIndex]:
        """Place a unit on these nodes.

        Parameters
        ----------
        elsewhere
            Whether its demands may stand on other nodes, too, where they do not fit on these.

        Returns
        -------
        list of DemandIndex
            Who is placed: nobody, or at least as many as the unit's quorum.
        """
        if unit.is_single:
            [member] = unit.members
            applicant = self._applicants[member]
            fits = self._place_on(applicant, nodes) or (
                elsewhere
                and self._place_on(
                    applicant, self._roomy_nodes(applicant, None)
                )
            )
            return [member] if fits else []
        may_miss = len(unit.members) - unit.quorum
        for inside in self._domains(unit, nodes):
            chosen = nodes
            if inside is not None:
                chosen = [node for node in nodes if node in inside]
            entered: list[DemandIndex] = []
            # A claim that members share is allocated with the first of them, and binds the others to nodes.
            allocated: SharedNodes = {}
            for tried, member in enumerate(unit.members, 1):
                applicant = self._applicants.beside(member, allocated)
                fits = self._place_on(applicant, chosen)
                if not fits and elsewhere:
                    roomy = self._roomy_nodes(applicant, inside)
                    fits = self._place_on(applicant, roomy)
                if fits:
                    entered.append(member)
                    site = self._devices.sites[member]
                    self._applicants.allocate(applicant, site, allocated)
                elif tried - len(entered) > may_miss:
                    # So many failed that the quorum cannot be reached in this domain.
                    break
            if len(entered) >= unit.quorum:
                return entered
            for member in entered:
                self.leave(member)
        return []

    def _domains(
        self, unit: MovableUnit, nodes: Sequence[NodeIndex]
    ) -> list[Collection[NodeIndex] | None]:
        """Return the nodes of some domains for a unit: those of these nodes, then any others. None stands for all."""
        if unit.domain_rule is None:
            return [None]
        near: list[Collection[NodeIndex] | None] = []
        far: list[Collection[NodeIndex] | None] = []
        for inside in self._nodes_in[unit.domain_rule].values():
            has_any = any(node in inside for node in nodes)
            (near if has_any else far).append(inside)
        self._random.shuffle(far)
        return [*near, *far][:_DOMAINS_TRIED]

    def _roomy_nodes(
        self, applicant: Applicant, inside: Collection[NodeIndex] | None
    ) -> list[NodeIndex]:
        """Return some nodes where a demand may fit, about those first that have least left of CPU and memory."""
        hopeful, draw = applicant.wish.hopeful, self._random.random
        spaciousness = self._rooms.spaciousness
        bulk = self._rooms.bulk[applicant.demand] - _DRIFT
        nodes = self._problem.all_nodes if inside is None else inside
        order = sorted(
            [
                (spaciousness[node] * (1 + _NOISE * draw()), node)
                for node in nodes
                if hopeful[node] and spaciousness[node] >= bulk
            ]
        )
        in_order = (node for _, node in order)
        return list(islice(self._may_hold(applicant, in_order), _NODES_TRIED))

    def _place_on(
        self, applicant: Applicant, nodes: Iterable[NodeIndex]
    ) -> bool:
        """Place a demand on the first of some nodes where it fits; False if that is none of them."""
        for node in self._may_hold(applicant, nodes):
            way = self._devices.choose(applicant.wish, applicant.claims, node)
            if way is None:
                continue
            site = Site(node, way)
            if self._is_affordable(applicant.demand, site):
                self.restore(applicant.demand, site)
                return True
        return False

    def _is_affordable(self, demand: DemandIndex, site: Site) -> bool:
        """Whether no cap of a namespace is in the way."""
        return not self._spending.has_cap(demand) or self._spending.allow(
            demand, site
        )

    def keeps_rules(self) -> bool:
        """Whether rules between pods hold after a change, as they did before it.

        If they do not, whoever came has to leave again, and whoever left has to be restored.
        """
        if not self._rules.hold():
            return False
        self._rules.settle()
        return True

    def leave(self, demand: DemandIndex) -> Site:
        """Take a demand out of the answer, and return where it was."""
        site = self._devices.give_back(demand)
        self._rooms.give_back(demand, site.node)
        if self._applicants[demand].has_rules:
            self._rules.leave(demand, site.node)
        if self._spending.has_cap(demand):
            self._spending.leave(demand, site)
        del self._on_node[site.node][demand]
        return site

    def restore(self, demand: DemandIndex, site: Site) -> None:
        """Place a demand at a site, which must be free."""
        self._devices.take(demand, site)
        self._rooms.take(demand, site.node)
        if self._applicants[demand].has_rules:
            self._rules.enter(demand, site.node)
        if self._spending.has_cap(demand):
            self._spending.enter(demand, site)
        self._on_node[site.node][demand] = None
