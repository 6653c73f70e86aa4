"""Puts together why one demand is pending: nodes, conflicts, and what would admit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from dralloc.ask.explain.conflict import find_conflict
from dralloc.ask.explain.conflict_members import members_of
from dralloc.ask.explain.explanation import Explanation, compete, gather
from dralloc.ask.explain.nodes import Diagnosis
from dralloc.ask.explain.oracle import (
    FeasibilityOracle,
    with_seconds_left,
)
from dralloc.ask.explain.reasons import NodeReason
from dralloc.ask.explain.snapshot import (
    DemandSnapshot,
    failing_gangs,
    gang_blocker,
    is_tree_admitted,
    placed_before,
    snapshot_of,
)
from dralloc.ask.explain.suggestion_check import checked_suggestions
from dralloc.ask.explain.suggestions import find_suggestions
from dralloc.ask.explain.wording import Wording
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.choices import Mode, Options
from dralloc.objects.errors import DrallocError, no_node
from dralloc.problem import DemandIndex
from dralloc.problem.inter_pod import OneDomain
from dralloc.problem.solution import (
    Placement,
    Solution,
    devices_only,
    with_node_grants,
)
from dralloc.solve.optimum.stopping import Stop, Stopped, late_stop
from dralloc.solve.work import phase

__all__ = ["Explainer"]

_DISREGARDED: Final = "First fit looks neither at caps nor at fairness: mode optimal explains the answer that does."
_ENDED: Final = "It would fit beside all that is placed: the search ended, as at a time limit, before it was placed."

_CONFLICT_OPEN: Final = (
    "The time was over before it was known what is in its way."
)
_CHANGES_OPEN: Final = (
    "The time was over before all changes were tried that may admit it."
)

_FINDING: Final = 0.75
"""The part of the time that is left in which changes are found; in the rest they are checked."""

_GANG: Final = "It would fit alone: its gang is in its way. Explain the other members of the gang."
_PERHAPS: Final = (
    "It would fit alone: its gang is in its way, or the search ended, as at a time limit, before all of it was placed. "
    "Explain the other members of the gang."
)
_GANG_ENDED: Final = (
    "Its gang would fit beside all that is placed: "
    "the search ended, as at a time limit, before it was placed."
)


@dataclass(frozen=True)
class Explainer:
    """Explains one demand in one mode.

    Parameters
    ----------
    disregarded
        Whether the mode ignores caps or fairness.
    stop
        The end of the time limit, of which the answer has taken its part.
    """

    compiled: CompiledCluster
    number: DemandIndex
    mode: Mode
    options: Options
    disregarded: bool = False
    stop: Stop = field(default_factory=Stop)

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
                options = with_seconds_left(self.options, self.stop)
                competition = compete(
                    with_nodes, self.number, complete, options
                )
                base = replace(base, competition=competition)
        proven = all(tier.proven for tier in solution.tiers[:1])
        return (
            self._with_changes(base, snapshot, timings, proven=proven)
            if suggest
            else base
        )

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
        *,
        proven: bool = True,
    ) -> Explanation:
        # A conflict is about rules alone, so the exact model looks for it: what only first
        # fit overlooks is none. Suggestions have to be of use in the mode that was asked.
        stop = late_stop(self.stop, self.options.time_limit)
        exact = FeasibilityOracle(snapshot, self.compiled, Mode.OPTIMAL, stop)
        try:
            with phase(timings, "conflict"):
                members = members_of(exact)
                conflict = find_conflict(exact, members)
        except Stopped:
            return replace(base, remarks=(*base.remarks, _CONFLICT_OPEN))
        # Without a conflict it could be placed as it is: the optimum leaves it out for its gang, or was not found.
        if conflict is None and self.mode is Mode.OPTIMAL:
            if snapshot.whole.gang and not _is_any_mate_placed(snapshot):
                with phase(timings, "gang"):
                    return self._with_gang(base, snapshot, proven=proven)
            return replace(base, remarks=(*base.remarks, _ENDED))
        if conflict is None:
            remark = "Only an error is in its way: the optimal mode, which leaves failing devices out, would place it."
            base = replace(base, remarks=(*base.remarks, remark))
        oracle = (
            exact
            if self.mode is Mode.OPTIMAL
            else FeasibilityOracle(snapshot, self.compiled, Mode.FIRST_FIT)
        )
        oracle.stop = finding = stop.within(_FINDING * stop.seconds())
        with phase(timings, "suggestions"):
            suggestions = find_suggestions(
                oracle, members if conflict is None else conflict.members
            )
            ended = finding.reached()
            oracle.stop = stop
            suggestions = checked_suggestions(oracle, suggestions)
        if ended:
            base = replace(base, remarks=(*base.remarks, _CHANGES_OPEN))
        return replace(base, conflict=conflict, suggestions=suggestions)

    def _with_gang(
        self, base: Explanation, snapshot: DemandSnapshot, *, proven: bool
    ) -> Explanation:
        """It would fit: its gang does not, or was not found where the answer is not proven."""
        gathered = gather(snapshot, self.options, self.stop)
        if gathered is None:
            remark = _GANG if proven else _PERHAPS
            return replace(base, remarks=(*base.remarks, remark))
        gathering, suggestions = gathered
        demand = snapshot.whole
        needed = (
            len(gathering.members) if demand.quorum is None else demand.quorum
        )
        # Members were counted without rules between pods, and without the other gangs of a tree.
        bound_otherwise = demand.parent or demand.roles
        if not (proven or bound_otherwise) and gathering.number >= needed:
            base = replace(base, remarks=(*base.remarks, _GANG_ENDED))
        return replace(base, gathering=gathering, suggestions=suggestions)


def _is_any_mate_placed(snapshot: DemandSnapshot) -> bool:
    """Whether its gang has as many members placed as it needs: whoever else of it fits may come as well."""
    demands = snapshot.problem.demands
    return any(
        demands[placement.demand].gang == snapshot.whole.gang
        for placement in snapshot.placements
    )


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
