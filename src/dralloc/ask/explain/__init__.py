"""Why a claim is pending, what it conflicts with, and which change would admit it.

- `dralloc.ask.explain.nodes`: first fit's answer for every node, with the first reason that rules it out;
- `dralloc.ask.explain.oracle`: a minimal set of rules that cannot hold together;
- `dralloc.ask.explain.suggestions`: changes that would admit the demand, each tried out;
- `dralloc.ask.explain.explanation`: what the optimum would have to give up for it.

Here: from a cluster and the name of a claim or pod to the explanation; and the report on all that is pending, by
reason, with the changes that would admit the most.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Unpack, overload

from pydantic import Field

from dralloc.ask.allocate import allocate
from dralloc.ask.explain.explanation import Explanation, compete, gather
from dralloc.ask.explain.nodes import Diagnosis
from dralloc.ask.explain.oracle import (
    FeasibilityOracle,
    find_conflict,
    members_of,
)
from dralloc.ask.explain.reasons import (
    ADVICE,
    Code,
    NodeGroup,
    NodeReason,
    Suggestion,
    Wording,
)
from dralloc.ask.explain.snapshot import (
    DemandSnapshot,
    failing_gangs,
    find_demand,
    gang_blocker,
    is_tree_admitted,
    placed_before,
    snapshot_of,
)
from dralloc.ask.explain.suggestions import check_suggestions, find_suggestions
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.objects.answer import Fields, Key, Timings, Word
from dralloc.objects.choices import (
    Choices,
    Mode,
    ModeName,
    NodelessWords,
    Options,
    chosen,
    spelled_out,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError, no_node
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table, counted
from dralloc.problem import DemandIndex, Problem, numbered
from dralloc.problem.equivalence import claim_key
from dralloc.problem.inter_pod import OneDomain
from dralloc.problem.solution import (
    Placement,
    Solution,
    devices_only,
    with_node_grants,
)
from dralloc.show.plan import Plan, Unplaced
from dralloc.show.question import (
    Provisional,
    ProvisionalDocument,
    unasked_table,
)
from dralloc.solve.work import phase

__all__ = ["Explanation", "PendingReport", "explain"]

# ----------------------------------------------------------------------------
# All that is pending at once: by reason, with the changes that would admit the most.

_NAMED: Final = 2
_CHANGES: Final = 10


@dataclass(frozen=True)
class PendingKind:
    """Pods and claims that ask for the same and are pending for the same reason.

    Parameters
    ----------
    demands
        Which they are, in order.
    explanation
        Why the first of them is pending, beside everything that is placed.
    reason
        The reason that rules out the most of the nodes that come closest (nodes without such devices come less close
        than any others), or what the answer says of them as a whole.
    code
        Of which kind it is; None if it is not about nodes.
    nodes
        How many nodes it rules out; 0 if it is not about nodes.
    """

    demands: tuple[ClaimKey, ...]
    explanation: Explanation
    reason: str
    code: Code | None = None
    nodes: int = 0

    @classmethod
    def of(
        cls, demands: Sequence[ClaimKey], explanation: Explanation, said: str
    ) -> PendingKind:
        """Return what is known of pods that ask for the same.

        Parameters
        ----------
        said
            What the answer says of them where no node rules them out.
        """
        groups = explanation.groups
        fits = any(reason.fits for reason in explanation.reasons)
        if fits or not groups:
            return cls(
                tuple(demands), explanation, _nameless(said, explanation.claims)
            )
        closest = max(groups, key=_closeness)
        texts = dict.fromkeys(cause.text for cause in closest.causes)
        reason = _nameless("; ".join(texts), explanation.claims)
        code = closest.causes[0].code
        return cls(
            tuple(demands), explanation, reason, code, len(closest.nodes)
        )

    @property
    def advice(self) -> str:
        """The usual remedy."""
        return "" if self.code is None else ADVICE[self.code]

    @cached_property
    def changes(self) -> dict[str, Suggestion]:
        """The changes that would admit one of them, by their words without the claim's name, the cheapest first."""
        by_text: dict[str, Suggestion] = {}
        for suggestion in self.explanation.suggestions:
            text = _nameless(suggestion.text, self.explanation.claims)
            by_text.setdefault(text, suggestion)
        return by_text


