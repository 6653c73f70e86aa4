"""Over many crowded clusters: every conflict is one and is minimal, every suggestion admits the demand.

Each is verified the long way: the cluster's objects are edited, compiled anew, and judged by first fit or by trying
every answer. What is said of each node is compared with a search there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from operator import or_

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from brute_force import best, every_solution
from crowded import GANG, Crowd
from dralloc.ask.allocate import allocate
from dralloc.ask.explain.changes import Change, Cost, Suggestion
from dralloc.ask.explain.conflict import find_conflict
from dralloc.ask.explain.conflict_members import Member, members_of
from dralloc.ask.explain.explanation import Gathering, gather
from dralloc.ask.explain.nodes import Diagnosis
from dralloc.ask.explain.oracle import FeasibilityOracle
from dralloc.ask.explain.snapshot import placed_before, snapshot_of
from dralloc.ask.explain.suggestions import find_suggestions
from dralloc.ask.explain.wording import Wording
from dralloc.check import violations
from dralloc.objects.choices import Mode
from dralloc.objects.cluster import Cluster
from dralloc.objects.user_rules import Cap
from dralloc.problem import Problem, numbered
from dralloc.problem.solution import devices_only
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from examples import examples
from scenario_strategies import crowded_clusters
from wire_edits import Editor

PROBLEMS = examples(120)
CHUNKS = 8


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_conflicts_are_minimal_and_suggestions_hold(chunk: int) -> None:
    seen: Counter[str] = Counter()
    for seed in count(chunk, CHUNKS):
        for case in cases(seed):
            seen.update(case.verify())
        enough = CHUNKS * seen["demands"] >= PROBLEMS
        if enough and seen["conflicts"] and seen["suggestions"]:
            break


@settings(
    max_examples=PROBLEMS // 2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    crowded_clusters(most_claims=2),
    st.sampled_from([Mode.FIRST_FIT, Mode.OPTIMAL]),
)
def test_nodes_are_asked_again(whole: Cluster, mode: Mode) -> None:
    """The same where nodes bind: with taints, CPU, memory, places for pods and ports."""
    plan = allocate(whole, mode)
    placed = {placement.demand for placement in plan.solution.placements}
    for demand in range(len(plan.demands)):
        if demand not in placed:
            Case(
                f"{mode}", plan.compiled, demand, mode, plan.solution.placements
            ).verify()


@settings(
    max_examples=PROBLEMS // 2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    crowded_clusters(company=True),
    st.sampled_from([Mode.FIRST_FIT, Mode.OPTIMAL]),
)
def test_suggestions_mind_the_company_of_pods(
    whole: Cluster, mode: Mode
) -> None:
    plan = allocate(whole, mode)
    placed = {placement.demand for placement in plan.solution.placements}
    for demand in range(len(plan.demands)):
        if demand not in placed:
            Case(
                f"{mode}", plan.compiled, demand, mode, plan.solution.placements
            ).verify_company()


def cases(seed: int) -> Iterator[Case]:
    """Every demand that is not placed in a crowded cluster, in both modes."""
    crowd = Crowd(seed)
    cluster, features = crowd.cluster(), crowd.features()
    for mode in (Mode.FIRST_FIT, Mode.OPTIMAL):
        caps = [
            cap
            for cap in crowd.caps()
            if mode is Mode.OPTIMAL and is_published(cap, cluster)
        ]
        plan = allocate(cluster, mode, gang=GANG, features=features, caps=caps)
        placed = {placement.demand for placement in plan.solution.placements}
        for demand in range(len(plan.demands)):
            if demand not in placed:
                yield Case(
                    f"cluster {seed}, {mode}, {caps}",
                    plan.compiled,
                    demand,
                    mode,
                    plan.solution.placements,
                )


def is_published(cap: str, cluster: Cluster) -> bool:
    """Whether a device has any of what is capped."""
    name = Cap.parse(cap).resource
    counters = (
        counter
        for resource_slice in cluster.slices
        for counter_set in resource_slice.spec.shared_counters
        for counter in counter_set.counters
    )
    return name in counters or any(
        name in device.capacity
        for resource_slice in cluster.slices
        for device in resource_slice.spec.devices
    )


class Case:
    """One demand that is not placed."""

    def __init__(self, title, compiled, demand, mode, placements) -> None:  # type: ignore[no-untyped-def]
        self.title = f"{title}, {compiled.problem.demands[demand].key}"
        problem = compiled.problem
        self.exact = mode is Mode.OPTIMAL
        whole = compiled.whole
        placements_before = (
            placements
            if self.exact
            else tuple(devices_only(whole, placed_before(whole, demand)))
        )
        snapshot = snapshot_of(compiled, demand, placements_before)
        model = FeasibilityOracle(snapshot, compiled, Mode.OPTIMAL)
        self.members = members_of(model)
        self.conflict = find_conflict(model, self.members)
        rules = self.members if self.conflict is None else self.conflict.members
        oracle = (
            model if self.exact else FeasibilityOracle(snapshot, compiled, mode)
        )
        self.makes_room = (
            oracle.admit(
                Change(
                    released=frozenset(snapshot.context.ledger.by_claim)
                    - snapshot.own_claims
                )
            )
            is not None
        )
        self.suggestions = find_suggestions(oracle, rules)
        gang = (
            self.exact
            and self.conflict is None
            and problem.demands[demand].gang
        )
        self.gathered = gather(snapshot, Options()) if gang else None
        self.editor = Editor(compiled, snapshot, placements_before)
        self.diagnosis = Diagnosis(snapshot, Wording(snapshot.placed, compiled))

    def verify(self) -> Counter[str]:
        seen = Counter(
            demands=1,
            conflicts=self.conflict is not None,
            suggestions=len(self.suggestions),
        )
        if self.conflict is None:
            assert self._feasible(Change()), (
                f"{self.title}: no conflict, but infeasible"
            )
        else:
            kept = self.conflict.members
            assert not self._feasible_with(kept), (
                f"{self.title}: the conflict is feasible"
            )
            for member in kept:
                others = [rule for rule in kept if rule is not member]
                assert self._feasible_with(others), (
                    f"{self.title}: infeasible without {member.title}, too"
                )
        for suggestion in self.suggestions:
            assert self._holds(suggestion), (
                f"{self.title}: does not admit it: {suggestion.text}"
            )
            assert self._is_least(suggestion), (
                f"{self.title}: less would do: {suggestion.text}"
            )
            seen[suggestion.cost.name] += 1
        releases = [
            release
            for release in self.suggestions
            if release.cost is Cost.RELEASE
        ]
        if self.exact and self.conflict is not None:
            assert bool(releases) is self.makes_room, (
                f"{self.title}: who holds what is in the way"
            )
        if self.gathered is not None:
            gathering, raises = self.gathered
            assert (
                gathering.number
                == gathering.bound
                == self._together(gathering, Change())
            ), self.title
            assert gathering.number < len(gathering.members), (
                f"{self.title}: the whole gang fits"
            )
            for cap_raise in raises:
                assert self._together(gathering, cap_raise.change) == len(
                    gathering.members
                ), f"{self.title}: {cap_raise.text}"
            seen.update(gangs=1, raises=len(raises))
        self._verify_reasons()
        return seen

    def verify_company(self) -> None:
        """Whether suggestions hold where pods say something about others, but for those that lift just that."""
        for suggestion in self.suggestions:
            if not any(
                rule.startswith("didn't match")
                for rule in suggestion.change.rules
            ):
                also = (
                    sorted(suggestion.change.released)
                    if suggestion.cost is Cost.MOVE
                    else ()
                )
                node_like = (
                    suggestion.text.rpartition(" ")[2]
                    if suggestion.cost is Cost.NODE
                    else ""
                )
                problem = self.editor.problem(
                    suggestion.change, also, node_like
                )
                answer = (
                    solve(problem) if self.exact or also else first_fit(problem)
                )
                assert len(answer.placements) == len(problem.demands), (
                    f"{self.title}: does not admit it: {suggestion.text}"
                )

    def _together(self, gathering: Gathering, change: Change) -> int:
        """How many members of a gang fit, by trying everything."""
        problem = self.editor.problem_of(gathering.members, change)
        return most(
            replace(
                problem,
                demands=tuple(
                    replace(demand, weight=1) for demand in problem.demands
                ),
            )
        )

    def _verify_reasons(self) -> None:
        problem = self.editor.problem(Change())
        (demand,) = problem.demands
        for node, known in numbered(problem.nodes):
            alone = replace(problem, demands=(replace(demand, nodes=(node,)),))
            fits = node in problem.candidate_nodes(demand) and bool(
                first_fit(alone).placements
            )
            reason = self.diagnosis.reason(node)
            assert reason.fits is fits, f"{self.title}: {known.name}: {reason}"
            assert all(cause.text for cause in reason.causes)

    def _feasible_with(self, in_force: Sequence[Member]) -> bool:
        left_out = (
            member.without
            for member in self.members
            if not any(member is rule for rule in in_force)
        )
        return self._feasible(reduce(or_, left_out, Change()))

    def _feasible(self, change: Change) -> bool:
        return most(self.editor.problem(change)) > 0

    def _is_least(self, suggestion: Suggestion) -> bool:
        """Whether no raised cap could be lower by the smallest amount."""
        raised = suggestion.change.raised
        return not any(
            self._feasible(Change(raised={**raised, cap: level - 1}))
            for cap, level in raised.items()
        )

    def _holds(self, suggestion: Suggestion) -> bool:
        if suggestion.cost is Cost.MOVE:
            problem = self.editor.problem(
                suggestion.change, also=sorted(suggestion.change.released)
            )
            return most(problem) == sum(
                demand.weight for demand in problem.demands
            )
        node_like = (
            suggestion.text.rpartition(" ")[2]
            if suggestion.cost is Cost.NODE
            else ""
        )
        problem = self.editor.problem(suggestion.change, node_like=node_like)
        if self.exact:
            return most(problem) > 0
        return bool(first_fit(problem).placements)


def most(problem: Problem) -> int:
    """The largest weight that can be placed, by trying everything."""
    if not problem.budgets:
        return best(problem)[0]
    allowed = (
        solution
        for solution in every_solution(problem)
        if not violations(problem, solution)
    )
    return max(
        sum(
            problem.demands[placed.demand].weight
            for placed in solution.placements
        )
        for solution in allowed
    )
