"""Exceptions of the allocation mode ``All`` as rows: devices that other demands may fill (KEP-4381, KEP-5075)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dralloc.problem.indices import grouped
from dralloc.solve.optimum.candidates import Candidate
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.rows import Literal, Term, add_at_least
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.variables import Serving

__all__ = ["all_but_full"]

_Consumed = tuple[int, Term]
"""What a take consumes, with its demand."""


def all_but_full(model: Model) -> None:
    """``All`` takes every matching device, at least one; a full one is the exception.

    A shareable device is full if the other demands leave too little of a capacity for what the request would take:
    which devices "all" are is settled before the demand itself takes any. What has admin access does not count.
    """
    consumption = grouped(_consumption(model))
    for serving in model.variables.every_serving():
        choice = serving.choice
        if not choice.loose and not choice.blocked:
            continue
        literal_of = {take.device: take.literal for take in serving.takes}
        # What can be full is taken or full; what cannot be taken has to be full.
        for candidate in choice.loose:
            literal = literal_of[candidate.device]
            model.cp.add_implication(literal, serving.literal)
            model.cp.add_bool_or(
                [
                    literal,
                    *_full(model, serving, candidate, consumption),
                    ~serving.literal,
                ]
            )
        for candidate in choice.blocked:
            model.cp.add_bool_or(
                [
                    *_full(model, serving, candidate, consumption),
                    ~serving.literal,
                ]
            )
        # Where all could be left out, one has to be taken.
        if len(choice.loose) == len(literal_of):
            literals: list[cp_model.LiteralT] = list(literal_of.values())
            model.cp.add_bool_or([*literals, ~serving.literal])


def _consumption(model: Model) -> Iterator[tuple[tuple[int, str], _Consumed]]:
    """By slot and capacity: what each take without admin access consumes."""
    for serving in model.variables.every_serving():
        for take in serving.takes:
            for name, amount in () if take.admin else take.charge.capacity:
                yield (
                    (take.view.slot, name),
                    (serving.demand, (take.literal, amount)),
                )


def _full(
    model: Model,
    serving: Serving,
    candidate: Candidate,
    consumption: Mapping[tuple[int, str], list[_Consumed]],
) -> list[Literal]:
    """Return a literal for each capacity that can become too small; if it is true, the capacity is too small."""
    view = model.problem.devices[candidate.device]
    full_literals = []
    for name, amount in candidate.charge.capacity:
        terms = [
            term
            for owner, term in consumption[view.slot, name]
            if owner != serving.demand
        ]
        consumed = model.problem.usage.consumed.get(view.slot, {}).get(name, 0)
        # With so much in use, what the request would take does not fit any more.
        least = view.capacity[name].total - consumed - amount + 1
        if sum(amount for _, amount in terms) >= least:
            full = model.cp.new_bool_var(f"full {view.id} {name}")
            row_name = f"device {view.id}: capacity {name}"
            add_at_least(model.cp, terms, least, row_name, full)
            full_literals.append(full)
    return full_literals
