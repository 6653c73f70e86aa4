"""The parts of an explanation, as users hold it, and its JSON.

First how much of a gang fits and what the optimum would have to give up, then the JSON, then the explanation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from pydantic import AliasPath, BeforeValidator, Field

from dralloc.ask.explain.changes import Suggestion
from dralloc.ask.explain.conflict import Conflict
from dralloc.ask.explain.conflict_members import Member
from dralloc.ask.explain.oracle import with_seconds_left
from dralloc.ask.explain.raised_caps import least_raises
from dralloc.ask.explain.reasons import (
    ADVICE,
    FilterReason,
    NodeGroup,
    NodeReason,
    grouped,
)
from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.check import check
from dralloc.objects.answer import Fields, Key, Timings, Word
from dralloc.objects.choices import Mode
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table, listed
from dralloc.objects.user_rules import Budget, BudgetKey
from dralloc.problem import DemandIndex, Problem, numbered, quorum_of
from dralloc.problem.solution import Solution
from dralloc.show.question import Provisional, ProvisionalDocument
from dralloc.solve.optimum import Options, solve
from dralloc.solve.optimum.stopping import Stop

__all__ = ["ConflictFields", "Explanation", "Gathering", "compete", "gather"]

# ----------------------------------------------------------------------------
# How much of a gang fits, where each of its members would fit alone (KEP-4671: as
# many as it needs, or none).


@dataclass(frozen=True, slots=True)
class Gathering:
    """The number of members of a gang that fit at the same time, beside everything that is placed.

    Parameters
    ----------
    members
        All of them.
    number
        So many have been placed by trying, and the checker has accepted it.
    bound
        Not more than so many can be placed.
    """

    members: tuple[ClaimKey, ...]
    number: int
    bound: int

    def line(self) -> Line:
        """The numbers in words."""
        least = "" if self.number == self.bound else f"{self.number} or more, "
        limits = (
            f"{least}at most {self.bound} fit at once beside what is placed"
        )
        return Line(
            f"It would fit alone. Of the {len(self.members)} members of its gang {limits}."
        )


def _mates(problem: Problem, demand_index: DemandIndex) -> list[DemandIndex]:
    """The members of a demand's gang, by index; the demand alone if it has none."""
    gang = problem.demands[demand_index].gang
    return [
        index
        for index, demand in numbered(problem.demands)
        if index == demand_index or (gang and demand.gang == gang)
    ]


def gather(
    snapshot: DemandSnapshot, options: Options, stop: Stop | None = None
) -> tuple[Gathering, tuple[Suggestion, ...]] | None:
    """Find out how many members fit, and to which amounts raised caps would let in all of them.

    None if a member uses a claim that somebody else has been granted. All searches together have the time of ``stop``.
    """
    problem = snapshot.problem
    members = _mates(problem, snapshot.number)
    claims = {
        claim.key
        for member in members
        for claim in problem.demands[member].claims
    }
    if claims & snapshot.placed.keys():
        return None
    model = _GangModel(snapshot, members, options, stop or Stop())
    solution = model.fill(snapshot.caps.budgets)
    count, bound = len(solution.placements), solution.tiers[0].bound
    keys = tuple(problem.demands[member].key for member in members)
    suggestions = model.raises() if count < model.needed else ()
    return Gathering(keys, count, bound), tuple(suggestions)


