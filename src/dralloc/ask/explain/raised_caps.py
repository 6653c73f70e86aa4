"""Suggestions to raise caps, by the least that is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dralloc.ask.explain.changes import Change, Cost, Suggestion
from dralloc.ask.explain.conflict_members import Member, MemberKind
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.snapshot import Caps
from dralloc.objects.report import amount
from dralloc.objects.user_rules import BudgetKey

__all__ = ["least_raises", "raised_caps"]

_Attempt = Callable[
    [Mapping[BudgetKey, int | None]], tuple[Mapping[BudgetKey, int], str] | None
]
"""What an answer under some caps uses of each, and what it comes to, in words; None as a cap means without it."""


def raised_caps(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> Iterator[Suggestion]:
    """A cap of the conflict, if it is enough to raise it; if not, all caps of its namespace together."""
    caps = oracle.snapshot.caps

    def attempt(
        levels: Mapping[BudgetKey, int | None],
    ) -> tuple[Mapping[BudgetKey, int], str] | None:
        # A level of None lifts the cap. Either way the demand asks for the same, so the unchanged one tells what is
        # used.
        lifted = frozenset(
            key for key, level in levels.items() if level is None
        )
        raised = {
            key: level for key, level in levels.items() if level is not None
        }
        certificate = oracle.admit(Change(caps=lifted, raised=raised))
        return (
            None
            if certificate is None
            else (
                caps.used(oracle.alone(Change()), [certificate.placement]),
                oracle.fits_on(certificate.node),
            )
        )

    keys = [
        key
        for member in members
        if member.kind is MemberKind.CAP
        for key in sorted(member.without.caps)
    ]
    return least_raises(caps, keys, attempt)


def least_raises(
    caps: Caps, keys: Sequence[BudgetKey], attempt: _Attempt
) -> Iterator[Suggestion]:
    """Every single cap that it is enough to raise; if there is none, all caps of their namespaces together."""
    before = caps.most
    raises = [_least_raise([key], before, attempt) for key in keys]
    namespaces = {key.namespace for key in keys}
    together = [key for key in before if key.namespace in namespaces]
    if not any(raises) and len(together) > 1:
        raises = [_least_raise(together, before, attempt)]
    for raised, outcome in filter(None, raises):
        levels = (
            f"{key.namespace}={key.resource} from {amount(before[key])} to {amount(level)}"
            for key, level in raised.items()
        )
        yield Suggestion(
            f"raise cap {', '.join(levels)}",
            outcome,
            Cost.CAP,
            len(raised),
            Change(raised=raised),
        )


def _least_raise(
    caps: Sequence[BudgetKey],
    before: Mapping[BudgetKey, int],
    attempt: _Attempt,
) -> tuple[dict[BudgetKey, int], str] | None:
    """Raise caps to what some answer needs, then lower one after the other as long as there is an answer.

    Returns the caps that have to be raised with what they are raised to, and the outcome; None if caps do not help.
    """
    without_caps = attempt(dict.fromkeys(caps))
    if without_caps is None:
        return None
    used, outcome = without_caps
    levels = {cap: max(before[cap], used[cap]) for cap in caps}
    for cap in caps:
        while levels[cap] > before[cap]:
            lower = attempt({**levels, cap: levels[cap] - 1})
            if lower is None:
                break
            used, outcome = lower
            levels[cap] = max(before[cap], used[cap])
    raised = {
        cap: level for cap, level in levels.items() if level > before[cap]
    }
    return (raised, outcome) if raised else None
