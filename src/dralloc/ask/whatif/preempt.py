"""The cheapest victims whose eviction admits a pod, a claim or a gang, beside those that upstream would choose.

First upstream's: its preemption, one pod after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, Unpack

from dralloc.ask.answer_checks import check_newcomers
from dralloc.ask.whatif.document import PreemptionDocument
from dralloc.ask.whatif.eviction_costs import EvictionCost, EvictionUnit
from dralloc.ask.whatif.evictions import Admission, Newcomer, Preemptor, Staging
from dralloc.ask.whatif.moves.cluster_migration import ClaimUsers
from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.choices import Choices, ChoiceWords, Mode, spelled_out
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table, counted
from dralloc.objects.value_kinds import TEXT, takes
from dralloc.problem import Demand, are_admitted
from dralloc.problem.solution import Solution, Status, Tier
from dralloc.show.question import Provisional
from dralloc.solve.optimum import solve
from dralloc.solve.optimum.stopping import Stop, with_time_left
from dralloc.solve.scheduler import Profile, read_profiles
from dralloc.solve.scheduler.groups import find_groups
from dralloc.solve.scheduler.release import Release
from dralloc.solve.scheduler.scheduler import Scheduler
from dralloc.solve.work import phase

__all__ = ["Preemption", "preempt"]

# ----------------------------------------------------------------------------
# Whom kube-scheduler would evict for some pods: its preemption, one pod after the
# other.

_MOST_TRIES: Final = 100
"""So many sets of victims are tried where newcomers have admin access beside shares."""

_TRYING: Final = 0.5
"""The part of the time that is left which these may take."""

_LAST: Final = 1.0
"""Seconds for the last answer, whose victims are all with shares, where time is over before any other is found."""

_TOO_FEW: Final = (
    "there are fewer pods, or groups of them, than have to be placed together"
)


@dataclass(frozen=True, slots=True)
class UpstreamVictim:
    """A pod that upstream evicts, from where, and for whom."""

    pod: ClaimKey
    node: str
    priority: int
    preemptor: ClaimKey


@dataclass(frozen=True, slots=True)
class UpstreamPreemption:
    """The result of upstream's preemption.

    Parameters
    ----------
    admits
        Whether the first of the pods has a node in the end, and as many others as its gang, or tree of gangs, needs.
    message
        The scheduler's words about the first pod that has none, or why it is not asked.
    """

    admits: bool
    victims: tuple[UpstreamVictim, ...] = ()
    message: str = ""

    def parts(self, eviction_count: int | None) -> Iterator[Part]:
        """The same as a table and a line, beside how many pods are to be evicted; None if nobody helps."""
        rows = [
            (
                str(victim.pod),
                victim.node,
                str(victim.priority),
                str(victim.preemptor),
            )
            for victim in self.victims
        ]
        yield Table(
            "Evicted by kube-scheduler's preemption",
            ("pod", "node", ">priority", "for"),
            rows,
        )
        if not self.admits:
            yield Line(
                f"\nkube-scheduler's preemption does not help: {self.message}"
            )
        elif self.victims and eviction_count is not None:
            count = len(self.victims)
            # What is cheapest by priorities or an annotation may be more pods.
            fewer = (
                f" where {eviction_count} would do"
                if eviction_count < count
                else f", and this answer {eviction_count}"
            )
            yield Line(f"\nkube-scheduler's preemption evicts {count}{fewer}.")


def _upstream_preemption(
    compiled: CompiledCluster, newcomers: Sequence[Demand], choices: Choices
) -> UpstreamPreemption:
    """Run upstream's preemption for some pods, in the order of their turn.

    Each pod by itself, as in Kubernetes 1.36 by default, also the pods of a gang. Upstream's dry run lets victims hold
    on to their devices, so it never evicts anybody for devices, unless DRAPreemption is on (KEP-5690).
    """
    config = choices.scheduler_config
    profiles = (Profile(),) if config is None else read_profiles(Path(config))
    scheduler = Scheduler(
        compiled, profiles, release=Release.of(choices.kubernetes)
    )
    if compiled.is_claim(newcomers[0]):
        return UpstreamPreemption(
            False,
            message="no pod uses the claim: kube-scheduler allocates claims for pods",
        )
    victims: list[UpstreamVictim] = []
    refusals: list[str] = []
    placed: set[ClaimKey] = set()
    groups = find_groups(compiled.cluster, compiled.problem.features)
    for key in (demand.key for demand in newcomers):
        group = groups.get(key)
        if group is not None and group.held_back:
            refusals.append(f"{key}: {group.held_back}")
            continue
        if (
            scheduler.pods[key].kind.spec.scheduler_name
            not in scheduler.profiles
        ):
            refusals.append(f"{key}: no profile is for its scheduler")
            continue
        attempt = scheduler.attempt(key)
        chosen = None if attempt.feasible else scheduler.preempt(attempt)
        if chosen is not None:
            node, evicted = chosen
            victims += (
                UpstreamVictim(pod.key, node.name, pod.kind.priority, key)
                for pod in evicted
            )
            # The victims are gone in the scheduler's books: the pod is tried again on
            # the node that it nominated.
            attempt = scheduler.attempt(key, [node.name])
        if attempt.feasible:
            scheduler.bind(key, attempt.chosen)
            placed.add(key)
        else:
            refusals.append(f"{key}: {attempt.message}")
    admits = newcomers[0].key in placed and are_admitted(newcomers, placed)
    return UpstreamPreemption(
        admits, tuple(victims), "" if admits else (*refusals, _TOO_FEW)[0]
    )


@dataclass(frozen=True, repr=False)
class Preemption(Provisional):
    """The pods to evict, and the pods that are admitted then. ``print(preemption)`` is a readable report.

    Parameters
    ----------
    asked
        Who is to be admitted: a pod, a claim that no pod uses, or so many of its gang, or tree of gangs, as it needs.
    priority
        Theirs: only lower ones are evicted.
    candidates
        How many pods could be evicted.
    victims
        Who is; empty if nobody has to be, or if nothing helps.
    admitted
        Where those who are asked for go; empty if they are not admitted.
    tiers
        What the victims cost, most important first, with what is proven.
    hopeless
        Whether it is proven that they are not admitted, whoever is evicted.
    upstream
        Whom kube-scheduler would evict.
    left_out
        Pods of lower priority that are not looked at, because their devices, nodes or neighbours break a rule as
        things are.
    """

    document = PreemptionDocument

    asked: tuple[ClaimKey, ...]
    priority: int
    candidates: int
    victims: tuple[EvictionUnit, ...]
    admitted: tuple[Admission, ...]
    tiers: tuple[Tier, ...]
    hopeless: bool
    upstream: UpstreamPreemption
    freed: Mapping[ClaimKey, tuple[ClaimKey, ...]] = field(default_factory=dict)
    left_out: tuple[ClaimKey, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether those who are asked for are admitted."""
        return bool(self.admitted)

    @property
    def exact(self) -> bool:
        """Whether the cost is proven to be the lowest, or that nothing helps, whoever is evicted."""
        return self._is_proven and (
            not self.left_out or (self.possible and not self.victims)
        )

    @property
    def _is_proven(self) -> bool:
        """Whether the answer is proven, if the pods that were left out may not be evicted."""
        return (
            all(tier.proven for tier in self.tiers)
            if self.possible
            else self.hopeless
        )

    @property
    def evicted(self) -> tuple[ClaimKey, ...]:
        """The pods that are evicted."""
        return tuple(pod.key for unit in self.victims for pod in unit.pods)

    @property
    def conclusion(self) -> str:
        """Say how many pods are evicted for whom, and what is proven."""
        names = ", ".join(map(str, self.asked))
        if not self.possible:
            below = f"evicting any of {self.candidates} pods below priority {self.priority}"
            return f"{names}: {below} does not help, {self._proof('proven', 'as far as time allowed')}"
        pod_count = len(self.evicted)
        if not pod_count:
            return f"{names}: fits without evicting anybody"
        proof = self._proof(
            "proven to be the cheapest", "perhaps others are cheaper"
        )
        return f"{names}: admitted by evicting {counted(pod_count, 'pod')}, {proof}"

    def _proof(self, proven: str, open_: str) -> str:
        """The words for what is proven, and of whom."""
        if self.exact or not self._is_proven:
            return proven if self.exact else open_
        return f"{proven} as long as none of {counted(len(self.left_out), 'pod')} is evicted that break a rule now"

    def names(self) -> Iterator[str]:
        """Yield the pods to evict, and never those of kube-scheduler's preemption or those who are admitted."""
        yield from map(str, self.evicted)

    def body(self) -> list[Part]:
        """The answer as tables and lines."""
        return [
            Line(self.headline, "bold"),
            Table(
                "Evicted",
                ("pod", "node", ">priority", "together with", "claims freed"),
                list(self._victim_rows()),
            ),
            Table("What it costs", ("", ">value", ">bound"), self._tier_rows()),
            Table(
                "Admitted",
                ("pod", "claim", "node", "devices"),
                list(self._admitted_rows()),
            ),
            *self.upstream.parts(len(self.evicted) if self.possible else None),
            *self._remarks(),
        ]

    def _victim_rows(self) -> Iterator[tuple[str, ...]]:
        for unit in self.victims:
            for pod in unit.pods:
                group = f"PodGroup {unit.group}" if unit.group else ""
                freed = "\n".join(map(str, self.freed.get(pod.key, ())))
                yield (
                    str(pod.key),
                    pod.spec.node_name or "",
                    str(unit.priority),
                    group,
                    freed,
                )

    def _tier_rows(self) -> list[tuple[str, ...]]:
        return [
            (tier.name, str(tier.value), str(tier.bound))
            for tier in self.tiers
            if tier.value
        ]

    def _admitted_rows(self) -> Iterator[tuple[str, ...]]:
        for admission in self.admitted:
            yield (
                str(admission.pod or ""),
                str(admission.claim),
                admission.node,
                "\n".join(map(str, admission.devices)),
            )

    def _remarks(self) -> Iterator[Line]:
        if self.left_out:
            listed = ", ".join(map(str, self.left_out))
            yield Line(
                f"\nNot evicted, because what they have breaks a rule as things are: {listed}.",
                "yellow",
            )
        yield from (
            Line(f"warning: {warning}", "yellow") for warning in self.warnings
        )


