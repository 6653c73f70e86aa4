"""All that is pending at once: by reason, with the changes that would admit the most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pydantic import Field

from dralloc.ask.explain.change import Suggestion
from dralloc.ask.explain.explanation import Explanation
from dralloc.ask.explain.reasons import ADVICE, Code, NodeGroup
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table, counted
from dralloc.objects.schema import Fields, Key, Timings, Word
from dralloc.show.provisional import Provisional, ProvisionalDocument

__all__ = ["AdmittingChange", "PendingDocument", "PendingKind", "PendingReport"]

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
        The reason that rules out the most nodes, or what the answer says of them as a whole.
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
        """What is known of pods that ask for the same.

        Parameters
        ----------
        said
            What the answer says of them where no node rules them out.
        """
        groups = explanation.groups
        fits = any(reason.fits for reason in explanation.reasons)
        if fits or not groups:
            return cls(tuple(demands), explanation, _nameless(said, explanation.claims))
        most: NodeGroup = groups[0]
        texts = dict.fromkeys(cause.text for cause in most.causes)
        reason = _nameless("; ".join(texts), explanation.claims)
        code = most.causes[0].code
        return cls(tuple(demands), explanation, reason, code, len(most.nodes))

    @property
    def advice(self) -> str:
        """What usually helps against it."""
        return "" if self.code is None else ADVICE[self.code]

    @cached_property
    def changes(self) -> dict[str, Suggestion]:
        """The changes that would admit one of them, by their words without the claim's name, the cheapest first."""
        found: dict[str, Suggestion] = {}
        for one in self.explanation.suggestions:
            found.setdefault(_nameless(one.text, self.explanation.claims), one)
        return found


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
        """How many pods and claims are pending."""
        return sum(len(kind.demands) for kind in self.kinds)

    @cached_property
    def by_reason(self) -> dict[str, list[PendingKind]]:
        """The kinds by reason, the reason of the most pods first."""
        found: dict[str, list[PendingKind]] = {}
        for kind in self.kinds:
            found.setdefault(kind.reason, []).append(kind)
        return dict(sorted(found.items(), key=lambda entry: -_number(entry[1])))

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
        """How much is pending."""
        placed = f"{self.mode}: {self.placed} placed"
        if not self.kinds:
            return f"{placed}, nothing pending"
        return f"{placed}, {self.pending} pending for {counted(len(self.by_reason), 'reason')}"

    def names(self) -> Iterator[str]:
        """What is pending."""
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
            advised[kind.advice] += len(kind.demands)
        helps = [(str(number), text) for text, number in advised.most_common() if text]
        changes = [
            (str(change.pods), change.text, f"{change.example} {change.outcome}")
            for change in self.changes[:_CHANGES]
        ]
        columns = (">pods", "reason", ">nodes", "which")
        return [
            Line(self.headline, "bold"),
            Table("Pending, by reason", columns, reasons),
            Table("What usually helps", (">pods", "what"), [] if changes else helps),
            Table(
                "What would admit most, each pod by itself, as tried",
                (">pods", "change", "for example"),
                changes,
            ),
            self.not_asked,
            *([Line(_NEXT)] if self.kinds else []),
        ]


_NEXT: Final = "\nMore about one of them: dralloc explain ... --pod NAMESPACE/NAME"


def _number(kinds: Sequence[PendingKind]) -> int:
    return sum(len(kind.demands) for kind in kinds)


def _on(kinds: Sequence[PendingKind]) -> str:
    most = max(kind.nodes for kind in kinds)
    return str(most) if most else ""


def _named(kinds: Sequence[PendingKind]) -> str:
    """The first of them, and how many more there are."""
    keys = list(_keys(kinds))
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return ", ".join(map(str, keys[:_NAMED])) + more


def _keys(kinds: Sequence[PendingKind]) -> Iterator[ClaimKey]:
    for kind in kinds:
        yield from kind.demands
