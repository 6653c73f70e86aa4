"""Why a claim is pending, what it conflicts with, and which change would admit it.

- `dralloc.ask.explain.nodes`: first fit's answer for every node, with the first reason that rules it out;
- `dralloc.ask.explain.filter_trace`: which devices of a node are excluded by what, for one request;
- `dralloc.ask.explain.joint_reasons`: why requests do not fit together although each of them does alone;
- `dralloc.ask.explain.oracle`: whether the demand could be placed if something were different;
- `dralloc.ask.explain.conflict_members`: the rules that can be part of a conflict;
- `dralloc.ask.explain.conflict`: a minimal set of rules that cannot hold together;
- `dralloc.ask.explain.suggestions`: changes that would admit the demand, each tried out;
- `dralloc.ask.explain.suggestion_check`: whether the objects of the cluster allow them;
- `dralloc.ask.explain.explanation`: what the optimum would have to give up for it;
- `dralloc.ask.explain.explainer`: puts these together for one demand;
- `dralloc.ask.explain.pending`: the report on all that is pending, by reason.

Here: from a cluster and the name of a claim or pod to the explanation, or to the report.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Unpack, overload

from dralloc.ask.allocate import allocate
from dralloc.ask.explain.explainer import Explainer
from dralloc.ask.explain.explanation import Explanation
from dralloc.ask.explain.pending import PendingKind, PendingReport
from dralloc.ask.explain.snapshot import find_demand
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.choices import (
    Choices,
    Mode,
    ModeName,
    NodelessWords,
    chosen,
    spelled_out,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import ClaimKey
from dralloc.objects.value_kinds import SWITCH, TEXTS, instance_of, takes
from dralloc.problem import DemandIndex, Problem, numbered
from dralloc.problem.equivalence import claim_key
from dralloc.show.placed import Unplaced
from dralloc.show.plan import Plan
from dralloc.show.question import unasked_table
from dralloc.solve.optimum.stopping import Stop
from dralloc.solve.work import phase

__all__ = ["Explanation", "PendingReport", "explain"]

_MOST_KINDS: Final = 20
"""Of how many kinds of what is pending changes are looked for, the most frequent first."""

_NAME: Final = instance_of((str, ClaimKey), "a text or a ClaimKey").or_none()
"""Who is explained."""


@overload
def explain(
    cluster: Cluster,
    claim: None = None,
    pod: None = None,
    *,
    mode: Mode | ModeName = Mode.FIRST_FIT,
    nodes: Sequence[str] = (),
    suggest: bool = True,
    choices: Choices | None = None,
    **words: Unpack[NodelessWords],
) -> PendingReport: ...


@overload
def explain(
    cluster: Cluster,
    claim: ClaimKey | str | None = None,
    pod: ClaimKey | str | None = None,
    *,
    mode: Mode | ModeName = Mode.FIRST_FIT,
    nodes: Sequence[str] = (),
    suggest: bool = True,
    choices: Choices | None = None,
    **words: Unpack[NodelessWords],
) -> Explanation: ...


@takes(claim=_NAME, pod=_NAME, nodes=TEXTS, suggest=SWITCH)
@without_garbage_collection()
@spelled_out(NodelessWords)
def explain(  # noqa: PLR0913 - the demand, and what is shown about it
    cluster: Cluster,
    claim: ClaimKey | str | None = None,
    pod: ClaimKey | str | None = None,
    *,
    mode: Mode | ModeName = Mode.FIRST_FIT,
    nodes: Sequence[str] = (),
    suggest: bool = True,
    choices: Choices | None = None,
    **words: Unpack[NodelessWords],
) -> Explanation | PendingReport:
    """Explain why a claim or pod is pending, or why everything is that an answer does not place.

    Parameters
    ----------
    cluster
        What was read with `dralloc.load`.
    claim, pod
        What to explain, as ``namespace/name``; one of the two. A claim that a pod uses is explained with the pod.
        Without any, all that is pending is explained, by reason, as it is once everything else is placed.
    mode
        ``"first-fit"``: node by node, when first fit comes to the demand in the batch. ``"optimal"``: why the
        optimum leaves it out. ``"scheduler"``: in kube-scheduler's words, how many nodes each of its plugins rules out;
        nothing else is shown then.
    nodes
        Names of the only nodes to show reasons for; all if there are none. They change nothing about who is placed:
        the nodes of ``choices`` do.
    suggest
        Whether to look for a conflict and for changes that would admit the demand.
    choices, words
        As in `dralloc.allocate`. First fit does not look at caps and fairness: only ``"optimal"`` explains them. The
        time limit is that of the whole question; the answer that is explained may take all of it.

    Raises
    ------
    DrallocError
        There is no such claim or pod, nothing of it is pending, a named node does not exist, or nothing has the name
        that a cap or fairness is about.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.explain(dralloc.example(), claim="default/large")
    <Explanation: first-fit: default/large is not placed>
    >>> dralloc.explain(dralloc.example(), claim="default/large", mode="optimal").node
    'node-0'
    """
    timings: dict[str, float] = {}
    mode, choices = chosen(Mode, "mode", mode), Choices.of(choices, words)
    if claim is None and pod is None:
        if nodes:
            raise DrallocError(
                "nodes: the pod or claim has to be named whose reasons on "
                "these nodes are asked for"
            )
        return _pending(
            allocate(cluster, mode, choices=choices), suggest=suggest
        )
    names = [
        ClaimKey.parse(name) if isinstance(name, str) else name
        for name in (claim, pod)
    ]
    # Scheduler and optimum depend on the whole batch; first fit only on who came before.
    if mode is not Mode.FIRST_FIT:
        plan = allocate(cluster, mode, choices=choices)
        timings.update(plan.timings)
        question = Explainer(
            plan.compiled,
            find_demand(plan.compiled, *names),
            mode,
            choices,
            stop=_end_after(plan),
        )
        if mode is Mode.SCHEDULER:
            return question.of_scheduler(plan.solution, timings)
        return question.of_optimum(plan.solution, timings, suggest=suggest)
    with phase(timings, "compile"):
        compiled = compile_cluster(cluster, choices, modes={mode})
        disregarded = compiled.problem.budgets
        # Caps are compiled all the same: their names are checked, and a remark says so.
        compiled = replace(
            compiled, problem=replace(compiled.problem, budgets=())
        )
        question = Explainer(
            compiled,
            find_demand(compiled, *names),
            mode,
            choices,
            bool(disregarded),
            Stop.after(choices.time_limit),
        )
    return question.of_first_fit(nodes, timings, suggest=suggest)


def _pending(plan: Plan, *, suggest: bool) -> PendingReport:
    """Return why each kind of what an answer leaves out is left out, beside all that it places."""
    compiled, timings = plan.compiled, dict(plan.timings)
    placed = {placement.demand for placement in plan.solution.placements}
    waiting = [
        index
        for index, _ in numbered(compiled.problem.demands)
        if index not in placed
    ]
    stop = _end_after(plan)
    # One of those that ask for the same is explained for all of them. A pod and a claim that no pod uses may have the
    # same name, so that names do not tell which demand it is.
    classes: dict[Hashable, list[tuple[DemandIndex, Unplaced]]] = defaultdict(
        list
    )
    users = Counter(
        claim.key
        for demand in compiled.whole.demands
        for claim in demand.claims
    )
    for index, unplaced in zip(waiting, plan.unplaced, strict=True):
        key = _request_class(compiled.whole, index, users)
        classes[key].append((index, unplaced))
    kinds: list[PendingKind] = []
    for members in sorted(classes.values(), key=len, reverse=True):
        index, first = members[0]
        question = Explainer(
            compiled,
            index,
            plan.rules,
            compiled.choices,
            stop=stop,
        )
        with phase(timings, "explanations"):
            with_changes = suggest and len(kinds) < _MOST_KINDS
            explanation = question.of_rest(plan.solution, suggest=with_changes)
        keys = [unplaced.key for _, unplaced in members]
        said = (
            first.reason if compiled.problem.nodes else plan.reasons[first.key]
        )
        kinds.append(PendingKind.of(keys, explanation, said))
    return PendingReport(
        plan.mode,
        len(plan.solution.placements),
        tuple(kinds),
        unasked_table(compiled),
        unmodelled=plan.unmodelled,
        timings=timings,
    )


def _end_after(plan: Plan) -> Stop:
    """Return the end of the time limit, of which the search for the answer has taken its part."""
    limit = plan.compiled.choices.time_limit
    if limit is None:
        return Stop()
    return Stop.after(max(0.0, limit - plan.timings.get("optimum", 0.0)))


def _request_class(
    problem: Problem, demand_index: DemandIndex, users: Mapping[ClaimKey, int]
) -> Hashable:
    """Equal for demands that ask for the same, so that one reason holds for all of them.

    Parameters
    ----------
    users
        How many demands there are with each claim.
    """
    demand = problem.demands[demand_index]
    # Rules between pods and groups differ by pod, defects by claim: these stand alone.
    if demand.roles or demand.is_defective or demand.group_scopes:
        return demand_index
    keys = [claim_key(problem.eligibility, claim) for claim in demand.claims]
    # Others may have been granted a claim in common: it is served then, and where is settled.
    shared = tuple(claim.key for claim in demand.claims if users[claim.key] > 1)
    return (*keys, shared, demand.nodes, demand.gang, demand.key.namespace)
