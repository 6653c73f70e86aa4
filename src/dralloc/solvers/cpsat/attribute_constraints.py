"""Attribute constraints over the devices of a claim (KEP-4381; over lists, KEP-5491)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ortools.sat.python import cp_model

from dralloc.problem import Constraint, ConstraintKind, Scalar
from dralloc.solvers.cpsat.interchangeable import binding_constraints
from dralloc.solvers.cpsat.model import Model
from dralloc.solvers.cpsat.rows import Literal, add_at_most_one
from dralloc.solvers.cpsat.variables import Serving, Take

__all__ = ["distinct_attributes", "equal_attributes"]

_Value = Scalar | int
"""A value of an attribute, or the device that stands for what cannot be compared."""

_Carried = tuple[Serving, Take, frozenset[Scalar]]
"""A device that may serve a request, with the values that count there."""


def equal_attributes(model: Model, servings: Sequence[Serving]) -> None:
    """``matchAttribute``: one value that every covered device of the claim carries.

    A device without comparable value can only be alone.
    """
    for constraint, covered in _constraints(model, servings, ConstraintKind.MATCH):
        carried = [(each, take, _values(model, constraint, each, take)) for each in covered for take in each.takes]
        if frozenset.intersection(*(values for _, _, values in carried)):
            continue
        distinct = dict.fromkeys(value for _, take, values in carried for value in _ordered(take.device, values))
        chosen = {value: model.cp.new_bool_var(f"match {constraint.attribute} {value}") for value in distinct}
        model.cp.add_at_most_one(chosen.values())
        lonely = []
        for _, take, values in carried:
            literals: list[cp_model.LiteralT] = [chosen[value] for value in _ordered(take.device, values)]
            model.cp.add_bool_or([*literals, ~take.literal])
            lonely += [] if values else [take.literal]
        add_at_most_one(model.cp, lonely)
        _tighten(model, carried, chosen)


def _tighten(model: Model, carried: Sequence[_Carried], chosen: dict[_Value, Literal]) -> None:
    """A request for one device takes at most one of those with a value: a clique says so better than implications."""
    cliques: dict[tuple[int, _Value], list[cp_model.LiteralT]] = defaultdict(list)
    for serving, take, found in carried:
        values = _ordered(take.device, found)
        if serving.choice.count == 1 and len(values) == 1:
            cliques[serving.choice.request, values[0]].append(take.literal)
    for (_, value), literals in cliques.items():
        if len(literals) > 1:
            model.cp.add_at_most_one([*literals, ~chosen[value]])


def distinct_attributes(model: Model, servings: Sequence[Serving]) -> None:
    """``distinctAttribute``: no value on two covered devices of the claim; what cannot be compared counts as one."""
    for constraint, covered in _constraints(model, servings, ConstraintKind.DISTINCT):
        carriers: dict[Scalar | None, list[Literal]] = defaultdict(list)
        for serving in covered:
            for take in serving.takes:
                for value in _values(model, constraint, serving, take) or [None]:
                    carriers[value].append(take.literal)
        for _, literals in sorted(carriers.items(), key=lambda item: repr(item[0])):
            add_at_most_one(model.cp, literals)


def _constraints(
    model: Model, servings: Sequence[Serving], kind: ConstraintKind
) -> Iterator[tuple[Constraint, list[Serving]]]:
    """The claim's constraints that two devices can meet under, with the servings that they cover."""
    first = servings[0]
    claim = model.problem.demands[first.demand].claims[first.choice.claim]
    for constraint, covered in binding_constraints(claim, (serving.choice for serving in servings)):
        if constraint.kind is kind:
            yield constraint, [each for each in servings if (each.choice.request, each.choice.alternative) in covered]


def _values(model: Model, constraint: Constraint, serving: Serving, take: Take) -> frozenset[Scalar]:
    return model.problem.devices[take.device].attributes[constraint.compared(serving.choice.spec.name)]


def _ordered(device: int, values: frozenset[Scalar]) -> list[_Value]:
    return sorted(values, key=repr) if values else [device]
