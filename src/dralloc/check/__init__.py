"""The independent checker: whether an answer keeps every rule.

- `dralloc.check.problem`: the rules of the problem that the searches answer.
"""

from __future__ import annotations

from dralloc.check.problem import violations
from dralloc.errors import CheckError
from dralloc.problem import Problem
from dralloc.solution import Solution

__all__ = ["check", "violations"]


def check(problem: Problem, solution: Solution) -> None:
    """Make sure that a solution keeps every rule of the problem.

    Raises
    ------
    CheckError
        It does not; the message has one line per violation.
    """
    found = violations(problem, solution)
    if found:
        raise CheckError("\n".join(found))
