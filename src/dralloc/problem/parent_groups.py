"""Groups of groups: a tree whose leaves are gangs (KEP-6012).

A gang is admitted if as many of its demands are placed as it needs. A group of groups is admitted if enough of its
children are, and only then may anything below it be placed. So all groups above an admitted gang are admitted, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dralloc.problem.inter_pod import OneDomain

__all__ = ["ParentGroup"]


@dataclass(frozen=True, slots=True, eq=False)
class ParentGroup:
    """A group of groups.

    Parameters
    ----------
    quorum
        How many more of its children must be admitted for any to be.
    settled
        Names of the children that do not count for it, as pods that run are enough for them.
    parent
        The group that it is a child of itself.
    rule
        What its demands carry, if all of them are to be in one domain.
    """

    name: str
    quorum: int
    settled: frozenset[str] = frozenset()
    parent: ParentGroup | None = None
    rule: OneDomain | None = None

    def upwards(self) -> Iterator[ParentGroup]:
        """The group and all above it, up to the root."""
        group: ParentGroup | None = self
        while group is not None:
            yield group
            group = group.parent

    @property
    def root(self) -> ParentGroup:
        """The uppermost group."""
        *_, root = self.upwards()
        return root
