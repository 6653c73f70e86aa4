"""One point of a study: a problem answered in some modes, as rows of plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dralloc.check import check
from dralloc.lab.study.scenario import Scenario
from dralloc.objects.choices import Backend, Choices
from dralloc.objects.errors import ChoiceError, DrallocError
from dralloc.problem import Problem
from dralloc.problem.solution import Solution
from dralloc.show.metrics import measure
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve
from dralloc.solve.policies import POLICIES, Policy, place, policy_name
from dralloc.solve.timing import phase

__all__ = ["MODES", "OPTIMAL", "Row", "Trial", "known_modes"]

OPTIMAL: Final = "optimal"

MODES: Final = (*POLICIES, OPTIMAL)
"""All modes with a name: the policies and the optimum."""

Row = dict[str, Any]


def known_modes(modes: Sequence[str | Policy]) -> Mapping[str, str | Policy]:
    """The modes by name, each once.

    Raises
    ------
    ChoiceError
        One of them does not exist.
    DrallocError
        Two policies have the same name.
    """
    named: dict[str, str | Policy] = {}
    for mode in modes:
        name = policy_name(mode)
        if isinstance(mode, str) and name not in MODES:
            raise ChoiceError("mode", name, MODES)
        if named.setdefault(name, mode) is not mode and named[name] != mode:
            raise DrallocError(
                f"modes: several policies are called {name}: give each a name of its own"
            )
    return named


@dataclass(frozen=True)
class Trial:
    """One point of a study, with the modes that are left to do. The seed of the optimum is that of the point."""

    scenario: Scenario
    seed: int
    demand: float
    modes: Mapping[str, str | Policy]
    choices: Choices

    def run(self) -> list[Row]:
        """Answer in every mode; the checker has accepted the answers."""
        shared: dict[str, float] = {}
        with phase(shared, "compile"):
            problem = self.scenario.problem(self.seed, self.demand, self.choices)
        return [self._row(problem, name, dict(shared)) for name in self.modes]

    def _row(self, problem: Problem, mode: str, seconds: dict[str, float]) -> Row:
        with phase(seconds, "solve"):
            answer = self._answer(problem, mode)
        with phase(seconds, "check"):
            check(problem, answer)
        figures = measure(problem, answer)
        first = answer.tiers[0] if answer.tiers else None
        return {
            "seed": self.seed,
            "demand": self.demand,
            "mode": mode,
            "placed": figures.placed,
            "total": len(problem.demands),
            "weight": figures.weight,
            "status": answer.status.value,
            "bound": first.bound if first else None,
            "gap": max((tier.gap for tier in answer.tiers), default=None),
            "seconds": seconds,
            "utilisation": {
                row.title: row.share for row in figures.utilisation if row.total
            },
        }

    def _answer(self, problem: Problem, mode: str) -> Solution:
        if mode != OPTIMAL:
            return place(problem, self.modes[mode])
        options = replace(self.choices, seed=self.seed, jobs=1, backend=Backend.LOKY)
        return solve(problem, options, hint=first_fit(problem))
