"""Claims that several demands list: granted with one of them, used by all."""

from __future__ import annotations

from collections import defaultdict

from ortools.sat.python import cp_model

from dralloc.names import ClaimKey
from dralloc.solvers.cpsat.model import Model
from dralloc.solvers.cpsat.rows import Literal

__all__ = ["shared_claims"]


def shared_claims(model: Model) -> None:
    """A claim is granted once, with a demand that is placed, if any is; the others go where its devices are usable."""
    homes: dict[ClaimKey, list[Literal]] = defaultdict(list)
    for (demand, claim, node), home in model.variables.homes.items():
        model.cp.add_implication(home, model.variables.on[demand, node])
        homes[model.problem.demands[demand].claims[claim].key].append(home)
    for literals in homes.values():
        model.cp.add_at_most_one(literals)
    for demand, claims in model.variables.shared.items():
        for claim in claims:
            granted: list[cp_model.LiteralT] = [*homes[model.problem.demands[demand].claims[claim].key]]
            model.cp.add_bool_or([*granted, model.variables.miss[demand]])
    _within_reach(model)


def _within_reach(model: Model) -> None:
    visits = _visits(model)
    for serving in model.variables.every_serving():
        if (serving.demand, serving.choice.claim, serving.node) in model.variables.homes:
            visited = visits[model.problem.demands[serving.demand].claims[serving.choice.claim].key]
            for take in serving.takes:
                for node, literal in visited.items():
                    if not model.problem.usable_from(take.device, serving.node, node):
                        model.cp.add_implication(take.literal, ~literal)


def _visits(model: Model) -> dict[ClaimKey, dict[int, Literal]]:
    """By claim and node: a demand that lists the claim is on the node."""
    visits: dict[ClaimKey, dict[int, Literal]] = defaultdict(dict)
    for (demand, node), on in model.variables.on.items():
        for claim in model.variables.shared.get(demand, ()):
            nodes = visits[model.problem.demands[demand].claims[claim].key]
            if node not in nodes:
                nodes[node] = model.cp.new_bool_var(f"visit {node}")
            model.cp.add_implication(on, nodes[node])
    return visits
