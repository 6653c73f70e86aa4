"""An earlier answer to go on from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dralloc.check import violations
from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.compiler.worth import Worth
from dralloc.objects.names import ClaimKey
from dralloc.problem import NodeIndex, Problem, numbered
from dralloc.problem.solution import Placement, Solution, Tier, translated
from dralloc.show.plan import Plan
from dralloc.solve.first_fit import completed
from dralloc.solve.optimum import Earlier

__all__ = ["ContinuedAnswer", "continued_answer"]

_CHANGED: Final = 0.1
"""If more of those asked about are not the same, the earlier gap says nothing about this question."""

_GOOD: Final = 0.25
"""An answer with a larger gap is none that another should be as good as."""


@dataclass(frozen=True, slots=True)
class ContinuedAnswer:
    """An earlier answer in the numbers of a problem.

    Parameters
    ----------
    plan
        The answer as it was.
    solution
        What is left of it, with others where there is room.
    changed_nodes
        Where somebody went or came.
    changed
        The part of those asked about who were not asked about before, or the other way round.
    """

    plan: Plan
    solution: Solution
    changed_nodes: Collection[NodeIndex]
    changed: float

    @property
    def is_similar(self) -> bool:
        """Whether hardly anything is asked about that was not asked about before, and the other way round."""
        return self.changed <= _CHANGED

    @property
    def aims(self) -> Mapping[str, float]:
        """By tier, the smallest gap from the last search from nothing on.

        What a small change may cost is added to these and not to the last gap: a hundred small changes would add up.
        """
        gaps = {tier.name: tier.gap for tier in self.plan.tiers}
        return {
            name: min(gap, self.plan.solution.aims.get(name, gap))
            for name, gap in gaps.items()
        }

    def earlier(self, worth: Worth) -> Earlier:
        """Return the earlier answer as the search takes it, given the weights of the problem now."""
        aims = self.aims

        def is_enough(weight: Tier) -> bool:
            levels = worth.tiers((weight,))
            gaps = [aims.get(level.name, 0.0) for level in levels]
            # Where nothing was left to prove, the search ends by itself with what comes after the weight.
            is_comparable = self.is_similar and 0 < max(gaps) <= _GOOD
            # Who is new may all be without a place, which costs as much as there are of them.
            return is_comparable and all(
                level.gap <= gap + self.changed
                for level, gap in zip(levels, gaps, strict=True)
            )

        return Earlier(self.plan.solution.prices, is_enough)


def continued_answer(
    plan: Plan, compiled: CompiledCluster
) -> ContinuedAnswer | None:
    """Return what is left of an answer, and who finds room beside that; None if it breaks a rule."""
    problem, before = compiled.whole, plan.compiled.problem
    # The answer is about devices alone. What its pods take of nodes beside them is added in the numbers of the problem
    # now.
    carried = Solution(
        tuple(translated(before, plan.solution.placements, compiled.problem))
    )
    placements = compiled.of_whole(carried).placements
    solution = completed(problem, placements)
    # First fit takes no notice of caps, so they are not asked about: what they do not allow is left out where the
    # search starts.
    if violations(replace(problem, budgets=()), solution):
        return None
    # By name, as both problems number nodes and demands on their own. A pod that moved changes two nodes.
    homes_before = _homes(before, plan.solution.placements)
    homes_now = _homes(problem, solution.placements)
    changed = {node for _, node in homes_before ^ homes_now}
    asked = {demand.key for demand in problem.demands}
    asked_before = {demand.key for demand in before.demands}
    same = len(asked & asked_before)
    return ContinuedAnswer(
        plan,
        solution,
        [
            index
            for index, node in numbered(problem.nodes)
            if node.name in changed
        ],
        1 - same / max(len(asked), len(asked_before), 1),
    )


def _homes(
    problem: Problem, placements: Iterable[Placement]
) -> set[tuple[ClaimKey, str]]:
    """Return the node's name for each placed pod."""
    return {
        (
            problem.demands[placement.demand].key,
            problem.nodes[placement.node].name,
        )
        for placement in placements
    }
