"""Both parts of the checker for the answers to a cluster: what is promised by first fit, the scheduler, the optimum."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Final

from dralloc.check import check, check_objects
from dralloc.check.objects import Binding, Filters, Promise
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.choices import Choices, Ignored
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.problem import Problem
from dralloc.problem.solution import Solution
from dralloc.solve.scheduler import Profile

__all__ = [
    "check_batch",
    "check_bindings",
    "check_newcomers",
    "check_scheduler",
]

_FILTERS: Final = {
    Ignored.AFFINITY: "InterPodAffinity",
    Ignored.SPREAD: "PodTopologySpread",
    Ignored.TAINTS: "TaintToleration",
    Ignored.PORTS: "NodePorts",
}
"""The plugins of kube-scheduler whose filters can be ignored as a whole."""


def check_batch(
    compiled: CompiledCluster,
    choices: Choices,
    problem: Problem,
    solution: Solution,
) -> None:
    """Make sure that an answer of first fit, or of the optimum, keeps the rules of the problem and of the objects.

    Parameters
    ----------
    problem
        The rules that it keeps, of the whole problem.

    Raises
    ------
    CheckError
        It does not.
    """
    check(problem, solution)
    bindings = _bindings(compiled, problem, solution)
    check_newcomers(compiled, choices, compiled.cluster, bindings)


def check_newcomers(
    compiled: CompiledCluster,
    choices: Choices,
    changed: Cluster,
    bindings: Sequence[Binding],
    *,
    moving: Collection[ClaimKey] = frozenset(),
) -> None:
    """Make sure that pods that come to nodes of a cluster, in any order, keep the rules of its objects.

    Parameters
    ----------
    compiled
        The cluster for which was asked.
    changed
        The cluster to which they come: it may differ in who is there.
    moving
        Those that ran elsewhere before.

    Raises
    ------
    CheckError
        They do not.
    """
    problem, ignored = compiled.problem, compiled.pods.ignored
    filters = Filters(
        off=frozenset(
            plugin for rule, plugin in _FILTERS.items() if rule in ignored
        ),
        ignores=partial(_is_ignored, ignored),
    )
    promise = Promise(
        nodes=[node.name for node in problem.nodes],
        features=problem.features,
        gang_label=choices.gang,
        other_filters=filters,
        moving=moving,
    )
    check_objects(changed, bindings, promise)


def check_scheduler(
    compiled: CompiledCluster,
    profiles: Sequence[Profile],
    problem: Problem,
    solution: Solution,
) -> None:
    """Make sure of an answer of the scheduler, which has filters of its own. Errors as `check_batch`."""
    check(problem, solution)
    check_bindings(compiled, profiles, solution.bindings)


def check_bindings(
    compiled: CompiledCluster,
    profiles: Sequence[Profile],
    bindings: Iterable[tuple[ClaimKey, str]],
) -> None:
    """Make sure that pods with nodes, in the order in which a scheduler bound them, keep the rules of the objects.

    Raises
    ------
    CheckError
        They do not.
    """
    problem = compiled.problem
    promise = Promise(
        nodes=[node.name for node in problem.nodes],
        features=problem.features,
        in_order=True,
        filters={profile.name: _filters_of(profile) for profile in profiles},
    )
    check_objects(
        compiled.cluster, [Binding(*binding) for binding in bindings], promise
    )


def _filters_of(profile: Profile) -> Filters:
    """Return what pods of a profile have to pass, as its scheduler is configured."""
    return Filters(
        off=profile.no_filters,
        ignores=profile.ignores,
        added_affinity=profile.added_affinity.required,
        default_constraints=profile.default_constraints,
    )


def _is_ignored(ignored: frozenset[Ignored], resource: str) -> bool:
    return Ignored.of_resource(resource) in ignored


def _bindings(
    compiled: CompiledCluster, problem: Problem, solution: Solution
) -> list[Binding]:
    """Return the pods that are placed, and their nodes."""
    bindings = []
    for placement in solution.placements:
        demand = compiled.problem.demands[placement.demand]
        if not compiled.is_claim(demand):
            node = problem.nodes[placement.node].name
            bindings.append(Binding(demand.key, node))
    return bindings
