"""An answer that demands and gangs leave and enter, one after the other, as first fit lets them in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.objects.errors import AllocationError
from dralloc.problem import Claim, Problem
from dralloc.problem.inter_pod import OneDomain
from dralloc.problem.solution import Placement, served_by
from dralloc.solve.first_fit.known_failures import Prospects
from dralloc.solve.first_fit.quick import QuickRun
from dralloc.solve.recreate.units import MovableUnit, movable_units

__all__ = ["WorkingAnswer"]

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

    Attributes
    ----------
    placed
        The answer: placements by demand.
    unit_of
        By demand that may come and go, the unit with which it does. All others stay as they are.
    """

    def __init__(self, problem: Problem, placements: Iterable[Placement]) -> None:
        super().__init__(problem)
        self.placed: dict[int, Placement] = {}
        self._claims: dict[int, Sequence[Claim]] = {}
        self._prospects: dict[int, Prospects] = {}
        self._on_node: list[dict[int, None]] = [{} for _ in problem.nodes]
        self._asked = np.zeros((len(self._amounts.names), len(problem.demands)))
        self.unit_of = {
            member: unit
            for unit in movable_units(problem)
            if all([self._learn(member) for member in unit.members])
            for member in unit.members
        }
        self._gather_prospects()
        self._gather_allowed()
        self._gather_domains()
        limited = np.isfinite(self._amounts.table)
        total = np.where(limited, self._amounts.table, 0.0).sum(axis=1)
        self._scale = (limited.sum(axis=1) / np.maximum(1.0, total))[:, np.newaxis]
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
        self._hopeful = np.ones((len(classes), len(self._problem.nodes)), np.bool_)
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
        every = [
            bound
            for known in classes
            if known.bounds
            for _, bound in known.bounds.counted.values()
        ]
        self._bounds = list({id(bound): bound for bound in every}.values())

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

    def on_node(self, node: int) -> Sequence[int]:
        """Return the demands on a node that may leave it."""
        return tuple(self._on_node[node])

    def may_fit(self, number: int, node: int) -> bool:
        """Return whether a demand may fit on a node, as far as that is known without a search."""
        if not (
            self._prospects[number].hopeful[node]
            and self._allowed[self._allowed_row[number], node]
        ):
            return False
        return bool((self._amounts.table[:, node] >= self._asked[:, number]).all())

    def fitting(
        self, demands: NDArray[np.intp], nodes: Sequence[int]
    ) -> NDArray[np.intp]:
        """Return those of the demands that may fit on any of the nodes, as far as that is known."""
        fits = np.zeros(len(demands), np.bool_)
        classes, rows, asked = (
            self._class_of[demands],
            self._allowed_row[demands],
            self._asked[:, demands],
        )
        for node in nodes:
            enough = (asked <= self._amounts.table[:, node, np.newaxis]).all(axis=0)
            fits |= enough & self._hopeful[classes, node] & self._allowed[rows, node]
        return demands[fits]

    def domains(
        self, unit: MovableUnit, nodes: Sequence[int], random: np.random.Generator
    ) -> list[NDArray[np.bool_]]:
        """Return the nodes of some domains for a unit: those of these nodes, then any others."""
        if unit.rule is None:
            return [self._everywhere]
        by_domain = self._domain_nodes[unit.rule]
        near = [inside for inside in by_domain.values() if inside[list(nodes)].any()]
        far = [inside for inside in by_domain.values() if not inside[list(nodes)].any()]
        order = random.permutation(len(far)).tolist()
        return [*near, *[far[index] for index in order]][:_DOMAINS_TRIED]

    def _roomy_nodes(
        self, number: int, inside: NDArray[np.bool_], random: np.random.Generator
    ) -> list[int]:
        """Return some nodes where a demand may fit, about those first that have least left of CPU and memory."""
        enough = (self._amounts.table >= self._asked[:, number, np.newaxis]).all(axis=0)
        enough &= (
            self._prospects[number].hopeful & self._allowed[self._allowed_row[number]]
        )
        nodes = (enough & inside).nonzero()[0]
        free = (self._amounts.table[:, nodes] * self._scale).sum(axis=0)
        order = np.argsort(free * random.uniform(0.8, 1.2, len(nodes)), kind="stable")
        chosen: list[int] = nodes[order[:_NODES_TRIED]].tolist()
        return chosen

    # Changes.

    def enter(
        self,
        unit: MovableUnit,
        nodes: Sequence[int],
        random: np.random.Generator,
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
        for inside in self.domains(unit, nodes, random):
            chosen = [node for node in nodes if inside[node]]
            entered: list[int] = []
            for tried, member in enumerate(unit.members, 1):
                fits = self._place_on(member, chosen)
                if not fits and elsewhere:
                    fits = self._place_on(
                        member, self._roomy_nodes(member, inside, random)
                    )
                if fits:
                    entered.append(member)
                elif tried - len(entered) > may_miss:
                    break
            if len(entered) >= unit.quorum:
                return entered
            self.forget({self._leave(member).node for member in entered})
        return []

    def _place_on(self, number: int, nodes: Iterable[int]) -> bool:
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

    def leave(self, unit: MovableUnit) -> list[Placement]:
        """Take a unit out of the answer, and return where its demands were."""
        return [self._leave(member) for member in unit.members if member in self.placed]

    def _leave(self, number: int) -> Placement:
        placement = self.placed.pop(number)
        del self._on_node[placement.node][number]
        self._release(placement)
        return placement

    def restore(self, placement: Placement) -> None:
        """Place a demand where it was."""
        self._enter(placement)

    def forget(self, nodes: Iterable[int]) -> None:
        """Forget what was too little on nodes that somebody has left."""
        for node in nodes:
            self._hopeful[:, node] = self._hopeful_at_first[:, node]
            for bound in self._bounds:
                bound.most[node] = bound.offered[node]
        self._candidates_of.clear()

    def _enter(self, placement: Placement) -> None:
        claims = self._problem.demands[placement.demand].claims
        for _, alternative, grant in served_by(claims, placement.grants):
            charge = self._problem.eligibility.charge(alternative.index, grant.device)
            if charge is not None:
                self._ledger.take(grant.device, alternative, 0, charge)
        self._settle(placement.demand, placement.node, claims, placement.grants)
        self._note(self.placements.pop())

    def _note(self, placement: Placement) -> None:
        self.placed[placement.demand] = placement
        if placement.demand in self.unit_of:
            self._on_node[placement.node][placement.demand] = None
