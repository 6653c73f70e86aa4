"""Attribute constraints over the devices of a claim, or of several (KEP-4381; over lists, KEP-5491)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, assert_never

from ortools.sat.python import cp_model

from dralloc.problem import Constraint, ConstraintKind, Scalar
from dralloc.problem.grouping import grouped
from dralloc.solve.optimum.interchangeable import binding_constraints
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.rows import Literal, add_at_most_one
from dralloc.solve.optimum.variables import Serving, Take

__all__ = ["attribute_constraints"]

_Value = Scalar | int
"""A value of an attribute, or the device that stands for what cannot be compared."""


class _Carried(NamedTuple):
    """A device that may serve a request, with the values that count there, and a literal that makes it count."""

    serving: Serving
    device: int
    values: frozenset[Scalar]
    literal: Literal


def attribute_constraints(model: Model) -> None:
    """The devices that a constraint covers agree in an attribute, or differ in it."""
    for constraint, carried in (*_within_claims(model), *_across_claims(model)):
        held = constraint.scope.held if constraint.scope else ()
        match constraint.kind:
            case ConstraintKind.MATCH:
                _equal(model, constraint, carried, held)
            case ConstraintKind.DISTINCT:
                _distinct(model, carried, held)
            case _:
                assert_never(constraint.kind)


def _equal(
    model: Model,
    constraint: Constraint,
    carried: Sequence[_Carried],
    held: Sequence[frozenset[Scalar]],
) -> None:
    """``matchAttribute``: one value that every covered device carries.

    A device without comparable value can only be alone.
    """
    if frozenset.intersection(*held, *(each.values for each in carried)):
        return
    distinct = dict.fromkeys(value for each in carried for value in _ordered(each))
    chosen = {
        value: model.cp.new_bool_var(f"match {constraint.attribute} {value}")
        for value in distinct
    }
    for value, literal in chosen.items():
        if held and value not in held[0]:
            model.cp.add(literal == 0)
    model.cp.add_at_most_one(chosen.values())
    for each in carried:
        literals: list[cp_model.LiteralT] = [chosen[value] for value in _ordered(each)]
        model.cp.add_bool_or([*literals, ~each.literal])
    add_at_most_one(model.cp, [each.literal for each in carried if not each.values])
    _tighten(model, carried, chosen)


def _tighten(
    model: Model, carried: Sequence[_Carried], chosen: Mapping[_Value, Literal]
) -> None:
    """A request for one device takes at most one of those with a value: a clique says so better than implications."""
    cliques = grouped(
        (
            (
                each.serving.demand,
                each.serving.choice.claim,
                each.serving.choice.request,
                *values,
            ),
            each.literal,
        )
        for each in carried
        if each.serving.choice.count == 1 and len(values := _ordered(each)) == 1
    )
    for (*_, value), literals in cliques.items():
        if len(literals) > 1:
            model.cp.add_at_most_one([*literals, ~chosen[value]])


def _distinct(
    model: Model, carried: Sequence[_Carried], held: Sequence[frozenset[Scalar]]
) -> None:
    """``distinctAttribute``: no value on two covered devices; what cannot be compared counts as one."""
    carriers = grouped(
        (value, each.literal) for each in carried for value in each.values or [None]
    )
    taken = {value for values in held for value in values or [None]}
    for value, literals in sorted(carriers.items(), key=lambda item: repr(item[0])):
        add_at_most_one(model.cp, literals)
        for literal in literals if value in taken else ():
            model.cp.add(literal == 0)


def _within_claims(model: Model) -> Iterator[tuple[Constraint, list[_Carried]]]:
    """The constraints of single claims that two devices can meet under, with what they cover."""
    for (demand, number), servings in model.variables.servings_by_claim().items():
        claim = model.problem.demands[demand].claims[number]
        for constraint, covered in binding_constraints(
            claim, (serving.choice for serving in servings)
        ):
            if not constraint.scope:
                mine = (
                    one
                    for one in servings
                    if (one.choice.request, one.choice.alternative) in covered
                )
                yield (
                    constraint,
                    [
                        _carried(constraint, each, take)
                        for each in mine
                        for take in each.takes
                    ],
                )


def _carried(constraint: Constraint, serving: Serving, take: Take) -> _Carried:
    attribute = constraint.compared(serving.choice.spec.name)
    return _Carried(serving, take.device, take.view.attributes[attribute], take.literal)


def _across_claims(model: Model) -> Iterator[tuple[Constraint, list[_Carried]]]:
    """The constraints over several claims, each in its form in the first of them, with what they cover."""
    demands = model.problem.demands
    uses = (
        (
            constraint.scope if constraint.scope.group else (demand, constraint.scope),
            (claim.key, (constraint, demand)),
        )
        for demand in model.variables.miss
        for claim in demands[demand].claims
        for constraint in claim.constraints
        if constraint.scope
    )
    spans = [grouped(each) for each in grouped(uses).values()]
    every = model.variables.every_serving() if spans else ()
    servings = grouped(
        (demands[serving.demand].claims[serving.choice.claim].key, serving)
        for serving in every
    )
    for span in spans:
        carried = [
            each
            for key, ((constraint, user), *others) in span.items()
            for serving in servings[key]
            if constraint.covers(serving.choice.spec.name)
            for each in _counted(
                model, constraint, serving, [user, *(other for _, other in others)]
            )
        ]
        if carried:
            yield next(iter(span.values()))[0][0], carried


def _counted(
    model: Model, constraint: Constraint, serving: Serving, users: Sequence[int]
) -> Iterator[_Carried]:
    """The devices of a serving, as they count where one of these demands is placed.

    A claim that several demands use can be granted with one that is not under the constraint.
    """
    own = serving.demand in users
    for take in serving.takes:
        literal = take.literal if own else model.cp.new_bool_var("")
        for user in () if own else users:
            model.cp.add_bool_or([~take.literal, model.variables.miss[user], literal])
        if constraint.compared(serving.choice.spec.name) in take.view.attributes:
            yield _carried(constraint, serving, take)._replace(literal=literal)
        else:
            model.cp.add(literal == 0)


def _ordered(each: _Carried) -> list[_Value]:
    return sorted(each.values, key=repr) if each.values else [each.device]
