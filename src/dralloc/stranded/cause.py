"""What strands capacity, and in which order that is found out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

__all__ = ["LIFTED_IN_ORDER", "Cause"]


class Cause(StrEnum):
    """Why free capacity cannot be used by the claims of a mix.

    ``NODE``: its node is cordoned. ``TAINT``: a taint of its device is not tolerated. ``ALIGNMENT``: constraints of the
    claims over attributes (KEP-4381). ``POLICY``: amounts are rounded by request policies, or refused (KEP-5075).
    ``GEOMETRY``: what is free does not lie where a device that is asked for could begin. ``COUNTER``: something else
    of the same device is short (KEP-4815). ``SIZE``: no claim asks for so little, or for so few devices together on
    one node. ``UNWANTED``: no claim of the mix selects such a device at all.
    """

    NODE = "cordoned node"
    TAINT = "taint"
    ALIGNMENT = "attribute alignment"
    POLICY = "share policy"
    GEOMETRY = "slice geometry"
    COUNTER = "counter"
    SIZE = "size"
    UNWANTED = "not asked for"


LIFTED_IN_ORDER: Final[Sequence[Cause]] = (
    Cause.NODE,
    Cause.TAINT,
    Cause.ALIGNMENT,
    Cause.POLICY,
    Cause.GEOMETRY,
    Cause.COUNTER,
)
"""Rules that are lifted one after the other: each is charged with what can be used only since it does not count."""
