"""One point of a study: a problem answered in some modes, as rows of plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dralloc.ask.checked_answers import CheckedAnswers
from dralloc.lab.study.scenarios import Scenario
from dralloc.objects.choices import Backend, Choices, Mode
from dralloc.objects.errors import ChoiceError, DrallocError
from dralloc.objects.value_kinds import FUNCTION
from dralloc.solve.policies import POLICIES, Policy, policy_name, way_of

__all__ = ["MODES", "Row", "Trial", "known_modes"]

MODES: Final = (*POLICIES, Mode.SCHEDULER.value, Mode.OPTIMAL.value)
"""All modes with a name: the policies, kube-scheduler and the optimum."""

Row = dict[str, Any]


def known_modes(modes: Sequence[str | Policy]) -> Mapping[str, str | Policy]:
    """Return the modes by name, each once.

    Raises
    ------
    ChoiceError
        One of them does not exist.
    DrallocError
        There is none, or two policies have the same name.
    """
    if not modes:
        raise DrallocError("modes: a study needs at least one")
    named: dict[str, str | Policy] = {}
    for mode in modes:
        if not isinstance(mode, str):
            FUNCTION.require("modes", mode)
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
        choices = replace(
            self.choices, seed=self.seed, jobs=1, backend=Backend.LOKY
        )
        ways = {name: way_of(mode) for name, mode in self.modes.items()}
        cluster = self.scenario.at(self.seed, self.demand, choices)
        answers = CheckedAnswers(cluster, choices, ways.values())
        return [self._row(name, answers, way) for name, way in ways.items()]

    def _row(
        self, name: str, answers: CheckedAnswers, way: Mode | str | Policy
    ) -> Row:
        before = sum(answers.timings.values())
        checked = answers.timings.get("check", 0.0)
        plan = answers.by(way)
        check = answers.timings["check"] - checked
        # Seconds add up over all modes. What several build on, such as first fit, counts where it is asked for first.
        solve = sum(answers.timings.values()) - before - check
        figures = plan.metrics
        return {
            "seed": self.seed,
            "demand": self.demand,
            "mode": name,
            "placed": figures.placed,
            "total": len(plan.compiled.problem.demands),
            "weight": figures.weight,
            "status": plan.status.value,
            "bound": plan.bound,
            "gap": max((tier.gap for tier in plan.tiers), default=None),
            "seconds": {
                "compile": answers.timings["compile"],
                "solve": solve,
                "check": check,
            },
            "utilisation": {
                row.title: row.share for row in figures.utilisation if row.total
            },
        }
