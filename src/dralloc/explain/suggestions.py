"""Single changes that would admit a demand, cheapest first. Each has been tried out before it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from dralloc.explain.change import Change
from dralloc.explain.lab import Lab
from dralloc.explain.lesser import lesser_wishes
from dralloc.explain.members import Kind, Member
from dralloc.explain.others import other_wishes
from dralloc.explain.raised import raised_caps
from dralloc.explain.release import releases
from dralloc.explain.rooms import new_nodes
from dralloc.explain.situation import Situation

__all__ = ["Cost", "Suggestion", "find_suggestions"]


class Cost(IntEnum):
    """How changes are ranked: what the claim's author can do comes before what others have to give up or buy."""

    TOLERATE = 1
    CONSTRAINT = 2
    SELECTOR = 3
    LESS = 4
    OTHER = 5
    NODES = 6
    CAP = 7
    MOVE = 8
    RELEASE = 9
    CLASS = 10
    NODE = 11


@dataclass(frozen=True)
class Suggestion:
    """A change that admits the demand.

    Parameters
    ----------
    text
        What to change.
    outcome
        What then happens, as it was found by trying.
    cost
        Its kind.
    amount
        How much of it, to rank changes of one kind.
    change
        What was tried.
    """

    text: str
    outcome: str
    cost: Cost
    amount: int = 0
    change: Change = field(default_factory=Change, repr=False, compare=False)


_RELAXED = {
    Kind.TAINT: (Cost.TOLERATE, "tolerate"),
    Kind.CONSTRAINT: (Cost.CONSTRAINT, "drop"),
    Kind.SELECTOR: (Cost.SELECTOR, "drop"),
    Kind.CLASS: (Cost.CLASS, "drop"),
    Kind.NODES: (Cost.NODES, "lift"),
}


def find_suggestions(situation: Situation, members: Sequence[Member]) -> tuple[Suggestion, ...]:
    """Every suggestion that holds, cheapest first.

    Parameters
    ----------
    members
        The rules that may be relaxed: those of a conflict, as no other rule alone can help.

    Returns
    -------
    tuple
        Empty if the demand could be placed as it is: then its gang is in its way, and nothing that is said here.
    """
    if situation.lab.admit(Change()) is not None:
        return ()
    found = [
        *_relaxed(situation.lab, members),
        *_lesser(situation, members),
        *_others(situation),
        *_raised(situation, members),
        *_releases(situation),
        *_new_nodes(situation),
    ]
    return tuple(sorted(found, key=lambda one: (one.cost, one.amount)))


def _relaxed(lab: Lab, members: Sequence[Member]) -> Iterator[Suggestion]:
    for member in members:
        cost, verb = _RELAXED.get(member.kind, (None, ""))
        if cost is None:
            continue
        witness = lab.admit(member.without)
        if witness is not None:
            yield Suggestion(f"{verb} {member.title}", _on(lab, witness.node), cost, change=member.without)


def _lesser(situation: Situation, members: Sequence[Member]) -> Iterator[Suggestion]:
    for one in lesser_wishes(situation, members):
        yield Suggestion(one.text, _on(situation.lab, one.node), Cost.LESS, one.amount, one.change)


def _others(situation: Situation) -> Iterator[Suggestion]:
    for one in other_wishes(situation):
        yield Suggestion(one.text, _on(situation.lab, one.node), Cost.OTHER, one.amount, one.change)


def _raised(situation: Situation, members: Sequence[Member]) -> Iterator[Suggestion]:
    for one in raised_caps(situation, members):
        yield Suggestion(one.text, _on(situation.lab, one.node), Cost.CAP, one.amount, one.change)


def _releases(situation: Situation) -> Iterator[Suggestion]:
    for release in releases(situation):
        outcome = f"{_on(situation.lab, release.node)}{release.remark}"
        cost = Cost.MOVE if release.moved else Cost.RELEASE
        yield Suggestion(release.text, outcome, cost, release.amount, release.change)


def _new_nodes(situation: Situation) -> Iterator[Suggestion]:
    for place, name in enumerate(new_nodes(situation)):
        yield Suggestion(f"add a node like {name}", "fits on the new node", Cost.NODE, place)


def _on(lab: Lab, node: int) -> str:
    return f"fits on {lab.turn.context.problem.nodes[node].name}"
