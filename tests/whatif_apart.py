"""Demands as wishes are: each with claims of its own."""

from __future__ import annotations

from dataclasses import replace

from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand

__all__ = ["apart"]


def apart(demand: Demand, demand_index: int) -> Demand:
    """The demand with claims that no other demand lists."""
    claims = tuple(
        replace(
            claim,
            key=ClaimKey(
                claim.key.namespace, f"{claim.key.name}/{demand_index}"
            ),
        )
        for claim in demand.claims
    )
    return replace(demand, claims=claims)
