"""The answers to one cluster, each checked: of first fit, of kube-scheduler, of policies and of the optimum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from dralloc.ask.answer_checks import check_batch, check_scheduler
from dralloc.ask.continued_answer import ContinuedAnswer, continued_answer
from dralloc.check import violations
from dralloc.compile.compiler import compile_cluster
from dralloc.compile.compiler.worth import Worth
from dralloc.objects.choices import Choices, Keep, Mode
from dralloc.objects.cluster import Cluster
from dralloc.problem import Problem, quorum_of
from dralloc.problem.indices import grouped
from dralloc.problem.solution import Solution, Tier, devices_only
from dralloc.show.plan import Plan
from dralloc.solve.caps import within_caps
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Progress, solve
from dralloc.solve.policies import Policy, place, policy_name
from dralloc.solve.recreate.starts import Starts
from dralloc.solve.scheduler import Profile, Release, read_profiles, schedule
from dralloc.solve.work import phase

__all__ = ["CheckedAnswers", "OnProgress"]

OnProgress = Callable[[Progress], None]


class CheckedAnswers:
    """The answers to one cluster, each checked, with the seconds that they take.

    Parameters
    ----------
    ways
        What is going to be asked for.
    start
        An answer from which the search for the optimum goes on.
    """

    def __init__(
        self,
        cluster: Cluster,
        choices: Choices,
        ways: Iterable[Mode | str | Policy],
        start: Plan | None = None,
    ) -> None:
        self._start = start
        config = choices.scheduler_config
        self.profiles = (
            (Profile(),) if config is None else read_profiles(Path(config))
        )
        self.release = Release.of(choices.kubernetes)
        self.choices = choices
        self.timings: dict[str, float] = {}
        rules = {
            way if isinstance(way, Mode) else Mode.FIRST_FIT for way in ways
        }
        with phase(self.timings, "compile"):
            self.compiled = compile_cluster(cluster, choices, modes=rules)
            self.problem = self.compiled.whole

    def by(
        self,
        way: Mode | str | Policy,
        progress: OnProgress | None = None,
    ) -> Plan:
        """Return the answer of a mode, or of a policy."""
        match way:
            case Mode.SCHEDULER:
                return self.plan(way, self.scheduled(self.choices.seed))
            case Mode.FIRST_FIT:
                return self.by_first_fit()
            case Mode.OPTIMAL:
                optimum = self.compiled.of_devices(self.optimum(progress))
                return self.plan(way, optimum)
        return self.plan(policy_name(way), self.by_policy(way))

    def plan(self, mode: Mode | str, solution: Solution) -> Plan:
        """Return a solution as users hold it."""
        return Plan(mode, self.compiled, solution, self.timings)

    def by_first_fit(self) -> Plan:
        """Return the answer of first fit."""
        return self.plan(
            Mode.FIRST_FIT, self.compiled.of_devices(self.first_fit)
        )

    def _check(self, problem: Problem, solution: Solution) -> Solution:
        with phase(self.timings, "check"):
            check_batch(self.compiled, self.choices, problem, solution)
        return solution

    @cached_property
    def first_fit(self) -> Solution:
        """The answer of first fit to the whole problem."""
        with phase(self.timings, "first fit"):
            solution = first_fit(self.problem, pruning=self.choices.pruning)
        return self._check(replace(self.problem, budgets=()), solution)

    def by_policy(self, policy: str | Policy) -> Solution:
        """Return what a policy places, of the user or by its name, as an answer to the problem of devices.

        A policy of the user may ask for everything that nodes have, also for what cannot run short.
        """
        problem = self.compiled.pods.applied(
            self.compiled.problem, complete=True
        )
        with phase(self.timings, policy_name(policy)):
            answer = place(problem, policy)
        # A policy knows nothing of caps.
        solution = self._check(replace(problem, budgets=()), answer)
        return replace(
            solution,
            placements=tuple(devices_only(problem, solution.placements)),
        )

    def scheduled(self, seed: int) -> Solution:
        """Return the answer of kube-scheduler to the problem of devices."""
        with phase(self.timings, "scheduler"):
            solution = schedule(
                self.compiled, self.profiles, seed, self.release
            )
        # Filters of its own say where a pod may go.
        problem = self.compiled.problem
        demands = tuple(
            demand.by_itself(nodes=None, roles=()) for demand in problem.demands
        )
        with phase(self.timings, "check"):
            check_scheduler(
                self.compiled,
                self.profiles,
                replace(problem, demands=demands, budgets=()),
                solution,
            )
        return solution

    def _kept(self) -> Solution | None:
        """Return the answer of which every placed pod is to stay placed, for the whole problem."""
        match Keep(self.choices.keep):
            case Keep.NOBODY:
                return None
            case Keep.FIRST_FIT:
                return self.first_fit
            case Keep.SCHEDULER:
                return self.compiled.of_whole(self.scheduled(self.choices.seed))

    @cached_property
    def _continued(self) -> ContinuedAnswer | None:
        """The answer to start from, with what became of it; None if there is none that keeps the rules."""
        if self._start is None:
            return None
        with phase(self.timings, "start"):
            return continued_answer(self._start, self.compiled)

    def optimum(self, progress: OnProgress | None) -> Solution:
        """Return the optimum of the whole problem, for which the search starts from the best of the other answers."""
        keep, continued = self._kept(), self._continued
        cheap = continued.solution if continued else self.first_fit
        weighted = self.compiled.keeping(keep) if keep else self.compiled
        problem, worth = weighted.whole, weighted.worth
        with phase(self.timings, "optimum"):
            hint = None
            if keep:
                hint = _start(problem, keep, keeps_rules=keep is cheap)
            hint = hint or _start(problem, cheap, keeps_rules=True)
            solution = solve(
                problem,
                self.choices,
                hint,
                _read(progress, worth),
                starts=Starts(
                    problem,
                    self.choices,
                    continued.changed_nodes if continued else (),
                ),
                earlier=continued.earlier(worth) if continued else None,
            )
        # What makes a claim impossible was found on the way to the hint.
        placed = {placement.demand for placement in solution.placements}
        errors = {
            demand: error
            for demand, error in cheap.errors.items()
            if demand not in placed
        }
        warnings = solution.warnings
        if keep:
            lost = {placement.demand for placement in keep.placements} - placed
            if lost:
                text = f"keep: gangs or caps leave out {len(lost)} who were to be kept"
                warnings = (*warnings, text)
        solution = replace(solution, errors=errors, warnings=warnings)
        return replace(
            self._check(problem, solution),
            tiers=worth.tiers(solution.tiers),
            aims=continued.aims if continued and continued.is_similar else {},
        )


def _start(
    problem: Problem, answer: Solution, *, keeps_rules: bool
) -> Solution | None:
    """Return what keeps caps, and of gangs what has its quorum; None if that is no answer to the problem."""
    if keeps_rules and not problem.budgets:
        return answer
    placed = Counter(
        problem.demands[placement.demand].gang
        for placement in answer.placements
    )
    gangs = grouped((demand.gang, demand) for demand in problem.demands)
    placements = []
    for placement in answer.placements:
        gang = problem.demands[placement.demand].gang
        if not gang or placed[gang] >= quorum_of(gangs[gang]):
            placements.append(placement)
    if problem.budgets:
        placements = list(within_caps(problem, placements))
    start = Solution(tuple(placements))
    return None if violations(problem, start) else start


def _read(progress: OnProgress | None, worth: Worth) -> OnProgress | None:
    """Tell of the first priority of which not all is proven instead of a sum over all of them."""
    if progress is None or worth.weights_are_shown:
        return progress

    def tell(news: Progress) -> None:
        tiers = worth.tiers((Tier(news.phase, news.best, news.bound),))
        tier = next((tier for tier in tiers if not tier.proven), tiers[-1])
        progress(
            replace(news, phase=tier.name, best=tier.value, bound=tier.bound)
        )

    return tell
