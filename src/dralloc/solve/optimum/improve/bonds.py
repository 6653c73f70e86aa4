"""Which demands a search can only decide together, and which have to stand by while others move."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set

from networkx.utils import UnionFind

from dralloc.problem import Problem
from dralloc.problem.grouping import grouped
from dralloc.problem.inter_pod import InterPodRule

__all__ = ["Bonds"]


class Bonds:
    """What ties demands to each other beyond the nodes that they share.

    Parameters
    ----------
    together
        Further demands that have to be decided together.

    Attributes
    ----------
    blocks
        The demands in blocks: members of a gang or of a tree of gangs, users of a claim, and demands with a constraint
        in common are in the same block, and are freed together.
    block_of
        By demand, the index of its block.
    with_role
        By rule between pods, the demands that have a role in it. Those that stay where they are have to be known when
        others move.
    """

    def __init__(
        self, problem: Problem, together: Iterable[Sequence[int]] = ()
    ) -> None:
        users = Tally(
            claim.key for demand in problem.demands for claim in demand.claims
        )
        forest: UnionFind[Hashable] = UnionFind()
        for number, demand in enumerate(problem.demands):
            shared_claims = [
                ("claim", claim.key) for claim in demand.claims if users[claim.key] > 1
            ]
            scopes = [("scope", scope) for scope in demand.group_scopes]
            gang = [("gang", demand.placed_with)] if demand.placed_with else []
            forest.union(("demand", number), *shared_claims, *scopes, *gang)
        for members in together:
            forest.union(*(("demand", number) for number in members))
        blocks = grouped(
            (forest["demand", number], number) for number in range(len(problem.demands))
        )
        self.blocks: Sequence[tuple[int, ...]] = [
            tuple(block) for block in blocks.values()
        ]
        self.block_of: Mapping[int, int] = {
            demand: index for index, block in enumerate(self.blocks) for demand in block
        }
        self.with_role: Mapping[InterPodRule, Sequence[int]] = grouped(_roles(problem))
        self._problem = problem
        self._allowed: dict[int, frozenset[int]] = {}

    def candidates(self, demand: int, nodes: Set[int]) -> Set[int]:
        """Those of the nodes that the demand may go to."""
        allowed = self._problem.demands[demand].nodes
        if allowed is None:
            return nodes
        # Demands with the same selection of nodes most often have the same object.
        if id(allowed) not in self._allowed:
            self._allowed[id(allowed)] = frozenset(allowed)
        return nodes & self._allowed[id(allowed)]


def _roles(problem: Problem) -> Iterator[tuple[InterPodRule, int]]:
    for number, demand in enumerate(problem.demands):
        for role in demand.roles:
            yield role.rule, number
