"""What the filters have against nodes: asked of many nodes at once where possible, and only where something changed.

The filters of a pod come in upstream's order, and the first that rejects a node says why. Where each of them looks at
the node alone, devices are asked about last, apart from everything else: what is known of everything else holds for
pods with other claims, and what is known of devices for other pods with equal claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, takewhile
from typing import Final

import numpy as np

from dralloc.solve.scheduler.memory import CLAIMS_FILTER, never_fails, read_by
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import Cycle, Plugin
from dralloc.solve.scheduler.plugins import PLUGINS
from dralloc.solve.scheduler.verdicts import (
    FEW_NODES,
    MANY_NODES,
    Check,
    Places,
    Rejection,
    RejectionColumn,
    Verdicts,
)

__all__ = [
    "LEAST_NODES",
    "Checks",
    "ask_nodes",
    "checks_of",
    "codes_of_traits",
    "come_apart",
    "device_verdicts",
    "ends_with_claims",
    "enter_ruled_out",
    "feasible_nodes_to_find",
    "filtered",
    "first_rejection",
    "is_about_others",
    "kept_verdicts",
    "known_verdicts",
    "shared_check",
    "together",
    "traits_and_others",
    "verdicts_apart",
    "without",
]

LEAST_NODES: Final = 100
"""Of so few nodes all are looked at (``minFeasibleNodesToFind``)."""

_LEAST_PERCENTAGE: Final = 5
"""Of many nodes at least so many percent are scored (``minFeasibleNodesPercentageToFind``)."""

Checks = Sequence[tuple[Plugin, Check]]
"""Plugins with what they say about nodes, in their order."""


def checks_of(cycle: Cycle) -> Iterator[tuple[Plugin, Check | Rejection]]:
    """Yield what the filters have to say about the pod; a rejection is the last of them."""
    for plugin in PLUGINS:
        if plugin.filter is None or plugin.name in cycle.profile.no_filters:
            continue
        answer = cycle.memory.answer(plugin, plugin.filter, cycle)
        if answer is not None:
            yield plugin, answer
        if isinstance(answer, Rejection):
            return


def first_rejection(
    checks: Sequence[Check], node: NodeInfo
) -> Rejection | None:
    """Return what is against a node, as the first of the filters says."""
    for check in checks:
        rejection = check(node)
        if rejection is not None:
            return rejection
    return None


def together(checks: Checks) -> Check:
    """Return what is against a node, as the first of several says."""
    return partial(first_rejection, [check for _, check in checks])


def is_about_others(entry: tuple[Plugin, Check]) -> bool:
    """Whether a plugin's filter looks at other nodes, too."""
    plugin, _ = entry
    return plugin.looks_around


