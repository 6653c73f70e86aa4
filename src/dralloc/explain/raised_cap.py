"""Suggestions to raise caps, by the least that is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from dralloc.budget import BudgetKey
from dralloc.explain.caps import charged
from dralloc.explain.change import Change
from dralloc.explain.members import Member, MemberKind
from dralloc.explain.oracle import Certificate, FeasibilityOracle
from dralloc.explain.suggestion import Cost, Suggestion
from dralloc.report import amount

__all__ = ["least_raises", "raised_caps"]

_Answer = TypeVar("_Answer")
_Used = Mapping[BudgetKey, int]
Attempt = Callable[[Mapping[BudgetKey, int | None]], tuple[_Used, _Answer] | None]
"""What an answer under some caps uses of each, and the answer; None as a cap means without it."""


def raised_caps(oracle: FeasibilityOracle, members: Sequence[Member]) -> Iterator[Suggestion]:
    """A cap of the conflict, if it is enough to raise it; if not, all caps of its namespace together."""
    caps = [key for member in members if member.kind is MemberKind.CAP for key in sorted(member.without.caps)]
    namespaces = {key.namespace for key in caps}
    before = oracle.snapshot.caps.most

    def attempt(levels: Mapping[BudgetKey, int | None]) -> tuple[_Used, Certificate] | None:
        lifted = frozenset(key for key, level in levels.items() if level is None)
        raised = {key: level for key, level in levels.items() if level is not None}
        certificate = oracle.admit(Change(caps=lifted, raised=raised))
        return None if certificate is None else (_needed(oracle, certificate), certificate)

    together = [key for key in before if key.namespace in namespaces]
    return least_raises(caps, together, before, attempt, lambda certificate: oracle.fits_on(certificate.node))


def least_raises(
    single: Sequence[BudgetKey],
    together: Sequence[BudgetKey],
    before: Mapping[BudgetKey, int],
    attempt: Attempt[_Answer],
    outcome: Callable[[_Answer], str],
) -> Iterator[Suggestion]:
    """Every single cap that it is enough to raise; if there is none, some caps together.

    Parameters
    ----------
    before
        What the caps are now, in nanos.
    outcome
        What happens with an answer, in words.
    """
    found = [one for key in single if (one := _least_raise([key], before, attempt))]
    if not found and len(together) > 1:
        found = [one for one in [_least_raise(together, before, attempt)] if one]
    for raised, answer in found:
        levels = (
            f"{key.namespace}={key.resource} from {amount(before[key])} to {amount(level)}"
            for key, level in raised.items()
        )
        text = f"raise cap {', '.join(levels)}"
        yield Suggestion(text, outcome(answer), Cost.CAP, len(raised), Change(raised=raised))


def _least_raise(
    caps: Sequence[BudgetKey], before: Mapping[BudgetKey, int], attempt: Attempt[_Answer]
) -> tuple[dict[BudgetKey, int], _Answer] | None:
    """Raise caps to what some answer needs, then lower one after the other as long as there is an answer.

    Returns the caps that have to be raised with what they are raised to, and the answer; None if caps do not help.
    """
    found = attempt(dict.fromkeys(caps))
    if found is None:
        return None
    used, answer = found
    levels = {cap: max(before[cap], used[cap]) for cap in caps}
    for cap in caps:
        while levels[cap] > before[cap]:
            found = attempt({**levels, cap: levels[cap] - 1})
            if found is None:
                break
            used, answer = found
            levels[cap] = max(before[cap], used[cap])
    raised = {cap: level for cap, level in levels.items() if level > before[cap]}
    return (raised, answer) if raised else None


def _needed(oracle: FeasibilityOracle, certificate: Certificate) -> _Used:
    """What namespaces use with the answer."""
    budgets = charged(oracle.snapshot.caps.budgets, oracle.alone(Change()), [certificate.placement])
    return {one.key: one.used for one in budgets}
