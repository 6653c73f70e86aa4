"""Demands that are placed together, in the order in which first fit takes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dralloc.problem import Demand

__all__ = ["gangs"]


def gangs(demands: Iterable[Demand]) -> Iterable[Sequence[int]]:
    """The indices of the demands by gang or tree of gangs, each where its first member stands; most are alone."""
    found: dict[object, list[int]] = {}
    for number, demand in enumerate(demands):
        found.setdefault(demand.placed_with or number, []).append(number)
    return found.values()
