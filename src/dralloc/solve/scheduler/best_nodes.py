"""The best feasible nodes for a pod, found without looking for devices on worse ones.

An attempt asks every node for devices that passes the other filters, and one of the best is taken. Most of these
searches are about nodes that are not taken. Nodes can be rated first, and asked for devices from the best one down, if

- not more nodes are left than are scored at most, so that an attempt looks at all of them, whoever has devices;
- no filter and no score looks at other nodes, and no score depends on which other nodes are feasible;
- no search for devices can end with an error, which would end the attempt.
"""

from __future__ import annotations

from typing import Final

from dralloc.solve.scheduler.attempt import Checks, checked_at_once, ruled_out, together
from dralloc.solve.scheduler.memory import CLAIMS_FILTER, FEW
from dralloc.solve.scheduler.plugin import Cycle
from dralloc.solve.scheduler.plugins import PLUGINS
from dralloc.solve.scheduler.verdicts import Places, Verdicts

__all__ = ["all_feasible", "best_feasible"]

_SCORING: Final = tuple(plugin for plugin in PLUGINS if plugin.score)


def best_feasible(
    cycle: Cycle, checks: Checks, window: Places, enough: int
) -> Places | None:
    """The places of the best feasible nodes of a window, in its order; None if nodes cannot be rated first, or none is.

    Parameters
    ----------
    enough
        How many feasible nodes are scored at most.
    """
    memory, changes = cycle.memory, len(cycle.snapshot.changes)
    if changes < memory.crowded_until or cycle.devices.has_choice(cycle.pod):
        return None
    if not _come_apart(cycle, checks):
        return None
    candidates, served = _candidates(cycle, checks, window)
    if not 0 < len(candidates) <= enough:
        # A change rules out one node at most.
        memory.crowded_until = changes + len(candidates) - enough
        return None
    plugins = [
        plugin for plugin in _SCORING if plugin.name not in cycle.profile.no_scores
    ]
    if any(
        plugin.looks_around and plugin.score and plugin.score(cycle) is not None
        for plugin in plugins
    ):
        return None
    totals = memory.independent_totals(cycle, plugins, candidates)
    if totals is None:
        return None
    for total in sorted(set(totals.tolist()), reverse=True):
        tied = _served(cycle, checks, candidates[totals == total], served)
        if len(tied):
            return tied
    return None


def all_feasible(cycle: Cycle, checks: Checks, window: Places) -> Places | None:
    """The places of all feasible nodes of a window; None if claims are not looked at apart from everything else."""
    if not _come_apart(cycle, checks):
        return None
    candidates, served = _candidates(cycle, checks, window)
    return _served(cycle, checks, candidates, served)


def _come_apart(cycle: Cycle, checks: Checks) -> bool:
    """Whether devices are the last that is looked at, each node by itself, and nothing there ends with an error."""
    return (
        bool(checks)
        and checks[-1][0].name == CLAIMS_FILTER
        and cycle.memory.of_claims is not None
        and not any(plugin.looks_around for plugin, _ in checks)
        and cycle.devices.never_fails(cycle.pod)
    )


def _candidates(
    cycle: Cycle, checks: Checks, window: Places
) -> tuple[Places, Verdicts]:
    """The places that nothing is known to be against, and what is known about devices."""
    memory, others = cycle.memory, checks[:-1]
    assert memory.of_claims is not None
    served = memory.of_claims.verdicts((CLAIMS_FILTER,))
    if others:
        names = tuple(plugin.name for plugin, _ in others)
        verdicts = memory.verdicts(names) if memory.is_kept else Verdicts(memory.size)
        unknown = verdicts.open(window)
        rest = (
            others
            if len(unknown) < FEW
            else checked_at_once(cycle, others, window, verdicts)
        )
        if len(unknown) and rest:
            verdicts.ask_for(together(rest), window, cycle.snapshot.nodes, len(window))
        window = verdicts.not_rejected(window)
    ruled_out(cycle, checks[-1:], window, served)
    return served.not_rejected(window), served


def _served(cycle: Cycle, checks: Checks, places: Places, served: Verdicts) -> Places:
    """Those of places that have devices for the claims."""
    served.ask_for(checks[-1][1], places, cycle.snapshot.nodes, len(places))
    return served.not_rejected(places)
