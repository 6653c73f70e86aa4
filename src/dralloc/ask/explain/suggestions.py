"""Single changes that would admit a demand, cheapest first. Each has been tried out before it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from dralloc.ask.explain.added_node import added_nodes
from dralloc.ask.explain.change import Change, Cost, Suggestion
from dralloc.ask.explain.members import Member, MemberKind
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.raised_cap import raised_caps
from dralloc.ask.explain.release import releases
from dralloc.ask.explain.scaled_down import scaled_down
from dralloc.ask.explain.substitute import substitutes

__all__ = ["find_suggestions"]

_RELAXED = {
    MemberKind.TAINT: (Cost.TOLERATE, "tolerate"),
    MemberKind.CONSTRAINT: (Cost.CONSTRAINT, "drop"),
    MemberKind.SELECTOR: (Cost.SELECTOR, "drop"),
    MemberKind.NODES: (Cost.NODES, "lift"),
}


def find_suggestions(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> tuple[Suggestion, ...]:
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
    if oracle.admit(Change()) is not None:
        return ()
    found = chain(
        _relaxed(oracle, members),
        scaled_down(oracle),
        substitutes(oracle),
        raised_caps(oracle, members),
        releases(oracle),
        added_nodes(oracle),
    )
    return tuple(sorted(found, key=lambda one: (one.cost, one.amount)))


def _relaxed(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> Iterator[Suggestion]:
    for member in members:
        if (
            member.kind in _RELAXED
            and (certificate := oracle.admit(member.without)) is not None
        ):
            cost, verb = _RELAXED[member.kind]
            yield Suggestion(
                f"{verb} {member.title}",
                oracle.fits_on(certificate.node),
                cost,
                change=member.without,
            )
