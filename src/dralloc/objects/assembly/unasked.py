"""Why a pod of the input is no part of the question."""

from __future__ import annotations

from enum import StrEnum

from dralloc.objects.choices import Include

__all__ = ["Unasked"]


class Unasked(StrEnum):
    """The reason why a pod is not to be placed, in words that follow its name; what says the least comes last."""

    GATED = "has scheduling gates"
    SUSPENDED = "belongs to a suspended owner"
    PLUGIN = "asks only for extended resources of device plugins"
    ALLOCATED = "has all of its claims allocated"
    BOUND = "is bound to a node"
    FINISHED = "has run to its end"
    DELETED = "is being deleted"
    NO_DEVICE = "asks for no device"

    @property
    def include(self) -> Include | None:
        """The inclusion that makes such a pod part of the question."""
        return {
            Unasked.GATED: Include.GATED,
            Unasked.SUSPENDED: Include.SUSPENDED,
        }.get(self)

    @property
    def telling(self) -> bool:
        """Whether it is worth the names of the pods."""
        return self in {Unasked.GATED, Unasked.SUSPENDED, Unasked.PLUGIN}