def feasible_nodes_to_find(percentage: int, nodes: int) -> int:
    """Return how many feasible nodes are scored at most, of so many nodes (``numFeasibleNodesToFind``).

    Upstream looks at nodes in parallel, so that a few more than needed may be looked at; here, as with
    ``parallelism: 1``, none are.

    Parameters
    ----------
    percentage
        ``percentageOfNodesToScore``; 0 for one that falls from 50 for few nodes to 5 for many.
    """
    if nodes < LEAST_NODES:
        return nodes
    share = percentage or max(50 - nodes // 125, _LEAST_PERCENTAGE)
    return max(nodes * share // 100, LEAST_NODES)


def filtered(
    cycle: Cycle,
    checks: Checks,
    window: Places,
    enough: int,
    away: Mapping[int, Rejection],
) -> tuple[Places, Places, Verdicts]:
    """The first feasible nodes of a window, the others that were looked at, and what is against these.

    The search ends with the first feasible node that is not needed any more.

    Parameters
    ----------
    away
        See `turned_away`.
    """
    verdicts = _verdicts(cycle, checks, without(window, away), enough)
    if away:
        verdicts = verdicts.copy()
        for position, rejection in away.items():
            verdicts.enter(position, rejection)
    return (*verdicts.found(window, enough), verdicts)


def without(window: Places, away: Mapping[int, Rejection]) -> Places:
    """The positions of a window that are not turned away."""
    if not away:
        return window
    others: Places = window[~np.isin(window, list(away))]
    return others


def _verdicts(
    cycle: Cycle, checks: Checks, window: Places, enough: int
) -> Verdicts:
    """Know what is against the positions of a window, up to the first feasible one that is not needed.

    Checks in a row that look at nothing but the node are asked again only where something has changed.
    """
    nodes = cycle.snapshot.nodes
    verdicts = kept_verdicts(cycle, checks)
    if verdicts is None:
        verdicts = Verdicts(len(nodes))
    elif len(verdicts.unknown(window, enough)) < MANY_NODES:
        # Most are known already: the few others are asked about one by one.
        verdicts.ask_for(shared_check(cycle, checks), window, nodes, enough)
        return verdicts
    if come_apart(cycle, checks):
        _ask_devices_last(cycle, checks, window, enough, verdicts)
        return verdicts
    # Columns say what they can. Left are the first check without one, and all behind it.
    checks = _checked_at_once(cycle, checks, window, verdicts)
    if checks and not any(plugin.looks_around for plugin, _ in checks):
        remembered = known_verdicts(cycle, checks)
        unknown = verdicts.open(window)
        enter_ruled_out(cycle, checks, unknown, remembered)
        remembered.ask_for(together(checks), unknown, nodes, enough)
        # They are the same if all is kept, and no column had anything to say.
        if remembered is not verdicts:
            verdicts.enter_known(unknown, remembered)
    else:
        check = _remembered_in_rows(cycle, checks)
        verdicts.ask_for(check, window, nodes, enough)
    return verdicts


def _ask_devices_last(
    cycle: Cycle,
    checks: Checks,
    window: Places,
    enough: int,
    verdicts: Verdicts,
) -> None:
    """Know the verdicts of a window where devices are asked about apart from everything else."""
    of_nodes, served = _known_apart(cycle, checks, window)
    passing = of_nodes.not_rejected(window)
    _, claims_check = checks[-1]
    served.ask_for(claims_check, passing, cycle.snapshot.nodes, enough)
    if verdicts is not served:
        verdicts.enter_known(window, of_nodes)
        verdicts.enter_known(passing, served)


def _remembered_in_rows(cycle: Cycle, checks: Checks) -> Check:
    """Return what is against a node; what filters in a row say that look at nothing but the node is remembered."""
    steps: list[Check] = []
    for looks_around, group in groupby(checks, key=is_about_others):
        row = list(group)
        step = together(row)
        if not looks_around:
            step = partial(known_verdicts(cycle, row).ask, step)
        steps.append(step)
    return partial(first_rejection, steps)


def known_verdicts(cycle: Cycle, checks: Checks) -> Verdicts:
    """What is remembered of these filters together, for pods of this kind."""
    return cycle.memory.verdicts(tuple(plugin.name for plugin, _ in checks))


def kept_verdicts(cycle: Cycle, checks: Checks) -> Verdicts | None:
    """What is known of all checks together; None if it is not kept for other pods, or if other nodes matter."""
    if not cycle.memory.is_kept:
        return None
    for plugin, _ in checks:
        if plugin.looks_around:
            return None
    return known_verdicts(cycle, checks)


def shared_check(cycle: Cycle, checks: Checks) -> Check:
    """Return what is against a node; what is said is kept for equal pods and equal claims, if possible."""
    if not come_apart(cycle, checks):
        return together(checks)
    of_nodes, served = verdicts_apart(cycle, checks)
    *node_checks, (_, claims_check) = checks
    ask_node = partial(of_nodes.ask, together(node_checks))
    ask_devices = partial(served.ask, claims_check)
    return partial(first_rejection, [ask_node, ask_devices])


def come_apart(cycle: Cycle, checks: Checks) -> bool:
    """Whether each node is looked at by itself, its devices last, and nothing there ends with an error."""
    if any(plugin.looks_around for plugin, _ in checks):
        return False
    return ends_with_claims(cycle, checks)


def ends_with_claims(cycle: Cycle, checks: Checks) -> bool:
    """Whether devices are looked at last, and for nothing but the claims, and no search for them ends with an error."""
    if not checks or cycle.memory.of_claims is None:
        return False
    last_plugin, _ = checks[-1]
    return last_plugin.name == CLAIMS_FILTER and never_fails(cycle)


def _known_apart(
    cycle: Cycle, checks: Checks, window: Places
) -> tuple[Verdicts, Verdicts]:
    """What everything but devices has against the positions of a window, and what is known of devices at the others."""
    of_nodes, served = verdicts_apart(cycle, checks)
    ask_nodes(cycle, checks[:-1], window, of_nodes)
    enter_ruled_out(cycle, checks[-1:], of_nodes.not_rejected(window), served)
    return of_nodes, served


def verdicts_apart(cycle: Cycle, checks: Checks) -> tuple[Verdicts, Verdicts]:
    """What is known of everything but devices, and of devices."""
    return known_verdicts(cycle, checks[:-1]), device_verdicts(cycle)


def device_verdicts(cycle: Cycle) -> Verdicts:
    """What is known of devices for the pod's claims."""
    assert cycle.memory.of_claims is not None
    return cycle.memory.of_claims.verdicts((CLAIMS_FILTER,))


def ask_nodes(
    cycle: Cycle, checks: Checks, window: Places, verdicts: Verdicts
) -> None:
    """Know what checks that look at each node by itself, and at no devices, have against the positions of a window."""
    unknown = verdicts.open(window)
    if len(unknown) >= FEW_NODES:
        checks = _checked_at_once(cycle, checks, unknown, verdicts)
    if checks:
        unknown = verdicts.open(unknown)
        verdicts.ask_about(together(checks), unknown, cycle.snapshot.nodes)
    else:
        verdicts.enter_passing(verdicts.open(unknown))


def enter_ruled_out(
    cycle: Cycle, checks: Checks, positions: Places, verdicts: Verdicts
) -> None:
    """Know what the only check that remains is certain to have against nodes, without asking it."""
    if len(checks) != 1:
        return
    unknown = verdicts.open(positions)
    [(plugin, _)] = checks
    if len(unknown) < FEW_NODES or plugin.rules_out is None:
        return
    column = plugin.rules_out(cycle, unknown)
    if column is not None:
        verdicts.enter_column(unknown, column)


def _checked_at_once(
    cycle: Cycle, checks: Checks, window: Places, verdicts: Verdicts
) -> Checks:
    """The checks that are left once the first of them were asked about all nodes at once, as far as they can be."""
    traits, others = traits_and_others(checks)
    if traits:
        unknown = verdicts.open(window)
        verdicts.enter_column(unknown, _traits_column(cycle, traits, unknown))
    for position, (plugin, _) in enumerate(others):
        unknown = verdicts.open(window)
        column = plugin.column and plugin.column(cycle, unknown)
        if column is None:
            return others[position:]
        verdicts.enter_column(unknown, column)
    return ()


def traits_and_others(checks: Checks) -> tuple[Checks, Checks]:
    """The first checks, which look at nothing of a node that changes, and the others."""
    traits = list(takewhile(_looks_at_traits, checks))
    return traits, checks[len(traits) :]


def _looks_at_traits(entry: tuple[Plugin, Check]) -> bool:
    plugin, _ = entry
    return plugin.reads is not None


def _traits_column(
    cycle: Cycle, checks: Checks, positions: Places
) -> RejectionColumn:
    """Return what the first of some checks has against nodes for what they are."""
    codes = codes_of_traits(cycle, checks)[positions]
    return RejectionColumn(codes, list(cycle.snapshot.rejections))


def codes_of_traits(cycle: Cycle, checks: Checks) -> Places:
    """By position what the first of some checks says, worked out once for all pods to which the same matters."""
    key = tuple([(plugin.name, read_by(plugin, cycle)) for plugin, _ in checks])

    def first_codes() -> Places:
        codes = np.zeros(len(cycle.snapshot.nodes), np.int64)
        for plugin, check in checks:
            codes = np.where(codes, codes, _trait_codes(cycle, plugin, check))
        return codes

    return cycle.snapshot.columns.once(key, first_codes)


def _trait_codes(cycle: Cycle, plugin: Plugin, check: Check) -> Places:
    """By position what a check says that looks at nothing of a node that changes."""
    rejections = cycle.snapshot.rejections

    def code(node: NodeInfo) -> int:
        rejection = check(node)
        if rejection is None:
            return 0
        return rejections.setdefault(rejection, 1 + len(rejections))

    key = plugin.name, read_by(plugin, cycle)
    return cycle.snapshot.columns.trait(key, code)
