"""Caps raised by the least that is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from dralloc.explain.caps import charged
from dralloc.explain.change import Cap, Change
from dralloc.explain.lab import Lab, Witness
from dralloc.explain.members import Kind, Member
from dralloc.explain.situation import Situation, Wish
from dralloc.report import amount
from dralloc.solution import Placement

__all__ = ["least_raise", "raise_text", "raised_caps"]

_Answer = TypeVar("_Answer")
Raise = tuple[dict[Cap, int], _Answer]
Attempt = Callable[[Mapping[Cap, int | None]], tuple[Mapping[Cap, int], _Answer] | None]


def raised_caps(situation: Situation, members: Sequence[Member]) -> Iterator[Wish]:
    """A cap of the conflict, if it is enough to raise it; if not, all caps of its namespace together."""
    lab = situation.lab
    caps = [cap for member in members if member.kind is Kind.CAP for cap in sorted(member.without.caps)]
    alone = [wish for cap in caps if (wish := _raised(lab, [cap])) is not None]
    known = (Cap(one.namespace, one.resource) for one in lab.turn.caps.budgets)
    every = [cap for cap in known if any(cap.namespace == other.namespace for other in caps)]
    together = _raised(lab, every) if not alone and len(every) > 1 else None
    yield from alone if together is None else [together]


def least_raise(caps: Sequence[Cap], before: Mapping[Cap, int], attempt: Attempt[_Answer]) -> Raise[_Answer] | None:
    """Raise caps to what some answer needs, then lower one after the other as long as there is an answer.

    Parameters
    ----------
    before
        What they are now, in nanos.
    attempt
        What an answer under these caps uses of each, and the answer; None as a cap means without it.

    Returns
    -------
    tuple or None
        The caps that have to be raised with what they are raised to, and the answer; None if caps do not help.
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


def raise_text(before: Mapping[Cap, int], raised: Mapping[Cap, int]) -> str:
    """What to do, in words."""
    return "raise cap " + ", ".join(
        f"{cap.namespace}={cap.resource} from {amount(before[cap])} to {amount(level)}" for cap, level in raised.items()
    )


def _raised(lab: Lab, caps: Sequence[Cap]) -> Wish | None:
    def attempt(levels: Mapping[Cap, int | None]) -> tuple[Mapping[Cap, int], Witness] | None:
        lifted = frozenset(cap for cap, level in levels.items() if level is None)
        witness = lab.admit(
            Change(caps=lifted, raised={cap: level for cap, level in levels.items() if level is not None})
        )
        return None if witness is None else (_needed(lab, witness), witness)

    before = {Cap(one.namespace, one.resource): one.most or 0 for one in lab.turn.caps.budgets}
    found = least_raise(caps, before, attempt)
    if found is None:
        return None
    raised, witness = found
    return Wish(raise_text(before, raised), Change(raised=raised), len(raised), witness.node)


def _needed(lab: Lab, witness: Witness) -> Mapping[Cap, int]:
    """What namespaces use with the answer."""
    context = lab.turn.context
    whole = replace(context.problem, demands=(lab.wanted(Change()),), eligibility=context.offers)
    budgets = charged(lab.turn.caps.budgets, whole, [Placement(0, witness.node, witness.grants)])
    return {Cap(one.namespace, one.resource): one.used for one in budgets}