class _GangModel:
    """The members, and everything that is left for them when one of them is explained."""

    def __init__(
        self,
        snapshot: DemandSnapshot,
        members: Sequence[DemandIndex],
        options: Options,
        stop: Stop,
    ) -> None:
        self.caps = snapshot.caps
        self.options = options
        self.stop = stop
        problem = snapshot.problem
        demands = [
            problem.demands[member].by_itself(weight=1) for member in members
        ]
        self.namespaces = {demand.key.namespace for demand in demands}
        self.needed = quorum_of([problem.demands[member] for member in members])
        self.who = f"{'all' if self.needed == len(members) else 'the needed'} {self.needed} members"
        self.part = snapshot.context.part(problem.all_nodes, demands).problem

    def fill(self, caps: Sequence[Budget]) -> Solution:
        """Place as many members as possible under these caps."""
        part = replace(self.part, budgets=tuple(caps))
        solution = solve(part, with_seconds_left(self.options, self.stop))
        check(part, solution)
        return solution

    def raises(self) -> Iterator[Suggestion]:
        """A cap that it is enough to raise; if there is none, all caps of these namespaces together."""
        return least_raises(
            self.caps,
            [key for key in self.caps.most if key.namespace in self.namespaces],
            self._admit,
        )

    def _admit(
        self, levels: Mapping[BudgetKey, int | None]
    ) -> tuple[Mapping[BudgetKey, int], str] | None:
        if self.stop.reached():
            return None
        changed = [
            replace(budget, most=levels.get(budget.key, budget.most))
            for budget in self.caps.budgets
        ]
        solution = self.fill(
            [budget for budget in changed if budget.most is not None]
        )
        if len(solution.placements) < self.needed:
            return None
        return self.caps.used(
            self.part, solution.placements
        ), f"{self.who} of the gang fit"


# ----------------------------------------------------------------------------
# What the optimum would have to give up to place a demand.


@dataclass(frozen=True, slots=True)
class Competition:
    """The best answer that places the demand, beside the optimum.

    Parameters
    ----------
    displaced, gained
        Demands that only the optimum places, and those that only the other answer places, without the demand itself.
    best
        The weight that the optimum places.
    proven
        Whether no answer with the demand places more.
    gang
        Whether the demand needs others of its gang beside it.
    """

    possible: bool
    """Whether any answer can place it beside what is allocated already; if not proven, only whether one was found."""
    displaced: tuple[ClaimKey, ...]
    gained: tuple[ClaimKey, ...]
    weight: int
    """Weight of the best answer that places it."""
    best: int
    proven: bool
    gang: bool = False

    def parts(self) -> list[Part]:
        """The competition as tables and lines."""
        if not (self.possible or self.proven):
            return [
                Line(
                    "The search ended before it was known whether it would fit beside what is allocated already."
                )
            ]
        if not self.possible:
            subject = "its gang alone would" if self.gang else "alone would it"
            return [
                Line(
                    f"Not even {subject} fit beside what is allocated already."
                )
            ]
        verdict = "proven" if self.proven else "not proven"
        cost = f"With it, at most weight {self.weight} can be placed ({verdict}); the optimum places {self.best}."
        rows = [(str(key), "is left out") for key in self.displaced]
        rows += [(str(key), "is placed, too") for key in self.gained]
        return [
            Line(cost),
            Table(
                "What it competes with",
                ("pod or claim", "if it were placed"),
                rows,
            ),
        ]


def compete(
    problem: Problem,
    demand_index: DemandIndex,
    optimum: Solution,
    options: Options,
) -> Competition:
    """Solve the problem again with a demand that is worth more than all others together."""
    total = sum(demand.weight for demand in problem.demands)
    members = set(_mates(problem, demand_index))
    # Any answer with the demand outweighs those without. Of its gang as many come as it needs: they count as before.
    demands = list(problem.demands)
    demands[demand_index] = replace(demands[demand_index], weight=total + 1)
    weighed = replace(problem, demands=tuple(demands))
    forced = solve(weighed, options, hint=optimum)
    before = {placement.demand for placement in optimum.placements}
    after = {placement.demand for placement in forced.placements}

    def weight(placed: set[DemandIndex]) -> int:
        return sum(problem.demands[index].weight for index in placed)

    def keys(indices: set[DemandIndex]) -> tuple[ClaimKey, ...]:
        return tuple(problem.demands[index].key for index in sorted(indices))

    return Competition(
        possible=demand_index in after,
        displaced=keys(before - after),
        # Members of its gang come along: they are no gain beside the demand.
        gained=keys(after - before - members),
        weight=weight(after),
        best=weight(before),
        # Tiers after the weight say nothing about who is placed.
        proven=forced.tiers[0].proven,
        gang=len(members) > 1,
    )


