"""Symmetry: equal demands are interchangeable, and the search need not try them in every order.

Equal is what has the same candidates here, which is coarser than `dralloc.problem.equivalence.claim_key`: also demands
that ask in different words, but can only get the same devices at the same charge, stand in for each other.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from itertools import pairwise

from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.solution import Placement
from dralloc.solve.optimum.candidates import (
    Candidate,
    CandidateSite,
    ServingChoice,
)
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.stopping import Stop

__all__ = ["equal_demands", "equal_demands_in_order", "in_order"]


def equal_demands(model: Model, stop: Stop) -> list[tuple[DemandIndex, ...]]:
    """Classes of two or more demands that can stand in for each other: same weight, candidates and constraints."""
    problem = model.problem
    classes = grouped(
        (_key(problem, demand, sites), demand)
        for demand, sites in stop.each(model.sites.items())
        if not problem.demands[demand].gang and not sites[0].shared
    )
    return [tuple(members) for members in classes.values() if len(members) > 1]


def _key(
    problem: Problem, demand: DemandIndex, sites: tuple[CandidateSite, ...]
) -> Hashable:
    claims = problem.demands[demand].claims
    # Names of requests do not count, but which alternatives a constraint covers, and what it compares there.
    constraints: list[Hashable] = []
    for claim_index, claim in enumerate(claims):
        for constraint_index, constraint in enumerate(claim.constraints):
            kind = (
                claim_index,
                constraint_index,
                constraint.kind,
                constraint.scope,
            )
            for request_index, request in enumerate(claim.requests):
                for choice, spec in enumerate(request.alternatives):
                    if constraint.covers(spec.name):
                        attribute = constraint.compared(spec.name)
                        constraints.append(
                            (kind, attribute, request_index, choice)
                        )
    choices = tuple(
        (site.node, *map(_choice, site.choices())) for site in sites
    )
    namespace = problem.demands[demand].key.namespace if problem.budgets else ""
    return (
        problem.demands[demand].weight,
        len(claims),
        tuple(constraints),
        choices,
        namespace,
        problem.demands[demand].roles,
    )


def _choice(choice: ServingChoice) -> Hashable:
    spec = choice.spec
    return (
        choice.claim,
        choice.request,
        choice.alternative,
        spec.rank,
        spec.admin,
        # ``All`` takes as many as a request for so many of them where nobody is in its way, and else fewer or none.
        spec.count,
        choice.count,
        _charged(choice.candidates),
        _charged(choice.loose),
        _charged(choice.blocked),
    )


def _charged(candidates: Iterable[Candidate]) -> Hashable:
    """Return devices with what a demand takes of each, however it asks for that."""
    return tuple(
        [
            (device, charge.capacity, charge.counters)
            for device, charge in candidates
        ]
    )


def equal_demands_in_order(model: Model) -> None:
    """Of equal demands, an earlier one is missed only if the later ones are."""
    for members in equal_demands(model, model.variables.stop):
        for earlier, later in pairwise(members):
            model.cp.add_implication(
                model.variables.miss[earlier], model.variables.miss[later]
            )


def in_order(
    classes: Iterable[tuple[DemandIndex, ...]], placements: Iterable[Placement]
) -> list[Placement]:
    """Rename equal demands in an answer, so that the earlier ones are those that are placed."""
    placed = {placement.demand: placement for placement in placements}
    for members in classes:
        answers = [placed.pop(demand) for demand in members if demand in placed]
        for demand, placement in zip(members, answers, strict=False):
            placed[demand] = replace(placement, demand=demand)
    return sorted(placed.values(), key=lambda placement: placement.demand)