@takes(claim=TEXT.or_none(), pod=TEXT.or_none(), cost=TEXT)
@without_garbage_collection()
@spelled_out(ChoiceWords)
def preempt(
    cluster: Cluster,
    claim: str | None = None,
    pod: str | None = None,
    *,
    cost: str = EvictionCost.PODS,
    choices: Choices | None = None,
    **words: Unpack[ChoiceWords],
) -> Preemption:
    """Find the cheapest victims whose eviction admits a pending claim or pod, with its gang or tree of gangs.

    Victims have a lower priority and a node. Their claims are free once all pods that use them are evicted, and with
    them devices, CPU, memory and ports. Who runs and stays was there before who comes: what the newcomers ask of other
    pods must hold beside it. PodGroups whose ``disruptionMode`` says so are evicted as a whole; a priority of their own
    counts for them, and that of the group that is to be admitted (KEP-5710). Of that group, or its tree of groups,
    nobody is evicted. Other pending pods, and PodDisruptionBudgets, are not looked at.

    Parameters
    ----------
    claim, pod
        Who is to be admitted, as ``namespace/name``: one of the two.
    cost
        ``"pods"``: the fewest pods, of equally many those of lower priority. ``"priority"``: the fewest pods of the
        highest priority, then of the next, and so on. Anything else is an annotation of pods with an integer from 0,
        such as ``controller.kubernetes.io/pod-deletion-cost``: the smallest sum.
    choices, words
        As in `dralloc.allocate`, without goals, caps, fairness and objectives.

    Raises
    ------
    DrallocError
        Not exactly one of the two is given, or it is not pending; nobody has the annotation, or it is no integer.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.preempt(dralloc.example(), claim="default/large")
    <Preemption: default/large: fits without evicting anybody>
    """
    unused = ("goal", "caps", "fair", "keep", "objective", "priorities")
    options = Choices.of(choices, words, unused=unused)
    if (claim is None) == (pod is None):
        raise DrallocError(
            "preempt needs the name of a claim or of a pod, and not both"
        )
    newcomer = Newcomer(
        *(
            None if text is None else ClaimKey.parse(text)
            for text in (claim, pod)
        )
    )
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        included = (
            cluster_of(cluster)
            .including(options.include)
            .with_gates(options.features)
        )
        # The cluster as it is says who is asked for, and with which priority. The staging compiles others, without
        # those who may be evicted.
        compiled = compile_cluster(included, options)
        preemptor = Preemptor.of(compiled, newcomer)
        users = ClaimUsers(
            included, [node.name for node in compiled.problem.nodes]
        )
        staging = Staging.of(users, preemptor, cost, options)
    with phase(timings, "upstream"):
        upstream = _upstream_preemption(compiled, preemptor.newcomers, options)
    with phase(timings, "victims"):
        solution = _cheapest(staging, options)
    with phase(timings, "check"):
        # First the rules of the problem, then those of the objects as they are once the victims are gone.
        check(staging.problem, solution)
        cluster_after = staging.after(compiled.cluster, solution)
        check_newcomers(
            compiled, options, cluster_after, staging.bindings(solution)
        )
    answer = _answer(staging, preemptor.priority, solution, upstream)
    return replace(
        answer, unmodelled=compiled.unmodelled({Mode.OPTIMAL}), timings=timings
    )


