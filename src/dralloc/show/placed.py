"""Who is placed, and who is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dralloc.objects.api import AllocationResult
from dralloc.objects.names import ClaimKey

__all__ = ["Placed", "Unplaced"]


class Placed(NamedTuple):
    """A demand with its node, and what each of its claims gets there."""

    demand: ClaimKey
    node: str
    claims: Mapping[ClaimKey, AllocationResult]


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A pod, or a claim that no pod uses, that got nothing: its claims, and the error if there was one.

    ``gang`` is the gang that it could only be placed with and that is not admitted, ``capped`` whether its namespace
    has a cap that counts.
    """

    key: ClaimKey
    claims: tuple[ClaimKey, ...]
    error: str = ""
    gang: str = ""
    capped: bool = False

    @property
    def reason(self) -> str:
        """Why, in words."""
        within = " within the cap of its namespace" if self.capped else ""
        fits = (
            f"gang {self.gang} does not fit as a whole"
            if self.gang
            else "fits on no node"
        )
        return self.error or f"{fits}{within}"
