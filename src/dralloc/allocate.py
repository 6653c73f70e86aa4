"""The main job: a cluster in, a checked plan out; or both plans, to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from dralloc.check import check, violations
from dralloc.choices import Choices, ChoiceWords, Mode, ModeName, Options, chosen, compared
from dralloc.cluster import Cluster
from dralloc.comparison import Comparison, Scheduled
from dralloc.compiler import CompiledCluster, compile_cluster
from dralloc.plan import Plan
from dralloc.problem import Problem
from dralloc.scheduling import Profile, read_profiles, schedule
from dralloc.solution import Solution
from dralloc.solvers.cpsat import Progress, solve, within_caps
from dralloc.solvers.first_fit import first_fit
from dralloc.timing import phase

__all__ = ["OnProgress", "allocate", "compare"]

OnProgress = Callable[[Progress], None]


def allocate(
    cluster: Cluster,
    mode: Mode | ModeName = Mode.OPTIMAL,
    *,
    choices: Choices | None = None,
    progress: OnProgress | None = None,
    **words: Unpack[ChoiceWords],
) -> Plan:
    """Place what is pending in the cluster.

    Parameters
    ----------
    cluster
        What was read with `dralloc.load`.
    mode
        ``"first-fit"``, ``"scheduler"`` or ``"optimal"``.
    choices, words
        What is chosen, as one object, as keywords, or as both: see `dralloc.Choices`.
    progress
        Called while the optimum is searched for.

    Returns
    -------
    Plan
        The answer; the independent checker has accepted it.

    Raises
    ------
    DrallocError
        A named node does not exist; the model cannot be built; `ChoiceError` if there is no such mode or goal;
        `CheckError` if the answer breaks a rule.

    Examples
    --------
    >>> import dralloc
    >>> cluster = dralloc.example()
    >>> dralloc.allocate(cluster, mode="first-fit")
    <Plan: first-fit: 1 of 2 placed, nothing proven>
    >>> dralloc.allocate(cluster, goal="fewest-nodes", time_limit=60)
    <Plan: optimal: 2 of 2 placed, proven optimal>
    """
    mode, choices = chosen(Mode, "mode", mode), Choices.of(choices, words)
    profiles = _profiles(choices)
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        compiled = compile_cluster(cluster, choices)
        problem = compiled.whole
    if mode is Mode.SCHEDULER:
        return Plan(mode, compiled, _scheduled(compiled, profiles, choices.seed, timings), timings)
    first = _first_fit(problem, timings, pruning=choices.pruning)
    if mode is Mode.FIRST_FIT:
        return Plan(mode, compiled, compiled.of_devices(first), timings)
    best = _optimum(problem, first, choices, progress, timings)
    return Plan(mode, compiled, compiled.of_devices(best), timings)


def compare(
    cluster: Cluster,
    *,
    modes: str | Iterable[str] = (Mode.FIRST_FIT, Mode.OPTIMAL),
    seeds: int = 5,
    choices: Choices | None = None,
    progress: OnProgress | None = None,
    **words: Unpack[ChoiceWords],
) -> Comparison:
    """Answer in several modes. Other parameters and errors are those of `allocate`.

    Parameters
    ----------
    modes
        First fit and the optimum are always compared; ``"scheduler"`` adds what kube-scheduler does.
    seeds
        Over how many seeds that is asked, from ``seed`` on.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.compare(dralloc.example())
    <Comparison: 2 claims: first fit places 1, the optimum 2 (proven optimal)>
    """
    wanted, choices = compared(modes), Choices.of(choices, words)
    profiles = _profiles(choices)
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        compiled = compile_cluster(cluster, choices)
        problem = compiled.whole
    first = _first_fit(problem, timings, pruning=choices.pruning)
    best = _optimum(problem, first, choices, progress, timings)
    asked = range(choices.seed, choices.seed + seeds) if Mode.SCHEDULER in wanted else ()
    scheduled = tuple(
        Plan(Mode.SCHEDULER, compiled, _scheduled(compiled, profiles, seed, timings), timings) for seed in asked
    )
    return Comparison(
        first_fit=Plan(Mode.FIRST_FIT, compiled, compiled.of_devices(first), timings),
        optimal=Plan(Mode.OPTIMAL, compiled, compiled.of_devices(best), timings),
        timings=timings,
        scheduler=Scheduled(scheduled) if scheduled else None,
    )


def _profiles(choices: Choices) -> Sequence[Profile]:
    config = choices.scheduler_config
    return (Profile(),) if config is None else read_profiles(Path(config))


def _first_fit(problem: Problem, timings: dict[str, float], *, pruning: bool) -> Solution:
    with phase(timings, "first fit"):
        solution = first_fit(problem, pruning=pruning)
    with phase(timings, "check"):
        check(replace(problem, budgets=()), solution)
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
    problem: Problem, hint: Solution, options: Options, progress: OnProgress | None, timings: dict[str, float]
) -> Solution:
    with phase(timings, "optimum"):
        solution = solve(problem, options, hint=_start(problem, hint), progress=progress)
    # What makes a claim impossible was found on the way to the hint.
    placed = {placement.demand for placement in solution.placements}
    errors = {demand: error for demand, error in hint.errors.items() if demand not in placed}
    solution = replace(solution, errors=errors)
    with phase(timings, "check"):
        check(problem, solution)
    return solution
