"""Why a pod of the input is no part of the question, and which of these pods can be asked about all the same."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from dralloc.errors import DrallocError

__all__ = ["Include", "Unasked"]


class Include(StrEnum):
    """Pods that Kubernetes does not schedule yet, to be planned for as if it did."""

    GATED = "gated"
    SUSPENDED = "suspended"

    @classmethod
    def parse(cls, given: str | Iterable[str]) -> frozenset[Include]:
        """Read one or several of them; a text may name several, with commas.

        Raises
        ------
        DrallocError
            Something else is named.
        """
        names = [name.strip() for text in ([given] if isinstance(given, str) else given) for name in text.split(",")]
        known = ", ".join(cls)
        for name in names:
            if name and name not in set(cls):
                raise DrallocError(f'include: "{name}" is not one of {known}')
        return frozenset(cls(name) for name in names if name)


class Unasked(StrEnum):
    """Why a pod is not to be placed, in words that follow its name."""

    GATED = "has scheduling gates"
    SUSPENDED = "belongs to a suspended owner"
    PLUGIN = "asks only for extended resources that no DeviceClass offers"
    ALLOCATED = "has all of its claims allocated"
    BOUND = "is bound to a node"
    FINISHED = "has run to its end"
    DELETED = "is being deleted"
    NO_DEVICE = "asks for no device"

    @property
    def include(self) -> Include | None:
        """What has to be included for such a pod to be asked about."""
        return {Unasked.GATED: Include.GATED, Unasked.SUSPENDED: Include.SUSPENDED}.get(self)
