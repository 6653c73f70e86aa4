"""The main job: a cluster in, a checked plan out; or both plans, to compare.

First what is checked of an answer: by both parts of the checker, as far as first fit, the scheduler or the optimum
promises it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Final, Unpack

from dralloc.check import check, check_objects, violations
from dralloc.check.objects import Binding, Filters, Promise
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.compiler.worth import Worth
from dralloc.objects.choices import (
    Choices,
    ChoiceWords,
    Ignored,
    Keep,
    Mode,
    ModeName,
    PolicyName,
    spelled_out,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.names import ClaimKey
from dralloc.problem import NodeIndex, Problem, numbered
from dralloc.problem.solution import (
    Placement,
    Solution,
    Tier,
    devices_only,
    translated,
)
from dralloc.show.comparison import Comparison, Scheduled
from dralloc.show.plan import Plan
from dralloc.solve.first_fit import completed, first_fit
from dralloc.solve.optimum import Earlier, Progress, solve, within_caps
from dralloc.solve.optimum.component import export
from dralloc.solve.policies import Policy, place, policy_name, way_of
from dralloc.solve.recreate.starts import Starts
from dralloc.solve.scheduler import Profile, Release, read_profiles, schedule
from dralloc.solve.work import phase

__all__ = [
    "CheckedAnswers",
    "allocate",
    "check_bindings",
    "check_newcomers",
    "compare",
    "export_model",
]

# ----------------------------------------------------------------------------
# Both parts of the checker for the answers to a cluster: what is promised by first
# fit, the scheduler, the optimum.

_FILTERS: Final = {
    Ignored.AFFINITY: "InterPodAffinity",
    Ignored.SPREAD: "PodTopologySpread",
    Ignored.TAINTS: "TaintToleration",
    Ignored.PORTS: "NodePorts",
}
"""The plugins of kube-scheduler whose filters can be ignored as a whole."""


def _check_batch(
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


def _check_scheduler(
    compiled: CompiledCluster,
    profiles: Sequence[Profile],
    problem: Problem,
    solution: Solution,
) -> None:
    """Make sure of an answer of the scheduler, which has filters of its own. Errors as `_check_batch`."""
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


# ----------------------------------------------------------------------------
# One answer, or several to compare.

OnProgress = Callable[[Progress], None]


@spelled_out(ChoiceWords)
def allocate(
    cluster: Cluster,
    mode: Mode | ModeName | PolicyName | Policy = Mode.OPTIMAL,
    *,
    choices: Choices | None = None,
    progress: OnProgress | None = None,
    start: Plan | None = None,
    **words: Unpack[ChoiceWords],
) -> Plan:
    """Place what is pending in the cluster.

    Parameters
    ----------
    cluster
        What was read with `dralloc.load`.
    mode
        ``"first-fit"``, ``"scheduler"`` or ``"optimal"``; or a policy: the name of one that dralloc knows, or one of
        your own (see `dralloc.Policy`).
    choices, words
        What is chosen, as one object, as keywords, or as both: see `dralloc.Choices`.
    progress
        Called while the optimum is searched for.
    start
        An answer to about the same question, from which the search for the optimum goes on: who is still asked about
        keeps the place there to begin with, and what proved its bound is tried first. If at least nine in ten of those
        asked about are the same, the search ends as soon as the gap is no larger than it was, but for the part of them
        who are new; many such answers in a row are held against the first one's gap.

    Returns
    -------
    Plan
        The answer; the independent checker has accepted it.

    Raises
    ------
    DrallocError
        A named node does not exist; the model cannot be built; a policy answers with something that it was not asked
        about; `ChoiceError` if there is no such mode, policy or goal; `CheckError` if the answer breaks a rule.

    Examples
    --------
    >>> import dralloc
    >>> cluster = dralloc.example()
    >>> dralloc.allocate(cluster, mode="first-fit")
    <Plan: first-fit: 1 of 2 placed, nothing proven>
    >>> plan = dralloc.allocate(cluster, goal="fewest-nodes", time_limit=60)
    >>> plan
    <Plan: optimal: 2 of 2 placed, proven optimal>
    >>> dralloc.allocate(cluster, start=plan)
    <Plan: optimal: 2 of 2 placed, proven optimal>
    """
    way = way_of(mode)
    answers = CheckedAnswers(cluster, Choices.of(choices, words), [way], start)
    return answers.by(way, progress)


@spelled_out(ChoiceWords)
def compare(
    cluster: Cluster,
    *,
    modes: str | Iterable[str | Policy] = (Mode.FIRST_FIT, Mode.OPTIMAL),
    seeds: int = 5,
    choices: Choices | None = None,
    progress: OnProgress | None = None,
    **words: Unpack[ChoiceWords],
) -> Comparison:
    """Answer in several modes. Other parameters and errors are those of `allocate`.

    Parameters
    ----------
    modes
        Two or more of what `allocate` takes, also policies, in a list or as one text with commas. Answers are held
        against the optimum; without it, against the last policy, or first fit.
    seeds
        Over how many seeds that is asked, from ``seed`` on.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.compare(dralloc.example())
    <Comparison: 2 claims: first fit places 1, the optimum 2 (proven optimal)>
    >>> dralloc.compare(dralloc.example(), modes="best-fit,optimal")
    <Comparison: 2 claims: best-fit places 1, the optimum 2 (proven optimal)>
    """
    ways, choices = _compared(modes), Choices.of(choices, words)
    answers = CheckedAnswers(cluster, choices, ways.values())
    scheduler_seeds: Sequence[int] = ()
    if Mode.SCHEDULER in ways:
        scheduler_seeds = range(choices.seed, choices.seed + seeds)
    by_scheduler = tuple(
        answers.plan(Mode.SCHEDULER, answers.scheduled(seed))
        for seed in scheduler_seeds
    )
    scheduled = (
        Scheduled(by_scheduler, tuple(scheduler_seeds))
        if by_scheduler
        else None
    )
    plans = [scheduled.median] if scheduled else []
    if Mode.OPTIMAL in ways:
        # It starts from first fit, so that its seconds are not counted twice.
        optimum = answers.optimum(progress)
    if Mode.FIRST_FIT in ways:
        plans.append(answers.by_first_fit())
    for name, way in ways.items():
        if not isinstance(way, Mode):
            plans.append(answers.plan(name, answers.by_policy(way)))
    if Mode.OPTIMAL in ways:
        of_devices = answers.compiled.of_devices(optimum)
        plans.append(answers.plan(Mode.OPTIMAL, of_devices))
    return Comparison(tuple(plans), answers.timings, scheduled)


def _compared(
    modes: str | Iterable[str | Policy],
) -> dict[Mode | str, Mode | str | Policy]:
    """Return the modes and policies to compare, by name.

    Raises
    ------
    ChoiceError
        A word stands for nothing.
    DrallocError
        There are less than two, or two policies of one name.
    """
    words = modes.split(",") if isinstance(modes, str) else list(modes)
    ways: dict[Mode | str, Mode | str | Policy] = {}
    for word in words:
        texts = word.split(",") if isinstance(word, str) else [word]
        for text in texts:
            way = way_of(text.strip() if isinstance(text, str) else text)
            name = way if isinstance(way, Mode) else policy_name(way)
            if ways.setdefault(name, way) is not way and not isinstance(
                way, str
            ):
                raise DrallocError(
                    f"modes to compare: two policies are called {name}"
                )
    if len(ways) < 2:
        raise DrallocError(
            f"modes to compare: {', '.join(map(str, ways))} is only one: name two or more"
        )
    return ways


@spelled_out(ChoiceWords)
def export_model(
    cluster: Cluster,
    path: str | PathLike[str],
    *,
    choices: Choices | None = None,
    **words: Unpack[ChoiceWords],
) -> None:
    """Write the exact model of what is pending, with its objective, to a file for other solvers.

    The objective is the first tier: the weight that is not placed, to be minimised.

    Parameters
    ----------
    path
        ``*.mps`` for MPS; else CP-SAT's exchange format, as text if the name ends in ``.txt``.
    choices, words
        As in `allocate`.

    Raises
    ------
    DrallocError
        As in `allocate`; amounts do not fit into the model, MPS has no words for one of its constraints, or the file
        cannot be written.

    Examples
    --------
    >>> import dralloc, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.mps")
    ...     dralloc.export_model(dralloc.example(), path)
    ...     "ROWS" in path.read_text()
    True
    """
    options = Choices.of(choices, words)
    compiled = compile_cluster(cluster, options)
    export(compiled.whole, Path(path), strict_cel=options.strict_cel)


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
            _check_batch(self.compiled, self.choices, problem, solution)
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
            _check_scheduler(
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
    def _continued(self) -> _Continued | None:
        """The answer to start from, with what became of it; None if there is none that keeps the rules."""
        if self._start is None:
            return None
        with phase(self.timings, "start"):
            return _continued(self._start, self.compiled)

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
    """Return the part of an answer that keeps caps and has whole gangs; None if it is no answer to the problem."""
    if keeps_rules and not problem.budgets:
        return answer
    placed = Counter(
        problem.demands[placement.demand].gang
        for placement in answer.placements
    )
    sizes = Counter(demand.gang for demand in problem.demands)
    placements = []
    for placement in answer.placements:
        gang = problem.demands[placement.demand].gang
        if not gang or placed[gang] == sizes[gang]:
            placements.append(placement)
    if problem.budgets:
        placements = list(within_caps(problem, placements))
    start = Solution(tuple(placements))
    return None if violations(problem, start) else start


# ----------------------------------------------------------------------------
# An earlier answer to go on from.

_CHANGED: Final = 0.1
"""If more of those asked about are not the same, the earlier gap says nothing about this question."""

_GOOD: Final = 0.25
"""An answer with a larger gap is none that another should be as good as."""


@dataclass(frozen=True, slots=True)
class _Continued:
    """An earlier answer in the numbers of a problem.

    Parameters
    ----------
    plan
        The answer as it was.
    solution
        What is left of it, with others where there is room.
    changed_nodes
        Where somebody went or came.
    changed
        The part of those asked about who were not asked about before, or the other way round.
    """

    plan: Plan
    solution: Solution
    changed_nodes: Collection[NodeIndex]
    changed: float

    @property
    def is_similar(self) -> bool:
        """Whether hardly anything is asked about that was not asked about before, and the other way round."""
        return self.changed <= _CHANGED

    @property
    def aims(self) -> Mapping[str, float]:
        """By tier, the smallest gap from the last search from nothing on.

        What a small change may cost is added to these and not to the last gap: a hundred small changes would add up.
        """
        gaps = {tier.name: tier.gap for tier in self.plan.tiers}
        return {
            name: min(gap, self.plan.solution.aims.get(name, gap))
            for name, gap in gaps.items()
        }

    def earlier(self, worth: Worth) -> Earlier:
        """Return the earlier answer as the search takes it, given the weights of the problem now."""
        aims = self.aims

        def is_enough(weight: Tier) -> bool:
            levels = worth.tiers((weight,))
            gaps = [aims.get(level.name, 0.0) for level in levels]
            # Where nothing was left to prove, the search ends by itself with what comes after the weight.
            is_comparable = self.is_similar and 0 < max(gaps) <= _GOOD
            # Who is new may all be without a place, which costs as much as there are of them.
            return is_comparable and all(
                level.gap <= gap + self.changed
                for level, gap in zip(levels, gaps, strict=True)
            )

        return Earlier(self.plan.solution.prices, is_enough)


def _continued(plan: Plan, compiled: CompiledCluster) -> _Continued | None:
    """Return what is left of an answer, and who finds room beside that; None if it breaks a rule."""
    problem, before = compiled.whole, plan.compiled.problem
    carried = Solution(
        tuple(translated(before, plan.solution.placements, compiled.problem))
    )
    placements = compiled.of_whole(carried).placements
    solution = completed(problem, placements)
    if violations(replace(problem, budgets=()), solution):
        return None
    homes_before = _homes(before, plan.solution.placements)
    homes_now = _homes(problem, solution.placements)
    changed = {node for _, node in homes_before ^ homes_now}
    asked = {demand.key for demand in problem.demands}
    asked_before = {demand.key for demand in before.demands}
    same = len(asked & asked_before)
    return _Continued(
        plan,
        solution,
        [
            index
            for index, node in numbered(problem.nodes)
            if node.name in changed
        ],
        1 - same / max(len(asked), len(asked_before), 1),
    )


def _homes(
    problem: Problem, placements: Iterable[Placement]
) -> set[tuple[ClaimKey, str]]:
    """Return the node's name for each placed pod."""
    return {
        (
            problem.demands[placement.demand].key,
            problem.nodes[placement.node].name,
        )
        for placement in placements
    }


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