class _Branch(NamedTuple):
    """The best answer of some, in the order in which they are looked at.

    Parameters
    ----------
    cost
        No answer of the branch is worth more than minus this.
    age
        Of equal costs the older branch comes first, as answers have no order.
    evicted
        The units, by index, that go in all answers of the branch.
    is_closed
        Whether of those with shares nobody else goes.
    """

    cost: int
    age: int
    evicted: frozenset[int]
    is_closed: bool
    answer: Solution


def _cheapest(staging: Staging, choices: Choices) -> Solution:
    """Return the answer with the cheapest victims.

    In the problem nobody is there first, so that admin access of newcomers takes no notice of others (KEP-5018). But
    who stays has its shares already, and admin access has to fit beside these (KEP-5075). So an answer with admin
    access is tried out in the cluster without its victims. If that fails, there are two ways on. Either nobody else of
    those with shares goes: then it is known which shares are in use, and admin access fits beside them from the start.
    Or one more of them goes: each is taken out in turn. The cheapest of all these answers is tried next.
    """
    stop, ages = Stop.after(choices.time_limit), count()
    best = solve(staging.problem, choices, hint=staging.start)
    if not staging.sharers or not staging.placed(best):
        return best

    def branch(
        evicted: frozenset[int], answer: Solution, *, is_closed: bool = False
    ) -> _Branch:
        cost = -answer.tiers[0].bound
        return _Branch(cost, next(ages), evicted, is_closed, answer)

    # In the rest of the time it is looked for who need not go where not all branches were tried.
    trying = stop.within(_TRYING * stop.seconds())
    branches = [branch(frozenset(), best)]
    seen = {frozenset[int]()}
    for _ in range(_MOST_TRIES):
        cheapest = heappop(branches)
        is_placed = bool(staging.placed(cheapest.answer))
        if not is_placed and cheapest.answer.tiers[0].proven:
            options = with_time_left(choices, stop)
            return _nobody(staging, options, -cheapest.cost)
        tried = staging.tried(cheapest.answer) if is_placed else None
        if tried is not None:
            return _bounded(tried, -cheapest.cost)
        # No branches are left of it, or time is over.
        if cheapest.is_closed or not is_placed or trying.reached():
            break
        evicted = cheapest.evicted
        only = solve(
            staging.without_only(evicted), with_time_left(choices, trying)
        )
        heappush(branches, branch(evicted, only, is_closed=True))
        for unit in sorted(staging.sharers - evicted):
            more = evicted | {unit}
            # The same units can be taken out in another order. Without time for all branches, none is tried next.
            if more not in seen and not trying.reached():
                seen.add(more)
                answer = solve(
                    staging.without(more), with_time_left(choices, trying)
                )
                heappush(branches, branch(more, answer))
        if trying.reached():
            break
    return _unproven(staging, choices, stop, -cheapest.cost)


