"""One search through small changes: some demands leave a few nodes, and come back among others in a new order.

First what can come and go: demands, and gangs as a whole; then the answer that they leave and enter, as first fit
lets them in; then the search, which changes it again and again.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Claim,
    Demand,
    DeviceIndex,
    NodeIndex,
    Problem,
    indices,
    quorum_of,
)
from dralloc.problem.grouping import grouped
from dralloc.problem.inter_pod import InterPodRule, OneDomain
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import Placement, served_by
from dralloc.solve.first_fit.batch import QuickRun
from dralloc.solve.first_fit.candidates import ClaimClass, NodeCandidates
from dralloc.solve.first_fit.known_failures import Prospects
from dralloc.solve.policies.table import PARTS, Sizes

__all__ = [
    "ChangeSearch",
    "DeviceOrder",
    "MovableUnit",
    "WorkingAnswer",
    "movable_units",
]

# ----------------------------------------------------------------------------
# In which order the devices of a node are offered to a demand: those first that leave
# most to others.

_AS_PUBLISHED: Final = 0.2
"""How often devices stay in the order in which they are published: another order finds other answers."""


class DeviceOrder:
    """Orders devices; first fit then takes the first ones that can be had.

    Devices come first that draw on what is least free: a partition of a GPU that is nearly full, a shared device with
    little left. Of equal ones those come first that exclude the fewest others, since they draw on counters that few
    devices need.

    Parameters
    ----------
    problem, ledger
        The devices, and what is left of their counters and capacities.
    random
        Draws when the order is another.
    """

    def __init__(
        self, problem: Problem, ledger: Ledger, random: np.random.Generator
    ) -> None:
        self._problem = problem
        self._ledger = ledger
        self._random = random
        set_of = [counter.id[:-1] for counter in problem.counters]
        self._counters_of = grouped(
            (counter_set, counter) for counter, counter_set in enumerate(set_of)
        )
        users = Tally(
            counter
            for device in problem.devices
            for counter, _ in device.consumes
        )
        self._sets_of = []
        self._rivals = []
        for device in problem.devices:
            counters = [counter for counter, _ in device.consumes]
            counter_sets = dict.fromkeys(
                [set_of[counter] for counter in counters]
            )
            self._sets_of.append(tuple(counter_sets))
            self._rivals.append(sum([users[counter] for counter in counters]))

    def sorted(self, devices: Sequence[DeviceIndex]) -> Sequence[DeviceIndex]:
        """Return the devices, given as published, in the order in which a demand is to try them."""
        if len(devices) == 1 or self._random.random() < _AS_PUBLISHED:
            return devices
        room_of = {device: self._room(device) for device in devices}
        return sorted(
            devices, key=lambda device: (room_of[device], self._rivals[device])
        )

    def _room(self, device: DeviceIndex) -> int:
        """Return how much is left of what the device draws on: the parts of each counter and capacity, added up."""
        free, counters = self._ledger.free, self._problem.counters
        room = 0
        for counter_set in self._sets_of[device]:
            for counter in self._counters_of[counter_set]:
                room += free[counter] * PARTS // max(1, counters[counter].total)
        published = self._problem.devices[device]
        if published.shareable:
            consumed = self._ledger.consumed.get(published.slot, {})
            for name, capacity in published.capacity.items():
                in_use = consumed.get(name, 0)
                room -= in_use * PARTS // max(1, capacity.total)
        return room


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

    members: tuple[int, ...]
    quorum: int = 1
    rule: OneDomain | None = None

    @property
    def is_single(self) -> bool:
        """Whether it is one demand, which may stand anywhere."""
        return len(self.members) == 1 and self.rule is None


def movable_units(problem: Problem) -> list[MovableUnit]:
    """Return the demands and gangs that nobody else depends on, nor they on others.

    They share no claim with others, are in no group above a gang, and in no namespace with a budget; the only rule
    between pods that they may have a role in is that a gang is in one domain. So each of them can come and go by
    itself, and only what nodes have left decides where it may stand.
    """
    claim_users = Tally(
        claim.key for demand in problem.demands for claim in demand.claims
    )
    rule_users = Tally(
        role.rule for demand in problem.demands for role in demand.roles
    )
    with_budget = {budget.namespace for budget in problem.budgets}
    together = grouped(
        (demand.placed_with or number, number)
        for number, demand in enumerate(problem.demands)
    )
    units: list[MovableUnit] = []
    for members in together.values():
        demands = [problem.demands[member] for member in members]
        free = all(
            _is_free(demand, claim_users)
            and demand.key.namespace not in with_budget
            for demand in demands
        )
        rules = {role.rule for demand in demands for role in demand.roles}
        if free and _know_one_domain(demands, rules, rule_users):
            rule = next(
                (rule for rule in rules if isinstance(rule, OneDomain)),
                None,
            )
            quorum = max(1, quorum_of(demands))
            units.append(MovableUnit(tuple(members), quorum, rule))
    return units


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
# An answer that demands and gangs leave and enter, one after the other, as first fit
# lets them in.

_NODES_TRIED: Final = 4
"""So many of the nodes with enough of everything are tried for a demand: where the first ones fail, others most often
do, too."""

_DOMAINS_TRIED: Final = 4
"""So many domains at most are tried for a gang that has to be in one."""


class WorkingAnswer(QuickRun):
    """An answer that units leave and enter: demands by themselves, and gangs as a whole.

    Parameters
    ----------
    placements
        The answer to begin with. It keeps the rules of the problem.
    random
        Draws which domains, nodes and devices are tried first.

    Attributes
    ----------
    placed
        The answer: placements by demand.
    unit_of
        By demand that may come and go, the unit with which it does. All others stay as they are.
    """

    def __init__(
        self,
        problem: Problem,
        placements: Iterable[Placement],
        random: np.random.Generator,
    ) -> None:
        super().__init__(problem)
        self._random = random
        self._order = DeviceOrder(self._problem, self._ledger, random)
        self.placed: dict[int, Placement] = {}
        self._claims: dict[int, Sequence[Claim]] = {}
        self._prospects: dict[int, Prospects] = {}
        self._on_node: list[dict[int, None]] = [{} for _ in problem.nodes]
        self._asked = np.zeros((len(self._amounts.names), len(problem.demands)))
        self.unit_of: dict[int, MovableUnit] = {}
        for unit in movable_units(problem):
            if all(self._learn(member) for member in unit.members):
                self.unit_of.update(dict.fromkeys(unit.members, unit))
        self._gather_prospects()
        self._gather_allowed()
        self._gather_domains()
        limited = np.isfinite(self._amounts.table)
        total = np.where(limited, self._amounts.table, 0.0).sum(axis=1)
        self._scale = (limited.sum(axis=1) / np.maximum(1.0, total))[
            :, np.newaxis
        ]
        for placement in placements:
            self._enter(placement)

    def _learn(self, number: int) -> bool:
        """Note what a demand asks for; False if first fit knows no class of such claims."""
        demand = self._problem.demands[number]
        claims = list(demand.claims)
        claim_class = self._class_to_place(claims)
        if claim_class is None or claim_class.may_ask_too_much:
            return False
        self._claims[number] = claims
        self._failures.hopeful(claim_class, claims)
        self._prospects[number] = self._failures.of(claim_class)
        if claims and claims[0].is_synthetic:
            for name, amount in self._amounts.asked(claims[0]).items():
                self._asked[self._amounts.names.index(name), number] = amount
        return True

    def _gather_prospects(self) -> None:
        """Lay what is known of all classes of claims side by side, so that it is looked at and forgotten at once."""
        classes = list(dict.fromkeys(self._prospects.values()))
        self._hopeful = np.ones(
            (len(classes), len(self._problem.nodes)), np.bool_
        )
        row_of: dict[Prospects, int] = {}
        for row, prospects in enumerate(classes):
            self._hopeful[row] = prospects.hopeful
            # From now on first fit writes into the table.
            prospects.hopeful = self._hopeful[row]
            row_of[prospects] = row
        self._hopeful_at_first = self._hopeful.copy()
        self._class_of = np.zeros(len(self._problem.demands), np.intp)
        for number, prospects in self._prospects.items():
            self._class_of[number] = row_of[prospects]
        bounds = [
            bound
            for prospects_of_class in classes
            if prospects_of_class.bounds
            for _, bound in prospects_of_class.bounds.counted.values()
        ]
        self._bounds = list({id(bound): bound for bound in bounds}.values())

    def _gather_allowed(self) -> None:
        """Lay the nodes side by side that demands may go to; first all of them."""
        rows = [np.ones(len(self._problem.nodes), np.bool_)]
        row_of: dict[int, int] = {}
        self._allowed_row = np.zeros(len(self._problem.demands), np.intp)
        for number in self.unit_of:
            nodes = self._problem.demands[number].nodes
            if nodes is None:
                continue
            # Demands with the same selection of nodes most often have the same object.
            if id(nodes) not in row_of:
                row_of[id(nodes)] = len(rows)
                rows.append(np.zeros(len(self._problem.nodes), np.bool_))
                rows[-1][list(nodes)] = True
            self._allowed_row[number] = row_of[id(nodes)]
        self._allowed = np.array(rows)
        self._everywhere = rows[0]

    def _gather_domains(self) -> None:
        """By rule and domain, note which nodes are in it."""
        names = [node.name for node in self._problem.nodes]
        self._domain_nodes: dict[OneDomain, dict[str, NDArray[np.bool_]]] = {}
        by_topology: dict[int, dict[str, NDArray[np.bool_]]] = {}
        for unit in self.unit_of.values():
            if unit.rule is None:
                continue
            domains = unit.rule.domains
            if id(domains) not in by_topology:
                domain_of = np.array([domains.get(name, "") for name in names])
                present = {domains[name] for name in names if name in domains}
                by_topology[id(domains)] = {
                    domain: domain_of == domain for domain in sorted(present)
                }
            self._domain_nodes[unit.rule] = by_topology[id(domains)]

    # Questions.

    def on_node(self, node: NodeIndex) -> Sequence[int]:
        """Return the demands on a node that may leave it."""
        return tuple(self._on_node[node])

    def may_fit(self, number: int, node: NodeIndex) -> bool:
        """Return whether a demand may fit on a node, as far as that is known without a search."""
        if not (
            self._prospects[number].hopeful[node]
            and self._allowed[self._allowed_row[number], node]
        ):
            return False
        return bool(
            (self._amounts.table[:, node] >= self._asked[:, number]).all()
        )

    def fitting(
        self, demands: NDArray[np.intp], nodes: Sequence[NodeIndex]
    ) -> NDArray[np.intp]:
        """Return those of the demands that may fit on any of the nodes, as far as that is known."""
        fits = np.zeros(len(demands), np.bool_)
        classes, rows, requested = (
            self._class_of[demands],
            self._allowed_row[demands],
            self._asked[:, demands],
        )
        for node in nodes:
            enough = (
                requested <= self._amounts.table[:, node, np.newaxis]
            ).all(axis=0)
            fits |= (
                enough
                & self._hopeful[classes, node]
                & self._allowed[rows, node]
            )
        return demands[fits]

    def domains(
        self, unit: MovableUnit, nodes: Sequence[NodeIndex]
    ) -> list[NDArray[np.bool_]]:
        """Return the nodes of some domains for a unit: those of these nodes, then any others."""
        if unit.rule is None:
            return [self._everywhere]
        by_domain = self._domain_nodes[unit.rule]
        near = [
            inside for inside in by_domain.values() if inside[list(nodes)].any()
        ]
        far = [
            inside
            for inside in by_domain.values()
            if not inside[list(nodes)].any()
        ]
        order = self._random.permutation(len(far)).tolist()
        return [*near, *[far[index] for index in order]][:_DOMAINS_TRIED]

    def _roomy_nodes(
        self, number: int, inside: NDArray[np.bool_]
    ) -> list[NodeIndex]:
        """Return some nodes where a demand may fit, about those first that have least left of CPU and memory."""
        enough = (
            self._amounts.table >= self._asked[:, number, np.newaxis]
        ).all(axis=0)
        enough &= (
            self._prospects[number].hopeful
            & self._allowed[self._allowed_row[number]]
        )
        nodes = (enough & inside).nonzero()[0]
        free = (self._amounts.table[:, nodes] * self._scale).sum(axis=0)
        order = np.argsort(
            free * self._random.uniform(0.8, 1.2, len(nodes)), kind="stable"
        )
        chosen: list[NodeIndex] = nodes[order[:_NODES_TRIED]].tolist()
        return chosen

    # Changes.

    def enter(
        self,
        unit: MovableUnit,
        nodes: Sequence[NodeIndex],
        *,
        elsewhere: bool,
    ) -> list[int]:
        """Place a unit on these nodes.

        Parameters
        ----------
        elsewhere
            Whether its demands may stand on other nodes, too, where they do not fit on these.

        Returns
        -------
        list of int
            Who is placed: nobody, or at least as many as the unit's quorum.
        """
        may_miss = len(unit.members) - unit.quorum
        for inside in self.domains(unit, nodes):
            chosen = [node for node in nodes if inside[node]]
            entered: list[int] = []
            for tried, member in enumerate(unit.members, 1):
                fits = self._place_on(member, chosen)
                if not fits and elsewhere:
                    fits = self._place_on(
                        member, self._roomy_nodes(member, inside)
                    )
                if fits:
                    entered.append(member)
                elif tried - len(entered) > may_miss:
                    break
            if len(entered) >= unit.quorum:
                return entered
            self.forget({self._leave(member).node for member in entered})
        return []

    def _place_on(self, number: int, nodes: Iterable[NodeIndex]) -> bool:
        """Place a demand on the first of some nodes where it fits; False if that is none of them."""
        claims, prospects = self._claims[number], self._prospects[number]
        for node in nodes:
            if not self.may_fit(number, node):
                continue
            try:
                granted = self._found_at(claims, prospects, node)
            except AllocationError:
                # A selector fails on a device: the node is no use to the demand.
                continue
            if granted is not None:
                self._settle(number, node, claims, granted)
                self._note(self.placements.pop())
                return True
        return False

    def _candidates_at(
        self,
        claim_class: ClaimClass,  # noqa: ARG002 - nothing is kept for a class
        claims: Sequence[Claim],
        node: NodeIndex,
    ) -> NodeCandidates:
        """Return what the node offers, in an order that leaves most to others."""
        candidates = self._index.on(claims, node)
        # Equal alternatives share a list.
        for listed in {
            id(listed): listed for listed in candidates.lists.values()
        }.values():
            listed.devices = self._order.sorted(listed.devices)
        return candidates

    def leave(self, unit: MovableUnit) -> list[Placement]:
        """Take a unit out of the answer, and return where its demands were."""
        return [
            self._leave(member)
            for member in unit.members
            if member in self.placed
        ]

    def _leave(self, number: int) -> Placement:
        placement = self.placed.pop(number)
        del self._on_node[placement.node][number]
        self._release(placement)
        return placement

    def restore(self, placement: Placement) -> None:
        """Place a demand where it was."""
        self._enter(placement)

    def forget(self, nodes: Iterable[NodeIndex]) -> None:
        """Forget what was too little on nodes that somebody has left."""
        for node in nodes:
            self._hopeful[:, node] = self._hopeful_at_first[:, node]
            for bound in self._bounds:
                bound.obtainable[node] = bound.offered[node]
        self._candidates_of.clear()

    def _enter(self, placement: Placement) -> None:
        claims = self._problem.demands[placement.demand].claims
        for _, alternative, grant in served_by(claims, placement.grants):
            charge = self._problem.eligibility.charge(
                alternative.index, grant.device
            )
            if charge is not None:
                self._ledger.take(grant.device, alternative, 0, charge)
        self._settle(placement.demand, placement.node, claims, placement.grants)
        self._note(self.placements.pop())

    def _note(self, placement: Placement) -> None:
        self.placed[placement.demand] = placement
        if placement.demand in self.unit_of:
            self._on_node[placement.node][placement.demand] = None


# ----------------------------------------------------------------------------
# One search through small changes: some demands leave a few nodes, and come back
# among others in a new order.

_MOST_NODES: Final = 4
"""On so many nodes at most demands make room."""

_MOST_LEAVING: Final = 4
"""So many leave each of these at most."""

_MOST_WAITING: Final = 30
"""So many of those that wait are asked whether they fit now."""

_TRUST: Final = 20
"""Kinds of nodes begin as if so many changes had been tried there, all for the better."""

_LEAST_REPUTATION: Final = 0.01
"""Where hardly any change is for the better, nodes still have a turn now and then."""

_AT_RANDOM: Final = 0.1
"""How often demands come back in any order, and not about the small before the large."""

_SIZE_NOISE: Final = 0.6
"""By what factor the sizes of demands are disturbed, as the standard deviation of its logarithm."""

_LARGEST_LOSS: Final = 0.03
"""An answer worth as much is taken over if what is placed is not smaller than this part less: where large demands
stand, small ones wait, which find room more easily. A little less is allowed, so that the search gets anywhere."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Who left, from where, and who is placed instead."""

    departures: Sequence[Placement]
    entered: Sequence[int]


