"""What the packing goals count, once in an answer and once in the variables of a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

from ortools.sat.python import cp_model

from dralloc.problem import Alternative, Problem
from dralloc.solution import Grant, Placement
from dralloc.solvers.cpsat.counter_consumption import counter_terms, dedicated_users
from dralloc.solvers.cpsat.fragmentation import touched_before, units
from dralloc.solvers.cpsat.model import Model
from dralloc.solvers.cpsat.rows import Literal, SignedTerm, Term, add_at_most

__all__ = ["node_terms", "opened_slots", "peak_terms", "slot_terms", "touched_units", "unit_terms"]


def _grants(problem: Problem, placements: Sequence[Placement]) -> Iterator[tuple[Alternative, Grant]]:
    """Every grant without admin access, with its alternative."""
    for placement in placements:
        for claim, grants in zip(problem.demands[placement.demand].claims, placement.grants, strict=True):
            for grant in grants:
                alternative = claim.requests[grant.request].alternatives[grant.alternative]
                if not alternative.admin:
                    yield alternative, grant


def opened_slots(problem: Problem, placements: Sequence[Placement]) -> set[int]:
    """The devices that were free before and are in use with the answer."""
    slots = {problem.devices[grant.device].slot for _, grant in _grants(problem, placements)}
    return slots - problem.usage.shares.keys()


def slot_terms(model: Model) -> list[Term]:
    """One per device that is opened: a dedicated one by its only user, a shareable one by its first."""
    users = [user for literals in dedicated_users(model).values() for user in literals]
    return [(literal, 1) for literal in (*users, *model.variables.opened.values())]


def touched_units(problem: Problem, placements: Sequence[Placement]) -> set[Hashable]:
    """The units that were whole before and are not with the answer."""
    touched: set[Hashable] = set()
    for alternative, grant in _grants(problem, placements):
        charge = problem.eligibility.charge(alternative.index, grant.device)
        if charge is not None:
            touched.update(units(problem, grant.device, charge))
    return touched - touched_before(problem)


def unit_terms(model: Model) -> list[Term]:
    """One per unit, drawn from only if it is touched: so the linear relaxation counts in parts of units."""
    before = touched_before(model.problem)
    touched: dict[Hashable, Literal] = {}
    for take in model.variables.takes():
        for unit in () if take.admin else units(model.problem, take.device, take.charge):
            if unit not in before:
                literal = touched.setdefault(unit, model.cp.new_bool_var(f"touched {unit}"))
                model.cp.add_implication(take.literal, literal)
    for counter, terms in counter_terms(model).items():
        known = model.problem.counters[counter]
        if known.id[:3] in touched:
            _draw_only_if(model, touched[known.id[:3]], terms, known.free, f"counter {known.id}")
    return [(literal, 1) for literal in touched.values()]


def node_terms(model: Model) -> list[Term]:
    """One per node, with its own devices and counters drawn from only if it is used."""
    used: dict[int, Literal] = {}
    for (_, node), on in model.variables.on.items():
        if node not in used:
            used[node] = model.cp.new_bool_var(f"used {model.problem.nodes[node].name}")
        model.cp.add_implication(on, used[node])
    places = _places(model)
    rows = [([(literal, 1) for literal in users], 1, "device") for users in dedicated_users(model).values()]
    for counter, terms in counter_terms(model).items():
        known = model.problem.counters[counter]
        rows.append((terms, known.free, f"counter {known.id}"))
    for terms, free, what in rows:
        nodes = set().union(*(places[literal.index] for literal, _ in terms))
        if len(nodes) == 1:
            _draw_only_if(model, used[nodes.pop()], terms, free, what)
    return [(literal, 1) for literal in used.values()]


def _places(model: Model) -> dict[int, set[int]]:
    """By index of a literal: the nodes on which it takes something."""
    places: dict[int, set[int]] = defaultdict(set)
    for take in model.variables.takes():
        opened = model.variables.opened.get(model.problem.devices[take.device].slot)
        for literal in (take.literal, opened):
            if literal is not None:
                places[literal.index].update(take.nodes)
    return places


def _draw_only_if(model: Model, condition: Literal, terms: Sequence[Term], free: int, what: str) -> None:
    if free > 0:
        row: list[SignedTerm] = [*terms, (~condition, free)]
        add_at_most(model.cp, row, free, what)


def peak_terms(model: Model) -> list[Term]:
    """The largest number of demands on one node."""
    nodes: dict[int, list[Literal]] = defaultdict(list)
    for (_, node), on in model.variables.on.items():
        nodes[node].append(on)
    peak = model.cp.new_int_var(0, max(map(len, nodes.values())), "peak")
    for literals in nodes.values():
        model.cp.add(cp_model.LinearExpr.sum(literals) <= peak)
    return [(peak, 1)]