def _unproven(
    staging: Staging, choices: Choices, stop: Stop, bound: int
) -> Solution:
    """Return an answer in which as few go that have shares as can be told soon; none is worth more than the bound.

    First all of them go. Then those whose weight is the largest stay first, as long as the newcomers are placed.
    """
    evicted = staging.sharers
    last = Stop.after(_LAST)
    best = _closed(staging, choices, max(stop, last, key=Stop.seconds), evicted)
    if best is None:
        return _nobody(staging, with_time_left(choices, stop), bound)
    # Halves first: most often nearly all of them may stay.
    waiting = [staging.heaviest_first(evicted)]
    while waiting and not stop.reached():
        units = waiting.pop()
        fewer = evicted.difference(units)
        better = _closed(staging, choices, stop, fewer)
        if better is not None:
            best, evicted = better, fewer
        elif len(units) > 1:
            middle = len(units) // 2
            waiting += (units[middle:], units[:middle])
    return _bounded(best, bound)


def _closed(
    staging: Staging, choices: Choices, stop: Stop, evicted: frozenset[int]
) -> Solution | None:
    """Return an answer in which of those with shares just these units go; None if newcomers are not placed then."""
    only = solve(staging.without_only(evicted), with_time_left(choices, stop))
    return staging.tried(only) if staging.placed(only) else None