_FAR: Final = (
    {Code.NO_DEVICE, Code.CLASS},
    {Code.NODE},
    {Code.SELECTOR, Code.AMOUNT, Code.FULL},
)
"""What rules out nodes that are further from holding a pod than others, the furthest first: other hardware, nodes to
which it may not come, other kinds of the same hardware, and nodes whose devices were not looked at yet."""


def _closeness(group: NodeGroup) -> tuple[int, int]:
    """How close nodes come to holding a pod, and how many they are."""
    code = group.causes[0].code
    far = next((at for at, codes in enumerate(_FAR) if code in codes), None)
    return len(_FAR) if far is None else far, len(group.nodes)


def _nameless(text: str, claims: Sequence[ClaimKey]) -> str:
    """The words of a change without the name of the claim that it is about."""
    for key in claims:
        text = text.replace(f"claim {key}, ", "").replace(f"claim {key}: ", "")
    return text


@dataclass(frozen=True, slots=True)
class AdmittingChange:
    """A single change, and how many pods it would admit, each by itself beside all that is placed.

    Parameters
    ----------
    text
        What to change, the same for all of them.
    pods
        How many pods and claims it would admit, each by itself.
    example
        One of them.
    outcome
        What then happens to it, as was tried.
    """

    text: str
    pods: int
    example: ClaimKey
    outcome: str


class PendingKindFields(Fields):
    """Pods and claims that ask for the same and are pending for the same reason."""

    demands: list[Key]
    reason: str
    advice: Word
    """What usually helps against it; null if the reason is not about nodes."""
    nodes: int
    """How many nodes it rules out; 0 if it is not about nodes."""


class AdmittingChangeFields(Fields):
    """A single change that would admit pods, each by itself."""

    change: str = Field(validation_alias="text")
    pods: int
    example: Key
    outcome: str


class PendingDocument(ProvisionalDocument):
    """What ``dralloc explain`` prints as JSON if nothing is named."""

    mode: str
    placed: int
    pending: int
    kinds: list[PendingKindFields]
    """The kinds of what is pending, the most first."""
    changes: list[AdmittingChangeFields]
    """The changes that would admit the most."""
    timings: Timings


@dataclass(frozen=True, repr=False)
class PendingReport(Provisional):
    """Why everything that is pending is pending, by reason. ``print(report)`` is a readable report.

    Parameters
    ----------
    mode
        Whose answer is explained.
    placed
        How many pods and claims it places.
    kinds
        What it does not place, the most first.
    not_asked
        The pods that are not to be placed, and why.

    Examples
    --------
    >>> import dralloc
    >>> report = dralloc.explain(dralloc.example())
    >>> report
    <PendingReport: first-fit: 1 placed, 1 pending for 1 reason>
    >>> report.changes[0].pods
    1
    """

    document = PendingDocument

    mode: str
    placed: int
    kinds: tuple[PendingKind, ...]
    not_asked: Table = field(default_factory=lambda: Table("", (), ()))

    @property
    def pending(self) -> int:
        """The number of pods and claims that are pending."""
        return sum(len(kind.demands) for kind in self.kinds)

    @cached_property
    def by_reason(self) -> dict[str, list[PendingKind]]:
        """The kinds by reason, the reason of the most pods first."""
        kinds_of: dict[str, list[PendingKind]] = {}
        for kind in self.kinds:
            kinds_of.setdefault(kind.reason, []).append(kind)
        return dict(
            sorted(kinds_of.items(), key=lambda entry: -_number(entry[1]))
        )

    @cached_property
    def changes(self) -> tuple[AdmittingChange, ...]:
        """Single changes, the one that would admit the most first; of equal ones the cheapest."""
        admitted: Counter[str] = Counter()
        first: dict[str, tuple[Suggestion, ClaimKey]] = {}
        for kind in self.kinds:
            for text, suggestion in kind.changes.items():
                admitted[text] += len(kind.demands)
                first.setdefault(text, (suggestion, kind.demands[0]))
        order = sorted(
            admitted, key=lambda text: (-admitted[text], first[text][0].cost)
        )
        return tuple(
            AdmittingChange(text, admitted[text], example, suggestion.outcome)
            for text in order
            for suggestion, example in [first[text]]
        )

    @property
    def conclusion(self) -> str:
        """Say how much is pending."""
        placed = f"{self.mode}: {self.placed} placed"
        if not self.kinds:
            return f"{placed}, nothing pending"
        return f"{placed}, {self.pending} pending for {counted(len(self.by_reason), 'reason')}"

    def names(self) -> Iterator[str]:
        """Yield what is pending."""
        for kind in self.kinds:
            yield from map(str, kind.demands)

    def body(self) -> list[Part]:
        """The report as tables and lines."""
        reasons = [
            (str(_number(kinds)), reason, _on(kinds), _named(kinds))
            for reason, kinds in self.by_reason.items()
        ]
        advised: Counter[str] = Counter()
        for kind in self.kinds:
            if not kind.changes:
                advised[kind.advice] += len(kind.demands)
        helps = [
            (str(count), text) for text, count in advised.most_common() if text
        ]
        changes = [
            (
                str(change.pods),
                _LOOKED_UP.sub("", change.text),
                f"{change.example} {change.outcome}",
            )
            for change in self.changes[:_CHANGES]
        ]
        columns = (">pods", "reason", ">nodes", "which")
        return [
            Line(self.headline, "bold"),
            Table("Pending, by reason", columns, reasons),
            Table(
                "What would admit most, each pod by itself, as tried",
                (">pods", "change", "for example"),
                changes,
            ),
            Table(
                "What usually helps the others"
                if changes
                else "What usually helps",
                (">pods", "what"),
                helps,
            ),
            self.not_asked,
            *([Line(_NEXT)] if self.kinds else []),
        ]


