"""Answers that hold for the rules modelled: what objects say beyond these is named (`dralloc.compile.modelled`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import Field

from dralloc.objects.answer import Documented
from dralloc.objects.errors import Finding, UnknownField
from dralloc.objects.report import Part, Table, timing_line
from dralloc.objects.schema import Document, Fields

__all__ = [
    "Provisional",
    "ProvisionalDocument",
    "UnmodelledFields",
    "reach",
    "unmodelled_table",
    "unread",
]


def reach(unmodelled: Iterable[Finding]) -> str:
    """What is added to the words for a proof; empty if nothing is left out."""
    return " for the rules modelled" if any(True for _ in unmodelled) else ""


def unread(unmodelled: Iterable[Finding]) -> Iterator[Finding]:
    """What was not said already when the input was read."""
    return (one for one in unmodelled if not isinstance(one, UnknownField))


def unmodelled_table(findings: Iterable[Finding]) -> Table:
    """What is not modelled, by object and field."""
    rows = [
        (one.subject, one.path, one.rule.removeprefix("is not modelled: "))
        for one in findings
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
        """The answer as tables and lines, without what is left out."""

    @property
    def headline(self) -> str:
        """The answer in one line, and whether more rules count."""
        return f"{self.conclusion}{',' * bool(self.unmodelled)}{reach(self.unmodelled)}"

    def parts(self) -> list[Part]:
        """The answer as tables and lines."""
        return [
            *self.body(),
            unmodelled_table(self.unmodelled),
            timing_line(self.timings),
        ]