def _nobody(staging: Staging, choices: Choices, bound: int) -> Solution:
    """Return the answer in which no newcomer comes; no answer is worth more than the bound."""
    return _bounded(solve(staging.alone(), choices), bound)


def _bounded(answer: Solution, bound: int) -> Solution:
    """The answer with a bound for all branches: what else is known holds for its own."""
    weight = replace(answer.tiers[0], bound=bound, limits=())
    status = Status.OPTIMAL if weight.proven else Status.FEASIBLE
    return replace(answer, tiers=(weight,), status=status)


def _answer(
    staging: Staging,
    priority: int,
    solution: Solution,
    upstream: UpstreamPreemption,
) -> Preemption:
    admitted, *stayed = staging.worth.tiers(solution.tiers)
    victims = tuple(staging.victims(solution)) if admitted.value else ()
    pairs = zip(staging.worth.levels[1:], stayed, strict=False)
    return Preemption(
        asked=staging.placed(solution)
        or tuple(demand.key for demand in staging.newcomers),
        priority=priority,
        candidates=len(staging.incumbents.pods),
        victims=victims,
        admitted=tuple(staging.admissions(solution)),
        tiers=tuple(
            Tier(
                tier.name,
                level.total - tier.value,
                level.total - tier.bound,
                -1,
            )
            for level, tier in pairs
        ),
        hopeless=not admitted.bound,
        upstream=upstream,
        freed=staging.freed({pod.key for unit in victims for pod in unit.pods}),
        left_out=tuple(sorted(staging.left_out)),
        warnings=solution.warnings,
    )
