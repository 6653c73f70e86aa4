"""Recorded answers that were asked again: what came out, and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from dralloc.objects.answer import Document, Word

__all__ = ["CaseOutcome"]


class OutcomeDocument(Document):
    """What ``dralloc conformance --json`` prints for each case, one in a line."""

    name: str
    profile: str
    passed: bool = Field(serialization_alias="pass")
    actual: Any
    """The answer, in the form of the recorded one."""
    difference: Word
    """The first difference; null if there is none."""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """An answer in the form of the recorded one, and where they first differ; the case passes if they do not."""

    name: str
    profile: str
    actual: Any
    difference: str

    @property
    def passed(self) -> bool:
        """Whether the answer is the recorded one."""
        return not self.difference

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data, ready for JSON."""
        return OutcomeDocument.of(self).to_dict()
