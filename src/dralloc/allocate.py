"""The main job: a cluster in, a checked plan out; or both plans, to compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Unpack

from dralloc.check import check, violations
from dralloc.choices import Choices, ChoiceWords, Keep, Mode, ModeName, Options, chosen, compared
from dralloc.cluster import Cluster
from dralloc.comparison import Comparison, Scheduled
from dralloc.compiler import CompiledCluster, compile_cluster
from dralloc.compiler.worth import Worth
from dralloc.plan import Plan
from dralloc.problem import Problem
from dralloc.scheduling import Profile, Release, read_profiles, schedule
from dralloc.solution import Solution, Tier
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
    scheduler = _configured(choices)
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        compiled = compile_cluster(cluster, choices, modes={mode})
        problem = compiled.whole
    if mode is Mode.SCHEDULER:
        return Plan(mode, compiled, _scheduled(compiled, scheduler, choices.seed, timings), timings)
    first = _first_fit(problem, timings, pruning=choices.pruning)
    if mode is Mode.FIRST_FIT:
        return Plan(mode, compiled, compiled.of_devices(first), timings)
    known = _KnownAnswers(first, _kept(compiled, first, choices, scheduler, timings))
    best = _optimum(compiled, known, choices, progress, timings)
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
    scheduler = _configured(choices)
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        compiled = compile_cluster(cluster, choices, modes=wanted)
        problem = compiled.whole
    first = _first_fit(problem, timings, pruning=choices.pruning)
    known = _KnownAnswers(first, _kept(compiled, first, choices, scheduler, timings))
    best = _optimum(compiled, known, choices, progress, timings)
    asked = range(choices.seed, choices.seed + seeds) if Mode.SCHEDULER in wanted else ()
    scheduled = tuple(
        Plan(Mode.SCHEDULER, compiled, _scheduled(compiled, scheduler, seed, timings), timings) for seed in asked
    )
    return Comparison(
        first_fit=Plan(Mode.FIRST_FIT, compiled, compiled.of_devices(first), timings),
        optimal=Plan(Mode.OPTIMAL, compiled, compiled.of_devices(best), timings),
        timings=timings,
        scheduler=Scheduled(scheduled) if scheduled else None,
    )


class _Configured(NamedTuple):
    """The scheduler that is asked."""

    profiles: Sequence[Profile]
    release: Release


def _configured(choices: Choices) -> _Configured:
    config = choices.scheduler_config
    profiles = (Profile(),) if config is None else read_profiles(Path(config))
    return _Configured(profiles, Release.of(choices.kubernetes))


def _first_fit(problem: Problem, timings: dict[str, float], *, pruning: bool) -> Solution:
    with phase(timings, "first fit"):
        solution = first_fit(problem, pruning=pruning)
    with phase(timings, "check"):
        check(replace(problem, budgets=()), solution)
    return solution


def _scheduled(compiled: CompiledCluster, scheduler: _Configured, seed: int, timings: dict[str, float]) -> Solution:
    with phase(timings, "scheduler"):
        solution = schedule(compiled, scheduler.profiles, seed, scheduler.release)
    # Filters of its own say where a pod may go.
    demands = tuple(demand.by_itself(nodes=None, roles=()) for demand in compiled.problem.demands)
    with phase(timings, "check"):
        check(replace(compiled.problem, demands=demands, budgets=()), solution)
    return solution


class _KnownAnswers(NamedTuple):
    """Answers to start from: first fit's, and the one whose placements nobody is to lose."""

    first: Solution
    kept: Solution | None


def _kept(
    compiled: CompiledCluster,
    first: Solution,
    choices: Choices,
    scheduler: _Configured,
    timings: dict[str, float],
) -> Solution | None:
    """The answer whose placements nobody is to lose, for the whole problem."""
    match Keep(choices.keep):
        case Keep.NOBODY:
            return None
        case Keep.FIRST_FIT:
            return first
        case Keep.SCHEDULER:
            return compiled.of_whole(_scheduled(compiled, scheduler, choices.seed, timings))


def _start(problem: Problem, answer: Solution, *, keeps_rules: bool) -> Solution | None:
    """What of an answer keeps the caps and has its whole gang; None if that is no answer to the problem."""
    if keeps_rules and not problem.budgets:
        return answer
    placed = Counter(problem.demands[placement.demand].gang for placement in answer.placements)
    sizes = Counter(demand.gang for demand in problem.demands)
    whole = [
        placement
        for placement in answer.placements
        if not (gang := problem.demands[placement.demand].gang) or placed[gang] == sizes[gang]
    ]
    start = Solution(tuple(within_caps(problem, whole)) if problem.budgets else tuple(whole))
    return None if violations(problem, start) else start


def _optimum(
    compiled: CompiledCluster,
    known: _KnownAnswers,
    options: Options,
    progress: OnProgress | None,
    timings: dict[str, float],
) -> Solution:
    first, kept = known
    weighted = compiled.keeping(kept) if kept else compiled
    problem, worth = weighted.whole, weighted.worth
    with phase(timings, "optimum"):
        hint = _start(problem, kept, keeps_rules=kept is first) if kept else None
        hint = hint or _start(problem, first, keeps_rules=True)
        solution = solve(problem, options, hint=hint, progress=_read(progress, worth))
    # What makes a claim impossible was found on the way to the hint.
    placed = {placement.demand for placement in solution.placements}
    errors = {demand: error for demand, error in first.errors.items() if demand not in placed}
    lost = {placement.demand for placement in kept.placements} - placed if kept else set()
    warnings = (f"keep: gangs or caps leave out {len(lost)} who were to be kept",) if lost else ()
    solution = replace(solution, errors=errors, warnings=(*solution.warnings, *warnings))
    with phase(timings, "check"):
        check(problem, solution)
    return replace(solution, tiers=worth.tiers(solution.tiers))


def _read(progress: OnProgress | None, worth: Worth) -> OnProgress | None:
    """Tell of the first priority of which not all is proven instead of a sum over all of them."""
    if progress is None or worth.weights_are_shown:
        return progress

    def tell(news: Progress) -> None:
        tiers = worth.tiers((Tier(news.phase, news.best, news.bound),))
        tier = next((each for each in tiers if not each.proven), tiers[-1])
        progress(replace(news, phase=tier.name, best=tier.value, bound=tier.bound))

    return tell
