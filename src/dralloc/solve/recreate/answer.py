"""An answer that demands and gangs leave and enter, thousands of times a second.

First which demands come and go together; then the answer.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import (
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Final

from dralloc.objects.names import ClaimKey
from dralloc.problem import Claim, Demand, NodeIndex, Problem, quorum_of
from dralloc.problem.all_devices import passed_over
from dralloc.problem.indices import DemandIndex, grouped, numbered
from dralloc.problem.inter_pod import InterPodRule, OneDomain
from dralloc.problem.solution import Placement
from dralloc.solve.first_fit.candidates import ClaimClass
from dralloc.solve.recreate.device_search import DeviceSearch
from dralloc.solve.recreate.devices import (
    DeviceWish,
    NodeDevices,
    Site,
)
from dralloc.solve.recreate.rooms import NodeRooms

__all__ = ["MovableUnit", "WorkingAnswer", "movable_units", "serving_nodes"]

# ----------------------------------------------------------------------------
# What can come and go by itself: single demands, and gangs as a whole.


@dataclass(frozen=True, slots=True, eq=False)
class MovableUnit:
    """Demands that come and go together: one, or those of a gang.

    Parameters
    ----------
    members
        The demands, in order.
    quorum
        How many of them must be placed for any to be.
    rule
        That all are in one domain; None if they may stand anywhere.
    """

    members: tuple[DemandIndex, ...]
    quorum: int = 1
    rule: OneDomain | None = None

    @property
    def is_single(self) -> bool:
        """Whether it is one demand, which needs nobody else and may stand anywhere."""
        return len(self.members) == self.quorum == 1 and self.rule is None


def movable_units(
    problem: Problem, placements: Iterable[Placement]
) -> list[MovableUnit]:
    """Return the demands and gangs that nobody else depends on, nor they on others.

    They share no claim with others, are in no group above a gang, and in no namespace with a budget; the only rule
    between pods that they may have a role in is that a gang is in one domain. So each of them can come and go by
    itself, and only what nodes have left decides where it may stand.

    Nor do those come and go that fill a device in these placements which a claim for all devices passed over: without
    them the claim would lack it. Claims for all devices stay themselves, as first fit's search for them may fail.
    """
    fillers = _fillers(problem, placements)
    claim_users = Tally(
        claim.key for demand in problem.demands for claim in demand.claims
    )
    rule_users = Tally(
        role.rule for demand in problem.demands for role in demand.roles
    )
    with_budget = {budget.namespace for budget in problem.budgets}
    together = grouped(
        (demand.placed_with or demand_index, demand_index)
        for demand_index, demand in numbered(problem.demands)
    )
    units: list[MovableUnit] = []
    for members in together.values():
        demands = [problem.demands[member] for member in members]
        free = all(
            _is_free(demand, claim_users)
            and demand.key.namespace not in with_budget
            for demand in demands
        ) and fillers.isdisjoint(members)
        rules = {role.rule for demand in demands for role in demand.roles}
        if free and _know_one_domain(demands, rules, rule_users):
            rule = next(
                (rule for rule in rules if isinstance(rule, OneDomain)),
                None,
            )
            quorum = max(1, quorum_of(demands))
            units.append(MovableUnit(tuple(members), quorum, rule))
    return units


def _fillers(
    problem: Problem, placements: Iterable[Placement]
) -> set[DemandIndex]:
    """Return the demands with a share of a device that a claim for all devices passed over."""
    placements = tuple(placements)
    full = {
        problem.devices[device].slot
        for placement in placements
        for device, _ in passed_over(problem, placement)
    }
    return {
        placement.demand
        for placement in placements
        for claim_grants in placement.grants
        for grant in claim_grants
        if problem.devices[grant.device].slot in full
    }


def serving_nodes(
    problem: Problem, units: Iterable[MovableUnit]
) -> set[NodeIndex]:
    """Return the nodes that could serve any demand of the units if nobody else was there."""
    search = DeviceSearch(problem)
    # Some demands take nothing of nodes, and have a claim less.
    samples: dict[tuple[ClaimClass, int], Sequence[Claim]] = {}
    for unit in units:
        for member in unit.members:
            claims = problem.demands[member].claims
            claim_class = search.class_of(claims)
            if claim_class is not None:
                samples.setdefault((claim_class, len(claims)), claims)
    serving: set[NodeIndex] = set()
    for (claim_class, _), sample in samples.items():
        hopeful = search.hopeful_nodes(claim_class, sample)
        serving.update(node for node in problem.all_nodes if hopeful[node])
    return serving


def _is_free(demand: Demand, claim_users: Mapping[ClaimKey, int]) -> bool:
    """Return whether nothing but a gang and rules between pods ties a demand to others."""
    shares = any(claim_users[claim.key] > 1 for claim in demand.claims)
    return not (
        shares or demand.group_scopes or demand.parent or demand.is_defective
    )


def _know_one_domain(
    demands: Sequence[Demand],
    rules: Collection[InterPodRule],
    rule_users: Mapping[InterPodRule, int],
) -> bool:
    """Return whether demands know no rule between pods, or only that they, and nobody else, are in one domain."""
    if not rules:
        return True
    if len(rules) > 1:
        return False
    [rule] = rules
    roles = [role for demand in demands for role in demand.roles]
    return (
        isinstance(rule, OneDomain)
        and len(roles) == len(demands) == rule_users[rule]
        and all(role.carries and not role.runs for role in roles)
    )


# ----------------------------------------------------------------------------
# The answer.

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
        The answer to begin with. It keeps the rules of the problem.
    random
        Draws which domains, nodes and devices are tried first.

    Attributes
    ----------
    unit_of
        By demand that may come and go, the unit with which it does.
    staying
        All others, which stay as they are.
    """

    def __init__(
        self, problem: Problem, placements: Iterable[Placement], random: Random
    ) -> None:
        self._problem = problem
        self._random = random
        search = DeviceSearch(problem)
        self._devices = NodeDevices(problem, search, random)
        self.unit_of: dict[DemandIndex, MovableUnit] = {}
        self._class_of: dict[DemandIndex, DeviceWish] = {}
        placements = tuple(placements)
        for unit in movable_units(problem, placements):
            self._learn(unit)
        self._gather_allowed()
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
        self._on_node: list[dict[DemandIndex, None]] = [
            {} for _ in problem.nodes
        ]
        for placement in moving:
            way = self._devices.way(
                self._class_of[placement.demand],
                placement.node,
                placement.grants,
            )
            self.restore(placement.demand, Site(placement.node, way))

    def _learn(self, unit: MovableUnit) -> None:
        """Note what the demands of a unit ask for, unless first fit knows no class of such claims."""
        class_of: dict[DemandIndex, DeviceWish] = {}
        for member in unit.members:
            claims = self._problem.demands[member].claims
            wish = self._devices.class_of(claims)
            if wish is None:
                return
            class_of[member] = wish
        self._class_of |= class_of
        self.unit_of |= dict.fromkeys(unit.members, unit)

    def _gather_allowed(self) -> None:
        """Note the nodes that demands may go to; None stands for all."""
        known: dict[int, frozenset[NodeIndex]] = {}
        self._allowed: dict[DemandIndex, frozenset[NodeIndex] | None] = {}
        for demand in self.unit_of:
            nodes = self._problem.demands[demand].nodes
            if nodes is None:
                self._allowed[demand] = None
                continue
            # Demands with the same selection of nodes most often have the same object.
            if id(nodes) not in known:
                known[id(nodes)] = frozenset(nodes)
            self._allowed[demand] = known[id(nodes)]

    def _gather_domains(self) -> None:
        """By rule and domain, note which nodes are in it."""
        name_of = [node.name for node in self._problem.nodes]
        by_topology: dict[int, dict[str, list[NodeIndex]]] = {}
        self._nodes_in: dict[OneDomain, Mapping[str, list[NodeIndex]]] = {}
        for unit in self.unit_of.values():
            if unit.rule is None:
                continue
            domains = unit.rule.domains
            if id(domains) not in by_topology:
                by_topology[id(domains)] = grouped(
                    (domains[name_of[node_index]], node_index)
                    for node_index in self._problem.all_nodes
                    if name_of[node_index] in domains
                )
            self._nodes_in[unit.rule] = by_topology[id(domains)]

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
        wish, allowed = self._class_of[demand], self._allowed[demand]
        hopeful, may_serve = wish.hopeful, self._devices.may_serve
        rooms, guards = self._rooms.room, self._rooms.guards
        asked_of = self._rooms.asked_of
        for node in nodes:
            if (
                hopeful[node]
                and ((rooms[node] | guards) - asked_of(node)[demand]) & guards
                == guards
                and (allowed is None or node in allowed)
                and may_serve(wish, node)
            ):
                yield node

    def nodes_for(self, unit: MovableUnit) -> list[NodeIndex]:
        """Return the nodes where a unit could stand if others made room: of one domain at random, if it needs one."""
        member = self._random.choice(unit.members)
        hopeful, allowed = (
            self._class_of[member].hopeful,
            self._allowed[member],
        )
        areas: list[Iterable[NodeIndex]] = [self._problem.all_nodes]
        if unit.rule is not None:
            areas = list(self._nodes_in[unit.rule].values())
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
        # By class, the nodes with devices for it: what is free there, and what demands take of it.
        serving: dict[DeviceWish, list[tuple[NodeIndex, int, list[int]]]] = {}
        fitting: list[MovableUnit] = []
        for unit in units:
            member = unit.members[0]
            wish, allowed = self._class_of[member], self._allowed[member]
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
                if (room - asked[member]) & guards == guards and (
                    allowed is None or node in allowed
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
            fits = self._place_on(member, nodes) or (
                elsewhere
                and self._place_on(member, self._roomy_nodes(member, None))
            )
            return [member] if fits else []
        may_miss = len(unit.members) - unit.quorum
        for inside in self._domains(unit, nodes):
            chosen = nodes
            if inside is not None:
                chosen = [node for node in nodes if node in inside]
            entered: list[DemandIndex] = []
            for tried, member in enumerate(unit.members, 1):
                fits = self._place_on(member, chosen)
                if not fits and elsewhere:
                    roomy = self._roomy_nodes(member, inside)
                    fits = self._place_on(member, roomy)
                if fits:
                    entered.append(member)
                elif tried - len(entered) > may_miss:
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
        if unit.rule is None:
            return [None]
        near: list[Collection[NodeIndex] | None] = []
        far: list[Collection[NodeIndex] | None] = []
        for inside in self._nodes_in[unit.rule].values():
            has_any = any(node in inside for node in nodes)
            (near if has_any else far).append(inside)
        self._random.shuffle(far)
        return [*near, *far][:_DOMAINS_TRIED]

    def _roomy_nodes(
        self, demand: DemandIndex, inside: Collection[NodeIndex] | None
    ) -> list[NodeIndex]:
        """Return some nodes where a demand may fit, about those first that have least left of CPU and memory."""
        hopeful, draw = self._class_of[demand].hopeful, self._random.random
        spaciousness = self._rooms.spaciousness
        bulk = self._rooms.bulk[demand] - _DRIFT
        nodes = self._problem.all_nodes if inside is None else inside
        order = sorted(
            [
                (spaciousness[node] * (1 + _NOISE * draw()), node)
                for node in nodes
                if hopeful[node] and spaciousness[node] >= bulk
            ]
        )
        in_order = (node for _, node in order)
        return list(islice(self.may_hold(demand, in_order), _NODES_TRIED))

    def _place_on(
        self, demand: DemandIndex, nodes: Iterable[NodeIndex]
    ) -> bool:
        """Place a demand on the first of some nodes where it fits; False if that is none of them."""
        claims = self._problem.demands[demand].claims
        for node in self.may_hold(demand, nodes):
            way = self._devices.choose(self._class_of[demand], claims, node)
            if way is not None:
                self.restore(demand, Site(node, way))
                return True
        return False

    def leave(self, demand: DemandIndex) -> Site:
        """Take a demand out of the answer, and return where it was."""
        site = self._devices.give_back(demand)
        self._rooms.give_back(demand, site.node)
        del self._on_node[site.node][demand]
        return site

    def restore(self, demand: DemandIndex, site: Site) -> None:
        """Place a demand at a site, which must be free."""
        self._devices.take(demand, site)
        self._rooms.take(demand, site.node)
        self._on_node[site.node][demand] = None