@dataclass(slots=True, eq=False)
class _NodeKind:
    """Nodes that are alike, and how often changes there were tried, and were for the better."""

    nodes: Sequence[NodeIndex]
    tries: int = 0
    successes: int = 0

    @property
    def reputation(self) -> float:
        """How often a change is for the better, as far as that is known; nodes are never given up."""
        return max(
            _LEAST_REPUTATION, (_TRUST + self.successes) / (_TRUST + self.tries)
        )


class ChangeSearch:
    """Improves a working answer; an answer is never worth less than those before it.

    Parameters
    ----------
    problem, placements
        What is asked for, and the answer to begin with.
    seed
        Equal seeds take equal steps.

    Attributes
    ----------
    answer
        The answer.
    """

    def __init__(
        self, problem: Problem, placements: Iterable[Placement], seed: int
    ) -> None:
        self._random = np.random.default_rng(seed)
        self.answer = WorkingAnswer(problem, placements, self._random)
        self._weights = [demand.weight for demand in problem.demands]
        self._sizes = _sizes(problem, self.answer.unit_of)
        self._waits = np.zeros(len(problem.demands), np.bool_)
        placed = self.answer.placed
        for unit in self.answer.unit_of.values():
            waits = placed.keys().isdisjoint(unit.members)
            self._waits[list(unit.members)] = waits
        alike = grouped(
            (_kind(problem, node), node) for node in indices(problem.nodes)
        )
        self._kinds: list[_NodeKind] = [
            _NodeKind(nodes) for nodes in alike.values()
        ]

    def step(self) -> None:
        """Try one change, and keep it if the answer is not worse."""
        kind = self._some_kind()
        kind.tries += 1
        nodes = self._some_nodes(kind)
        drawn = [demand for node in nodes for demand in self._some_on(node)]
        leaving = self._units(drawn)
        placements = [
            placement
            for unit in leaving
            for placement in self.answer.leave(unit)
        ]
        self.answer.forget(
            {*nodes, *[placement.node for placement in placements]}
        )
        entered = self._recreate(nodes, leaving, placements)
        change = _Change(placements, entered)
        if self._is_worse(change):
            self._undo(change)
            return
        before = [placement.demand for placement in placements]
        kind.successes += self._worth(entered) > self._worth(before)
        for unit in leaving:
            self._waits[list(unit.members)] = True
        for unit in self._units(entered):
            self._waits[list(unit.members)] = False

    def _units(self, demands: Iterable[int]) -> list[MovableUnit]:
        """Return the units of demands, each once."""
        return list(
            dict.fromkeys([self.answer.unit_of[demand] for demand in demands])
        )

    # Ruin.

    def _some_kind(self) -> _NodeKind:
        """Draw a kind of nodes: more often one where more changes were for the better."""
        shares = np.array(
            [len(kind.nodes) * kind.reputation for kind in self._kinds]
        )
        return self._kinds[
            int(
                np.searchsorted(
                    shares.cumsum(), self._random.random() * shares.sum()
                )
            )
        ]

    def _some_nodes(self, kind: _NodeKind) -> list[NodeIndex]:
        """Draw some nodes of a kind, between which demands can be exchanged."""
        size = 1 + int(self._random.integers(_MOST_NODES))
        draws = self._random.integers(len(kind.nodes), size=size).tolist()
        return list(dict.fromkeys([kind.nodes[draw] for draw in draws]))

    def _some_on(self, node: NodeIndex) -> list[int]:
        """Draw some of those who stand on a node."""
        occupants = self.answer.on_node(node)
        if not occupants:
            return []
        size = 1 + int(self._random.integers(_MOST_LEAVING))
        return [
            occupants[place]
            for place in self._random.permutation(len(occupants))[
                :size
            ].tolist()
        ]

    # Recreate.

    def _recreate(
        self,
        nodes: Sequence[NodeIndex],
        leaving: Sequence[MovableUnit],
        placements: Sequence[Placement],
    ) -> list[int]:
        """Let units in: those who left, wherever they fit, and those who wait, where there is room now.

        Returns
        -------
        list of int
            Who is placed. As soon as those who may still come cannot make up for who failed, nobody else is tried.
        """
        returning = set(leaving)
        pool = [*leaving, *self._some_waiting(nodes)]
        needed = self._worth([placement.demand for placement in placements])
        possible = sum(self._worth(unit.members) for unit in pool)
        entered: list[int] = []
        for unit in self._in_new_order(pool):
            elsewhere = unit in returning or not unit.is_single
            members = self.answer.enter(unit, nodes, elsewhere=elsewhere)
            entered += members
            possible -= self._worth(unit.members) - self._worth(members)
            if possible < needed:
                break
        return entered

    def _some_waiting(self, nodes: Sequence[NodeIndex]) -> list[MovableUnit]:
        """Draw some of those who wait and may fit now."""
        fitting = self.answer.fitting(self._waits.nonzero()[0], nodes)
        chosen: list[int] = self._random.permutation(fitting)[
            :_MOST_WAITING
        ].tolist()
        return self._units(chosen)

    def _in_new_order(self, pool: Sequence[MovableUnit]) -> list[MovableUnit]:
        """Order units by weight; those of equal weight about the small before the large, or in any order."""
        noise = self._random.normal(0.0, _SIZE_NOISE, len(pool))
        firsts = [unit.members[0] for unit in pool]
        if self._random.random() < _AT_RANDOM:
            keys = noise.tolist()
        else:
            sizes = np.array(
                [self._sizes[demand] for demand in firsts], dtype=float
            )
            keys = (sizes * np.exp(noise)).tolist()
        weights = [self._weights[demand] for demand in firsts]
        order = sorted(
            range(len(pool)), key=lambda index: (-weights[index], keys[index])
        )
        return [pool[index] for index in order]

    # Which answer to keep.

    def _worth(self, demands: Iterable[int]) -> int:
        return sum(self._weights[demand] for demand in demands)

    def _is_worse(self, change: _Change) -> bool:
        before = [placement.demand for placement in change.departures]
        worth, worth_before = self._worth(change.entered), self._worth(before)
        if worth != worth_before:
            return worth < worth_before
        size, size_before = self._size(change.entered), self._size(before)
        return size < (1 - _LARGEST_LOSS) * size_before

    def _size(self, demands: Iterable[int]) -> int:
        return sum(self._sizes[demand] for demand in demands)

    def _undo(self, change: _Change) -> None:
        touched = {placement.node for placement in change.departures}
        for unit in self._units(change.entered):
            touched.update(
                [placement.node for placement in self.answer.leave(unit)]
            )
        for placement in change.departures:
            self.answer.restore(placement)
        self.answer.forget(touched)


def _sizes(problem: Problem, demands: Iterable[int]) -> dict[int, int]:
    """Return how large demands are: the parts that they take of each resource, added up."""
    sizes = Sizes(problem)
    return {demand: _parts(sizes, problem, demand) for demand in demands}


def _parts(sizes: Sizes, problem: Problem, demand: int) -> int:
    amounts = sizes.taken(problem.demands[demand])
    return sum(
        amount * PARTS // max(1, sizes.totals[name])
        for name, amount in amounts.items()
    )


def _kind(problem: Problem, node: NodeIndex) -> Hashable:
    """Return what nodes have in common that offer the same numbers of devices by driver."""
    drivers = [
        problem.devices[device].id.driver
        for device in problem.nodes[node].devices()
    ]
    return tuple(
        sorted((driver, drivers.count(driver)) for driver in set(drivers))
    )