# ----------------------------------------------------------------------------
# The JSON of explanations.


class CauseFields(
    Fields,
    of=FilterReason,
    shown="code subject text devices excluded details",
):
    """What rules out one request, or the pod or claim as a whole."""

    excluded: Annotated[dict[str, int], BeforeValidator(dict)]
    """All reasons that exclude devices for this request, with the number of devices."""


class GroupFields(Fields, of=NodeGroup):
    """Nodes that are ruled out by the same causes."""


class NodeFields(Fields, of=NodeReason, shown="node fits causes"):
    """What holds for one node."""

    fits: bool


class MemberFields(Fields, of=Member, shown="kind title detail"):
    """A rule that is part of a conflict."""


class ConflictFields(Fields, of=Conflict):
    """Rules that cannot hold together, though without any one of them the others can."""


class GangFields(Fields, of=Gathering):
    """How many members of a gang fit at once beside what is placed."""


class CompetitionFields(
    Fields, of=Competition, shown="possible displaced gained weight best proven"
):
    """What the optimum would have to give up."""

    optimum: int = Field(validation_alias="best")


class SuggestionFields(Fields, of=Suggestion, shown="text outcome"):
    """A change that would admit it, as has been tried."""

    change: str = Field(validation_alias="text")
    kind: Annotated[str, BeforeValidator(str.lower)] = Field(
        validation_alias=AliasPath("cost", "name")
    )
    cost: int
    """Rank of the kind of change; the cheapest is 1."""


class ExplanationDocument(ProvisionalDocument):
    """What ``dralloc explain --json`` prints."""

    mode: Mode
    demand: Key
    """The pod, or the claim that no pod uses."""
    claims: list[Key]
    node: Word
    """Where it is placed; null if it is not."""
    groups: list[GroupFields]
    nodes: list[NodeFields] = Field(validation_alias="reasons")
    conflict: ConflictFields | None
    """A minimal one; null if it is placed, or was not looked for."""
    gang: GangFields | None = Field(validation_alias="gathering")
    """If it would fit alone (mode optimal)."""
    competition: CompetitionFields | None
    """Beside the optimum (mode optimal)."""
    suggestions: list[SuggestionFields]
    remarks: list[str]
    """What else is to be known."""
    timings: Timings


_NODES_NAMED = 2
_LONG = 100


