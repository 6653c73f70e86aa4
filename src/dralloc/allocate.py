"""The main job: a cluster in, a checked plan out; or both plans, to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Unpack

from dralloc.budget import Cap, parsed
from dralloc.check import check, violations
from dralloc.choices import JobOptions, Mode, ModeName, chosen, compared
from dralloc.cluster import Cluster
from dralloc.comparison import Comparison, Scheduled
from dralloc.compiler import CompiledCluster, compile_cluster
from dralloc.features import ALL_FEATURES, Features
from dralloc.plan import Plan
from dralloc.problem import Problem
from dralloc.scheduling import Profile, read_profiles, schedule
from dralloc.solution import Solution
from dralloc.solvers.cpsat import Options, Progress, solve, within_caps
from dralloc.solvers.first_fit import first_fit
from dralloc.timing import phase

__all__ = ["OnProgress", "allocate", "compare"]

OnProgress = Callable[[Progress], None]


def allocate(  # noqa: PLR0913 - one parameter per choice
    cluster: Cluster,
    mode: Mode | ModeName = Mode.OPTIMAL,
    *,
    nodes: Sequence[str] = (),
    features: Features = ALL_FEATURES,
    strict: bool = False,
    gang: str = "",
    caps: Sequence[Cap | str] = (),
    fair: str = "",
    include: str | Iterable[str] = (),
    pruning: bool = True,
    scheduler_config: str | PathLike[str] | None = None,
    progress: OnProgress | None = None,
    **options: Unpack[JobOptions],
) -> Plan:
    """Place what is pending in the cluster.

    Parameters
    ----------
    mode
        ``"first-fit"``, ``"scheduler"`` or ``"optimal"``.
    nodes
        Names of the only nodes to use, in order; all if there are none.
    features
        Which feature gates are on.
    strict
        Whether a pool gives no more devices as long as an allocated claim contradicts what it publishes.
    gang
        A label of pods: those with the same value, in one namespace, are placed all or none.
    caps
        What namespaces may use at most of a counter or capacity, with claims that are allocated already: a `Cap`, or
        ``NAMESPACE=COUNTER:AMOUNT``. First fit and the scheduler do not look at caps; their plans say where they are
        exceeded.
    fair
        A counter or capacity that the namespaces with pending claims are to share fairly: of all optima with the most
        weight the one in which the poorest namespace gets the most, then the poorest two, and so on.
    include
        Pods that Kubernetes does not schedule yet and that are to be placed all the same: ``"gated"``, ``"suspended"``
        or both (see `dralloc.Cluster.including`).
    pruning
        Whether first fit leaves out what cannot change its answer.
    scheduler_config
        A file with the KubeSchedulerConfiguration of mode ``"scheduler"``; without it, kube-scheduler's defaults count.
        ``seed`` is for the order in which it hears of nodes and equally old pods. It does not look at gangs, and evicts
        nobody.
    progress
        Called while the optimum is searched for.
    options
        For the optimal mode: ``time_limit``, ``seed``, ``workers``, ``goal``, ``strict_cel``, ``jobs``, ``backend``, as
        in `dralloc.solvers.cpsat.Options`. With ``jobs=2`` two processes at a time work on parts of the problem that
        have nothing to do with each other; ``backend`` says where: ``"loky"`` (here), ``"dask"`` or ``"ray"``. They
        need the extras ``parallel``, ``dask`` and ``ray``. The answer does not depend on it.

    Returns
    -------
    Plan
        The answer; the independent checker has accepted it.

    Raises
    ------
    DrallocError
        A named node does not exist; the model cannot be built; `ChoiceError` if there is no such mode or goal;
        `CheckError` if the answer breaks a rule.
    """
    mode, choices = chosen(Mode, "mode", mode), Options(**options)
    profiles = _profiles(scheduler_config)
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        whole = cluster.including(include)
        compiled = compile_cluster(whole, features, nodes, strict=strict, gang=gang, caps=parsed(caps), fair=fair)
    if mode is Mode.SCHEDULER:
        return Plan(mode, compiled, _scheduled(compiled, profiles, choices.seed, timings), timings)
    first = _first_fit(compiled, timings, pruning=pruning)
    if mode is Mode.FIRST_FIT:
        return Plan(mode, compiled, first, timings)
    best = _optimum(compiled, first, choices, progress, timings)
    return Plan(Mode.OPTIMAL, compiled, best, timings)


def compare(  # noqa: PLR0913 - one parameter per choice
    cluster: Cluster,
    *,
    nodes: Sequence[str] = (),
    features: Features = ALL_FEATURES,
    strict: bool = False,
    gang: str = "",
    caps: Sequence[Cap | str] = (),
    fair: str = "",
    include: str | Iterable[str] = (),
    pruning: bool = True,
    modes: str | Iterable[str] = (Mode.FIRST_FIT, Mode.OPTIMAL),
    seeds: int = 5,
    scheduler_config: str | PathLike[str] | None = None,
    progress: OnProgress | None = None,
    **options: Unpack[JobOptions],
) -> Comparison:
    """Answer in several modes. Other parameters and errors are those of `allocate`.

    Parameters
    ----------
    modes
        First fit and the optimum are always compared; ``"scheduler"`` adds what kube-scheduler does.
    seeds
        Over how many seeds that is asked, from ``seed`` on.
    """
    wanted, choices = compared(modes), Options(**options)
    profiles = _profiles(scheduler_config)
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        whole = cluster.including(include)
        compiled = compile_cluster(whole, features, nodes, strict=strict, gang=gang, caps=parsed(caps), fair=fair)
    first = _first_fit(compiled, timings, pruning=pruning)
    best = _optimum(compiled, first, choices, progress, timings)
    asked = range(choices.seed, choices.seed + seeds) if Mode.SCHEDULER in wanted else ()
    scheduled = tuple(
        Plan(Mode.SCHEDULER, compiled, _scheduled(compiled, profiles, seed, timings), timings) for seed in asked
    )
    return Comparison(
        first_fit=Plan(Mode.FIRST_FIT, compiled, first, timings),
        optimal=Plan(Mode.OPTIMAL, compiled, best, timings),
        timings=timings,
        scheduler=Scheduled(scheduled) if scheduled else None,
    )


def _profiles(config: str | PathLike[str] | None) -> Sequence[Profile]:
    return (Profile(),) if config is None else read_profiles(Path(config))


def _first_fit(compiled: CompiledCluster, timings: dict[str, float], *, pruning: bool) -> Solution:
    with phase(timings, "first fit"):
        solution = first_fit(compiled.problem, pruning=pruning)
    with phase(timings, "check"):
        check(replace(compiled.problem, budgets=()), solution)
    return solution


def _scheduled(
    compiled: CompiledCluster, profiles: Sequence[Profile], seed: int, timings: dict[str, float]
) -> Solution:
    with phase(timings, "scheduler"):
        solution = schedule(compiled, profiles, seed)
    # Filters of its own say where a pod may go.
    demands = tuple(replace(demand, gang="", nodes=None) for demand in compiled.problem.demands)
    with phase(timings, "check"):
        check(replace(compiled.problem, demands=demands, budgets=()), solution)
    return solution


def _start(problem: Problem, hint: Solution) -> Solution | None:
    """What of first fit's answer keeps the caps."""
    if not problem.budgets:
        return hint
    start = Solution(tuple(within_caps(problem, hint.placements)))
    return None if violations(problem, start) else start


def _optimum(
    compiled: CompiledCluster, hint: Solution, options: Options, progress: OnProgress | None, timings: dict[str, float]
) -> Solution:
    with phase(timings, "optimum"):
        solution = solve(compiled.problem, options, hint=_start(compiled.problem, hint), progress=progress)
    # What makes a claim impossible was found on the way to the hint.
    placed = {placement.demand for placement in solution.placements}
    errors = {demand: error for demand, error in hint.errors.items() if demand not in placed}
    solution = replace(solution, errors=errors)
    with phase(timings, "check"):
        check(compiled.problem, solution)
    return solution
