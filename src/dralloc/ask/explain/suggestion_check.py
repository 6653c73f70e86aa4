"""Suggestions held against the objects of the cluster.

The oracle looks for a node in the problem that the compiler has read; the checker of objects reads pods and nodes by
itself, so that what the compiler misreads is not suggested.
"""

from __future__ import annotations

from collections.abc import Sequence

from dralloc.ask.answer_checks import check_newcomers
from dralloc.ask.explain.changes import Cost, Suggestion
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.settled_scenario import at_the_moment
from dralloc.check.objects import Binding
from dralloc.solve.optimum.stopping import Stopped

__all__ = ["checked_suggestions"]


def checked_suggestions(
    oracle: FeasibilityOracle, suggestions: Sequence[Suggestion]
) -> tuple[Suggestion, ...]:
    """Make sure that the pod that is explained may go where suggestions let it in.

    With too little time, what cannot be looked at any more is left out. Not looked at are pods of gangs, which do not
    come alone; new nodes, whose clusters are compiled anew; and changes that lift rules of the objects.

    Raises
    ------
    CheckError
        It may not.
    """
    snapshot, compiled = oracle.snapshot, oracle.compiled
    tried = list(map(_can_be_tried, suggestions))
    if (
        not any(tried)
        or compiled.is_claim(snapshot.whole)
        or snapshot.whole.gang
    ):
        return tuple(suggestions)
    moment = at_the_moment(compiled, snapshot)
    checked: list[Suggestion] = []
    for suggestion, is_tried in zip(suggestions, tried, strict=True):
        if not is_tried:
            checked.append(suggestion)
            continue
        # The oracle finds the node of the suggestion again: it gives equal answers to equal questions.
        try:
            certificate = oracle.admit(suggestion.change)
        except Stopped:
            continue
        assert certificate is not None
        released = suggestion.change.released
        # Pods that use a released claim are gone as well, with all that they take of their nodes.
        users = {
            pod
            for pod, claims in moment.cluster.claims_of_pods.items()
            if not released.isdisjoint(claims)
        }
        cluster = moment.release(released).without_pods(users).cluster
        home = snapshot.problem.nodes[certificate.node].name
        binding = Binding(snapshot.whole.key, home)
        check_newcomers(compiled, compiled.choices, cluster, [binding])
        checked.append(suggestion)
    return tuple(checked)


def _can_be_tried(suggestion: Suggestion) -> bool:
    """Return whether it needs no cluster that is compiled anew, and lifts no rule of the objects."""
    return suggestion.cost is not Cost.NODE and not suggestion.change.rules