@dataclass(frozen=True, repr=False)
class Explanation(Provisional):
    """Why a demand is pending, or where it goes. ``print(explanation)`` is a readable report.

    Parameters
    ----------
    mode
        Whose answer is explained.
    demand
        The pod, or the claim that no pod uses.
    claims
        Its claims that are not allocated yet.
    node
        The node that the demand is placed on; empty if it is not placed.
    reasons
        For each node what first fit finds there when it comes to the demand (mode first-fit).
    conflict
        A minimal set of rules that cannot hold together; None if the demand is placed, or was not asked for.
    gathering
        How many members of its gang fit at once, if it would fit alone (mode optimal).
    competition
        What the optimum would have to give up for the demand (mode optimal).
    suggestions
        The cheapest single changes that would admit the demand, cheapest first.
    remarks
        What else is to be known, e.g. about the demand's gang.

    Examples
    --------
    >>> import dralloc
    >>> explanation = dralloc.explain(dralloc.example(), claim="default/large")
    >>> [str(reason.node) for reason in explanation.reasons if not reason.fits]
    ['node-0', 'node-1']
    """

    document = ExplanationDocument

    mode: Mode
    demand: ClaimKey
    claims: tuple[ClaimKey, ...]
    node: str = ""
    reasons: tuple[NodeReason, ...] = ()
    conflict: Conflict | None = None
    gathering: Gathering | None = None
    competition: Competition | None = None
    suggestions: tuple[Suggestion, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def placed(self) -> bool:
        """Whether the demand is placed."""
        return bool(self.node)

    @cached_property
    def groups(self) -> tuple[NodeGroup, ...]:
        """The nodes that are ruled out, by cause."""
        return grouped(self.reasons)

    def names(self) -> Iterator[str]:
        """The nodes where it fits."""
        yield from (reason.node for reason in self.reasons if reason.fits)

    def body(self) -> list[Part]:
        """The explanation as tables and lines."""
        parts: list[Part] = [Line(self.headline, "bold")]
        parts += (Line(remark) for remark in self.remarks)
        by_node = (">nodes", "reason, and what helps", "where")
        parts.append(
            Table("Nodes by first reason", by_node, list(self._group_rows()))
        )
        parts.append(
            Table(
                "All nodes",
                ("node", "reason"),
                list(self._node_rows()),
                wide=True,
            )
        )
        parts.append(
            Table(
                "Devices filtered out", (">devices", "why"), self._trace_rows()
            )
        )
        parts.append(
            Table(
                "On the first of these nodes",
                ("node", "what is in the way"),
                list(dict.fromkeys(self._detail_rows())),
            )
        )
        if self.conflict is not None:
            parts += self.conflict.parts()
        if self.gathering is not None:
            parts.append(self.gathering.line())
        if self.competition is not None:
            parts += self.competition.parts()
        told = dict.fromkeys(
            f"{suggestion.text}\n  {suggestion.outcome}"
            for suggestion in self.suggestions
        )
        changes = [(str(rank), text) for rank, text in enumerate(told, 1)]
        parts.append(
            Table(
                "What would admit it, as tried, cheapest first",
                (">", "change, and what then"),
                changes,
            )
        )
        if self.conflict is not None and not changes:
            parts.append(
                Line("No single change that was tried would admit it.")
            )
        return [self._brief(part) for part in parts]

    def _brief(self, part: Part) -> Part:
        """Without the name of the claim where there is only one, which the headline names."""
        if len(self.claims) != 1 or not isinstance(part, Table):
            return part
        prefix = f"claim {self.claims[0]}, "

        def brief(row: Sequence[str]) -> tuple[str, ...]:
            return tuple(cell.replace(prefix, "") for cell in row)

        return replace(part, rows=list(map(brief, part.rows)))

    @property
    def conclusion(self) -> str:
        """Whether and where it is placed."""
        claim_names = [str(key) for key in self.claims if key != self.demand]
        claims = (
            f" (claim{'s' if len(claim_names) > 1 else ''} {', '.join(claim_names)})"
            if claim_names
            else ""
        )
        if self.placed:
            return f"{self.mode.value}: {self.demand} is placed on {self.node}{claims}"
        return f"{self.mode.value}: {self.demand} is not placed{claims}"

    def _group_rows(self) -> Iterator[tuple[str, str, str]]:
        for group in self.groups:
            for cause_index, cause in enumerate(group.causes):
                node_count, where = (
                    (str(len(group.nodes)), _named(group.nodes))
                    if cause_index == 0
                    else ("", "")
                )
                yield node_count, f"{cause}\n  {ADVICE[cause.code]}", where
        fitting = [reason.node for reason in self.reasons if reason.fits]
        if fitting:
            yield str(len(fitting)), "fits", _named(fitting)

    def _node_rows(self) -> Iterator[tuple[str, str]]:
        for reason in self.reasons:
            yield reason.node, "; ".join(map(str, reason.causes)) or "fits"

    def _trace_rows(self) -> list[tuple[str, str]]:
        counts = Counter[str]()
        for cause in (cause for group in self.groups for cause in group.causes):
            counts.update(
                {
                    f"{cause.subject}: {label}": count
                    for label, count in cause.excluded
                }
            )
        return [(str(count), text) for text, count in counts.items()]

    def _detail_rows(self) -> Iterator[tuple[str, str]]:
        for group in self.groups:
            for cause in group.causes:
                # What it is about stands alone where both together make a long line.
                yield from (
                    (
                        group.nodes[0],
                        detail.replace(": ", ":\n  ", len(detail) > _LONG),
                    )
                    for detail in cause.details
                )


def _named(nodes: Sequence[str]) -> str:
    return listed(nodes, _NODES_NAMED)
