"""The JSON of validations."""

from __future__ import annotations

from pydantic import Field

from dralloc.errors import Level
from dralloc.schema import Document, Fields

__all__ = ["ValidationDocument"]


class ViolationFields(Fields):
    """A rule that does not hold at one place."""

    level: Level
    rule: str
    source: str
    """Where the object was read."""
    object: str = Field(validation_alias="subject")
    """Kind and name."""
    path: str
    """The field, as the API server writes it; empty for the object as a whole."""
    message: str


class ValidationDocument(Document):
    """What ``dralloc validate --json`` prints."""

    violations: list[ViolationFields]
