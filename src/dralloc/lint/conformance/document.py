"""The JSON of recorded answers that were asked again."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from dralloc.objects.schema import Document, Word

__all__ = ["OutcomeDocument"]


class OutcomeDocument(Document):
    """What ``dralloc conformance --json`` prints for each case, one in a line."""

    name: str
    profile: str
    passed: bool = Field(serialization_alias="pass")
    actual: Any
    """The answer, in the form of the recorded one."""
    difference: Word
    """The first difference; null if there is none."""
