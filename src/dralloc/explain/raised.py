"""Caps raised by the least that is enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dralloc.explain.caps import charged
from dralloc.explain.change import Cap, Change
from dralloc.explain.lab import Lab, Witness
from dralloc.explain.members import Kind, Member
from dralloc.explain.situation import Situation, Wish
from dralloc.report import amount
from dralloc.solution import Placement

__all__ = ["raised_caps"]


def raised_caps(situation: Situation, members: Sequence[Member]) -> Iterator[Wish]:
    """A cap of the conflict, if it is enough to raise it; if not, all caps of its namespace together."""
    lab = situation.lab
    caps = [cap for member in members if member.kind is Kind.CAP for cap in sorted(member.without.caps)]
    alone = [wish for cap in caps if (wish := _raised(lab, [cap])) is not None]
    known = (Cap(one.namespace, one.resource) for one in lab.turn.caps.budgets)
    every = [cap for cap in known if any(cap.namespace == other.namespace for other in caps)]
    together = _raised(lab, every) if not alone and len(every) > 1 else None
    yield from alone if together is None else [together]


def _raised(lab: Lab, caps: Sequence[Cap]) -> Wish | None:
    """Raise caps to what some answer needs, then lower one after the other as long as there is an answer."""
    witness = lab.admit(Change(caps=frozenset(caps)))
    if witness is None:
        return None
    before = {Cap(one.namespace, one.resource): one.most or 0 for one in lab.turn.caps.budgets}
    levels = {cap: max(before[cap], needed) for cap, needed in _needed(lab, witness).items() if cap in caps}
    for cap in caps:
        while levels[cap] > before[cap]:
            found = lab.admit(Change(raised={**levels, cap: levels[cap] - 1}))
            if found is None:
                break
            levels[cap], witness = max(before[cap], _needed(lab, found)[cap]), found
    raised = {cap: level for cap, level in levels.items() if level > before[cap]}
    text = ", ".join(
        f"{cap.namespace}={cap.resource} from {amount(before[cap])} to {amount(level)}" for cap, level in raised.items()
    )
    return Wish(f"raise cap {text}", Change(raised=raised), len(raised), witness.node)


def _needed(lab: Lab, witness: Witness) -> Mapping[Cap, int]:
    """What namespaces use with the answer."""
    scene = lab.turn.scene
    whole = replace(scene.problem, demands=(lab.wanted(Change()),), eligibility=scene.offers)
    budgets = charged(lab.turn.caps.budgets, whole, [Placement(0, witness.node, witness.grants)])
    return {Cap(one.namespace, one.resource): one.used for one in budgets}
