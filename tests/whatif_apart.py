"""Demands as wishes are: each with claims of its own."""

from __future__ import annotations

from dataclasses import replace

from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand

__all__ = ["apart"]


def apart(demand: Demand, number: int) -> Demand:
    """The demand with claims that no other demand lists."""
    claims = tuple(
        replace(
            one, key=ClaimKey(one.key.namespace, f"{one.key.name}/{number}")
        )
        for one in demand.claims
    )
    return replace(demand, claims=claims)
