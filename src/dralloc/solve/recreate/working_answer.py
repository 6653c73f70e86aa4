"""An answer that demands leave and enter, one after the other, as first fit lets them in."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dralloc.objects.errors import AllocationError
from dralloc.problem import Claim, Problem
from dralloc.problem.solution import Placement, served_by
from dralloc.solve.first_fit.known_failures import Prospects
from dralloc.solve.first_fit.quick import QuickRun

__all__ = ["WorkingAnswer", "independent_demands"]

_NODES_TRIED: Final = 4
"""So many of the nodes with enough of everything are tried for a demand: where the first ones fail, others most often
do, too."""


def independent_demands(problem: Problem) -> list[int]:
    """Return the demands that no other demand depends on, nor they on others.

    They are in no gang or group, have no role in a rule between pods, share no claim, and are in no namespace with a
    budget. So each of them can come and go by itself, and only what nodes have left decides where it may stand.
    """
    users = Tally(claim.key for demand in problem.demands for claim in demand.claims)
    with_budget = {budget.namespace for budget in problem.budgets}
    independent: list[int] = []
    for number, demand in enumerate(problem.demands):
        tied = (
            demand.placed_with
            or demand.roles
            or demand.group_scopes
            or demand.is_defective
        )
        shares = any(users[claim.key] > 1 for claim in demand.claims)
        if not (tied or shares or demand.key.namespace in with_budget):
            independent.append(number)
    return independent


class WorkingAnswer(QuickRun):
    """An answer that demands leave and enter.

    Parameters
    ----------
    placements
        The answer to begin with. It keeps the rules of the problem.

    Attributes
    ----------
    placed
        The answer: placements by demand.
    independent
        The demands that may come and go. All others stay as they are.
    """

    def __init__(self, problem: Problem, placements: Iterable[Placement]) -> None:
        super().__init__(problem)
        self.placed: dict[int, Placement] = {}
        self._claims: dict[int, Sequence[Claim]] = {}
        self._prospects: dict[int, Prospects] = {}
        self._on_node: list[dict[int, None]] = [{} for _ in problem.nodes]
        self._asked = np.zeros((len(self._amounts.names), len(problem.demands)))
        self.independent = [
            number for number in independent_demands(problem) if self._learn(number)
        ]
        self._gather_prospects()
        self._gather_allowed()
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
        for number in self.independent:
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

    def roomy_nodes(self, number: int, random: np.random.Generator) -> list[int]:
        """Return some nodes where a demand may fit, about those first that have least left of CPU and memory."""
        enough = (self._amounts.table >= self._asked[:, number, np.newaxis]).all(axis=0)
        enough &= (
            self._prospects[number].hopeful & self._allowed[self._allowed_row[number]]
        )
        nodes = enough.nonzero()[0]
        left = (self._amounts.table[:, nodes] * self._scale).sum(axis=0)
        order = np.argsort(left * random.uniform(0.8, 1.2, len(nodes)), kind="stable")
        chosen: list[int] = nodes[order[:_NODES_TRIED]].tolist()
        return chosen

    # Changes.

    def enter(self, number: int, nodes: Iterable[int]) -> bool:
        """Place a demand on the first of some nodes where it fits; False if that is none of them."""
        claims, prospects = self._claims[number], self._prospects[number]
        for node in nodes:
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

    def leave(self, number: int) -> Placement:
        """Take a demand out of the answer, and return where it was."""
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
        if placement.demand in self._claims:
            self._on_node[placement.node][placement.demand] = None
