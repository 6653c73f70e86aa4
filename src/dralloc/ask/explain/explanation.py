"""What an explanation consists of, as users hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dralloc.ask.explain.change import Suggestion
from dralloc.ask.explain.competition import Competition
from dralloc.ask.explain.conflict import Conflict
from dralloc.ask.explain.document import ExplanationDocument
from dralloc.ask.explain.gang import Gathering
from dralloc.ask.explain.reasons import ADVICE, NodeGroup, NodeReason, grouped
from dralloc.objects.choices import Mode
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table
from dralloc.show.provisional import Provisional

__all__ = ["Explanation"]

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
    >>> found = dralloc.explain(dralloc.example(), claim="default/large")
    >>> [str(reason.node) for reason in found.reasons if not reason.fits]
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
        found: list[Part] = [Line(self.headline, "bold")]
        found += (Line(remark) for remark in self.remarks)
        by_node = (">nodes", "reason, and what helps", "where")
        found.append(Table("Nodes by first reason", by_node, list(self._group_rows())))
        found.append(
            Table("Devices filtered out", (">devices", "why"), self._trace_rows())
        )
        found.append(
            Table(
                "On the first of these nodes",
                ("node", "what is in the way"),
                list(dict.fromkeys(self._detail_rows())),
            )
        )
        if self.conflict is not None:
            found += self.conflict.parts()
        if self.gathering is not None:
            found.append(self.gathering.line())
        if self.competition is not None:
            found += self.competition.parts()
        told = dict.fromkeys(f"{one.text}\n  {one.outcome}" for one in self.suggestions)
        changes = [(str(place), text) for place, text in enumerate(told, 1)]
        found.append(
            Table(
                "What would admit it, as tried, cheapest first",
                (">", "change, and what then"),
                changes,
            )
        )
        if self.conflict is not None and not changes:
            found.append(Line("No single change that was tried would admit it."))
        return [self._brief(part) for part in found]

    def _brief(self, part: Part) -> Part:
        """Without the name of the claim where there is only one, which the headline names."""
        if len(self.claims) != 1 or not isinstance(part, Table):
            return part
        prefix = f"claim {self.claims[0]}, "
        rows = [tuple(cell.replace(prefix, "") for cell in row) for row in part.rows]
        return replace(part, rows=rows)

    @property
    def conclusion(self) -> str:
        """Whether and where it is placed."""
        others = [str(key) for key in self.claims if key != self.demand]
        claims = (
            f" (claim{'s' if len(others) > 1 else ''} {', '.join(others)})"
            if others
            else ""
        )
        if self.placed:
            return f"{self.mode.value}: {self.demand} is placed on {self.node}{claims}"
        return f"{self.mode.value}: {self.demand} is not placed{claims}"

    def _group_rows(self) -> Iterator[tuple[str, str, str]]:
        for group in self.groups:
            for place, cause in enumerate(group.causes):
                number, where = (
                    (str(len(group.nodes)), _named(group.nodes))
                    if place == 0
                    else ("", "")
                )
                yield number, f"{cause}\n  {ADVICE[cause.code]}", where
        fitting = [reason.node for reason in self.reasons if reason.fits]
        if fitting:
            yield str(len(fitting)), "fits", _named(fitting)

    def _trace_rows(self) -> list[tuple[str, str]]:
        counts = Counter[str]()
        for cause in (cause for group in self.groups for cause in group.causes):
            counts.update(
                {
                    f"{cause.subject}: {label}": number
                    for label, number in cause.excluded
                }
            )
        return [(str(number), text) for text, number in counts.items()]

    def _detail_rows(self) -> Iterator[tuple[str, str]]:
        for group in self.groups:
            for cause in group.causes:
                # What it is about stands alone where both together make a long line.
                yield from (
                    (group.nodes[0], one.replace(": ", ":\n  ", len(one) > _LONG))
                    for one in cause.details
                )


def _named(nodes: Sequence[str]) -> str:
    shown = ", ".join(nodes[:_NODES_NAMED])
    return f"{shown}, ..." if len(nodes) > _NODES_NAMED else shown
