"""The question behind an answer: the pods that it leaves out, and the rules of pods for which the answer holds."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import Field

from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.answer import Document, Documented, Fields
from dralloc.objects.assembly.unasked import Unasked
from dralloc.objects.errors import Finding, UnknownField
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Part, Table, timing_line

__all__ = [
    "WHO",
    "NotAsked",
    "Provisional",
    "ProvisionalDocument",
    "UnmodelledFields",
    "asked",
    "empty_remark",
    "kinds_asked",
    "reach",
    "unasked",
    "unasked_table",
    "unmodelled_table",
    "unread",
]

# ----------------------------------------------------------------------------
# What was asked, and which pods of the input are no part of it.

WHO: Final = "pod or claim"
"""Heads columns of what is to be placed: pods, and claims that no pod uses."""

_NAMED: Final = 3


def asked(compiled: CompiledCluster) -> str:
    """Return the number of pods and claims to be placed: ``40 pods and 2 claims``."""
    return " and ".join(
        f"{count} {kind if count > 1 else kind[:-1]}"
        for kind, count in _counts(compiled).items()
    )


def kinds_asked(compiled: CompiledCluster) -> str:
    """Return the kinds of things to be placed: ``pods``, ``claims`` or both."""
    return " and ".join(_counts(compiled)) or "pods"


def empty_remark(compiled: CompiledCluster) -> Iterator[Finding]:
    """Remark that there is nothing to place, if so, and what could be placed all the same."""
    if not compiled.problem.demands:
        waiting = Counter(
            why.include for why in compiled.unasked.values() if why.include
        )
        hints = "".join(
            f"; --include {inclusion} plans for {count} more"
            for inclusion, count in waiting.items()
        )
        yield Finding(
            "",
            "",
            "",
            f"there is nothing to place: no pod and no claim is pending{hints}",
        )


def _counts(compiled: CompiledCluster) -> dict[str, int]:
    demands = compiled.problem.demands
    claims = sum(map(compiled.is_claim, demands))
    return {
        kind: count
        for kind, count in (
            ("pods", len(demands) - claims),
            ("claims", claims),
        )
        if count
    }


@dataclass(frozen=True, slots=True)
class NotAsked:
    """Pods of the input that are not to be placed."""

    reason: Unasked
    pods: int
    names: tuple[ClaimKey, ...] = ()
    """Which they are, unless the reason says it all (bound to a node, run to its end, ...)."""

    @property
    def row(self) -> tuple[str, str, str]:
        """The same as a row of a table."""
        hint = (
            f" (--include {self.reason.include} plans for them)"
            if self.reason.include
            else ""
        )
        further = (
            [f"and {len(self.names) - _NAMED} more"]
            if len(self.names) > _NAMED
            else []
        )
        return (
            f"{self.reason}{hint}",
            str(self.pods),
            ", ".join([*map(str, self.names[:_NAMED]), *further]),
        )


def unasked(compiled: CompiledCluster) -> Iterator[NotAsked]:
    """Yield the pods that are not to be placed, by reason."""
    by_reason: dict[Unasked, list[ClaimKey]] = defaultdict(list)
    for key, why in compiled.unasked.items():
        by_reason[why].append(key)
    for why in Unasked:
        if why in by_reason:
            yield NotAsked(
                why,
                len(by_reason[why]),
                tuple(by_reason[why]) if why.telling else (),
            )


def unasked_table(compiled: CompiledCluster) -> Table:
    """Return the same as a table."""
    return Table(
        "Not asked about",
        ("why", ">pods", "which"),
        [group.row for group in unasked(compiled)],
    )


# ----------------------------------------------------------------------------
# Answers that hold for the rules modelled: what objects say beyond these is named
# (`dralloc.compile.modelled`).


def reach(unmodelled: Iterable[Finding]) -> str:
    """Return the words to add to a proof; empty if no rule is left out."""
    return " for the rules modelled" if list(unmodelled) else ""


def unread(unmodelled: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the remarks that were not made when the input was read."""
    return (
        finding
        for finding in unmodelled
        if not isinstance(finding, UnknownField)
    )


def unmodelled_table(findings: Iterable[Finding]) -> Table:
    """Return the table of rules that are not modelled, by object and field."""
    rows = [
        (
            finding.subject,
            finding.path,
            finding.rule.removeprefix("is not modelled: "),
        )
        for finding in findings
    ]
    return Table("Not modelled", ("object", "field", "what"), rows)


class UnmodelledFields(Fields):
    """Something in the input that could change the answer, and does not."""

    object: str = Field(validation_alias="subject")
    """The first object that says so, by kind and name."""
    field: str = Field(validation_alias="path")
    what: str = Field(validation_alias="rule")


class ProvisionalDocument(Document):
    """An answer that is true for the rules modelled."""

    unmodelled: list[UnmodelledFields]
    """What is left out; these rules are all that count unless something is named here."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Provisional(Documented):
    """An answer that tells itself in a `conclusion` and a `body`, with the rules that it is true for.

    Parameters
    ----------
    unmodelled
        What of the input could change the answer, and does not.
    timings
        Seconds by phase.
    """

    unmodelled: tuple[Finding, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    @abstractmethod
    def conclusion(self) -> str:
        """The answer in one line, by the rules modelled."""

    @abstractmethod
    def body(self) -> list[Part]:
        """Return the answer as tables and lines, without what is left out."""

    @property
    def headline(self) -> str:
        """The answer in one line, and whether more rules count."""
        comma = "," if self.unmodelled else ""
        return f"{self.conclusion}{comma}{reach(self.unmodelled)}"

    def parts(self) -> list[Part]:
        """Return the answer as tables and lines."""
        return [
            *self.body(),
            unmodelled_table(self.unmodelled),
            timing_line(self.timings),
        ]
