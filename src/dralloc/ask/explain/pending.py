"""All that is pending at once: by reason, with the changes that would admit the most."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pydantic import Field

from dralloc.ask.explain.changes import Suggestion
from dralloc.ask.explain.explanation import Explanation
from dralloc.ask.explain.reasons import ADVICE, Code, NodeGroup
from dralloc.objects.answer import Fields, Key, Timings, Word
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table, counted
from dralloc.show.question import Provisional, ProvisionalDocument

__all__ = ["PendingKind", "PendingReport"]

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
            sorted(kinds_of.items(), key=lambda entry: -_demand_count(entry[1]))
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
            (
                str(_demand_count(kinds)),
                reason,
                _most_nodes(kinds),
                _first_named(kinds),
            )
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


def _demand_count(kinds: Sequence[PendingKind]) -> int:
    return sum(len(kind.demands) for kind in kinds)


def _most_nodes(kinds: Sequence[PendingKind]) -> str:
    max_nodes = max(kind.nodes for kind in kinds)
    return str(max_nodes) if max_nodes else ""


def _first_named(kinds: Sequence[PendingKind]) -> str:
    """The first of them, and how many more there are."""
    keys = list(_keys(kinds))
    further = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return ", ".join(map(str, keys[:_NAMED])) + further


def _keys(kinds: Sequence[PendingKind]) -> Iterator[ClaimKey]:
    for kind in kinds:
        yield from kind.demands
