"""The independent checker: whether an answer keeps every rule. Its two parts share nothing.

- `dralloc.check.problem`: the rules of the problem that the searches answer;
- `dralloc.check.objects`: the rules of the API's objects about pods, nodes and groups, without a look at the problem.
"""

from __future__ import annotations

from collections.abc import Sequence

from dralloc.check import objects
from dralloc.check.objects import Binding, Promise
from dralloc.check.problem import violations
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import CheckError
from dralloc.problem import Problem
from dralloc.problem.solution import Solution

__all__ = ["check", "check_objects", "violations"]


def check(problem: Problem, solution: Solution) -> None:
    """Make sure that a solution keeps every rule of the problem.

    Raises
    ------
    CheckError
        It does not; the message has one line per violation.
    """
    _refuse(violations(problem, solution))


def check_objects(
    cluster: Cluster, bindings: Sequence[Binding], promise: Promise
) -> None:
    """Make sure that bindings keep every rule of the cluster's pods, nodes and groups, as it is promised.

    Raises
    ------
    CheckError
        They do not; the message has one line per violation.
    """
    _refuse(objects.violations(cluster, bindings, promise))


def _refuse(violations_found: Sequence[str]) -> None:
    if violations_found:
        raise CheckError("\n".join(violations_found))
