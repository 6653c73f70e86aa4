"""The best nodes first, without looking for devices on worse ones.

An attempt asks every node for devices that passes the other filters, and one of the best is taken. Most of these
searches are about nodes that are not taken. Nodes can be rated first, and asked for devices from the best one down, if

- not more nodes are left than are scored at most, so that an attempt looks at all of them, whoever has devices;
- every filter that looks at other nodes, too, knows of all nodes at once what is against them;
- no score depends on which other nodes are feasible, but for that of alternatives of claims: it is a share of the best
  that is had anywhere, and nobody has more than the first alternative of each request;
- no search for devices can end with an error, which would end the attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from dralloc.solve.scheduler.filters import (
    Checks,
    ask_nodes,
    codes_of_traits,
    come_apart,
    device_verdicts,
    ends_with_claims,
    enter_ruled_out,
    is_about_others,
    kept_verdicts,
    known_verdicts,
    shared_check,
    traits_and_others,
)
from dralloc.solve.scheduler.memory import weight_of_choice
from dralloc.solve.scheduler.nominated import NOMINATED_PODS
from dralloc.solve.scheduler.plugin import Cycle, Plugin, Scores, relative
from dralloc.solve.scheduler.scores import best_of, independent_totals
from dralloc.solve.scheduler.verdicts import MANY_NODES, Check, Places, Verdicts

__all__ = ["all_feasible", "best_feasible", "best_known"]


def best_known(
    cycle: Cycle, checks: Checks, window: Places, enough: int
) -> tuple[Places, int] | None:
    """The positions of the best feasible nodes of a window, if hardly any has to be asked, and how many were looked at.

    None if many have to be asked, if no node is feasible, or if scores depend on which other nodes are.
    """
    verdicts = kept_verdicts(cycle, checks)
    if verdicts is None:
        return None
    unknown = verdicts.unknown(window, enough)
    if len(unknown) >= MANY_NODES:
        return None
    if len(unknown):
        check = cycle.memory.once("check", lambda: shared_check(cycle, checks))
        verdicts.ask_about(check, unknown, cycle.snapshot.nodes)
    feasible, rejected = verdicts.found(window, enough)
    if not len(feasible):
        return None
    evaluated = len(feasible) + len(rejected)
    # Upstream does not score a node that is alone.
    if len(feasible) == 1:
        return feasible, evaluated
    best = best_of(cycle, feasible)
    return None if best is None else (best, evaluated)


def best_feasible(
    cycle: Cycle, checks: Checks, window: Places, enough: int
) -> Places | None:
    """The positions of the best feasible nodes of a window, in order; None if nodes cannot be rated first, or none is.

    Parameters
    ----------
    enough
        How many feasible nodes are scored at most.
    """
    memory, changes = cycle.memory, len(cycle.snapshot.changes)
    if changes < memory.crowded_until:
        return None
    parts = _FilterParts.of(cycle, checks)
    if parts is None:
        return None
    candidates, served = _candidates(cycle, parts, window)
    if not 0 < len(candidates) <= enough:
        # A change rules out one node at most.
        memory.crowded_until = changes + len(candidates) - enough
        return None
    totals = independent_totals(cycle, candidates)
    if totals is None:
        return None
    if weight_of_choice(cycle):
        return _best_with_choice(cycle, parts, candidates, totals, served)
    for total in _falling(totals):
        tied = _served(cycle, parts, candidates[totals == total], served)
        if len(tied):
            return tied
    return None


def _best_with_choice(
    cycle: Cycle,
    parts: _FilterParts,
    candidates: Places,
    totals: Scores,
    served: Verdicts,
) -> Places | None:
    """As `best_feasible`, where alternatives of claims count beside the totals of candidates.

    Once some node has the first alternative of each request, it is known what the others are relative to, and no node
    with a smaller total can be better than this one.
    """
    most = cycle.devices.most_worth(cycle.pod)
    positions: list[Places] = []
    totals_there: list[Scores] = []
    ratings: list[Scores] = []
    for total in _falling(totals):
        tied = _served(cycle, parts, candidates[totals == total], served)
        if not len(tied):
            continue
        positions.append(tied)
        totals_there.append(np.full(len(tied), total))
        ratings.append(cycle.memory.ratings(cycle, tied))
        if ratings[-1].max() == most:
            break
    if not positions:
        return None
    # Shares are of the best rating here. If the loop ended early, there is no better one anywhere; if it did not, no
    # node with devices was left out.
    shares = relative(np.concatenate(ratings))
    sums = np.concatenate(totals_there) + weight_of_choice(cycle) * shares
    best = np.concatenate(positions)[sums == sums.max()]
    # They were gathered by their totals, but a draw among them goes by the order of the window.
    in_order: Places = candidates[np.isin(candidates, best)]
    return in_order


def _falling(totals: Scores) -> list[int]:
    """Return each total that there is, the best first."""
    return sorted(set(totals.tolist()), reverse=True)


def all_feasible(cycle: Cycle, checks: Checks, window: Places) -> Places | None:
    """The positions of all feasible nodes of a window; None if claims are not looked at apart from everything else."""
    if not come_apart(cycle, checks):
        return None
    parts = _FilterParts(checks[:-1], (), checks[-1])
    candidates, served = _candidates(cycle, parts, window)
    return _served(cycle, parts, candidates, served)


class _FilterParts(NamedTuple):
    """The filters of an attempt, by what they look at.

    Parameters
    ----------
    of_nodes
        Look at each node by itself, and at no devices.
    around
        Look at other nodes, too, and know of many nodes at once what is against them.
    claims
        Looks for devices, on each node by itself and without errors.
    beside
        Asks once more beside the pods that are nominated for a node, if there are such.
    """

    of_nodes: Checks
    around: Sequence[Plugin]
    claims: tuple[Plugin, Check]
    beside: Check | None = None

    @classmethod
    def of(cls, cycle: Cycle, checks: Checks) -> Self | None:
        """The parts of an attempt; None if its filters do not come apart like that."""
        beside: Check | None = None
        if checks and checks[-1][0] is NOMINATED_PODS:
            *checks, (_, beside) = checks
        if not ends_with_claims(cycle, checks):
            return None
        of_nodes = [
            entry for entry in checks[:-1] if not is_about_others(entry)
        ]
        around = [plugin for plugin, _ in checks if plugin.looks_around]
        if any(plugin.column is None for plugin in around):
            return None
        return cls(of_nodes, around, checks[-1], beside)


def _candidates(
    cycle: Cycle, parts: _FilterParts, window: Places
) -> tuple[Places, Verdicts]:
    """The positions that nothing is known to be against, and what is known about devices.

    Nodes whose devices are known not to do are left out first: mostly these are the most.
    """
    served = device_verdicts(cycle)
    enter_ruled_out(cycle, [parts.claims], window, served)
    candidates = served.not_rejected(window)
    passing: Places | None = None
    if not cycle.memory.is_kept:
        passing = _passing_at_once(cycle, parts.of_nodes, candidates)
    if passing is None:
        of_nodes = known_verdicts(cycle, parts.of_nodes)
        ask_nodes(cycle, parts.of_nodes, candidates, of_nodes)
        passing = of_nodes.not_rejected(candidates)
    candidates = passing
    for plugin in parts.around:
        assert plugin.column is not None
        column = plugin.column(cycle, candidates)
        assert column is not None
        candidates = candidates[column.codes == 0]
    return candidates, served


def _passing_at_once(
    cycle: Cycle, checks: Checks, positions: Places
) -> Places | None:
    """The positions against which none of some checks is; None if not all can be asked about many nodes at once."""
    traits, others = traits_and_others(checks)
    passing: Places | None = positions
    if traits:
        passing = positions[codes_of_traits(cycle, traits)[positions] == 0]
    for plugin, _ in others:
        if passing is None or plugin.passing is None:
            return None
        passing = plugin.passing(cycle, passing)
    return passing


def _served(
    cycle: Cycle, parts: _FilterParts, positions: Places, served: Verdicts
) -> Places:
    """Those of some positions that have devices for the claims, also beside nominated pods."""
    nodes = cycle.snapshot.nodes
    _, check = parts.claims
    served.ask_about(check, served.open(positions), nodes)
    with_devices = served.not_rejected(positions)
    if parts.beside is None:
        return with_devices
    remaining = [
        position
        for position in with_devices.tolist()
        if parts.beside(nodes[position]) is None
    ]
    return np.array(remaining, np.intp)
