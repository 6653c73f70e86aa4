"""Single changes that would admit a demand, cheapest first. Each has been tried out before it is shown.

Suggestions to relax a rule are in `dralloc.ask.explain.relaxed_rules`; those to scale a request down, in
`dralloc.ask.explain.smaller_requests`, and to substitute one, in `dralloc.ask.explain.substitutes`; those to raise a
cap, in `dralloc.ask.explain.raised_caps`; those to release or move claims, in `dralloc.ask.explain.release`; those to
add a node, in `dralloc.ask.explain.added_nodes`. All of them are collected here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain

from dralloc.ask.explain.added_nodes import added_nodes
from dralloc.ask.explain.changes import Change, Suggestion
from dralloc.ask.explain.conflict_members import Member
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.raised_caps import raised_caps
from dralloc.ask.explain.relaxed_rules import relaxed_rules
from dralloc.ask.explain.release import releases
from dralloc.ask.explain.smaller_requests import scaled_down
from dralloc.ask.explain.substitutes import substitutes
from dralloc.solve.optimum.stopping import Stopped

__all__ = ["find_suggestions"]


def find_suggestions(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> tuple[Suggestion, ...]:
    """Every suggestion that holds, cheapest first; with too little time, those that are found until it is over.

    Parameters
    ----------
    members
        The rules that may be relaxed: those of a conflict, as no other rule alone can help.

    Returns
    -------
    tuple
        Empty if the demand could be placed as it is: then its gang is in its way, and nothing that is said here.
    """
    suggestions: list[Suggestion] = []
    with suppress(Stopped):
        if oracle.admit(Change()) is not None:
            return ()
        for suggestion in chain(
            relaxed_rules(oracle, members),
            scaled_down(oracle),
            substitutes(oracle),
            raised_caps(oracle, members),
            releases(oracle),
            added_nodes(oracle),
        ):
            suggestions.append(suggestion)  # noqa: PERF402 - those before the time is over count
    return tuple(
        sorted(
            suggestions,
            key=lambda suggestion: (suggestion.cost, suggestion.amount),
        )
    )
