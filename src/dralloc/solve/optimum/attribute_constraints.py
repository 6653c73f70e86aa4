"""Attribute constraints as rows, over the devices of a claim, or of several (KEP-4381; over lists, KEP-5491)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, assert_never

from dralloc.problem import Constraint, ConstraintKind, DeviceIndex, Scalar
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.solve.optimum.interchangeable import binding_constraints
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.rows import Literal, add_at_most_one
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.variables import Serving, Take

__all__ = ["attribute_constraints"]

_Value = Scalar | int
"""A value of an attribute, or the device that stands for what cannot be compared."""


class _Carried(NamedTuple):
    """Devices that may serve a request, with the values that count there, and what makes them count.

    Parameters
    ----------
    device
        One of them.
    literal
        If it is not 0, there are some of them.
    most
        How many there can be: more than one if they are counted.
    least
        How many there are if there are any.
    """

    serving: Serving
    device: DeviceIndex
    values: frozenset[Scalar]
    literal: Literal
    most: int = 1
    least: int = 1


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
    # All of them carry one value, and what is held does, too: whatever is taken agrees.
    if frozenset.intersection(*held, *(carrier.values for carrier in carried)):
        return
    distinct = dict.fromkeys(
        value for carrier in carried for value in _ordered(carrier)
    )
    chosen = {
        value: model.cp.new_bool_var(f"match {constraint.attribute} {value}")
        for value in distinct
    }
    # What is held has its values in common in one set (see `Scope.held`): the chosen value is one of these.
    for value, literal in chosen.items():
        if held and value not in held[0]:
            model.cp.add(literal == 0)
    model.cp.add_at_most_one(chosen.values())
    for carrier in carried:
        choices = [chosen[value] for value in _ordered(carrier)]
        if carrier.most == 1:
            model.cp.add_bool_or([*choices, ~carrier.literal])
        else:
            model.cp.add(
                carrier.literal
                <= carrier.most * cp_model.LinearExpr.sum(choices)
            )
    # A device without value stands for a value itself, on which two shares of it would agree.
    add_at_most_one(
        model.cp, [carrier.literal for carrier in carried if not carrier.values]
    )
    _tighten(model, carried, chosen)


def _tighten(
    model: Model, carried: Sequence[_Carried], chosen: Mapping[_Value, Literal]
) -> None:
    """A request for one device takes at most one of those with a value: a clique says so better than implications."""
    cliques = grouped(
        (
            (
                carrier.serving.demand,
                carrier.serving.choice.claim,
                carrier.serving.choice.request,
                *values,
            ),
            carrier.literal,
        )
        for carrier in carried
        if carrier.serving.choice.count == 1
        and len(values := _ordered(carrier)) == 1
    )
    for (*_, value), literals in cliques.items():
        if len(literals) > 1:
            model.cp.add_at_most_one([*literals, ~chosen[value]])


def _distinct(
    model: Model, carried: Sequence[_Carried], held: Sequence[frozenset[Scalar]]
) -> None:
    """``distinctAttribute``: no value on two covered devices; what cannot be compared counts as one."""
    carriers = grouped(
        (value, carrier.literal)
        for carrier in carried
        for value in carrier.values or [None]
    )
    for carrier in carried:
        # Devices of a group do not differ.
        if carrier.least > 1:
            model.cp.add(carrier.literal == 0)
    held_values = {value for values in held for value in values or [None]}
    for value, literals in sorted(
        carriers.items(), key=lambda item: repr(item[0])
    ):
        add_at_most_one(model.cp, literals)
        for literal in literals if value in held_values else ():
            model.cp.add(literal == 0)


def _within_claims(model: Model) -> Iterator[tuple[Constraint, list[_Carried]]]:
    """The constraints of single claims that two devices can meet under, with what they cover."""
    for (
        demand,
        claim_index,
    ), servings in model.variables.servings_by_claim().items():
        claim = model.problem.demands[demand].claims[claim_index]
        choices = (serving.choice for serving in servings)
        for constraint, covered in binding_constraints(claim, choices):
            if constraint.scope:
                continue
            carried: list[_Carried] = []
            for serving in servings:
                choice = serving.choice
                if (choice.request, choice.alternative) in covered:
                    carried += _carriers(model, constraint, serving)
            yield constraint, carried


def _carriers(
    model: Model, constraint: Constraint, serving: Serving
) -> Iterator[_Carried]:
    """The devices of a serving, and the groups that it counts devices of."""
    for take in serving.takes:
        yield _carried(constraint, serving, take)
    for group, variables, times, _ in serving.group_counts:
        takes = model.variables.device_groups[group].takes
        for variable in variables:
            most = 1 if variable.is_boolean else variable.domain.max()
            carrier = _carried(constraint, serving, takes[0])
            yield carrier._replace(literal=variable, most=most, least=times)


def _carried(constraint: Constraint, serving: Serving, take: Take) -> _Carried:
    attribute = constraint.compared(serving.choice.spec.name)
    return _Carried(
        serving, take.device, take.view.attributes[attribute], take.literal
    )


def _across_claims(model: Model) -> Iterator[tuple[Constraint, list[_Carried]]]:
    """The constraints over several claims, each in its form in the first of them, with what they cover."""
    demands = model.problem.demands
    # A scope without a group ends at its demand: in another demand the same scope is another span.
    uses = (
        (
            constraint.scope
            if constraint.scope.group
            else (demand, constraint.scope),
            (claim.key, (constraint, demand)),
        )
        for demand in model.variables.miss
        for claim in demands[demand].claims
        for constraint in claim.constraints
        if constraint.scope
    )
    # By span, its claims, each with the constraint as it is there and the demands that list the claim.
    spans = [grouped(span_uses) for span_uses in grouped(uses).values()]
    if not spans:
        return
    servings = grouped(
        (demands[serving.demand].claims[serving.choice.claim].key, serving)
        for serving in model.variables.every_serving()
    )
    for span in spans:
        carried: list[_Carried] = []
        for key, claim_uses in span.items():
            constraint, _ = claim_uses[0]
            users = [user for _, user in claim_uses]
            for serving in servings[key]:
                if constraint.covers(serving.choice.spec.name):
                    carried += _counted(model, constraint, serving, users)
        if carried:
            first_claim_uses = next(iter(span.values()))
            yield first_claim_uses[0][0], carried


def _counted(
    model: Model,
    constraint: Constraint,
    serving: Serving,
    users: Sequence[DemandIndex],
) -> Iterator[_Carried]:
    """The devices of a serving, as they count where one of these demands is placed.

    A claim that several demands use can be granted with one that is not under the constraint.
    """
    is_user = serving.demand in users
    for take in serving.takes:
        literal = take.literal if is_user else model.cp.new_bool_var("")
        for user in () if is_user else users:
            model.cp.add_bool_or(
                [~take.literal, model.variables.miss[user], literal]
            )
        if (
            constraint.compared(serving.choice.spec.name)
            in take.view.attributes
        ):
            yield _carried(constraint, serving, take)._replace(literal=literal)
        else:
            model.cp.add(literal == 0)


def _ordered(carrier: _Carried) -> list[_Value]:
    """The values of a device in an order of their own: models are the same in each run."""
    if carrier.values:
        return sorted(carrier.values, key=repr)
    return [carrier.device]