_LOOKED_UP: Final = re.compile(
    r"""device\.(?:attributes|capacity)\[(["'])[^"']+\1\]\."""
)
"""What comes before the name of an attribute in selectors: where many stand side by side, the names are enough."""

_NEXT: Final = (
    "\nMore about one of them: dralloc explain ... --pod NAMESPACE/NAME, or "
    "--claim for a claim that no pod uses"
)


def _number(kinds: Sequence[PendingKind]) -> int:
    return sum(len(kind.demands) for kind in kinds)


def _on(kinds: Sequence[PendingKind]) -> str:
    max_nodes = max(kind.nodes for kind in kinds)
    return str(max_nodes) if max_nodes else ""


def _named(kinds: Sequence[PendingKind]) -> str:
    """The first of them, and how many more there are."""
    keys = list(_keys(kinds))
    further = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return ", ".join(map(str, keys[:_NAMED])) + further


def _keys(kinds: Sequence[PendingKind]) -> Iterator[ClaimKey]:
    for kind in kinds:
        yield from kind.demands


_MOST_KINDS: Final = 20
"""Of how many kinds of what is pending changes are looked for, the most frequent first."""

_DISREGARDED: Final = "First fit looks neither at caps nor at fairness: mode optimal explains the answer that does."


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
        As in `dralloc.allocate`. First fit does not look at caps and fairness: only ``"optimal"`` explains them.

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
        question = _Explainer(
            plan.compiled, find_demand(plan.compiled, *names), mode, choices
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
        question = _Explainer(
            compiled,
            find_demand(compiled, *names),
            mode,
            choices,
            bool(disregarded),
        )
    return question.of_first_fit(nodes, timings, suggest=suggest)


def _pending(plan: Plan, *, suggest: bool) -> PendingReport:
    """Return why each kind of what an answer leaves out is left out, beside all that it places."""
    compiled, timings = plan.compiled, dict(plan.timings)
    demand_indices = {
        demand.key: index
        for index, demand in numbered(compiled.problem.demands)
    }
    # One of those that ask for the same is explained for all of them.
    classes: dict[Hashable, list[Unplaced]] = defaultdict(list)
    for unplaced in plan.unplaced:
        key = _request_class(compiled.whole, demand_indices[unplaced.key])
        classes[key].append(unplaced)
    kinds: list[PendingKind] = []
    for members in sorted(classes.values(), key=len, reverse=True):
        first = members[0]
        question = _Explainer(
            compiled, demand_indices[first.key], plan.rules, compiled.choices
        )
        with phase(timings, "explanations"):
            with_changes = suggest and len(kinds) < _MOST_KINDS
            explanation = question.of_rest(plan.solution, suggest=with_changes)
        keys = [unplaced.key for unplaced in members]
        kinds.append(PendingKind.of(keys, explanation, plan.reasons[first.key]))
    return PendingReport(
        plan.mode,
        len(plan.solution.placements),
        tuple(kinds),
        unasked_table(compiled),
        unmodelled=plan.unmodelled,
        timings=timings,
    )


def _request_class(problem: Problem, demand_index: DemandIndex) -> Hashable:
    """Equal for demands that ask for the same, so that one reason holds for all of them."""
    demand = problem.demands[demand_index]
    # Rules between pods and groups differ by pod, defects by claim: these stand alone.
    if demand.roles or demand.is_defective or demand.group_scopes:
        return demand_index
    keys = [claim_key(problem.eligibility, claim) for claim in demand.claims]
    return (*keys, demand.nodes, demand.gang, demand.key.namespace)


@dataclass(frozen=True)
class _Explainer:
    """Explains one demand in one mode. ``disregarded``: whether the mode ignores caps or fairness."""

    compiled: CompiledCluster
    number: DemandIndex
    mode: Mode
    options: Options
    disregarded: bool = False

    def of_first_fit(
        self, nodes: Sequence[str], timings: dict[str, float], *, suggest: bool
    ) -> Explanation:
        """Node by node."""
        with phase(timings, "first fit"):
            problem = self.compiled.whole
            snapshot = self._snapshot(
                tuple(
                    devices_only(problem, placed_before(problem, self.number))
                )
            )
        with phase(timings, "reasons"):
            diagnosis = Diagnosis(
                snapshot, Wording(snapshot.placed, self.compiled)
            )
            reasons = tuple(
                map(diagnosis.reason, self.compiled.problem.all_nodes)
            )
        base = replace(self._base(timings), reasons=_chosen(reasons, nodes))
        home = _first_fitting(snapshot, reasons)
        # It fits, but it is pending all the same if its gang is not admitted.
        if home:
            blocker = self._blocker()
            return (
                replace(base, remarks=(*base.remarks, blocker))
                if blocker
                else replace(base, node=home)
            )
        return self._with_changes(base, snapshot, timings) if suggest else base

    def _blocker(self) -> str:
        """Return the gang member, or the gang, that keeps a demand from its place although it fits alone."""
        problem = self.compiled.whole
        demand = problem.demands[self.number]
        if not demand.gang:
            return ""
        # Either a group above leaves the whole tree out, or the own gang is not complete.
        if demand.parent and not is_tree_admitted(problem, self.number):
            failing = failing_gangs(problem, self.number)
            if demand.gang not in failing:
                keys = {
                    gang: problem.demands[index].key
                    for gang, index in failing.items()
                }
                named = ", ".join(
                    f"gang {gang} does not (explain {key})"
                    for gang, key in keys.items()
                )
                said = f"too few of the groups of {demand.parent.root.name} fit together"
                return f"It fits alone: {said}{f': {named}' if named else ''}."
        blocker = gang_blocker(problem, self.number)
        return (
            ""
            if blocker is None
            else f"{problem.demands[blocker].key} of the gang fits on no node at its turn: explain that one."
        )

    def of_scheduler(
        self, solution: Solution, timings: dict[str, float]
    ) -> Explanation:
        """Return the explanation as the scheduler's event words it."""
        base = self._placed(solution, timings)
        return (
            base
            if base.placed
            else replace(
                base, remarks=(*base.remarks, str(solution.errors[self.number]))
            )
        )

    def of_rest(self, solution: Solution, *, suggest: bool) -> Explanation:
        """Node by node, beside all that an answer places. In mode scheduler, as its event says it."""
        base = self._base({})
        if self.mode is Mode.SCHEDULER:
            return base
        snapshot = self._snapshot(solution.placements)
        diagnosis = Diagnosis(snapshot, Wording(snapshot.placed, self.compiled))
        reasons = tuple(map(diagnosis.reason, self.compiled.problem.all_nodes))
        base = replace(base, reasons=reasons)
        fits = any(reason.fits for reason in reasons)
        return (
            self._with_changes(base, snapshot, {})
            if suggest and not fits
            else base
        )

    def _placed(
        self, solution: Solution, timings: dict[str, float]
    ) -> Explanation:
        """Return the explanation of a demand that an answer may place: with its node if it does."""
        homes = (
            placement.node
            for placement in solution.placements
            if placement.demand == self.number
        )
        node = next(
            (self.compiled.problem.nodes[home].name for home in homes), ""
        )
        return replace(self._base(timings), node=node)

    def of_optimum(
        self, solution: Solution, timings: dict[str, float], *, suggest: bool
    ) -> Explanation:
        """Return the explanation of an answer that was chosen as a whole."""
        problem = self.compiled.problem
        base = self._placed(solution, timings)
        if base.placed:
            return base
        snapshot = self._snapshot(solution.placements)
        # Who is alone competes with nobody.
        if len(problem.demands) > 1:
            with phase(timings, "competition"):
                with_nodes = self.compiled.whole
                complete = replace(
                    solution,
                    placements=tuple(
                        with_node_grants(with_nodes, solution.placements)
                    ),
                )
                competition = compete(
                    with_nodes, self.number, complete, self.options
                )
                base = replace(base, competition=competition)
        return self._with_changes(base, snapshot, timings) if suggest else base

    def _snapshot(self, placements: Sequence[Placement]) -> DemandSnapshot:
        return snapshot_of(
            self.compiled,
            self.number,
            placements,
            exact=self.mode is Mode.OPTIMAL,
        )

    def _base(self, timings: dict[str, float]) -> Explanation:
        demand = self.compiled.problem.demands[self.number]
        needed = (
            "all"
            if demand.quorum is None
            else f"at least {demand.quorum} members"
        )
        gang = (
            (
                f"It is placed only together with {needed} of gang {demand.gang}.",
            )
            if demand.gang
            else ()
        )
        if any(isinstance(role.rule, OneDomain) for role in demand.roles):
            gang = (
                *gang,
                "All of its group are in one domain of the group's topology constraint.",
            )
        remarks = (*gang, _DISREGARDED) if self.disregarded else gang
        keys = tuple(claim.key for claim in demand.claims)
        unmodelled = self.compiled.unmodelled({self.mode})
        return Explanation(
            self.mode,
            demand.key,
            keys,
            remarks=remarks,
            unmodelled=unmodelled,
            timings=timings,
        )

    def _with_changes(
        self,
        base: Explanation,
        snapshot: DemandSnapshot,
        timings: dict[str, float],
    ) -> Explanation:
        # A conflict is about rules alone, so the exact model looks for it: what only first
        # fit overlooks is none. Suggestions have to be of use in the mode that was asked.
        exact = FeasibilityOracle(snapshot, self.compiled, Mode.OPTIMAL)
        with phase(timings, "conflict"):
            members = members_of(exact)
            conflict = find_conflict(exact, members)
        if (
            conflict is None
            and self.mode is Mode.OPTIMAL
            and snapshot.whole.gang
        ):
            with phase(timings, "gang"):
                return self._with_gang(base, snapshot)
        if conflict is None:
            remark = "Only an error is in its way: the optimal mode, which leaves failing devices out, would place it."
            base = replace(base, remarks=(*base.remarks, remark))
        oracle = (
            exact
            if self.mode is Mode.OPTIMAL
            else FeasibilityOracle(snapshot, self.compiled, Mode.FIRST_FIT)
        )
        with phase(timings, "suggestions"):
            suggestions = find_suggestions(
                oracle, members if conflict is None else conflict.members
            )
            check_suggestions(oracle, suggestions)
        return replace(base, conflict=conflict, suggestions=suggestions)

    def _with_gang(
        self, base: Explanation, snapshot: DemandSnapshot
    ) -> Explanation:
        """It would fit: its gang does not."""
        gathered = gather(snapshot, self.options)
        if gathered is None:
            remark = "It would fit alone: its gang is in its way. Explain the other members of the gang."
            return replace(base, remarks=(*base.remarks, remark))
        gathering, suggestions = gathered
        return replace(base, gathering=gathering, suggestions=suggestions)


def _first_fitting(
    snapshot: DemandSnapshot, reasons: Sequence[NodeReason]
) -> str:
    """The node that first fit takes: the first that fits, unless an error ends the attempt before."""
    for node in snapshot.nodes:
        reason = reasons[node]
        if reason.fits:
            return reason.node
        if any(cause.fatal for cause in reason.causes):
            return ""
    return ""


def _chosen(
    reasons: tuple[NodeReason, ...], names: Sequence[str]
) -> tuple[NodeReason, ...]:
    if not names:
        return reasons
    by_name = {reason.node: reason for reason in reasons}
    for name in names:
        if name not in by_name:
            raise DrallocError(no_node(name, by_name))
    return tuple(by_name[name] for name in names)
