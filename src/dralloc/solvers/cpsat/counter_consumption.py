"""Counter consumption: the takes of a model by counter, and by slot and claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dralloc.solvers.cpsat.model import Model
from dralloc.solvers.cpsat.rows import Literal, Term
from dralloc.solvers.cpsat.variables import Serving, Take

__all__ = ["counter_terms", "dedicated_users", "first_users", "is_shareable", "servings_by_claim", "takes_by_slot"]


def takes_by_slot(model: Model) -> Iterator[tuple[int, Take]]:
    """Every take with the slot of its device, in order."""
    for take in model.variables.takes():
        yield model.problem.devices[take.device].slot, take


def is_shareable(model: Model, take: Take) -> bool:
    """Whether the device allows multiple allocations."""
    return model.problem.devices[take.device].shareable


def servings_by_claim(model: Model) -> dict[tuple[int, int], list[Serving]]:
    """The servings of each claim, by demand and index of the claim in it."""
    claims: dict[tuple[int, int], list[Serving]] = defaultdict(list)
    for serving in model.variables.every_serving():
        claims[serving.demand, serving.choice.claim].append(serving)
    return claims


def dedicated_users(model: Model) -> dict[int, list[Literal]]:
    """By slot: the uses of a dedicated device; admin access is none."""
    users: dict[int, list[Literal]] = defaultdict(list)
    for slot, take in takes_by_slot(model):
        if not take.admin and not is_shareable(model, take):
            users[slot].append(take.literal)
    return users


def first_users(model: Model) -> Iterator[tuple[int, Literal]]:
    """By device: a literal that puts its version in force, which is a dedicated use, or the first of its shares.

    While a pool is updated, only one of the generations that nodes see has counters, and a grant consumes only the
    counters of the version that its node sees (upstream behaviour): there is an order in which those grants come first.
    """
    for _, take in takes_by_slot(model):
        if not take.admin and not is_shareable(model, take):
            yield take.device, take.literal
    yield from model.variables.in_force.items()


def counter_terms(model: Model) -> dict[int, list[Term]]:
    """The consumption of each counter: by a device in use (KEP-4815), and by each allocation on request (KEP-5941)."""
    drawn: dict[int, list[Term]] = defaultdict(list)
    for _, take in takes_by_slot(model):
        if not take.admin:
            for counter, amount in take.charge.counters:
                drawn[counter].append((take.literal, amount))
    for device, user in first_users(model):
        for counter, amount in model.problem.devices[device].consumes:
            drawn[counter].append((model.variables.consumed.get((device, counter), user), amount))
    return dict(sorted(drawn.items()))
