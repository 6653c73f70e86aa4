"""Suggestions to raise caps, by the least that is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dralloc.ask.explain.caps import Caps
from dralloc.ask.explain.change import Change, Cost, Suggestion
from dralloc.ask.explain.members import Member, MemberKind
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.objects.budget import BudgetKey
from dralloc.objects.report import amount

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
        lifted = frozenset(key for key, level in levels.items() if level is None)
        raised = {key: level for key, level in levels.items() if level is not None}
        found = oracle.admit(Change(caps=lifted, raised=raised))
        return (
            None
            if found is None
            else (
                caps.used(oracle.alone(Change()), [found.placement]),
                oracle.fits_on(found.node),
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
    found = [one for key in keys if (one := _least_raise([key], before, attempt))]
    together = [
        key for key in before if key.namespace in {one.namespace for one in keys}
    ]
    if not found and len(together) > 1:
        found = [one for one in [_least_raise(together, before, attempt)] if one]
    for raised, outcome in found:
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
    caps: Sequence[BudgetKey], before: Mapping[BudgetKey, int], attempt: _Attempt
) -> tuple[dict[BudgetKey, int], str] | None:
    """Raise caps to what some answer needs, then lower one after the other as long as there is an answer.

    Returns the caps that have to be raised with what they are raised to, and the outcome; None if caps do not help.
    """
    found = attempt(dict.fromkeys(caps))
    if found is None:
        return None
    used, outcome = found
    levels = {cap: max(before[cap], used[cap]) for cap in caps}
    for cap in caps:
        while levels[cap] > before[cap] and (
            found := attempt({**levels, cap: levels[cap] - 1})
        ):
            used, outcome = found
            levels[cap] = max(before[cap], used[cap])
    raised = {cap: level for cap, level in levels.items() if level > before[cap]}
    return (raised, outcome) if raised else None
